//! Transports against real servers on real sockets.

mod http;
mod sse;
mod support;
