//! Black-box tests of the library.

mod call_checks;
mod call_limits;
mod call_local;
mod config_corpus;
mod support;
