//! Black-box tests of the library.

// Tests build small texts, and a failed `unwrap` is a failed test.
#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    clippy::format_push_string
)]

mod config_corpus;
mod config_files;
mod config_overrides;
mod config_safety;
mod config_schema;
mod config_servers;
mod config_shown;
mod config_support;
mod config_variables;
