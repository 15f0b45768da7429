//! Rates and quotas of keys, servers and tools. The call path asks for each call; counters outlive a change of
//! configuration.

mod quota;
mod rate;
mod subject;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft_config::config::call_limits::CallLimits;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::caller_access::{CallerDirectory, CallerStatus};
use crate::limit_reached::{LimitKind, LimitReached};
use crate::record::Clock;
use quota::QuotaStore;
pub(crate) use quota::UnknownQuota;
use rate::RateLimiter;
use subject::Subject;

/// Time from a counted call to the write of the counts. A crash loses the counts of at most this time.
const SAVE_DELAY: Duration = Duration::from_secs(1);
/// Number of callers with limits, beyond which those that ended are forgotten.
const CALLERS_MAX: usize = 4096;

/// All limits of a runtime.
pub(crate) struct LimitTable {
    /// Those of tools and servers. Each lives as long as a toolbox uses it.
    configured: Mutex<HashMap<(Subject, CallLimits), Weak<Limiter>>>,
    /// Those of callers, by owner.
    callers: Mutex<HashMap<Arc<str>, Arc<Limiter>>>,
    directory: Option<Arc<dyn CallerDirectory>>,
    quotas: QuotaStore,
}

/// The limits of one tool, server or caller.
pub(crate) struct Limiter {
    subject: Subject,
    limits: CallLimits,
    rate: Option<RateLimiter>,
}

/// The reason why a call may not run now.
#[derive(Debug)]
pub(crate) enum LimitRefusal {
    Reached(LimitReached),
    Unknown(UnknownQuota),
}

impl LimitTable {
    /// The limits of a runtime whose quotas are counted in a file of `state_dir`.
    pub(crate) fn open(
        state_dir: &Path,
        clock: Arc<dyn Clock>,
        directory: Option<Arc<dyn CallerDirectory>>,
    ) -> Self {
        Self {
            configured: Mutex::default(),
            callers: Mutex::default(),
            directory,
            quotas: QuotaStore::open(state_dir, clock),
        }
    }

    /// The limits that hold for the owner of a call.
    pub(crate) fn status(&self, owner: Option<&str>) -> CallerStatus {
        match (&self.directory, owner) {
            (Some(directory), Some(owner)) => directory.status(owner),
            (None, _) | (_, None) => CallerStatus::Unlimited,
        }
    }

    /// The limiter of a server, which an unchanged configuration shares with the one before.
    pub(crate) fn server(&self, name: &str, limits: CallLimits) -> Option<Arc<Limiter>> {
        self.configured(Subject::server(name), limits)
    }

    /// The limiter of a tool, likewise.
    pub(crate) fn tool(&self, name: &str, limits: CallLimits) -> Option<Arc<Limiter>> {
        self.configured(Subject::tool(name), limits)
    }

    fn configured(&self, subject: Subject, limits: CallLimits) -> Option<Arc<Limiter>> {
        if limits.is_empty() {
            return None;
        }
        let mut known = self.configured.lock();
        let key = (subject, limits);
        if let Some(limiter) = known.get(&key).and_then(Weak::upgrade) {
            return Some(limiter);
        }
        known.retain(|_, limiter| limiter.strong_count() > 0);
        let limiter = Arc::new(Limiter::new(key.0.clone(), limits));
        known.insert(key, Arc::downgrade(&limiter));
        Some(limiter)
    }

    /// The limiter of a caller. Changed limits start with a full burst; the count of the day stays.
    fn caller(&self, owner: &str, limits: CallLimits) -> Arc<Limiter> {
        let mut known = self.callers.lock();
        if let Some(limiter) = known.get(owner).filter(|limiter| limiter.limits == limits) {
            return Arc::clone(limiter);
        }
        if known.len() >= CALLERS_MAX {
            known.retain(|owner, _| !matches!(self.status(Some(owner)), CallerStatus::Ended));
        }
        let limiter = Arc::new(Limiter::new(Subject::key(owner), limits));
        known.insert(owner.into(), Arc::clone(&limiter));
        limiter
    }

