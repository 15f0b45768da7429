//! Events of a run's questions to people.

use haft::HumanInbox;
use haft::human_input::{InboxEvent, InboxItem};
use parking_lot::Mutex;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::run::Run;

/// The questions of one run. Checked before any other event is emitted, so that an answer never follows its
/// consequence.
pub(super) struct Questions<'a> {
    run: &'a Run,
    inbox: &'a HumanInbox,
    updates: Mutex<Receiver<InboxEvent>>,
}

impl<'a> Questions<'a> {
    pub(super) fn of(run: &'a Run, inbox: &'a HumanInbox) -> Self {
        Self { run, inbox, updates: Mutex::new(inbox.subscribe()) }
    }

    /// Emits the changes since the last check.
    pub(super) fn catch_up(&self) {
        let mut updates = self.updates.lock();
        loop {
            match updates.try_recv() {
                Ok(InboxEvent::Asked(item)) if self.is_ours(&item) => self.run.asked(&item),
                Ok(InboxEvent::Asked(_)) => {}
                Ok(InboxEvent::Closed { id, how }) => self.run.closed(&id, Some(how)),
                Err(TryRecvError::Lagged(_)) => {
                    let (open, again) = self.inbox.follow();
                    *updates = again;
                    self.compare(&open);
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// After lagging behind the inbox, the open questions show which events were missed.
    fn compare(&self, open: &[InboxItem]) {
        for id in self.run.questions() {
            if !open.iter().any(|item| item.id == id) {
                self.run.closed(&id, None);
            }
        }
        for item in open.iter().filter(|item| self.is_ours(item)) {
            self.run.asked(item);
        }
    }

    /// The session alone does not prove it: any caller of a tool may name one.
    fn is_ours(&self, item: &InboxItem) -> bool {
        item.session.as_deref() == Some(self.run.session())
            && item.caller.as_deref() == Some(self.run.caller())
    }
}
