//! A configuration file in YAML.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = haft_config::config::fuzz::yaml(bytes);
});
