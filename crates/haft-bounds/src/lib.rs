//! Bounds on untrusted input, shared by the wire and the library.
//!
//! [`json`] counts what a JSON text holds before anything is built from it. [`heavy`] keeps work on large
//! messages off the async workers. [`parse_error`] rewords parse errors for the peer that sent the document. [`effort`] counts
//! reads and copies in debug builds. Depends on nothing of Haft.

pub mod effort;
pub mod heavy;
pub mod json;
pub mod parse_error;
