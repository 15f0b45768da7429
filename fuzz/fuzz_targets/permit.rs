//! An entry that a client registers over the API.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(entry) = std::str::from_utf8(bytes) {
        let _ = haft::fuzz::permit(entry);
    }
});
