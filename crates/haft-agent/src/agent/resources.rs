//! Two tools that let a model list and read resources, added if a server has resources.

use haft_bounds::parse_error::describe;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Agent;
use crate::model::ModelTool;
use haft::AccessLists;
use haft::Admitted;
use haft::InlineTool;
use haft::Remedy;
use haft::Resources;
use haft::Runtime;
use haft::ToolFailure;
use haft::ToolOutput;
use haft::{BoxFuture, Tool, ToolDefinition};

const LIST: &str = "list_resources";
const READ: &str = "read_resource";

/// Maximum number of listed resources.
const LISTED_MAX: usize = 200;

/// The two tools.
pub(super) fn tools(runtime: &Runtime, lists: &Arc<AccessLists>) -> Vec<InlineTool> {
    let (list, read) = (runtime.clone(), runtime.clone());
    vec![
        InlineTool::new(Arc::new(ListResources { runtime: list, lists: Arc::clone(lists) })),
        InlineTool::new(Arc::new(ReadResource { runtime: read, lists: Arc::clone(lists) })),
    ]
}

impl Agent {
    /// The agent's own tool of this name, unless the toolbox has one of that name.
    pub(super) fn resource_tool(&self, name: &str) -> Option<InlineTool> {
        if !matches!(name, LIST | READ) || self.visible_tool(name).is_some() {
            return None;
        }
        self.resource_tools.iter().find(|it| it.tool().definition().name == name).cloned()
    }

    /// The tools as a model sees them; none where no server has resources.
    pub(super) fn resource_offers(&self) -> Vec<ModelTool> {
        let servers = self.runtime.servers_with("resources");
        if !servers.iter().any(|server| self.settings.lists.shows_server(server)) {
            return Vec::new();
        }
        let own = self.resource_tools.iter().map(|it| it.tool().definition());
        let free = own.filter(|tool| self.visible_tool(&tool.name).is_none());
        free.map(|ToolDefinition { name, description, input_schema, .. }| ModelTool {
            name,
            description,
            input_schema,
        })
        .collect()
    }
}

struct ListResources {
    runtime: Runtime,
    lists: Arc<AccessLists>,
}

impl Tool for ListResources {
    fn definition(&self) -> ToolDefinition {
        definition(
            LIST,
            "Lists the resources (documents, records, files) that connected servers keep, with the URI to read each by.",
            &json!({"server": {"type": "string", "description": "Only those of this server."}}),
            &[],
        )
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async {
            #[derive(Deserialize)]
            struct ResourceParams {
                server: Option<String>,
            }
            let ResourceParams { server } = read(call)?;
            let is_wanted = |name: &str| {
                self.lists.shows_server(name)
                    && server.as_deref().is_none_or(|wanted| wanted == name)
            };
            let mut text = String::new();
            let mut count = 0;
            for (server, listed) in self.runtime.all_resources(is_wanted).await {
                for resource in &listed.resources {
                    count += 1;
                    if count <= LISTED_MAX {
                        let about = &resource.description;
                        let _ = writeln!(
                            text,
                            "{server}: {} ({}) {about}",
                            resource.uri, resource.name
                        );
                    }
                }
                for template in &listed.templates {
                    let about = &template.description;
                    let _ =
                        writeln!(text, "{server}: {} (template) {about}", template.uri_template);
                }
            }
            if count > LISTED_MAX {
                let _ = writeln!(text, "[{} more are not listed]", count - LISTED_MAX);
            }
            if text.is_empty() {
                text.push_str("there are no resources");
            }
            Ok(ToolOutput::from_text(text.trim_end()))
        })
    }
}

struct ReadResource {
    runtime: Runtime,
    lists: Arc<AccessLists>,
}

impl Tool for ReadResource {
    fn definition(&self) -> ToolDefinition {
        definition(
            READ,
            "Reads a resource of a connected server by its URI. `list_resources` shows which there are.",
            &json!({
                "uri": {"type": "string", "description": "The resource's URI."},
                "server": {"type": "string", "description": "The server that has it, where several may."},
            }),
            &["uri"],
        )
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async {
            #[derive(Deserialize)]
            struct ResourceParams {
                uri: String,
                server: Option<String>,
            }
            let ResourceParams { uri, server } = read(call)?;
            let server = match server {
                Some(server) if self.lists.shows_server(&server) => server,
                // As if there were no such server.
                Some(_) => return Err(unlisted(&uri)),
                None => {
                    let shows = |server: &str| self.lists.shows_server(server);
                    owner(&self.runtime.all_resources(shows).await, &uri)?
                }
            };
            let content = self.runtime.read_resource(&server, &uri).await?;
            Ok(ToolOutput { content, ..ToolOutput::default() })
        })
    }
}

fn definition(
    name: &str,
    description: &str,
    properties: &Value,
    required: &[&str],
) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
        output_schema: None,
        annotations: None,
        icons: None,
    }
}

/// The server of a resource: the one that lists it, otherwise one with a matching template,
/// otherwise the only one.
pub(super) fn owner(listed: &[(String, Arc<Resources>)], uri: &str) -> Result<String, ToolFailure> {
    if let Some((server, _)) = listed.iter().find(|(_, resources)| lists(resources, uri)) {
        return Ok(server.clone());
    }
    if let Some((server, _)) = listed.iter().find(|(_, resources)| has_template(resources, uri)) {
        return Ok(server.clone());
    }
    match listed {
        [(only, _)] => Ok(only.clone()),
        _ => Err(unlisted(uri)),
    }
}

fn unlisted(uri: &str) -> ToolFailure {
    ToolFailure::Execution {
        message: format!("no server lists the resource `{uri}`"),
        remedy: Some(Remedy::FindResource.into()),
        details: Value::Null,
    }
}

/// Returns true if a server lists a resource or has a template for it.
pub(super) fn offers(resources: &Resources, uri: &str) -> bool {
    lists(resources, uri) || has_template(resources, uri)
}

fn lists(resources: &Resources, uri: &str) -> bool {
    resources.resources.iter().any(|resource| resource.uri == uri)
}

fn has_template(resources: &Resources, uri: &str) -> bool {
    resources.templates.iter().any(|template| {
        let fixed = template.uri_template.split('{').next().unwrap_or_default();
        !fixed.is_empty() && uri.starts_with(fixed)
    })
}

fn read<T: for<'de> Deserialize<'de>>(call: &Admitted<'_>) -> Result<T, ToolFailure> {
    serde_json::from_str(call.arguments().raw().get())
        .map_err(|error| ToolFailure::execution(describe(&error)))
}
