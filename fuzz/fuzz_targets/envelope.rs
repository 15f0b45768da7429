//! One message.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = haft_mcp::fuzz::envelope(bytes);
});
