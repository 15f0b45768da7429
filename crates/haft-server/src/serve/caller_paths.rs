//! The paths that a restricted key may use.

use super::access::Caller;
use super::identification::READINESS_PATH;
use super::problem::Problem;
use crate::keys::Scope;

/// Paths that a key which is bound to a profile may use beside the gateway. Each shows that profile only.
const PROFILE_PATHS: [&str; 3] = ["/api/v1/session", "/api/v1/session/link", "/api/v1/profiles"];
/// Paths that a key with a list of tools or servers may use beside the gateway, with everything below them. Each shows
/// what the lists permit.
const LIST_PATHS: [&str; 6] = [
    "/api/v1/session",
    "/api/v1/tools",
    "/api/v1/calls",
    "/api/v1/runs",
    "/api/v1/prompts",
    "/api/v1/resources",
];
/// Paths of a metrics key.
const METRICS_PATHS: [&str; 2] = ["/metrics", READINESS_PATH];

impl Caller {
    /// Checks that the caller may use this path: a key that is bound to a profile is for the gateway, which checks
    /// the profile itself, and for the console's view of that profile. A key with lists is for what shows them.
    pub(super) fn require_path(&self, path: &str) -> Result<(), Problem> {
        let is_gateway = path == "/mcp" || path.starts_with("/mcp/");
        if self.scope == Scope::Metrics && !METRICS_PATHS.contains(&path) {
            let detail = format!("`{}` is a metrics key", self.name);
            return Err(Problem::forbidden(detail)
                .remedy("use `/metrics`, or a key that was created with another `--scope`"));
        }
        let is_listed = |allowed: &&str| {
            path.strip_prefix(*allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let has_lists = !self.lists.is_whole() && self.profile.is_none();
        if has_lists && !is_gateway && !LIST_PATHS.iter().any(is_listed) {
            let detail = format!("`{}` is limited to some tools or servers", self.name);
            return Err(Problem::forbidden(detail).remedy(
                "use `/api/v1/tools`, `/api/v1/calls`, `/api/v1/runs` or `/mcp`, or a key without `--tools` and `--servers`",
            ));
        }
        match &self.profile {
            Some(profile) if !is_gateway && !PROFILE_PATHS.contains(&path) => {
                let detail = format!("`{}` is bound to the profile `{profile}`", self.name);
                Err(Problem::forbidden(detail)
                    .remedy("use `/mcp`, or a key that was created without `--profile`"))
            }
            Some(_) | None => Ok(()),
        }
    }
}
