//! Black-box tests of the library.

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
