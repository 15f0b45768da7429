//! Haft as an MCP server, seen by its clients.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

mod apps;
mod broken;
mod clients;
mod endpoint;
mod eras;
mod failed;
mod http;
mod instructions;
mod keys;
mod known;
mod masked;
mod metadata;
mod output;
mod overrides;
mod people;
mod profile_reload;
mod profiles;
mod rules;
mod search;
#[path = "../serve/served.rs"]
#[allow(dead_code, reason = "shared with the tests of the service, which need more of it")]
mod served;
mod servers;
mod sessions;
mod support;
mod tasks;
mod tools;

/// A client that reaches this machine only.
fn client() -> reqwest::ClientBuilder {
    // Fails where another test of the same process was faster.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}
