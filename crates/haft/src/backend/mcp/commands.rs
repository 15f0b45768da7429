//! Commands to the supervisor of one connection.

use tokio::sync::watch;

use super::machine::Event;

/// The commands so far, in a form that holds any number of them: every value only grows, so commands of one kind
/// merge, none is lost, and no queue can fill up. The command to stop is a cancelled token, because stopping the
/// toolbox stops every connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Commands {
    /// A caller needs the server, and has seen that this many rounds are over.
    connect_after: Option<u64>,
    /// The commands to connect again.
    reconnects: u64,
    /// The notices of changed lists.
    list_changes: u64,
    /// The latest attempt whose connection was reported as lost.
    lost: Option<u64>,
}

impl Commands {
    /// The commands that came after `seen`, most urgent first.
    pub(super) fn since<C, L>(&self, seen: &Self) -> impl Iterator<Item = Event<C, L>> + use<C, L> {
        let Self { connect_after, reconnects, list_changes, lost } = self.clone();
        let reconnect =
            (reconnects > seen.reconnects).then_some(Event::Reconnect { ticket: reconnects });
        let lost = lost.filter(|_| lost > seen.lost).map(|attempt| Event::Lost { attempt });
        let changed = (list_changes > seen.list_changes).then_some(Event::ListsChanged);
        let is_new = connect_after > seen.connect_after;
        let connect = connect_after.filter(|_| is_new).map(|after| Event::Connect { after });
        [reconnect, lost, changed, connect].into_iter().flatten()
    }
}

/// The sending half.
#[derive(Debug, Clone, Default)]
pub(super) struct CommandSender(watch::Sender<Commands>);

impl CommandSender {
    pub(super) fn subscribe(&self) -> watch::Receiver<Commands> {
        self.0.subscribe()
    }

    /// Asks for a connection, having seen that `after` rounds are over.
    pub(super) fn connect(&self, after: u64) {
        self.0.send_if_modified(|commands| {
            let is_new = commands.connect_after < Some(after);
            if is_new {
                commands.connect_after = Some(after);
            }
            is_new
        });
    }

    /// Asks for a new connection; returns the ticket to wait for.
    pub(super) fn reconnect(&self) -> u64 {
        let mut ticket = 0;
        self.0.send_modify(|commands| {
            commands.reconnects += 1;
            ticket = commands.reconnects;
        });
        ticket
    }

    /// Reports that the lists of the server changed.
    pub(super) fn lists_changed(&self) {
        self.0.send_modify(|commands| commands.list_changes += 1);
    }

    /// Reports that the connection of this attempt is lost.
    pub(super) fn lost(&self, attempt: u64) {
        self.0.send_modify(|commands| commands.lost = commands.lost.max(Some(attempt)));
    }

    /// Returns true if a caller has requested the first connection.
    pub(super) fn wants_connection(&self) -> bool {
        self.0.borrow().connect_after.is_some()
    }
}
