//! A stdio server's output, whole and cut in two.
#![no_main]

use std::sync::LazyLock;

use haft_mcp::fuzz::framing;
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

// Requests of the server are answered by tasks, which need a place to wait.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().build().expect("a runtime"));

fuzz_target!(|bytes: &[u8]| {
    // Derived from the input, so that the seeds stay plain examples.
    let cut = bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>() % (bytes.len() + 1);
    let _entered = RUNTIME.enter();
    let (first, second) = bytes.split_at(cut);
    assert_eq!(framing(&[bytes]), framing(&[first, second]));
});
