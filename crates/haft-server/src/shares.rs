//! How much one of many may hold of something, so that nobody can keep everybody else out.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One gets at most one in so many. Half is plenty for any of them, also for one who speaks for many, and
/// leaves as much for all others.
const SHARE: usize = 2;

/// What each one holds. Clones share the count.
#[derive(Debug)]
pub(crate) struct Shares<K>(Arc<State<K>>);

#[derive(Debug)]
struct State<K> {
    all_max: usize,
    each_max: usize,
    /// Only those who hold something are in here.
    held: Mutex<HashMap<K, usize>>,
}

/// One piece, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share<K: Eq + Hash> {
    shares: Shares<K>,
    holder: K,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoShare {
    /// All are taken.
    AllTaken,
    /// The one who asks has their share.
    OwnTaken,
}

impl<K> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// The shares of so many.
    pub(crate) fn of(all_max: usize) -> Self {
        let each_max = (all_max / SHARE).max(1);
        Self(Arc::new(State { all_max, each_max, held: Mutex::default() }))
    }

    /// One more for `holder`.
    pub(crate) fn take(&self, holder: K) -> Result<Share<K>, NoShare> {
        let mut held = self.held();
        if held.values().sum::<usize>() >= self.0.all_max {
            return Err(NoShare::AllTaken);
        }
        let count = held.entry(holder.clone()).or_default();
        if *count >= self.0.each_max {
            return Err(NoShare::OwnTaken);
        }
        *count += 1;
        drop(held);
        Ok(Share { shares: self.clone(), holder })
    }

    /// How much one may hold.
    pub(crate) fn each_max(&self) -> usize {
        self.0.each_max
    }
}

impl<K> Shares<K> {
    fn held(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut held = self.shares.held();
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
        let shares = Shares::of(4);
        let held: Vec<_> = (0..3).map(|_| shares.take("a")).collect();
        assert!(held[1].is_ok());
        assert_eq!(held[2].as_ref().unwrap_err(), &NoShare::OwnTaken);
        let others: Vec<_> = ["b", "c"].map(|other| shares.take(other).unwrap()).into();
        assert_eq!(shares.take("d").unwrap_err(), NoShare::AllTaken);
        drop((held, others));
        assert!(shares.held().is_empty(), "those who are gone take no room");
        assert!(Shares::of(1).take("a").is_ok(), "a single one is for anybody");
    }
}
