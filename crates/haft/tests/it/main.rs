//! Black-box tests of the library.
#![allow(
    clippy::unwrap_used,
    reason = "a test that fails to set itself up has failed"
)]

mod call_checks;
mod call_limits;
mod call_local;
mod config_corpus;
mod registry_edges;
mod registry_hostile;
mod registry_memory;
mod registry_merge;
mod registry_modes;
mod registry_names;
mod registry_property;
mod registry_runtime;
mod registry_support;
mod registry_texts;
mod support;
