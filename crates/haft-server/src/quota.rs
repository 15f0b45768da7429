//! A quota per key, so that one key cannot take all permits.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// One key gets at most one in `KEYS_MIN` permits. Half is plenty for any key, also for one that acts for many users,
/// and leaves as much for all others.
const KEYS_MIN: usize = 2;

/// Permits in use by key. Clones share the count.
#[derive(Debug)]
pub(crate) struct PerKeyQuota<K>(Arc<State<K>>);

#[derive(Debug)]
struct State<K> {
    all_max: usize,
    each_max: usize,
    /// Only those who hold something are in here.
    held: Mutex<HashMap<K, usize>>,
}

/// One piece, given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit<K: Eq + Hash> {
    quota: PerKeyQuota<K>,
    holder: K,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    /// All are taken.
    AllTaken,
    /// The one who asks has their share.
    OwnTaken,
}

impl<K> Clone for PerKeyQuota<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Eq + Hash> PerKeyQuota<K> {
    /// A quota with `all_max` permits in total.
    pub(crate) fn of(all_max: usize) -> Self {
        let each_max = (all_max / KEYS_MIN).max(1);
        Self(Arc::new(State { all_max, each_max, held: Mutex::default() }))
    }

    /// One more for `holder`.
    pub(crate) fn take(&self, holder: K) -> Result<Permit<K>, QuotaExceeded> {
        let mut held = self.held();
        if held.values().sum::<usize>() >= self.0.all_max {
            return Err(QuotaExceeded::AllTaken);
        }
        let count = held.entry(holder.clone()).or_default();
        if *count >= self.0.each_max {
            return Err(QuotaExceeded::OwnTaken);
        }
        *count += 1;
        drop(held);
        Ok(Permit { quota: self.clone(), holder })
    }

    /// Largest number of permits of one key.
    pub(crate) fn each_max(&self) -> usize {
        self.0.each_max
    }
}

impl<K> PerKeyQuota<K> {
    fn held(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.held.lock()
    }
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut held = self.quota.held();
        if let Some(count) = held.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gets_half_and_leaves_the_rest_to_others() {
        let quota = PerKeyQuota::of(4);
        let held: Vec<_> = (0..3).map(|_| quota.take("a")).collect();
        assert!(held[1].is_ok());
        assert_eq!(held[2].as_ref().unwrap_err(), &QuotaExceeded::OwnTaken);
        let others: Vec<_> = ["b", "c"].map(|other| quota.take(other).unwrap()).into();
        assert_eq!(quota.take("d").unwrap_err(), QuotaExceeded::AllTaken);
        drop((held, others));
        assert!(quota.held().is_empty(), "those who are gone take no room");
        assert!(PerKeyQuota::of(1).take("a").is_ok(), "a single permit is available to any key");
    }
}
