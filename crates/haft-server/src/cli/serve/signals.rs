//! Signals from the system.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The request behind a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// SIGINT: finish.
    End,
    /// SIGTERM: finish, and let load balancers notice first.
    Drain,
    /// SIGHUP: load the files again.
    Reload,
}

pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next thing that is wanted.
    pub(super) async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::End,
            _ = self.terminate.recv() => Wish::Drain,
            _ = self.hang_up.recv() => Wish::Reload,
        }
    }

    /// The next time that an end is wanted.
    pub(super) async fn end(&mut self) {
        while self.next().await == Wish::Reload {}
    }
}