    /// Counts a call against the limits of its caller, then against those of its server and its tool. A call that one
    /// of them refuses takes nothing from a quota. It takes from the rates that it passed before: the caller's comes
    /// first, so a caller beyond its own rate takes nothing from others.
    pub(crate) fn count(
        &self,
        owner: Option<&str>,
        caller: &CallerStatus,
        tool: &[Arc<Limiter>],
    ) -> Result<(), LimitRefusal> {
        let caller = match (owner, caller) {
            (Some(owner), CallerStatus::Limited(access)) if !access.limits.is_empty() => {
                Some(self.caller(owner, access.limits))
            }
            _ => None,
        };
        let mut counted: Vec<&Limiter> = Vec::new();
        for limiter in caller.iter().chain(tool) {
            let passed = limiter.check_rate().and_then(|()| self.take_quota(limiter));
            if let Err(refusal) = passed {
                for limiter in counted {
                    self.quotas.give_back(limiter.subject.id());
                }
                return Err(refusal);
            }
            if limiter.limits.quota.is_some() {
                counted.push(limiter);
            }
        }
        Ok(())
    }

    fn take_quota(&self, limiter: &Limiter) -> Result<(), LimitRefusal> {
        let Some(quota) = limiter.limits.quota else { return Ok(()) };
        match self.quotas.take(limiter.subject.id(), 1, quota.calls()) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let wait = self.quotas.until_next_day();
                Err(LimitRefusal::Reached(limiter.subject.reached(
                    LimitKind::Quota,
                    quota.to_string(),
                    wait,
                )))
            }
            Err(unknown) => Err(LimitRefusal::Unknown(unknown)),
        }
    }

    /// Counts a log entry against the log quota of its caller. Returns the reason if the entry must be kept without
    /// arguments and answer.
    pub(crate) fn count_log_entry(
        &self,
        owner: Option<&str>,
        caller: &CallerStatus,
        bytes: usize,
    ) -> Result<(), String> {
        let (Some(owner), CallerStatus::Limited(access)) = (owner, caller) else { return Ok(()) };
        let Some(quota) = access.log_quota else { return Ok(()) };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match self.quotas.take(Subject::log(owner).id(), bytes, quota.bytes()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("the key's log quota of {quota} is used up")),
            Err(UnknownQuota { path, .. }) => {
                let path = path.display();
                Err(format!("the count of the key's log quota in `{path}` cannot be read"))
            }
        }
    }

    /// Writes the counts of quotas soon after they change, until `stop`.
    pub(crate) async fn save_until(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.quotas.changed() => {}
            }
            // Calls of the meantime are written with it.
            let _ = stop.run_until_cancelled(tokio::time::sleep(SAVE_DELAY)).await;
            self.save().await;
        }
    }

    /// Writes the counts of quotas, if they changed.
    pub(crate) async fn save(self: &Arc<Self>) {
        let table = Arc::clone(self);
        match tokio::task::spawn_blocking(move || table.quotas.save()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the counts of quotas are not written"),
            Err(error) => tracing::warn!(%error, "the counts of quotas are not written"),
        }
    }
}

impl Limiter {
    fn new(subject: Subject, limits: CallLimits) -> Self {
        let rate = limits.rate.map(|rate| RateLimiter::new(rate, limits.burst));
        Self { subject, limits, rate }
    }

    fn check_rate(&self) -> Result<(), LimitRefusal> {
        let (Some(limiter), Some(rate)) = (&self.rate, self.limits.rate) else { return Ok(()) };
        let checked = limiter.check();
        checked.map_err(|wait| {
            LimitRefusal::Reached(self.subject.reached(LimitKind::Rate, rate.to_string(), wait))
        })
    }
}
