//! What runs a tool on this machine: Python scripts, commands, the child processes of both, and
//! the tools that Haft brings itself.
//! Knows no configuration file, no registry and no policy; a call that gets here may run.

mod answer;
pub mod builtin;
pub mod command;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod process;
mod program;
pub mod script;
pub mod script_path;
#[cfg(test)]
mod testing;
