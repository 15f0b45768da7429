//! Black-box tests of the library.

mod config_corpus;
