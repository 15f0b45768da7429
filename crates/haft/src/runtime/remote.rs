//! Prompts and resources of servers.

use haft_config::Remedy;
use haft_mcp::{PromptArgument, ResourceDescription, ResourceTemplate};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Runtime;
use crate::backend::mcp::{Connection, Resources};
use crate::content::{Content, Message};
use crate::error::ToolFailure;
use std::sync::Arc;

/// A prompt and its server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptInfo {
    /// The server.
    pub server: String,
    /// Its name on the server.
    pub name: String,
    /// A display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its purpose.
    pub description: String,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
}

/// A resource or resource template, and its server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ResourceInfo {
    /// One resource.
    Resource {
        /// The server.
        server: String,
        /// Its description.
        #[serde(flatten)]
        resource: ResourceDescription,
    },
    /// A resource template.
    Template {
        /// The server.
        server: String,
        /// Its description.
        #[serde(flatten)]
        template: ResourceTemplate,
    },
}

impl Runtime {
    /// The prompts of every listed server.
    pub fn prompts(&self) -> Vec<PromptInfo> {
        let snapshot = self.inner.snapshot.load();
        let mut prompts = Vec::new();
        for connection in snapshot.server_pool.all() {
            let Some(lists) = snapshot.server_pool.usable_lists(connection) else { continue };
            prompts.extend(lists.prompts.iter().map(|prompt| PromptInfo {
                server: connection.name().to_owned(),
                name: prompt.name.clone(),
                title: prompt.title.clone(),
                description: prompt.description.clone(),
                arguments: prompt.arguments.clone(),
            }));
        }
        prompts
    }

    /// Returns a prompt with its arguments (a JSON object) filled in, as chat messages.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &RawValue,
    ) -> Result<Vec<Message>, ToolFailure> {
        let connection = self.connection(server)?;
        self.check_prompt(&connection, name).await?;
        connection.get_prompt(name, arguments).await
    }

    /// The resources of a server.
    pub async fn resources(&self, server: &str) -> Result<Vec<ResourceInfo>, ToolFailure> {
        let listed = self.connection(server)?.resources().await?;
        let listed = self.approved_resources(server, listed);
        let name = || server.to_owned();
        let Resources { resources, templates } = Resources::clone(&listed);
        let resources = resources
            .into_iter()
            .map(|resource| ResourceInfo::Resource { server: name(), resource });
        let templates = templates
            .into_iter()
            .map(|template| ResourceInfo::Template { server: name(), template });
        Ok(resources.chain(templates).collect())
    }

    /// The content of a resource.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<Vec<Content>, ToolFailure> {
        self.connection(server)?.read_resource(uri).await
    }

    /// Pings a server; connects it first if necessary.
    pub async fn ping(&self, server: &str) -> Result<(), ToolFailure> {
        self.connection(server)?.ping().await
    }

    fn connection(&self, server: &str) -> Result<Arc<Connection>, ToolFailure> {
        let snapshot = self.inner.snapshot.load();
        snapshot.server_pool.find(server).cloned().ok_or_else(|| ToolFailure::Unavailable {
            message: format!("no server is named `{server}`, or it is disabled"),
            remedy: Some(Remedy::FindServer { nearest: None }.into()),
            details: serde_json::Value::Null,
        })
    }
}
