//! The tools that Haft brings itself.

pub mod human;
