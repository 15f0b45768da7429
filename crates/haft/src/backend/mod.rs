//! Backends on this machine: Python scripts, commands, their child processes, and the built-in
//! tools. Independent of configuration files, registry and policy; a call that gets here may run.

mod answer;
pub mod builtin;
pub mod command;
pub mod mcp;
pub mod process;
mod program;
pub mod sandbox;
pub mod script;
pub mod script_path;
#[cfg(test)]
mod testing;
mod work_folder;
