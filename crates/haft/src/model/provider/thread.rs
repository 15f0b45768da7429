//! A thread of its own for what reads a service's answers.
//!
//! Genai looks through an unfinished line again with each chunk, and goes on in one poll for as long as
//! chunks are there. Where its connection is served by another thread, a fast flood gives it new ones for
//! ever: it would hear neither of its time nor of a cancellation. On one thread the two take turns.

use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How many items may wait for whoever listens.
const ITEMS_MAX: usize = 64;

/// The thread. It ends with the last who holds this or reads, and with it everything that goes on there.
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

    /// What `items` gives when it is asked for on the thread, beginning now. It ends there when it is
    /// dropped here.
    pub(super) fn read<T: Send + 'static>(
        self: Arc<Self>,
        items: impl Stream<Item = T> + Send + 'static,
    ) -> impl Stream<Item = T> + Send {
        let (told, mut heard) = mpsc::channel(ITEMS_MAX);
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
            heard.poll_recv(context)
        })
    }
}
