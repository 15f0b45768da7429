//! One flag for the end of a request. Cheaper than a token for each request: setting and reading it takes no lock.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures_util::task::AtomicWaker;

/// Set once, and waited for by one task.
#[derive(Debug, Default)]
pub(super) struct Flag {
    is_set: AtomicBool,
    waiter: AtomicWaker,
}

impl Flag {
    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.waiter.wake();
    }

    /// Waits until it is set.
    pub(super) async fn wait(&self) {
        poll_fn(|cx| {
            // Registered first: a flag that is set in between wakes this task.
            self.waiter.register(cx.waker());
            if self.is_set.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_waiter_learns_of_it_before_and_after() {
        let flag = Arc::new(Flag::default());
        let mut tasks = tokio::task::JoinSet::new();
        let waiting = Arc::clone(&flag);
        tasks.spawn(async move { waiting.wait().await });
        tokio::task::yield_now().await;
        flag.set();
        assert!(tasks.join_next().await.is_some_and(|ended| ended.is_ok()));
        flag.wait().await;
    }
}
