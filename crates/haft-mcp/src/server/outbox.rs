//! A small bounded channel for the messages of a request before its answer. Most requests send none: until the first
//! message it takes no memory beside its own state.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};

/// Sends to the receiver of the same channel. Clones send to the same one.
pub(super) struct Sender<T>(Arc<Shared<T>>);

/// Receives what was sent. Once it is dropped or closed, every send fails.
pub(super) struct Receiver<T>(Arc<Shared<T>>);

struct Shared<T> {
    max: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
    receiver: Option<Waker>,
    /// The senders that wait for room.
    senders: Vec<Waker>,
}

/// The receiver takes no more, or has no room now.
#[derive(Debug)]
pub(super) struct NotSent;

/// A channel that holds at most `max` messages.
pub(super) fn channel<T>(max: usize) -> (Sender<T>, Receiver<T>) {
    let state =
        State { waiting: VecDeque::new(), is_closed: false, receiver: None, senders: Vec::new() };
    let shared = Arc::new(Shared { max, state: Mutex::new(state) });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Sender<T> {
    /// Sends at once, or not at all.
    pub(super) fn try_send(&self, message: T) -> Result<(), NotSent> {
        let mut message = Some(message);
        match self.offer(&mut message, None) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Err(NotSent),
        }
    }

    /// Sends as soon as there is room.
    pub(super) async fn send(&self, message: T) -> Result<(), NotSent> {
        let mut message = Some(message);
        poll_fn(|cx| self.offer(&mut message, Some(cx))).await
    }

    fn offer(
        &self,
        message: &mut Option<T>,
        cx: Option<&mut Context<'_>>,
    ) -> Poll<Result<(), NotSent>> {
        let mut state = self.0.state();
        if state.is_closed {
            return Poll::Ready(Err(NotSent));
        }
        if state.waiting.len() >= self.0.max {
            state.senders.extend(cx.map(|cx| cx.waker().clone()));
            return Poll::Pending;
        }
        state.waiting.extend(message.take());
        let receiver = state.receiver.take();
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T> Receiver<T> {
    /// The next message. Waits on when all senders are gone: the work that held them has its own end.
    pub(super) async fn recv(&mut self) -> T {
        poll_fn(|cx| {
            let mut state = self.0.state();
            if let Some(message) = state.take() {
                return Poll::Ready(message);
            }
            if !state.receiver.as_ref().is_some_and(|it| it.will_wake(cx.waker())) {
                state.receiver = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// The next message, if one is there.
    pub(super) fn try_recv(&mut self) -> Option<T> {
        self.0.state().take()
    }

    /// Lets every send fail from now on.
    pub(super) fn close(&mut self) {
        let mut state = self.0.state();
        state.is_closed = true;
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
    }
}

impl<T> State<T> {
    fn take(&mut self) -> Option<T> {
        let message = self.waiting.pop_front()?;
        self.senders.drain(..).for_each(Waker::wake);
        Some(message)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn messages_arrive_in_order_and_within_the_limit() {
        let (sender, mut receiver) = channel(2);
        assert!(receiver.recv().now_or_never().is_none());
        sender.try_send(1).unwrap();
        sender.send(2).await.unwrap();
        assert!(sender.try_send(3).is_err());
        let mut third = pin!(sender.send(3));
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(receiver.recv().await, 1);
        third.await.unwrap();
        assert_eq!((receiver.try_recv(), receiver.try_recv()), (Some(2), Some(3)));
        assert_eq!(receiver.try_recv(), None);
    }

    #[tokio::test]
    async fn a_closed_channel_takes_nothing() {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let mut waiting = pin!(sender.send(2));
        assert!(waiting.as_mut().now_or_never().is_none());
        receiver.close();
        assert!(waiting.await.is_err());
        // What was sent before is not lost.
        assert_eq!(receiver.try_recv(), Some(1));
        drop(receiver);
        assert!(sender.send(3).await.is_err());
    }
}
