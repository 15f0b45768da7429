//! Runs work on large messages off the async workers.
//!
//! Parsing, converting or writing a message of megabytes takes tens of milliseconds without a point to yield at. On an
//! async worker it would delay every other call of the process.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// Work on at most this many bytes stays where it is: a change of thread would cost more.
pub const LARGE_BYTES: usize = 256 * 1024;

/// Concurrent work on large messages. Beyond one thread per processor, more of it only slows the async workers down.
static SLOTS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(available_parallelism().map_or(2, |count| count.get().max(2))));

/// Runs `work` on `bytes` bytes: at once if that is little, otherwise on a blocking thread.
///
/// Dropping the future, as a timeout does, stops waiting; the work itself runs to its end and keeps its slot.
pub async fn run<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= LARGE_BYTES {
        return work();
    }
    // The semaphore is never closed.
    let slot = SLOTS.acquire().await.ok();
    let done = tokio::task::spawn_blocking(move || {
        let _slot = slot;
        work()
    });
    match done.await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down and drops this future too.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Runs `work` inline, on borrowed data. For large data, the other tasks of this worker move to
/// another thread first.
pub fn in_place<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let is_worker =
        || Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > LARGE_BYTES && is_worker() { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn only_large_work_changes_the_thread() {
        let here = thread::current().id();
        assert_eq!(run(LARGE_BYTES, || thread::current().id()).await, here);
        assert_ne!(run(LARGE_BYTES + 1, || thread::current().id()).await, here);
        assert_eq!(in_place(LARGE_BYTES + 1, || thread::current().id()), here);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_beside_large_work() {
        let (asked, answered) = tokio::sync::oneshot::channel();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            // Waits for a task of the same worker, which could not run if this blocked it.
            in_place(LARGE_BYTES + 1, || answered.blocking_recv())
        });
        tasks.spawn(async move {
            asked.send(()).unwrap();
            Ok(())
        });
        while let Some(done) = tasks.join_next().await {
            assert_eq!(done.unwrap(), Ok(()));
        }
    }

    #[tokio::test]
    async fn a_panic_reaches_whoever_waits() {
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(run(LARGE_BYTES + 1, || panic!("on purpose")));
        let ended: Result<(), _> = tasks.join_next().await.unwrap();
        assert!(ended.unwrap_err().is_panic());
    }
}
