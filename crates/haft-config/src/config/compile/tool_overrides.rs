//! Overrides of tools: names that providers accept, and arguments that have a name.

use super::explicit;
use crate::config::model::Setting;
use crate::config::place::{At, Problems};
use crate::config::read::Named;
use crate::config::tool_overrides::{FixedValue, ToolOverrides};
use haft_text::name::{NAME_CHARS_MAX, offered};

pub(super) fn compile(
    rename: Option<At<String>>,
    description: Option<At<String>>,
    hide_arguments: Option<At<Vec<String>>>,
    fixed_arguments: Option<At<Named<FixedValue>>>,
    problems: &mut Problems,
) -> ToolOverrides {
    ToolOverrides {
        rename: rename.map(|at| checked_name(at, problems)),
        description: description.map(|at| checked_description(at, problems)),
        hide_arguments: hide_arguments.map(|at| checked_arguments(at, problems)),
        fixed_arguments: fixed_arguments.map(fixed).unwrap_or_default(),
    }
}

fn checked_name(at: At<String>, problems: &mut Problems) -> Setting<String> {
    if at.value.is_empty() || offered(&at.value) != at.value {
        problems.error(
            &at.place,
            format!("`{}` is not a name that a tool can be offered under", at.value.escape_debug()),
            format!("use the characters A-Z a-z 0-9 _ -, at most {NAME_CHARS_MAX} of them"),
        );
    }
    explicit(at, |name| name)
}

fn checked_description(at: At<String>, problems: &mut Problems) -> Setting<String> {
    if at.value.trim().is_empty() {
        problems.error(
            &at.place,
            "the description is empty",
            "say what the tool does, or delete `description` to keep the tool's own",
        );
    }
    explicit(at, |text| text)
}

fn checked_arguments(at: At<Vec<String>>, problems: &mut Problems) -> Setting<Vec<String>> {
    if at.value.iter().any(String::is_empty) {
        problems.error(&at.place, "an argument has no name", "name the arguments to hide");
    }
    explicit(at, |names| names)
}

fn fixed(
    At { value: Named(values), .. }: At<Named<FixedValue>>,
) -> Vec<(String, Setting<FixedValue>)> {
    let values = values.into_iter();
    values
        .map(|(name, value)| {
            let value = value.named(&name.value);
            (name.value, explicit(At { value, place: name.place }, |value| value))
        })
        .collect()
}
