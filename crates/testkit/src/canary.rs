//! Servers that repeat every secret they were given in everything they report about themselves.

use serde_json::{Value, json};

use crate::Workspace;
use crate::fixture::{Fixture, Running, Transport};

/// One secret for each place that a configuration has for them.
pub const CANARIES: [(&str, &str); 7] = [
    ("env", "canary-env-8c1f0a"),
    ("env_file", "canary-file-77aa3b"),
    ("config", "canary-config-1b2d4c"),
    ("args", "canary-args-e5e6d7"),
    ("headers", "canary-header-90ab12"),
    ("password", "canary-password-c0ffee"),
    ("query", "canary-query-5d5d5d"),
];

/// The entries of two servers, `process` and `remote`, which know [`CANARIES`] and `also` and repeat
/// them. The second one runs as long as it is held.
pub fn servers(workspace: &Workspace, also: &str) -> (Value, Running) {
    let [(_, env), (_, file), (_, config), (_, args), (_, header), (_, password), (_, query)] =
        CANARIES;
    workspace.write("canary.env", format!("FROM_FILE={file}\n"));
    // A command line is shown, so the server's answers come from a file.
    let script = workspace.write("talker.json", talker("process", also).to_string());
    let http = Fixture::serve(Transport::Http, &talker("remote", also));
    let url = http.url.replace("http://", &format!("http://user:{password}@"));
    let entries = json!({
        "process": {
            "command": "env",
            "args": [format!("SERVICE_TOKEN={args}"), Fixture::path(), "stdio", "--script", script],
            "env": {"API_KEY": env}, "env_file": "canary.env", "config": {"token": config},
        },
        "remote": {
            "url": format!("{url}?key={query}"), "headers": {"X-Api-Key": header},
        },
    });
    (entries, http)
}

/// A server whose tool, prompt and resources are described with every secret.
fn talker(name: &str, also: &str) -> Value {
    let secrets: Vec<&str> = CANARIES.iter().map(|(_, secret)| *secret).chain([also]).collect();
    let text = format!("it uses {}", secrets.join(" and "));
    json!({
        "name": text, "instructions": text,
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "experimental": {"x": text}},
        "tools": [{
            "name": format!("{name}_tool"), "title": text, "description": text,
            "inputSchema": {"type": "object", "description": text,
                "properties": {"a": {"type": "string", "description": text, "default": text}}},
            "outputSchema": {"type": "object", "description": text},
            "annotations": {"title": text}, "_meta": {"x/note": text},
        }],
        "prompts": [{
            "name": format!("{name}_prompt"), "title": text, "description": text,
            "arguments": [{"name": "a", "title": text, "description": text}],
        }],
        "resources": [{"uri": format!("note://{name}"), "name": text, "title": text,
            "description": text, "text": "nothing"}],
        "templates": [{"uriTemplate": format!("note://{name}/{{x}}"), "name": text,
            "title": text, "description": text}],
    })
}

/// Fails if a string contains one of [`CANARIES`] or `also`.
#[track_caller]
pub fn assert_masked(what: &str, text: &str, also: &str) {
    for secret in CANARIES.iter().map(|(_, secret)| *secret).chain([also]) {
        assert!(!text.contains(secret), "`{secret}` in {what}: {text}");
    }
}
