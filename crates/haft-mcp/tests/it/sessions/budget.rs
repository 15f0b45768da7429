//! Memory for what a server sends, counted by the program around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_mcp::{AnswerBytes, ByteBudget, Failure, HeldBytes, RequestError, RequestOptions};

use super::{Setup, ask};

/// Counts bytes up to a limit.
#[derive(Debug)]
struct Counter {
    taken: Arc<AtomicUsize>,
    limit: usize,
}

struct Taken(Arc<AtomicUsize>, usize);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::SeqCst);
    }
}

impl ByteBudget for Counter {
    fn reserve(&self, bytes: usize) -> Result<HeldBytes, String> {
        if self.taken.fetch_add(bytes, Ordering::SeqCst) + bytes > self.limit {
            self.taken.fetch_sub(bytes, Ordering::SeqCst);
            return Err("full".to_owned());
        }
        Ok(Box::new(Taken(Arc::clone(&self.taken), bytes)))
    }
}

fn answer(id: u64, bytes: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{}"}}"#, "x".repeat(bytes))
}

/// A line that does not fit fails its own request; those beside and after it are read.
#[tokio::test]
async fn a_line_without_memory_fails_its_request_alone() {
    let taken = Arc::<AtomicUsize>::default();
    let budget = Counter { taken: Arc::clone(&taken), limit: 1024 * 1024 };
    let setup = Setup { budget: Some(Arc::new(budget)), ..Setup::default() };
    let (session, mut server) = setup.start();
    let answer_bytes = AnswerBytes::default();
    let options =
        || RequestOptions { answer_bytes: Some(answer_bytes.clone()), ..RequestOptions::default() };
    let serving = async {
        for bytes in [3_000_000, 100, 300_000] {
            let id = server.next().await["id"].as_u64().unwrap();
            server.say(answer(id, bytes)).await;
        }
    };
    let asking = async {
        let refused = ask(&session, options()).await;
        let Err(RequestError::Transport(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.kind, Failure::OverBudget);
        assert_eq!(error.message, "there is no memory for the server's answer: full");
        assert_eq!(ask(&session, options()).await.unwrap().len(), 102);
        assert_eq!(taken.load(Ordering::SeqCst), 0, "small answers are not counted");
        assert_eq!(ask(&session, options()).await.unwrap().len(), 300_002);
    };
    tokio::join!(serving, asking);
    // The line's own memory is given back by the reader, after the answer was handed over.
    let given_back = async {
        while taken.load(Ordering::SeqCst) != 300_002 {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), given_back).await;
    assert!(waited.is_ok(), "the answer is held: {taken:?}");
    answer_bytes.release();
    assert_eq!(taken.load(Ordering::SeqCst), 0);
    assert!(session.router().ended().is_none());
}
