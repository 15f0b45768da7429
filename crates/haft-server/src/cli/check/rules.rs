//! Rules compared with the schemas of tools.

use haft::config::model::SchemaSource;
use haft::config::rules::{CheckedTool, hints};
use haft::config::{Problem, Severity};
use haft::{Config, ToolInfo};

use crate::terminal::{self, Paint};

/// Problems of the rules with the tools whose schemas are known without connecting: local and built-in ones.
pub(super) fn of_files(config: &Config) -> Vec<Problem> {
    let builtin = haft::builtin_tools();
    let builtin = builtin.iter().map(|tool| CheckedTool {
        server: None,
        name: &tool.name,
        annotations: hints(None),
        schema: &tool.input_schema,
    });
    let local = config.local.iter().filter(|tool| match tool.schema {
        SchemaSource::Entry => true,
        // Known once the script was read, which `--connect` does.
        SchemaSource::Signature => false,
    });
    let local = local.map(|tool| CheckedTool {
        server: None,
        name: &tool.definition.name,
        annotations: hints(tool.definition.annotations.as_ref()),
        schema: &tool.definition.input_schema,
    });
    config.check_rules(&local.chain(builtin).collect::<Vec<_>>())
}

/// Problems of the rules with every tool that is offered.
pub(super) fn of_tools(config: &Config, tools: &[ToolInfo]) -> Vec<Problem> {
    let tools = tools.iter().map(|tool| CheckedTool {
        server: tool.source.server(),
        name: &tool.name,
        annotations: hints(tool.annotations.as_ref()),
        schema: &tool.input_schema,
    });
    config.check_rules(&tools.collect::<Vec<_>>())
}

/// Prints problems, each with its place. Returns true if one of them is an error.
pub(super) fn print(paint: Paint, problems: &[Problem]) -> bool {
    for problem in problems {
        match problem.severity {
            Severity::Error => {
                terminal::error(paint, &problem.to_string(), Some(&problem.remedy.to_string()));
            }
            Severity::Warning => {
                terminal::warning(paint, &problem.to_string(), &problem.remedy.to_string());
            }
        }
    }
    has_errors(problems)
}

pub(super) fn has_errors(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Error)
}
