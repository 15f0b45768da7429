//! Configuration: the raw files (`raw`, `dialect`) and the compiled model (`model`).
//!
//! Loading connects and spawns nothing, and reports every problem at once.

pub mod agent;
mod broken;
pub mod bytes;
pub mod call_limits;
pub mod choices;
mod compile;
mod declare;
mod described;
mod dialect;
mod entry_cache;
mod entry_shift;
mod env_file;
mod expand;
#[doc(hidden)]
pub mod fuzz;
pub mod gateway;
mod import;
mod layer;
pub mod limits;
mod load;
mod lock_file;
pub mod log_quota;
pub mod metadata;
pub mod model;
mod native;
pub(crate) mod node;
pub mod oauth;
mod overrides;
pub(crate) mod parse;
mod pattern;
pub mod place;
pub mod quantity;
mod raw;
mod raw_agent;
mod raw_gateway;
mod raw_limits;
mod raw_metadata;
mod raw_oauth;
mod raw_rules;
mod raw_sandbox;
mod raw_service;
mod raw_shared;
mod read;
mod registry_files;
mod registry_folder;
pub mod rules;
pub mod sandbox;
pub mod script_path;
mod secret;
pub mod select;
pub mod service;
pub mod shared;
pub mod show;
mod show_agent;
mod show_rules;
mod source;
mod text_file;
pub mod tool_overrides;

use std::fmt;

use serde_json::Value;

pub use broken::{BrokenEntries, MisconfiguredServer};
pub use dialect::Dialect;
pub use entry_cache::EntryCache;
pub use import::{Imported, check_text, import, import_text};
pub use load::{Accept, Ask, InputRequest, LoadOptions, RegistryTexts};
pub use lock_file::{LoadedLock, LockFile};
pub use model::{Config, ConfigFile};
pub use pattern::{NamePattern, WordPattern};
pub use place::{Place, Problem, Severity};
pub use secret::{Masked, Opaque, Secret, ServerUrl};

use place::At;
pub use registry_files::{
    JOURNAL_FILE, Journal, RegistryFiles, SERVERS_FILE, TOOLS_FILE, read_registry,
};
pub use text_file::read_file;
pub use text_file::read_plain_file;

impl Config {
    /// Loads, merges and checks the files.
    pub fn load(options: &LoadOptions<'_>) -> Result<Self, ConfigError> {
        load::load(options)
    }

    /// Compiles a configuration from native YAML, with an empty environment. Relative paths are
    /// relative to the working directory.
    ///
    /// ```
    /// use haft_config::config::Config;
    ///
    /// let config = Config::from_yaml("servers: {time: {command: uvx, args: [mcp-server-time]}}")?;
    /// assert_eq!(config.servers[0].name, "time");
    ///
    /// let error = Config::from_yaml("servers: {time: {comand: uvx}}").unwrap_err();
    /// println!("{error}"); // every problem, with line and remedy
    /// # Ok::<(), haft_config::config::ConfigError>(())
    /// ```
    pub fn from_yaml(text: &str) -> Result<Self, ConfigError> {
        Self::from_yaml_named(text, "haft.yaml")
    }

    /// The same for a document with another name in problems and origins.
    #[doc(hidden)]
    pub fn from_yaml_named(text: &str, name: &str) -> Result<Self, ConfigError> {
        load::from_text(text, name, &LoadOptions::default())
    }

    /// JSON Schema (2020-12) of the native format, for editors.
    ///
    /// ```
    /// assert_eq!(haft_config::config::Config::json_schema()["title"], "Haft configuration");
    /// ```
    pub fn json_schema() -> Value {
        let mut schema = <raw::RawConfig as read::FromNode>::schema();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = "Haft configuration".into();
        schema
    }

    /// Every secret of the configuration, for the log's redaction.
    pub fn secrets(&self) -> Vec<String> {
        show::secrets(self)
    }

    /// Those that are masked in descriptions of servers and tools: without ordinary words, which
    /// variables hold too.
    pub fn described_secrets(&self) -> Vec<String> {
        described::secrets(self)
    }
}

/// An invalid configuration: every problem found, errors first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one of these is an error.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        for (at, problem) in errors.enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}\n  help: {}", problem.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
