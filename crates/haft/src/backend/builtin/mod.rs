//! The built-in tools, so that a toolbox is useful without configured tools.

pub mod code;
pub mod human;
pub(crate) mod output;
pub mod search;

use crate::select::ToolText;
use crate::tool::ToolDefinition;

/// The built-in tools as the tool selection sees them, without a sandbox.
pub fn texts() -> Vec<ToolText> {
    let mut tools =
        vec![(code::definition(None), code::EXAMPLES), (human::definition(), human::EXAMPLES)];
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

/// Examples, one per line of a file.
fn example_lines(lines: &str) -> Vec<String> {
    lines.lines().map(ToOwned::to_owned).collect()
}
