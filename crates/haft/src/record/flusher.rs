//! The task that writes the log on a worker of a runtime.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use super::queue::Turn;
use super::writer::Writer;

/// Writes whenever the turn was given to the flusher, until the last handle of the log is gone.
pub(super) async fn flush_when_claimed(writer: Arc<Writer>) {
    let slot = Slot(writer);
    let writer = &slot.0;
    loop {
        match next_claim(writer).await {
            Claim::Stopped => return,
            Claim::Alone => {}
            // The tasks that are ready run first. Their lines go out with the same write.
            Claim::InCompany => tokio::task::yield_now().await,
        }
        writer.write_claimed();
    }
}

/// The events that the flusher waits for.
enum Claim {
    /// A line waits, and no other is likely to follow at once.
    Alone,
    /// A line waits, and other calls are in flight.
    InCompany,
    /// The last handle of the log is gone.
    Stopped,
}

async fn next_claim(writer: &Writer) -> Claim {
    poll_fn(|cx| {
        let mut queue = writer.queue();
        let (turn, is_stopped) = (queue.turn, queue.stopped);
        let Some(flusher) = &mut queue.flusher else { return Poll::Ready(Claim::Stopped) };
        flusher.is_late = false;
        if matches!(turn, Turn::Claimed { .. }) {
            let in_company = flusher.in_company;
            return Poll::Ready(if in_company { Claim::InCompany } else { Claim::Alone });
        }
        if is_stopped {
            return Poll::Ready(Claim::Stopped);
        }
        if flusher.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            flusher.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    })
    .await
}

/// The flusher's slot, given up when its task ends, also if that is with its runtime.
struct Slot(Arc<Writer>);

impl Drop for Slot {
    fn drop(&mut self) {
        let flusher = self.0.queue().flusher.take();
        // Not under the lock: it holds a waker.
        drop(flusher);
    }
}
