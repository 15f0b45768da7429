//! Choosing tools: black-box tests of `haft::select`, and its score on our gold set.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

mod decisions;
mod embeddings;
mod gold;
mod learning;
mod ranking;
mod runtime70;
mod set;
mod toolbox;
