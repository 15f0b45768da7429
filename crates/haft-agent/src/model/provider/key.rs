//! The key of a model's service: its source, and the error if it is missing.

use std::path::PathBuf;

use crate::model::{ModelError, ModelFailure};
use haft::config::agent::AgentConfig;
use haft::config::{Secret, read_plain_file};

/// Maximum length of a key, with surrounding space.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// The source of the key.
pub(in crate::model) enum KeySource {
    /// In a file, which is read for each request: a key can be replaced while Haft runs.
    File(PathBuf),
    /// Here, from this variable.
    Held { key: Secret, variable: Option<String> },
    /// There is none, and none is needed.
    Unneeded { variable: Option<String> },
}

impl KeySource {
    /// Creates the configured source. `variable` is the provider's own, for the remedy.
    pub(super) fn new(
        config: &AgentConfig,
        variable: Option<&str>,
        is_needed: bool,
    ) -> Result<Self, ModelError> {
        if let Some(file) = &config.api_key_file {
            return Ok(Self::File(file.value.clone()));
        }
        let variable = config.key_variable().or(variable).map(ToOwned::to_owned);
        if let Some(key) = &config.api_key {
            return Ok(Self::Held { key: key.clone(), variable });
        }
        // An explicitly named variable is required, even if the provider needs no key.
        if !is_needed && config.api_key_env.is_none() {
            return Ok(Self::Unneeded { variable });
        }
        let model = config.model.as_ref().map_or("", |model| &model.value);
        let remedy = match (&variable, config.key_variable()) {
            (Some(variable), Some(_)) => {
                format!("set `{variable}`, or name a file that holds it with `agent.api_key_file`")
            }
            (Some(variable), None) => format!(
                "write `api_key_env: {variable}` under `agent` and set that variable, or name a \
                 file with `agent.api_key_file`"
            ),
            (None, _) => {
                "name the variable that holds it with `agent.api_key_env`, or a file with \
                          `agent.api_key_file`"
                    .to_owned()
            }
        };
        Err(setup(format!("there is no key for the model `{model}`"), remedy))
    }

    /// Reads the current key.
    pub(super) async fn read(&self) -> Result<Option<Secret>, ModelError> {
        let key = match self {
            Self::Unneeded { .. } => return Ok(None),
            Self::Held { key, .. } => key.clone(),
            Self::File(path) => {
                let shown = path.display();
                let text = read(path.clone()).await.map_err(|problem| {
                    setup(
                        format!("the file `{shown}` with the key: {problem}"),
                        "put the key there, or change `agent.api_key_file`".to_owned(),
                    )
                })?;
                let key = text.trim();
                if key.is_empty() {
                    return Err(setup(
                        format!("the file `{shown}` holds no key: it is empty"),
                        "put the key there, or change `agent.api_key_file`".to_owned(),
                    ));
                }
                Secret::new(key)
            }
        };
        if !key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(setup(
                "the key of the model has characters that no header may have".to_owned(),
                format!("look at {}: it must hold the key and nothing else", self.place()),
            ));
        }
        Ok(Some(key))
    }

    /// The place to check when the service rejects the key.
    pub(in crate::model) fn place(&self) -> String {
        match self {
            Self::File(path) => format!("the file `{}`", path.display()),
            Self::Held { variable: Some(variable), .. } => format!("`{variable}`"),
            Self::Held { variable: None, .. } => "the key".to_owned(),
            Self::Unneeded { variable: Some(variable) } => {
                format!("`{variable}` or `agent.api_key_file`: none is set")
            }
            Self::Unneeded { variable: None } => {
                "`agent.api_key_env` or `agent.api_key_file`: none is set".to_owned()
            }
        }
    }
}

async fn read(path: PathBuf) -> Result<String, String> {
    let read = tokio::task::spawn_blocking(move || read_plain_file(&path, KEY_BYTES_MAX)).await;
    read.unwrap_or_else(|error| Err(error.to_string()))
}

fn setup(message: String, remedy: String) -> ModelError {
    ModelError { kind: ModelFailure::Setup, message, remedy: Some(remedy) }
}
