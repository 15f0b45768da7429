//! The accept loop: takes connections within limits, and makes room or waits when there is none.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::listener::{Listener, Service, Tasks};
use super::refusal::{Refusals, SpareDescriptor};
use super::table::ConnectionTable;

/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often to say so.
const ACCEPT_LOG_EVERY: Duration = Duration::from_secs(30);

impl Listener {
    /// Accepts connections until the future is dropped.
    pub(super) async fn accept(&self, service: &Arc<Service>, tasks: &Tasks) {
        let room = Room {
            service,
            tasks,
            table: ConnectionTable::new(self.settings.connections_max),
            refusals: Refusals::new(),
            is_tls: self.tls.is_some(),
        };
        let mut spare = SpareDescriptor::new();
        let mut trouble = Trouble::default();
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => room.take(stream, peer),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) if is_out_of_descriptors(&error) => {
                    // The system says so also if no client waits. With the spare descriptor one is waited for.
                    match spare.accept(&self.socket).await {
                        Ok((stream, peer)) => {
                            trouble.tell(&error);
                            room.take_or_refuse(stream, peer).await;
                            spare.restore();
                        }
                        Err(error) => {
                            trouble.tell(&error);
                            room.restore(&mut spare).await;
                            sleep(ACCEPT_PAUSE).await;
                        }
                    }
                }
                Err(error) => {
                    trouble.tell(&error);
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// The room for connections.
struct Room<'a> {
    service: &'a Arc<Service>,
    tasks: &'a Tasks,
    table: ConnectionTable,
    refusals: Refusals,
    is_tls: bool,
}

impl Room<'_> {
    /// Serves a client, or refuses it where the table is full.
    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        if let Some(slot) = self.table.admit(peer.ip()) {
            let service = Arc::clone(self.service);
            self.tasks.start(async move { service.hold(stream, peer, slot).await });
            return;
        }
        tracing::debug!(%peer, "refused a connection: the table is full");
        // Without a handshake nothing can be said over TLS.
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
        // Too late or not, the next accept tells.
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

/// Trouble with accepting, which goes on for long once it begins, told now and then.
#[derive(Default)]
struct Trouble {
    told: Option<Instant>,
    untold: u64,
}

impl Trouble {
    fn tell(&mut self, error: &io::Error) {
        if self.told.is_some_and(|told| told.elapsed() < ACCEPT_LOG_EVERY) {
            self.untold += 1;
            return;
        }
        let more = std::mem::take(&mut self.untold);
        self.told = Some(Instant::now());
        tracing::error!(more, "cannot take new connections for now: {error}");
    }
}
