//! x
pub mod script_path;
