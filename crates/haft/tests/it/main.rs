//! Black-box tests of the library.
#![allow(
    clippy::unwrap_used,
    reason = "a test that fails to set itself up has failed"
)]

mod call_checks;
mod call_limits;
mod call_local;
mod config_corpus;
mod support;
