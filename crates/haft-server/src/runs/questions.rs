//! What a run hears of its questions to people.

use std::sync::{Mutex, PoisonError};

use haft::Inbox;
use haft::inbox::{InboxEvent, Item};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::run::Run;

/// The questions of one run. Looked at before anything else of the run is told, so that an answer is never told
/// after what came of it.
pub(super) struct Questions<'a> {
    run: &'a Run,
    inbox: &'a Inbox,
    news: Mutex<Receiver<InboxEvent>>,
}

impl<'a> Questions<'a> {
    pub(super) fn of(run: &'a Run, inbox: &'a Inbox) -> Self {
        Self { run, inbox, news: Mutex::new(inbox.subscribe()) }
    }

    /// Tells what has happened to them since.
    pub(super) fn catch_up(&self) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match news.try_recv() {
                Ok(InboxEvent::Asked(item)) if self.is_ours(&item) => self.run.asked(&item),
                Ok(InboxEvent::Asked(_)) => {}
                Ok(InboxEvent::Closed { id, how }) => self.run.closed(&id, Some(how)),
                Err(TryRecvError::Lagged(_)) => {
                    let (open, again) = self.inbox.follow();
                    *news = again;
                    self.compare(&open);
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Where more happened in the inbox than is kept, what is open says what was missed.
    fn compare(&self, open: &[Item]) {
        for id in self.run.questions() {
            if !open.iter().any(|item| item.id == id) {
                self.run.closed(&id, None);
            }
        }
        for item in open.iter().filter(|item| self.is_ours(item)) {
            self.run.asked(item);
        }
    }

    /// Its session alone does not say so: any caller of a tool may name one.
    fn is_ours(&self, item: &Item) -> bool {
        item.session.as_deref() == Some(self.run.session())
            && item.caller.as_deref() == Some(self.run.caller())
    }
}
