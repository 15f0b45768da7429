//! The documents do what they print: every command block of the README and of `docs/` is executed, and generated
//! pages equal what the program generates.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

mod examples;
mod markdown;
mod pages;
mod reference;
mod session;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text of a file of the repository.
fn document(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
