//! The accept loop: takes connections within limits, and makes room or waits when there is none.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::connection::Service;
use super::direct::DirectEndpoints;
use super::listener::{Listener, Tasks};
use super::refusal::{Refusals, SpareDescriptor};
use super::table::ConnectionTable;

/// Pause when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Interval between log lines about it.
const ACCEPT_LOG_EVERY: Duration = Duration::from_secs(30);

impl Listener {
    /// Accepts connections until the future is dropped.
    pub(super) async fn accept<D: DirectEndpoints>(
        &self,
        service: &Arc<Service<D>>,
        tasks: &Tasks,
    ) {
        let room = Room {
            service,
            tasks,
            table: ConnectionTable::new(self.settings.connections_max),
            refusals: Refusals::new(),
            is_tls: self.tls.is_some(),
        };
        let mut spare = SpareDescriptor::new();
        let mut log = RateLimitedLog::default();
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => room.take(stream, peer),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) if is_out_of_descriptors(&error) => {
                    // The system reports it also without a waiting client. With the spare descriptor, wait for one.
                    match spare.accept(&self.socket).await {
                        Ok((stream, peer)) => {
                            log.error(&error);
                            room.take_or_refuse(stream, peer).await;
                            spare.restore();
                        }
                        Err(error) => {
                            log.error(&error);
                            room.restore(&mut spare).await;
                            sleep(ACCEPT_PAUSE).await;
                        }
                    }
                }
                Err(error) => {
                    log.error(&error);
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// The room for connections.
struct Room<'a, D> {
    service: &'a Arc<Service<D>>,
    tasks: &'a Tasks,
    table: ConnectionTable,
    refusals: Refusals,
    is_tls: bool,
}

impl<D: DirectEndpoints> Room<'_, D> {
    /// Serves a client, or refuses it where the table is full.
    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        if let Some(slot) = self.table.admit(peer.ip()) {
            let service = Arc::clone(self.service);
            self.tasks.start_with(|cut| async move { service.hold(stream, peer, slot, cut).await });
            return;
        }
        tracing::debug!(%peer, "refused a connection: the table is full");
        // Without a handshake no response can be sent over TLS.
        if !self.is_tls
            && let Some(answering) = self.refusals.answer(stream)
        {
            self.tasks.start(answering);
        }
    }

    /// Serves a client that has the spare descriptor, if another connection gives up its own; refuses it otherwise.
    async fn take_or_refuse(&self, stream: TcpStream, peer: SocketAddr) {
        if self.make_room().await {
            self.take(stream, peer);
        } else if !self.is_tls {
            // Answered here and not in the background: the descriptor is needed again.
            self.refusals.answer_within(stream, ACCEPT_PAUSE).await;
        }
    }

    /// Opens the spare descriptor again, if need be instead of a connection.
    async fn restore(&self, spare: &mut SpareDescriptor) {
        spare.restore();
        if spare.is_missing() && self.make_room().await {
            spare.restore();
        }
    }

    /// Closes one connection that may be closed, and waits for its descriptor. False if there is none.
    async fn make_room(&self) -> bool {
        let Some(freed) = self.table.evict_one() else { return false };
        // The next accept shows if it was too late.
        let _ = timeout(ACCEPT_PAUSE, freed).await;
        true
    }
}

/// The client was gone before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The process or the system has no descriptor left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    let numbers = [Errno::MFILE, Errno::NFILE];
    error.raw_os_error().is_some_and(|it| numbers.iter().any(|number| number.raw_os_error() == it))
}

/// Logs failures of `accept` at intervals, because they last long once they begin.
#[derive(Default)]
struct RateLimitedLog {
    last_written: Option<Instant>,
    suppressed: u64,
}

impl RateLimitedLog {
    fn error(&mut self, error: &io::Error) {
        if self.last_written.is_some_and(|last_written| last_written.elapsed() < ACCEPT_LOG_EVERY) {
            self.suppressed += 1;
            return;
        }
        let more = std::mem::take(&mut self.suppressed);
        self.last_written = Some(Instant::now());
        tracing::error!(more, "cannot take new connections for now: {error}");
    }
}
