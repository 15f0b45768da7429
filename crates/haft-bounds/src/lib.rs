//! Bounds on untrusted input, shared by the wire and the library.
//!
//! [`json`] counts what a JSON text holds before anything is built from it. [`heavy`] keeps work on large
//! messages off the async workers. [`parse_error`] rewords parse errors for the peer that sent the document. Depends on nothing of Haft.

pub mod heavy;
pub mod json;
pub mod parse_error;
