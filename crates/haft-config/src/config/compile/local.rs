//! One local tool: its schemas must compile and its script must lie inside the tools directory.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::merge::LocalSource;
use super::{call_limits, explicit, metadata, sandbox, tool};
use crate::config::Dialect;
use crate::config::choices::{Background, LocalRuntime, Sandbox};
use crate::config::dialect::{LocalItem, RawLocalConfig, RawLocalTool, RawSchema, SIGNATURE};
use crate::config::model::{
    CompiledSchemas, LocalProgram, LocalTool, Origin, PreparedTool, SchemaSource, Setting,
    ToolSettings,
};
use crate::config::node::Text;
use crate::config::place::{At, Place, Problems};
use crate::config::quantity::EnvValue;
use crate::config::sandbox::SandboxConfig;
use crate::config::script_path;
use crate::config::secret::{Masked, Secret};
use crate::definition::ToolDefinition;
use crate::schema::Schema;

const NO_SCHEMA: &str = "add \"input_schema\": {\"type\": \"object\", \"properties\": {}}, with a property for each argument";
const NO_SCHEMA_OF_PYTHON: &str = "add \"input_schema\": \"signature\" to read it from the function, or a JSON Schema with a property for each \
     argument";

pub(super) fn compile(
    source: LocalSource,
    sandbox: &Setting<SandboxConfig>,
    problems: &mut Problems,
) -> Option<Arc<LocalTool>> {
    let LocalSource { item, dialect, folder } = source;
    match item {
        LocalItem::Raw(raw) => {
            compile_new(*raw, (dialect, folder), sandbox, problems).map(Arc::new)
        }
        LocalItem::Known(tool) => Some(with_defaults(tool, sandbox, problems)),
    }
}

/// Applies the default sandbox, which may have changed since the tool was compiled.
fn with_defaults(
    mut tool: Arc<LocalTool>,
    sandbox: &Setting<SandboxConfig>,
    problems: &mut Problems,
) -> Arc<LocalTool> {
    let is_own = matches!(tool.sandbox.origin, Origin::Explicit(_));
    let inherited = sandbox::compile_or(None, sandbox, &tool.tools_dir, problems);
    if !is_own && tool.sandbox != inherited {
        Arc::make_mut(&mut tool).sandbox = inherited;
    }
    let LocalTool { definition, background, sandbox, place, .. } = &*tool;
    refuse_background(&definition.name, background, sandbox, place, problems);
    tool
}

fn compile_new(
    mut raw: RawLocalTool,
    (dialect, folder): (Dialect, PathBuf),
    sandbox: &Setting<SandboxConfig>,
    problems: &mut Problems,
) -> Option<LocalTool> {
    let place = raw.place.clone();
    let name = raw.name.clone().filter(|name| !name.value.is_empty()).map(|name| name.value);
    if name.is_none() && !raw.broken.contains(&"name") {
        let place = raw.name.as_ref().map_or(&place, |empty| &empty.place);
        problems.error(place, "a tool has no `name`", "add \"name\": \"...\"");
    }
    // The rest of an entry without a name is checked too: all its problems are reported at once.
    let shown = name.as_deref().unwrap_or("?");
    if raw.kind.is_none() && !raw.broken.contains(&"type") {
        problems.error(
            &place.below("type"),
            format!("tool `{shown}` does not say its `type`"),
            "add \"type\": \"local\"",
        );
    }
    let schema = schema_source(shown, &mut raw, dialect, problems);
    let has_docstring = schema == SchemaSource::Signature;
    if raw.description.is_none() && !has_docstring && !raw.broken.contains(&"description") {
        problems.warn(
            &place,
            format!("tool `{shown}` has no `description`"),
            "say what it does and when to use it: the choice of tools rests on it",
        );
    }
    let is_missing = raw.input_schema.is_none() && schema == SchemaSource::Entry;
    if is_missing && !raw.broken.contains(&"input_schema") {
        let is_python = raw.config.as_ref().is_some_and(|at| is_python(&at.value));
        problems.error(
            &place.below("input_schema"),
            format!("tool `{shown}` has no `input_schema`"),
            if is_python { NO_SCHEMA_OF_PYTHON } else { NO_SCHEMA },
        );
    }
    let metadata =
        metadata::compile(raw.title.take(), raw.annotations.take(), raw.icons.take(), problems);
    let (mut definition, schemas) = definition(shown, &mut raw, problems);
    metadata.apply(&mut definition);
    let program = program(shown, &raw, problems);
    let env = environment(&raw, problems);
    let background = raw
        .background
        .map_or_else(|| Setting::default(Background::default()), |at| explicit(at, |value| value));
    let sandbox = sandbox::compile_or(raw.sandbox.take(), sandbox, &folder, problems);
    refuse_background(shown, &background, &sandbox, &place, problems);
    let settings = ToolSettings {
        examples: raw.examples.map(|at| explicit(at, |examples| examples)),
        limits: call_limits::compile(raw.rate, raw.burst, raw.quota, problems),
        ..tool::settings(
            raw.max_instances,
            raw.timeout,
            raw.parallel_capable,
            raw.approval,
            raw.on_limit,
        )
    };
    name?;
    Some(LocalTool {
        definition: Arc::new(definition),
        schemas,
        metadata,
        settings: Arc::new(settings),
        program: program?,
        background,
        sandbox,
        schema,
        env,
        prepared: PreparedTool::default(),
        tools_dir: folder,
        place,
    })
}

