//! A limit on how much runs at once, with a fair queue in front of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// At most `limit` slots are taken at any time; waiting calls get a slot in the order they arrived.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: Arc<Semaphore>,
    limit: AtomicU32,
    /// Slots beyond a lowered limit that were in use when the limit changed. They are removed when
    /// released.
    surplus: Arc<AtomicU32>,
    waiting: AtomicU32,
}

/// A slot, released when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    permit: Option<OwnedSemaphorePermit>,
    surplus: Arc<AtomicU32>,
}

impl Gate {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(limit as usize)),
            limit: AtomicU32::new(limit),
            surplus: Arc::new(AtomicU32::new(0)),
            waiting: AtomicU32::new(0),
        }
    }

    /// The current limit.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Acquire)
    }

    /// Returns the number of slots in use, including those beyond a lowered limit.
    pub(crate) fn taken(&self) -> u32 {
        let free = u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX);
        let there = self.limit().saturating_add(self.surplus.load(Ordering::Acquire));
        there.saturating_sub(free)
    }

    /// Returns the number of calls that wait for a slot.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Acquire)
    }

    /// Changes the limit. Calls beyond a lowered limit finish, and their slots are not reused.
    pub(crate) fn resize(&self, limit: u32) {
        let old = self.limit.swap(limit, Ordering::AcqRel);
        if limit >= old {
            let owed = limit - old;
            let forgiven = take_up_to(&self.surplus, owed);
            self.slots.add_permits((owed - forgiven) as usize);
        } else {
            let cut = (old - limit) as usize;
            let free = self.slots.forget_permits(cut);
            let taken = u32::try_from(cut - free).unwrap_or(u32::MAX);
            self.surplus.fetch_add(taken, Ordering::AcqRel);
        }
    }

    /// Returns a slot if one is free now.
    pub(crate) fn try_enter(&self) -> Option<Slot> {
        let permit = self.slots.clone().try_acquire_owned().ok()?;
        Some(Slot { permit: Some(permit), surplus: self.surplus.clone() })
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(crate) async fn enter(&self) -> Option<Slot> {
        let _waiting = Waiting::join(&self.waiting);
        let permit = self.slots.clone().acquire_owned().await.ok()?;
        Some(Slot { permit: Some(permit), surplus: self.surplus.clone() })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take()
            && take_up_to(&self.surplus, 1) == 1
        {
            permit.forget();
        }
    }
}

struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn join(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Subtracts at most `wanted` from the count and returns how much was subtracted.
fn take_up_to(count: &AtomicU32, wanted: u32) -> u32 {
    let mut taken = 0;
    // The closure always returns a value, so the update cannot fail.
    let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |there| {
        taken = there.min(wanted);
        Some(there - taken)
    });
    taken
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_lower_limit_holds_as_soon_as_slots_come_back() {
        let gate = Gate::new(3);
        let slots: Vec<Slot> = (0..3).map(|_| gate.try_enter().unwrap()).collect();
        gate.resize(1);
        assert_eq!((gate.taken(), gate.limit()), (3, 1));
        drop(slots);
        assert_eq!(gate.taken(), 0);
        let one = gate.try_enter();
        assert!(one.is_some() && gate.try_enter().is_none());
        gate.resize(2);
        assert!(gate.try_enter().is_some());
    }

    #[tokio::test]
    async fn leaving_the_queue_is_noticed() {
        let gate = Gate::new(1);
        let _slot = gate.try_enter().unwrap();
        {
            let mut entering = std::pin::pin!(gate.enter());
            let poll =
                std::future::poll_fn(|cx| Poll::Ready(entering.as_mut().poll(cx).is_pending()));
            assert!(poll.await);
            assert_eq!(gate.waiting(), 1);
        }
        assert_eq!(gate.waiting(), 0);
    }
}
