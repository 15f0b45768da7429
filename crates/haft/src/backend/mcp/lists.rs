//! The lists of a server, as last fetched.

use std::time::Duration;

use haft_mcp::{
    Client, Listed, PromptDescription, RequestError, ResourceDescription, ResourceTemplate,
    ToolDescription, error::METHOD_NOT_FOUND,
};
use serde::{Deserialize, Serialize};

use crate::config::model::ServerConfig;
use haft_config::redact::Redactor;
use haft_text::human;

/// Maximum time that the tools of a server wait for its prompts.
const PROMPTS_WAIT_MAX: Duration = Duration::from_secs(5);

/// The lists of one server. Resources are fetched on demand.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lists {
    /// Its tools.
    pub tools: Vec<ToolDescription>,
    /// Its prompts.
    pub prompts: Vec<PromptDescription>,
    /// Known gaps.
    #[serde(default)]
    pub gaps: Vec<String>,
    /// The capabilities it declares, so that they are known while it is not connected.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Its instructions, so that they are known while it is not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The server's lifetime for its lists (`ttlMs`), in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

impl Lists {
    /// Asks the server for everything its configuration wants.
    pub(super) async fn load(client: &Client, config: &ServerConfig) -> Result<Self, RequestError> {
        let capabilities = client.identity().declared().map(ToOwned::to_owned).collect();
        let instructions = client.identity().instructions.clone();
        let mut lists = Self { capabilities, instructions, ..Self::default() };
        if config.load_tools.value {
            // Servers that do not declare their tools are queried nevertheless.
            let Listed { items, gaps, ttl_ms } = or_none(client.list_tools().await)?;
            lists.tools = items;
            lists.ttl_ms = ttl_ms;
            lists.gaps.extend(gaps);
        }
        let wants_prompts = config.load_prompts.value || !config.prompts.value.is_empty();
        if wants_prompts && client.identity().can("prompts") {
            let Listed { items, gaps, ttl_ms } = list_prompts(client, config).await?;
            lists.prompts = items;
            lists.ttl_ms = lists.ttl_ms.into_iter().chain(ttl_ms).min();
            lists.gaps.extend(gaps);
        }
        let wanted = &config.prompts.value;
        if !wanted.is_empty() {
            lists.prompts.retain(|prompt| wanted.contains(&prompt.name));
        }
        for name in wanted.iter().filter(|name| !lists.prompts.iter().any(|it| it.name == **name)) {
            lists.gaps.push(format!("it has no prompt `{name}`, which `prompts` asks for"));
        }
        Ok(lists)
    }
}

/// The server's prompts. A server that cannot list them keeps its tools, unless the connection is gone.
async fn list_prompts(
    client: &Client,
    config: &ServerConfig,
) -> Result<Listed<PromptDescription>, RequestError> {
    let limit = PROMPTS_WAIT_MAX.min(config.request_timeout.value);
    let problem = match tokio::time::timeout(limit, client.list_prompts()).await {
        Ok(Err(error)) if !client.has_ended() => match or_none(Err(error)) {
            Ok(none) => return Ok(none),
            Err(error) => error.to_string(),
        },
        Ok(listed) => return listed,
        Err(_) => format!("no answer within {}", human(limit)),
    };
    let gap = format!(
        "its prompts cannot be listed ({problem}); set `load_prompts: false` to connect without them"
    );
    Ok(Listed { items: Vec::new(), gaps: vec![gap], ttl_ms: None })
}

impl Lists {
    /// Masks known secrets in everything but names, by which the server is called.
    pub(super) fn mask(&mut self, redactor: &Redactor) {
        for ToolDescription { name: _, title, description, input_schema, output_schema, rest } in
            &mut self.tools
        {
            title.iter_mut().chain([description]).for_each(|text| redactor.mask(text));
            redactor.mask_value(input_schema);
            if let Some(schema) = output_schema {
                redactor.mask_value(schema);
            }
            redactor.mask_fields(rest);
        }
        for PromptDescription { name: _, title, description, arguments, rest } in &mut self.prompts
        {
            title.iter_mut().chain([description]).for_each(|text| redactor.mask(text));
            for argument in arguments {
                redactor.mask(&mut argument.description);
                redactor.mask_fields(&mut argument.rest);
            }
            redactor.mask_fields(rest);
        }
        for text in self.gaps.iter_mut().chain(&mut self.instructions) {
            redactor.mask(text);
        }
    }
}

/// The resources of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resources {
    /// Those it names.
    pub resources: Vec<ResourceDescription>,
    /// Families of them.
    pub templates: Vec<ResourceTemplate>,
}

impl Resources {
    pub(super) async fn load(client: &Client) -> Result<Self, RequestError> {
        let resources = or_none(client.list_resources().await)?;
        let templates = or_none(client.list_resource_templates().await)?;
        Ok(Self { resources: resources.items, templates: templates.items })
    }

    /// Masks known secrets in everything but URIs, by which resources are read.
    pub(super) fn mask(&mut self, redactor: &Redactor) {
        for ResourceDescription { uri: _, name, description, mime_type, rest } in
            &mut self.resources
        {
            let texts = [name, description].into_iter().chain(mime_type);
            texts.for_each(|text| redactor.mask(text));
            redactor.mask_fields(rest);
        }
        for ResourceTemplate { uri_template: _, name, description, mime_type, rest } in
            &mut self.templates
        {
            let texts = [name, description].into_iter().chain(mime_type);
            texts.for_each(|text| redactor.mask(text));
            redactor.mask_fields(rest);
        }
    }
}

/// A server that does not know a list has an empty one.
fn or_none<T>(listed: Result<Listed<T>, RequestError>) -> Result<Listed<T>, RequestError> {
    match listed {
        Err(RequestError::Rpc(error)) if error.code == METHOD_NOT_FOUND => {
            Ok(Listed { items: Vec::new(), gaps: Vec::new(), ttl_ms: None })
        }
        listed => listed,
    }
}
