//! What a server offers, as it was last asked.

use haft_mcp::{
    Client, Listed, PromptDescription, RequestError, ResourceDescription, ResourceTemplate,
    ToolDescription, error::METHOD_NOT_FOUND,
};
use serde::{Deserialize, Serialize};

use crate::config::model::ServerConfig;

/// The lists of one server. Resources are asked for when somebody wants them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lists {
    /// Its tools.
    pub tools: Vec<ToolDescription>,
    /// Its prompts.
    pub prompts: Vec<PromptDescription>,
    /// What is known to be missing.
    #[serde(default)]
    pub gaps: Vec<String>,
}

impl Lists {
    /// Asks the server for everything its configuration wants.
    pub(super) async fn load(client: &Client, config: &ServerConfig) -> Result<Self, RequestError> {
        let mut lists = Self::default();
        if config.load_tools.value {
            // Servers that forget to declare their tools are asked all the same.
            let Listed { items, gaps } = or_none(client.list_tools().await)?;
            lists.tools = items;
            lists.gaps.extend(gaps);
        }
        let wants_prompts = config.load_prompts.value || !config.prompts.value.is_empty();
        if wants_prompts && client.identity().can("prompts") {
            let Listed { items, gaps } = or_none(client.list_prompts().await)?;
            lists.prompts = items;
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
}

/// A server that does not know a list has an empty one.
fn or_none<T>(listed: Result<Listed<T>, RequestError>) -> Result<Listed<T>, RequestError> {
    match listed {
        Err(RequestError::Rpc(error)) if error.code == METHOD_NOT_FOUND => {
            Ok(Listed { items: Vec::new(), gaps: Vec::new() })
        }
        listed => listed,
    }
}
