//! Standing approvals: `always`, kept in memory, and in a store that replicas share.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::tool::BoxFuture;

/// Maximum number of standing approvals; the oldest is evicted first.
pub const STANDING_MAX: usize = 1000;
/// The longest wait for the store.
const STORE_MAX: Duration = Duration::from_secs(3);
/// Time for which an approval holds that is being stored, if its outcome is not seen.
const PENDING_MAX: Duration = Duration::from_secs(5);

/// The calls that an approval covers, until it is removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StandingApproval {
    /// The owner of the calls.
    pub owner: Option<String>,
    /// Their session.
    pub session: Option<String>,
    /// The server of the tool.
    pub server: Option<String>,
    /// The tool.
    pub tool: String,
    /// The rule that asked. An approval of the tool does not cover what a rule asks about.
    pub rule: Option<String>,
    /// The hash of the tool's definition: an approval ends when the definition changes.
    pub definition: String,
}

/// A store of standing approvals that several replicas share.
pub trait ApprovalStore: Send + Sync {
    /// Stores an approval, also if the future is dropped. The error is the reason why it may not hold, with its remedy.
    fn keep<'a>(&'a self, approval: &'a StandingApproval) -> BoxFuture<'a, Result<(), String>>;
}

/// Standing approvals in memory: for the lifetime of the process, or as a store has them.
#[derive(Default)]
pub(super) struct StandingApprovals {
    grants: Mutex<Grants>,
    store: OnceLock<Arc<dyn ApprovalStore>>,
}

#[derive(Default)]
struct Grants {
    agreed: HashSet<StandingApproval>,
    oldest_first: VecDeque<StandingApproval>,
    /// Being stored, with the time at which they end. They hold meanwhile.
    pending: HashMap<StandingApproval, Instant>,
}

impl StandingApproval {
    /// Returns true if the approval belongs to a known caller or session.
    pub(super) fn has_owner(&self) -> bool {
        self.owner.is_some() || self.session.is_some()
    }
}

impl StandingApprovals {
    pub(super) fn share(&self, store: Arc<dyn ApprovalStore>) {
        // A second store would be a fault of the program.
        drop(self.store.set(store));
    }

    pub(super) fn holds(&self, approval: &StandingApproval) -> bool {
        let grants = self.grants.lock();
        let is_pending = || grants.pending.get(approval).is_some_and(|end| Instant::now() < *end);
        grants.agreed.contains(approval) || is_pending()
    }

    /// Makes an approval hold. With a store, it holds for good as soon as [`settle`](Self::settle) stored it.
    pub(super) fn grant(&self, approval: &StandingApproval) {
        let mut grants = self.grants.lock();
        if self.store.get().is_some() {
            let now = Instant::now();
            grants.pending.retain(|_, end| now < *end);
            grants.pending.insert(approval.clone(), now + PENDING_MAX);
        } else {
            grants.keep(approval.clone());
        }
    }

    /// Stores an approval that was granted. One that cannot be stored ends, and the reason is returned.
    pub(super) async fn settle(&self, approval: &StandingApproval) -> Result<(), String> {
        let Some(store) = self.store.get() else { return Ok(()) };
        let stored = timeout(STORE_MAX, store.keep(approval)).await.unwrap_or_else(|_| {
            Err(format!("the store did not respond within {} s", STORE_MAX.as_secs()))
        });
        let mut grants = self.grants.lock();
        grants.pending.remove(approval);
        if stored.is_ok() {
            grants.keep(approval.clone());
        }
        stored
    }

    /// Replaces the approvals with those of the store, the oldest first.
    pub(super) fn replace(&self, approvals: Vec<StandingApproval>) {
        let mut grants = self.grants.lock();
        grants.agreed = approvals.iter().cloned().collect();
        grants.oldest_first = approvals.into();
    }
}

impl Grants {
    fn keep(&mut self, approval: StandingApproval) {
        if !self.agreed.insert(approval.clone()) {
            return;
        }
        self.oldest_first.push_back(approval);
        if self.oldest_first.len() > STANDING_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.agreed.remove(&oldest);
        }
    }
}
