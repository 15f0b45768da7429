//! The counter of values and levels that every message passes before it is parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = haft_mcp::fuzz::nodes(bytes);
});
