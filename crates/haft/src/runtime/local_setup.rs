//! What local tools need before they are registered: a schema from the signature, and packages.

use std::sync::Arc;

use super::{Parts, Purpose};
use crate::backend::script::{requirements, signature};
use crate::config::Config;
use crate::config::model::{LocalProgram, LocalTool, SchemaSource};
use crate::tool::ToolDefinition;
use haft_config::schema::Schema;

/// Folder of the virtual environments, in the state folder.
const ENVIRONMENTS: &str = "venvs";

/// Prepares every local tool of a configuration. A tool that cannot be prepared keeps its problem and is not
/// registered; the others are not affected.
pub(super) async fn prepare(config: &mut Config, parts: &Parts) {
    let folder = config.state_dir.value.join(ENVIRONMENTS);
    let python = config.defaults.python.value.expose().to_owned();
    for tool in &mut config.local {
        let LocalProgram::Python { script_path, entrypoint, requirements } = &tool.program else {
            continue;
        };
        let scope = parts.warm.scope();
        if tool.schema == SchemaSource::Signature {
            let read = signature::read(tool, script_path, entrypoint, &python, scope).await;
            match read.and_then(|signature| usable(tool, signature)) {
                Ok((definition, is_by_name)) => {
                    tool.definition = Arc::new(definition);
                    tool.prepared.is_by_name = is_by_name;
                }
                Err(problem) => {
                    tool.prepared.problem = Some(problem);
                    continue;
                }
            }
        }
        // Listing tools installs nothing.
        if !requirements.is_empty() && parts.purpose == Purpose::Call {
            let name = &tool.definition.name;
            match requirements::environment(&folder, &python, requirements, name, scope).await {
                Ok(python) => tool.prepared.python = Some(python),
                Err(problem) => tool.prepared.problem = Some(problem),
            }
        }
    }
}

/// The definition of a tool with the schema of its signature.
fn usable(
    tool: &LocalTool,
    signature: signature::Signature,
) -> Result<(ToolDefinition, bool), String> {
    let signature::Signature { input_schema, description, is_by_name } = signature;
    Schema::shared(&input_schema)
        .map_err(|problem| format!("the schema of its signature is not usable: {problem}"))?;
    let mut definition = ToolDefinition::clone(&tool.definition);
    definition.input_schema = input_schema;
    if definition.description.is_empty() {
        definition.description = description;
    }
    Ok((definition, is_by_name))
}
