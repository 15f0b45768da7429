//! Black-box tests of the library.

mod config_corpus;
mod registry_merge;
mod registry_modes;
mod registry_support;
mod registry_texts;