fn refuse_background(
    tool: &str,
    background: &Setting<Background>,
    sandbox: &Setting<SandboxConfig>,
    place: &Place,
    problems: &mut Problems,
) {
    if (sandbox.value.kind, background.value) == (Sandbox::Bubblewrap, Background::Allow) {
        problems.error(
            place,
            format!("tool `{tool}`: with bubblewrap no process outlives its call"),
            "delete `background: allow`, or use `sandbox: landlock`",
        );
    }
}

/// Takes `input_schema: signature` out of the entry. In the native format a Python tool without a schema
/// means the same; `tools.json` requires a schema.
fn is_python(config: &RawLocalConfig) -> bool {
    matches!(runtime(config), LocalRuntime::Python)
}

fn schema_source(
    name: &str,
    raw: &mut RawLocalTool,
    dialect: Dialect,
    problems: &mut Problems,
) -> SchemaSource {
    let is_signature = |at: &At<RawSchema>| at.value.0 == SIGNATURE;
    let is_python = raw.config.as_ref().is_some_and(|at| is_python(&at.value));
    if let Some(at) = raw.output_schema.take_if(|at| is_signature(at)) {
        problems.error(
            &at.place,
            format!("tool `{name}`: the `output_schema` cannot be read from the signature"),
            "write a JSON Schema, or delete `output_schema`",
        );
    }
    match raw.input_schema.take_if(|at| is_signature(at)) {
        Some(_) if is_python => SchemaSource::Signature,
        Some(at) => {
            problems.error(
                &at.place,
                format!("tool `{name}` is not a Python tool, so it has no signature"),
                "write its `input_schema` as a JSON Schema",
            );
            SchemaSource::Signature
        }
        None if raw.input_schema.is_none()
            && !raw.broken.contains(&"input_schema")
            && dialect == Dialect::Native
            && is_python =>
        {
            SchemaSource::Signature
        }
        None => SchemaSource::Entry,
    }
}

fn environment(raw: &RawLocalTool, problems: &mut Problems) -> Vec<(String, Option<Secret>)> {
    let env = raw.config.iter().filter_map(|config| config.value.env.as_ref());
    let mut variables = Vec::new();
    for (name, EnvValue(value)) in env.flat_map(|env| &env.value.0) {
        if name.value.is_empty() || name.value.contains(['=', '\0']) {
            problems.error(
                &name.place,
                format!("`{}` cannot be the name of a variable", name.value.escape_debug()),
                "use letters, digits and `_`",
            );
            continue;
        }
        let value = value.as_ref().map(|text| Secret::new(text.text.clone()));
        variables.push((name.value.clone(), value));
    }
    variables
}

