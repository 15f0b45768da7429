//! A future that is polled again at once when its own poll wakes it.
//!
//! hyper wakes its connection while it is being polled: a request whose body is read there asks the connection for
//! it. The scheduler takes such a wake for a yield. It queues the task behind all others and wakes another worker to
//! look for work, which costs more than the poll itself and moves the connection to another core.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Polls in a row before the scheduler decides: a future that always wakes itself must not keep its worker.
const POLLS_MAX: u32 = 8;

/// Not being polled; a wake goes to the scheduler.
const IDLE: u8 = 0;
/// Being polled, or about to be: a wake is only noted.
const POLLING: u8 = 1;
/// Woken while it was being polled.
const WOKEN: u8 = 2;

/// See the [module](self).
pub(super) struct PollSelfWoken<F> {
    inner: F,
    state: Arc<WakeState>,
    /// The waker of `state`, made once.
    waker: Waker,
}

struct WakeState {
    phase: AtomicU8,
    task: AtomicWaker,
}

impl Wake for WakeState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // `AcqRel` orders the work before the wake with the poll after it, as the task's own waker would.
        if self.phase.swap(WOKEN, Ordering::AcqRel) == IDLE {
            self.task.wake();
        }
    }
}

impl<F> PollSelfWoken<F> {
    pub(super) fn new(inner: F) -> Self {
        let state = Arc::new(WakeState { phase: AtomicU8::new(IDLE), task: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&state));
        Self { inner, state, waker }
    }

    /// The future itself. A change made here takes effect with its next poll.
    pub(super) fn get_mut(&mut self) -> &mut F {
        &mut self.inner
    }
}

impl<F: Future + Unpin> Future for PollSelfWoken<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { inner, state, waker } = self.get_mut();
        // Before the poll: a wake that comes while the state is idle again must find it.
        state.task.register(cx.waker());
        let mut inner_cx = Context::from_waker(waker);
        for _ in 0..POLLS_MAX {
            state.phase.store(POLLING, Ordering::Release);
            if let Poll::Ready(output) = Pin::new(&mut *inner).poll(&mut inner_cx) {
                return Poll::Ready(output);
            }
            let unwoken =
                state.phase.compare_exchange(POLLING, IDLE, Ordering::AcqRel, Ordering::Acquire);
            if unwoken.is_ok() {
                return Poll::Pending;
            }
        }
        // Polled next by the scheduler; wakes until then change nothing.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::ready;

    use super::*;

    #[derive(Default)]
    struct CountWakes(AtomicUsize);

    impl Wake for CountWakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes itself in its first `wakes` polls, then stays pending, and keeps its waker.
    struct Restless {
        wakes: u32,
        polls: u32,
        waker: Option<Waker>,
    }

    impl Future for Restless {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            self.polls += 1;
            self.waker = Some(cx.waker().clone());
            if self.polls <= self.wakes {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        }
    }

    fn restless(wakes: u32) -> PollSelfWoken<Restless> {
        PollSelfWoken::new(Restless { wakes, polls: 0, waker: None })
    }

    fn poll_once<F: Future + Unpin>(future: &mut F, counter: &Arc<CountWakes>) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(counter));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_without_the_scheduler() {
        let (mut future, counter) = (restless(3), Arc::<CountWakes>::default());
        assert!(poll_once(&mut future, &counter).is_pending());
        assert_eq!((future.get_mut().polls, counter.0.load(Ordering::Relaxed)), (4, 0));
    }

    #[test]
    fn a_future_that_never_rests_goes_to_the_scheduler() {
        let (mut future, counter) = (restless(u32::MAX), Arc::<CountWakes>::default());
        assert!(poll_once(&mut future, &counter).is_pending());
        assert_eq!((future.get_mut().polls, counter.0.load(Ordering::Relaxed)), (POLLS_MAX, 1));
        // A wake before its turn adds nothing, and the turn polls it again.
        future.get_mut().waker.take().unwrap().wake();
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        assert!(poll_once(&mut future, &counter).is_pending());
        assert_eq!(future.get_mut().polls, 2 * POLLS_MAX);
    }

    #[test]
    fn a_wake_from_outside_reaches_the_task_each_time() {
        let (mut future, counter) = (restless(0), Arc::<CountWakes>::default());
        for count in 1..=3 {
            assert!(poll_once(&mut future, &counter).is_pending());
            let waker = future.get_mut().waker.take().unwrap();
            waker.wake_by_ref();
            // Until it is polled, one wake is as good as two.
            waker.wake();
            assert_eq!(counter.0.load(Ordering::Relaxed), count);
        }
    }

    /// No wake is lost between the last look and the poll's return: every message of another thread arrives.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_is_lost() {
        const MESSAGES: u32 = 20_000;
        struct Receive(tokio::sync::mpsc::Receiver<u32>, u32);
        impl Future for Receive {
            type Output = u32;
            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
                // One message for each poll, so that the future has to wake itself for the next one.
                match ready!(self.0.poll_recv(cx)) {
                    Some(_) => {
                        self.1 += 1;
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                    None => Poll::Ready(self.1),
                }
            }
        }
        let (send, receive) = tokio::sync::mpsc::channel(1);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(PollSelfWoken::new(Receive(receive, 0)));
        for number in 0..MESSAGES {
            send.send(number).await.unwrap();
        }
        drop(send);
        assert_eq!(tasks.join_next().await.unwrap().unwrap(), MESSAGES);
    }
}
