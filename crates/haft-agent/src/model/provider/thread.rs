//! A dedicated thread for reading a service's answers.
//!
//! Genai scans an unfinished line again with each chunk, and continues in one poll while chunks are
//! available. If another thread serves its connection, a fast flood supplies chunks forever:
//! timeouts and cancellation would never run. On one thread the two take turns.

use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Maximum number of queued items for the reader.
const ITEMS_MAX: usize = 64;

/// The thread. It ends with its last handle or reader, together with all its tasks.
pub(super) struct Thread {
    runtime: Handle,
    _until_dropped: DropGuard,
}

impl Thread {
    pub(super) fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, dropped) = (runtime.handle().clone(), CancellationToken::new());
        let until_dropped = dropped.clone().drop_guard();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(dropped.cancelled()))?;
        Ok(Self { runtime: handle, _until_dropped: until_dropped })
    }

    /// Polls `items` on the thread, starting now. Dropping the stream ends it there.
    pub(super) fn read<T: Send + 'static>(
        self: Arc<Self>,
        items: impl Stream<Item = T> + Send + 'static,
    ) -> impl Stream<Item = T> + Send {
        let (told, mut chunk) = mpsc::channel(ITEMS_MAX);
        self.runtime.spawn(async move {
            let mut items = std::pin::pin!(items);
            loop {
                let item = tokio::select! {
                    biased;
                    () = told.closed() => return,
                    item = items.next() => item,
                };
                let Some(item) = item else { return };
                if told.send(item).await.is_err() {
                    return;
                }
            }
        });
        stream::poll_fn(move |context| {
            let _thread = &self;
            chunk.poll_recv(context)
        })
    }
}
