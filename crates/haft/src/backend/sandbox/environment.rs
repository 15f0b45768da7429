//! The environment of a sandboxed tool.

use std::ffi::OsString;

use haft_config::config::choices::Sandbox;

use crate::config::Secret;

/// Variables without secrets that programs need. All others of Haft's environment are removed.
const KEPT_VARIABLES: [&str; 5] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// The environment of a tool: without a sandbox that of Haft, otherwise the part of it that holds no secrets;
/// then the tool's own variables, where `None` removes one.
pub(in crate::backend) fn environment(
    kind: Sandbox,
    own: &[(String, Option<Secret>)],
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = match kind {
        Sandbox::None => std::env::vars_os().collect(),
        Sandbox::Bubblewrap | Sandbox::Landlock => {
            let kept = KEPT_VARIABLES.iter().map(|name| (name, std::env::var_os(name)));
            kept.filter_map(|(name, value)| Some((name.into(), value?))).collect()
        }
    };
    for (name, value) in own {
        variables.retain(|(known, _)| known != name.as_str());
        variables.extend(value.as_ref().map(|value| (name.into(), value.expose().into())));
    }
    variables
}
