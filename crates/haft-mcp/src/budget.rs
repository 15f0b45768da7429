//! Memory for what servers send, counted by the program around the client.

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Failure, TransportError};

/// Messages up to this size are not counted.
pub(crate) const FREE_BYTES: usize = 64 * 1024;
/// The least that is reserved at once, so that a long message takes few steps.
const STEP_BYTES: usize = 256 * 1024;

/// Memory that is in use until it is dropped.
pub type HeldBytes = Box<dyn Send + Sync>;

/// The memory budget of a server's messages. A message beyond it is not read: its request fails, and the connection
/// stays.
pub trait ByteBudget: Debug + Send + Sync + 'static {
    /// Reserves `bytes`, or returns the reason of a refusal.
    fn reserve(&self, bytes: usize) -> Result<HeldBytes, String>;
}

/// The memory of one answer, held for the request until the caller is done with it.
#[derive(Clone, Default)]
pub struct AnswerBytes(Arc<Mutex<Option<HeldBytes>>>);

impl AnswerBytes {
    pub(crate) fn hold(&self, held: HeldBytes) {
        *self.0.lock() = Some(held);
    }

    /// Gives the memory back.
    pub fn release(&self) {
        let held = self.0.lock().take();
        drop(held);
    }
}

/// Counts memory that is there already: the principal whose it is, and how much.
type CountFn = dyn Fn(&str, usize) -> HeldBytes + Send + Sync;

/// The memory that a server keeps for its clients, counted by the program around it. Without one it is not.
#[derive(Clone, Default)]
pub struct KeptBytes(Option<Arc<CountFn>>);

impl KeptBytes {
    /// Counts with this function: it gets a client's principal and how many bytes are kept for it.
    pub fn counted_by(count: impl Fn(&str, usize) -> HeldBytes + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(count)))
    }

    pub(crate) fn count(&self, principal: &str, bytes: usize) -> Option<HeldBytes> {
        let count = self.0.as_ref().filter(|_| bytes > FREE_BYTES)?;
        Some(count(principal, bytes))
    }
}

impl std::fmt::Debug for KeptBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KeptBytes").field(&self.0.is_some()).finish()
    }
}

/// The memory of one message that is being read.
pub(crate) struct Charge {
    budget: Option<Arc<dyn ByteBudget>>,
    held: Vec<HeldBytes>,
    covered: usize,
}

impl Charge {
    pub(crate) fn new(budget: Option<Arc<dyn ByteBudget>>) -> Self {
        Self { budget, held: Vec::new(), covered: FREE_BYTES }
    }

    /// Makes sure that `bytes` are reserved.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), TransportError> {
        let Some(budget) = self.budget.as_ref().filter(|_| bytes > self.covered) else {
            return Ok(());
        };
        let more = (bytes - self.covered).max(STEP_BYTES).max(self.covered);
        let held = budget.reserve(more).map_err(|why| over_budget(&why))?;
        self.held.push(held);
        self.covered += more;
        Ok(())
    }

    /// Gives everything back.
    pub(crate) fn release(&mut self) {
        if !self.held.is_empty() {
            self.held.clear();
            self.covered = FREE_BYTES;
        }
    }
}

/// The error for a message that there is no memory for. The server may have acted before it answered.
pub(crate) fn over_budget(why: &str) -> TransportError {
    let message = format!("there is no memory for the server's answer: {why}");
    TransportError::after_sending(Failure::OverBudget, message)
}
