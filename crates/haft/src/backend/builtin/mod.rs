//! The tools that Haft brings itself, so that a toolbox is of use before anybody wrote a tool.

pub mod code;
pub mod human;
#[cfg(feature = "mcp")]
pub mod search;

use crate::select::ToolText;
use crate::tool::ToolDefinition;

/// The built-in tools as the choice of a tool sees them, without a sandbox.
pub fn texts() -> Vec<ToolText> {
    let mut tools = vec![
        (code::definition(code::Confinement::Nothing), code::EXAMPLES),
        (human::definition(), human::EXAMPLES),
    ];
    #[cfg(feature = "mcp")]
    tools.push((search::definition(), search::EXAMPLES));
    let text = |(definition, examples): (ToolDefinition, &str)| ToolText {
        name: definition.name,
        server: None,
        title: definition.title,
        description: definition.description,
        input_schema: definition.input_schema,
        examples: example_lines(examples),
    };
    tools.into_iter().map(text).collect()
}

/// Examples, one in each line of a file.
fn example_lines(lines: &str) -> Vec<String> {
    lines.lines().map(ToOwned::to_owned).collect()
}
