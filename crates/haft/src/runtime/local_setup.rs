//! Preparation of local tools before they are registered: a schema from the signature, and packages.

use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use super::{Parts, Purpose};
use crate::backend::script::{requirements, signature};
use crate::config::Config;
use crate::config::model::{LocalProgram, LocalTool, SchemaSource};
use crate::tool::ToolDefinition;
use haft_config::schema::Schema;

/// Folder of the virtual environments, in the state folder.
const ENVIRONMENTS: &str = "venvs";

/// Maximum number of tools that are prepared at the same time.
const AT_ONCE_MAX: usize = 8;

/// Prepares every local tool of a configuration. A tool that cannot be prepared keeps its problem and is not
/// registered; the others are not affected.
pub(super) async fn prepare(config: &mut Config, parts: &Parts) {
    let folder = config.state_dir.value.join(ENVIRONMENTS);
    let python = config.defaults.python.value.expose().to_owned();
    let (folder, python) = (folder.as_path(), python.as_str());
    stream::iter(config.local.iter_mut().filter(|tool| needs_preparation(tool)))
        .for_each_concurrent(AT_ONCE_MAX, |tool| async move {
            let tool = Arc::make_mut(tool);
            tool.prepared.problem = prepare_tool(tool, folder, python, parts).await.err();
        })
        .await;
}

fn needs_preparation(tool: &LocalTool) -> bool {
    match &tool.program {
        LocalProgram::Python { requirements, .. } => {
            !requirements.is_empty() || tool.schema == SchemaSource::Signature
        }
        LocalProgram::Command { .. } => false,
    }
}

async fn prepare_tool(
    tool: &mut LocalTool,
    folder: &Path,
    python: &str,
    parts: &Parts,
) -> Result<(), String> {
    let LocalProgram::Python { script_path, entrypoint, requirements } = &tool.program else {
        return Ok(());
    };
    let scope = parts.warm.scope();
    // Listing tools installs nothing, and neither does a call of another tool.
    let is_wanted = parts.wanted.as_ref().is_none_or(|wanted| *wanted == tool.definition.name);
    if !requirements.is_empty() && parts.purpose == Purpose::Call && is_wanted {
        let name = &tool.definition.name;
        let built = requirements::environment(folder, python, requirements, name, scope).await?;
        tool.prepared.python = Some(built);
    }
    if tool.schema == SchemaSource::Signature {
        let read = signature::read(tool, script_path, entrypoint, python, scope).await?;
        let (definition, is_by_name) = usable(tool, read)?;
        tool.definition = Arc::new(definition);
        // Of the entry's placeholder, if there is any.
        tool.schemas.input = None;
        tool.prepared.is_by_name = is_by_name;
    }
    Ok(())
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
