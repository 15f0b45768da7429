//! The environment of a server process. By default a minimal subset of Haft's.

use std::ffi::OsString;

use crate::config::choices::InheritEnv;
use crate::config::model::StdioEndpoint;

/// Variables that every process needs.
const BASICS: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
/// Proxy and certificate settings. Both spellings are in use.
const NETWORK: [&str; 13] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// The whole environment of a server. `config` is the server's own configuration, as JSON.
pub(super) fn of(endpoint: &StdioEndpoint, config: Option<&str>) -> Vec<(OsString, OsString)> {
    let is_passed = |name: &str| match endpoint.inherit_env.value {
        InheritEnv::All => true,
        InheritEnv::Safe => BASICS.contains(&name) || NETWORK.contains(&name),
        InheritEnv::None => false,
    };
    let mut variables: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| {
            let all = endpoint.inherit_env.value == InheritEnv::All;
            name.to_str().map_or(all, is_passed)
        })
        .collect();
    let mut set = |name: &str, value: Option<&str>| {
        variables.retain(|(known, _)| known != name);
        variables.extend(value.map(|value| (name.into(), value.into())));
    };
    set("MCP_CONFIG", config);
    for (name, value) in &endpoint.env {
        set(name, value.as_ref().map(crate::config::Secret::expose));
    }
    variables
}
