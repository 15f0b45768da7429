//! A stream of events, whole and cut in two.
#![no_main]

use haft_mcp::fuzz::event_stream;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Derived from the input, so that the seeds stay plain examples.
    let cut = bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>() % (bytes.len() + 1);
    let (first, second) = bytes.split_at(cut);
    assert_eq!(event_stream(&[bytes]), event_stream(&[first, second]));
});
