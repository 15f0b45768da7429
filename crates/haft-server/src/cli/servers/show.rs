//! `haft servers show`.

use std::process::ExitCode;

use haft::ServerInfo;
use haft::config::oauth::OauthInfo;
use haft_text::{printable, printable_block};

use super::{connect, exit_code, number, state, version};
use crate::cli::{Global, print_json, toolbox};
use crate::terminal::{self, Paint};

pub(super) fn run(global: &Global, name: &str) -> anyhow::Result<ExitCode> {
    let servers = connect(global, &[name])?;
    for server in &servers {
        if global.json {
            print_json(server)?;
        } else {
            show(global, server);
        }
    }
    Ok(exit_code(&servers))
}

fn show(global: &Global, server: &ServerInfo) {
    let paint = Paint::stdout(global.color);
    let painted =
        |state: &str| if toolbox::failed(server) { paint.bad(state) } else { paint.good(state) };
    terminal::line(&format!("{}: {}", paint.bold(&server.name), painted(&state(server))));
    let field = |name: &str, value: &str| {
        terminal::line(&format!("{} {}", paint.dim(&format!("{name}:")), printable(value)));
    };
    if let Some(reason) = &server.reason {
        field("reason", reason);
    }
    if toolbox::failed(server) {
        field("help", &toolbox::remedy(server));
    }
    if let Some(since) = &server.since {
        field("since", since);
    }
    if server.retries > 0 {
        field("retries", &server.retries.to_string());
    }
    field(server.transport, &server.endpoint);
    field("mode", &server.mode.to_string());
    field("start", &server.start.to_string());
    if let Some(oauth) = &server.oauth {
        field("oauth", &signing_in(oauth));
    }
    if let Some(identity) = &server.server {
        field("server", &version(server));
        field("protocol", &identity.protocol_version);
        field("capabilities", &identity.capabilities.to_string());
    }
    field("tools", &number(server.tools));
    field("prompts", &number(server.prompts));
    if server.stray_lines > 0 {
        let text = format!(
            "{} lines of its output are not MCP messages (`--log-level debug` shows them)",
            server.stray_lines
        );
        field("stray output", &text);
    }
    let block = |name: &str, text: &str| {
        terminal::line(&format!("\n{}\n{}", paint.dim(name), printable_block(text.trim_end())));
    };
    if let Some(text) = server.server.as_ref().and_then(|it| it.instructions.as_ref()) {
        block("instructions", text);
    }
    if let Some(tail) = &server.stderr_tail {
        block("standard error", tail);
    }
}

/// The settings of `oauth`, in the words of the file. The secret itself is not part of them.
fn signing_in(oauth: &OauthInfo) -> String {
    let OauthInfo { grant, client_id, client_secret_env, client_metadata_url, scopes, issuer } =
        oauth;
    let settings = [
        ("client_id", client_id),
        ("client_secret_env", client_secret_env),
        ("client_metadata_url", client_metadata_url),
        ("issuer", issuer),
    ];
    let mut parts = vec![format!("grant: {grant}")];
    let set = settings.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    parts.extend(set.map(|(key, value)| format!("{key}: {value}")));
    if !scopes.is_empty() {
        parts.push(format!("scopes: [{}]", scopes.join(", ")));
    }
    parts.join(", ")
}
