//! Bounds on untrusted input, shared by the wire and the library.
//!
//! [`json`] counts what a JSON text holds before anything is built from it. [`heavy`] keeps work on large
//! messages off the async workers. Depends on nothing of Haft.

pub mod heavy;
pub mod json;
