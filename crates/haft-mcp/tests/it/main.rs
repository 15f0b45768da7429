//! Transports against real servers on real sockets.

// What prepares a test panics as the test itself would.
#![allow(clippy::unwrap_used)]

mod http;
mod sse;
mod support;
