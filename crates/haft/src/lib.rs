//! Haft gives an LLM agent one handle on every tool it may use.
//!
//! Read [`mod@call`] first: it is the path every call takes, whoever asks and whatever runs.

pub mod backend;
pub mod content;
pub mod envelope;
pub mod error;
pub mod tool;
