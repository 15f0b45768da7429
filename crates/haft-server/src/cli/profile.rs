//! Profiles by their names, for the commands that take one.

use haft::Config;

use super::{EXIT_CONFIG, Failure};

/// Refuses the name of a profile that the configuration does not have.
pub(super) fn require(config: &Config, name: &str) -> anyhow::Result<()> {
    if config.profile(name).is_some() {
        return Ok(());
    }
    let known = || config.profiles.iter().map(|profile| profile.name.as_str());
    let remedy = match haft_text::nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if config.profiles.is_empty() => {
            format!(
                "the configuration has none; write such as `profiles: {{{name}: {{tools: [\"read_*\"]}}}}`"
            )
        }
        None => format!("the configuration has: {}", known().collect::<Vec<_>>().join(", ")),
    };
    Err(Failure::new(EXIT_CONFIG, format!("there is no profile `{name}`"), remedy).into())
}