/// The packages of a Python tool. An option of the installer is not a package.
fn requirements(tool: &str, config: &RawLocalConfig, problems: &mut Problems) -> Vec<String> {
    let Some(At { value: lines, place }) = &config.requirements else { return Vec::new() };
    let is_bad = |line: &&String| {
        let line = line.trim();
        line.is_empty() || line.starts_with(['-', '#']) || line.contains(char::is_control)
    };
    if let Some(bad) = lines.iter().find(is_bad) {
        problems.error(
            place,
            format!("tool `{tool}`: `{}` is not a package", bad.escape_debug()),
            "name packages, such as `requests==2.34.2`; options of the installer are not allowed",
        );
    }
    let mut packages: Vec<String> = lines.iter().map(|line| line.trim().to_owned()).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn definition(
    name: &str,
    raw: &mut RawLocalTool,
    problems: &mut Problems,
) -> (ToolDefinition, CompiledSchemas) {
    let mut schema = |key: &str, schema: Option<At<RawSchema>>| {
        let at = schema?;
        let compiled = Schema::shared(&at.value.0);
        if let Err(problem) = &compiled {
            problems.error(
                &at.place,
                format!("the `{key}` of tool `{name}` is not usable: {problem}"),
                "write a JSON Schema (2020-12) without references to other documents",
            );
        }
        Some((at.value.0, compiled.ok()))
    };
    let input = schema("input_schema", raw.input_schema.take());
    let output = schema("output_schema", raw.output_schema.take());
    let (input, input_compiled) = input.unzip();
    let (output_schema, output_compiled) = output.unzip();
    let schemas =
        CompiledSchemas { input: input_compiled.flatten(), output: output_compiled.flatten() };
    let description = raw.description.take().map(|at| at.value).unwrap_or_default();
    let input = input.unwrap_or_else(any_object);
    let definition = ToolDefinition::new(name, description, input);
    (ToolDefinition { output_schema, ..definition }, schemas)
}

fn any_object() -> Value {
    json!({"type": "object", "properties": {}})
}

fn program(tool: &str, raw: &RawLocalTool, problems: &mut Problems) -> Option<LocalProgram> {
    if raw.broken.contains(&"config") {
        return None;
    }
    let Some(At { value: config, place }) = &raw.config else {
        problems.error(
            &raw.place.below("config"),
            format!("tool `{tool}` does not say what runs it"),
            "add \"config\": {\"script_path\": \"tool.py\"}",
        );
        return None;
    };
    if ["script_path", "command", "runtime"].iter().any(|key| config.broken.contains(key)) {
        return None;
    }
    let script = config.script_path.as_ref();
    if let Some(At { value, place }) = script
        && let Err(problem) = script_path::check_spelling(&value.text)
    {
        problems.error(
            place,
            format!(
                "tool `{tool}`: the script path `{}` is refused: {problem}",
                value.shown().escape_debug()
            ),
            "name a file inside the tools directory, such as `weather.py`",
        );
        return None;
    }
    match (runtime(config), script) {
        (LocalRuntime::Python, Some(script)) => {
            let ignored = [
                ("args", config.args.as_ref().map(|at| &at.place)),
                ("command", config.command.as_ref().map(|at| &at.place)),
            ];
            for (key, place) in ignored.into_iter().filter_map(|(key, at)| Some((key, at?))) {
                problems.warn(
                    place,
                    format!("`{key}` has no effect on a Python tool"),
                    "delete it, or set \"runtime\": \"command\"",
                );
            }
            let entrypoint = config.entrypoint.as_ref().map_or("run", |at| at.value.as_str());
            Some(LocalProgram::Python {
                script_path: script.value.text.clone(),
                entrypoint: entrypoint.to_owned(),
                requirements: requirements(tool, config, problems),
            })
        }
        (LocalRuntime::Command, script) if script.is_some() || has_command(config) => {
            let ignored = [
                ("entrypoint", config.entrypoint.as_ref().map(|at| &at.place)),
                ("requirements", config.requirements.as_ref().map(|at| &at.place)),
            ];
            for (key, place) in ignored.into_iter().filter_map(|(key, at)| Some((key, at?))) {
                problems.warn(
                    place,
                    format!("`{key}` has no effect on a command"),
                    "delete it, or set \"runtime\": \"python\"",
                );
            }
            Some(command(config, script))
        }
        (LocalRuntime::Python | LocalRuntime::Command, _) => {
            missing_script(tool, place, problems);
            None
        }
    }
}

fn missing_script(tool: &str, place: &Place, problems: &mut Problems) {
    problems.error(
        &place.below("script_path"),
        format!("tool `{tool}` names no script"),
        "add \"script_path\": \"tool.py\" (or \"command\": [\"program\"] with \"runtime\": \"command\")",
    );
}

fn command(config: &RawLocalConfig, script: Option<&At<Text>>) -> LocalProgram {
    let words = config.command.iter().flat_map(|at| at.value.0.iter().cloned());
    let args = config.args.iter().flat_map(|at| at.value.iter().cloned());
    LocalProgram::Command {
        command: Masked::command_line(words),
        script_path: script.map(|at| at.value.text.clone()),
        args: Masked::command_line(args),
    }
}

fn has_command(config: &RawLocalConfig) -> bool {
    config.command.as_ref().is_some_and(|at| !at.value.0.is_empty())
}

/// The default runtime: a command if the entry names one, otherwise by the script's extension.
fn runtime(config: &RawLocalConfig) -> LocalRuntime {
    let ending =
        |at: &At<Text>| at.value.text.rsplit_once('.').map(|(_, ending)| ending.to_owned());
    match (&config.runtime, config.script_path.as_ref().and_then(ending).as_deref()) {
        (Some(runtime), _) => runtime.value,
        (None, _) if has_command(config) => LocalRuntime::Command,
        (None, Some("py") | None) => LocalRuntime::Python,
        (None, Some(_)) => LocalRuntime::Command,
    }
}
