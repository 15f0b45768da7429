//! The address and key of a request.

use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use url::Url;

use super::key::KeySource;
use super::kind::Provider;
use crate::model::{ModelError, ModelFailure};
use haft::config::Secret;
use haft::config::agent::AgentConfig;

/// The placeholder for services without a key, if the format requires one.
const NO_KEY: &str = "none";

/// The service of one model.
pub(in crate::model) struct Target {
    pub(in crate::model) provider: Provider,
    /// With its provider, as configured.
    pub(in crate::model) model: String,
    /// With a trailing slash; `None` for the provider's own.
    base: Option<Url>,
    pub(in crate::model) key: KeySource,
    /// The address with secrets masked, for errors; `None` for the provider's own.
    pub(in crate::model) shown: Option<String>,
    /// Those secrets.
    pub(in crate::model) secrets: Vec<String>,
}

impl Target {
    pub(in crate::model) fn new(config: &AgentConfig) -> Result<Self, ModelError> {
        let Some(model) = &config.model else {
            return Err(ModelError {
                kind: ModelFailure::Setup,
                message: "no model is configured".to_owned(),
                remedy: Some(
                    "write one under `agent` in the configuration, such as `model: openai::gpt-5`"
                        .to_owned(),
                ),
            });
        };
        let provider = Provider::of(&model.value)?;
        let base = config.base_url.as_ref();
        let variable = provider.adapter().default_key_env_name();
        // A self-hosted service reports itself if it needs a key.
        let is_free = base.is_some() || provider == Provider::Ollama || variable.is_none();
        let shown = base.map(|url| url.value.to_string());
        Ok(Self {
            provider,
            model: model.value.clone(),
            base: base.map(|url| base_of(url.value.expose(), provider)).transpose()?,
            key: KeySource::new(config, variable, !is_free)?,
            shown,
            secrets: base.map(|url| url.value.secrets()).unwrap_or_default(),
        })
    }

    /// The service as genai knows it, and the key that is used, for masking.
    pub(in crate::model) async fn resolve(
        &self,
        client: &Client,
    ) -> Result<(ServiceTarget, Option<Secret>), ModelError> {
        let key = self.key.read().await?;
        let model = ModelIden::new(self.provider.adapter(), self.model.clone());
        let usual = client.resolve_service_target(model).await.map_err(|error| ModelError {
            kind: ModelFailure::Setup,
            message: format!("the model `{}` cannot be used: {error}", self.model),
            remedy: None,
        })?;
        let endpoint =
            self.base.as_ref().map_or(usual.endpoint, |base| Endpoint::from_owned(base.as_str()));
        let auth = match (&key, self.provider) {
            (Some(key), _) => AuthData::from_single(key.expose()),
            // Without a key there is no header for it. Genai always sends one in this format, so
            // the request is overridden as a whole.
            (None, Provider::OpenAi) => AuthData::RequestOverride {
                url: self.chat_address(endpoint.base_url()),
                headers: Headers::default(),
            },
            (None, _) => AuthData::from_single(NO_KEY),
        };
        Ok((ServiceTarget { endpoint, auth, model: usual.model }, key))
    }

    fn chat_address(&self, base: &str) -> String {
        let (path, query) = base.split_once('?').map_or((base, None), |(p, q)| (p, Some(q)));
        let endpoint = self.provider.endpoint_path();
        query.map_or_else(
            || format!("{path}{endpoint}"),
            |query| format!("{path}{endpoint}?{query}"),
        )
    }
}

/// The target as genai's client reaches it through a relay, in plain HTTP, and the address of the service itself.
pub(super) fn local(target: ServiceTarget) -> Result<(ServiceTarget, Url), String> {
    let ServiceTarget { endpoint, auth, model } = target;
    let mut service: Url = endpoint
        .base_url()
        .parse()
        .map_err(|_| format!("`{}` is not a valid address", endpoint.base_url()))?;
    // Genai's client turns credentials of the address into a header.
    let _ = service.set_username("");
    let _ = service.set_password(None);
    let plain = |url: &str| match url.strip_prefix("https://") {
        Some(rest) => format!("http://{rest}"),
        None => url.to_owned(),
    };
    let endpoint = Endpoint::from_owned(plain(endpoint.base_url()));
    let auth = match auth {
        AuthData::RequestOverride { url, headers } => {
            AuthData::RequestOverride { url: plain(&url), headers }
        }
        other => other,
    };
    Ok((ServiceTarget { endpoint, auth, model }, service))
}

/// The address with a trailing slash, and the provider's usual path if it has none.
fn base_of(url: &Url, provider: Provider) -> Result<Url, ModelError> {
    if url.query().is_some() && provider != Provider::OpenAi {
        return Err(ModelError {
            kind: ModelFailure::Setup,
            message: "`agent.base_url` has a query, which this provider's address cannot have"
                .to_owned(),
            remedy: Some("remove what follows `?`".to_owned()),
        });
    }
    let mut base = url.clone();
    base.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix(provider.endpoint_path()).unwrap_or(path).trim_end_matches('/');
    if path.is_empty() {
        base.set_path(provider.usual_path());
    } else {
        base.set_path(&format!("{path}/"));
    }
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_with_and_without_its_slash_and_path() {
        for (written, provider, used) in [
            ("http://h/v1", Provider::OpenAi, "http://h/v1/"),
            ("http://h/v1/", Provider::OpenAi, "http://h/v1/"),
            ("http://h", Provider::OpenAi, "http://h/v1/"),
            ("http://h/v1/chat/completions", Provider::OpenAi, "http://h/v1/"),
            ("http://h/a?api-version=1", Provider::OpenAi, "http://h/a/?api-version=1"),
            ("http://h", Provider::Anthropic, "http://h/v1/"),
            ("http://h/v1/messages", Provider::Anthropic, "http://h/v1/"),
            ("http://h", Provider::Gemini, "http://h/v1beta/"),
            ("http://h:11434", Provider::Ollama, "http://h:11434/"),
        ] {
            assert_eq!(base_of(&written.parse().unwrap(), provider).unwrap().as_str(), used);
        }
        base_of(&"http://h/?a=b".parse().unwrap(), Provider::Gemini).unwrap_err();
    }
}
