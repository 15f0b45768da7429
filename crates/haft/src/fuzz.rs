//! Entry points for fuzz targets and property tests. Each function panics if a guarantee is broken.

use std::path::Path;

use serde_json::value::RawValue;

use crate::config::choices::InheritEnv;
use crate::config::model::{Endpoint, LocalProgram};
use crate::config::{Config, LoadOptions, Masked};
use crate::live::{Action, Condition, Edit, RegistryDocument, dry_run};

/// The value of the variable `SECRET`, which no permitted entry may reach.
const MARK: &str = "haft-fuzz-secret-5e0c1b";

/// Registers `entry` under the name `e` as a tool and as a server, under a policy that allows the
/// command `cat`, the variable `FINE` and environment variables `FINE_*`. Returns the decision of
/// the policy.
///
/// # Panics Panics if the policy permits an entry for which the loader resolved something else.
pub fn permit(entry: &str) -> String {
    let Ok(entry) = RawValue::from_string(entry.to_owned()) else {
        return "not JSON".to_owned();
    };
    if entry.get().contains(MARK) {
        return "the mark itself".to_owned();
    }
    let decisions = [RegistryDocument::Tools, RegistryDocument::Servers].map(|document| {
        let action = Action::Put(entry.clone());
        let edit = Edit { document, name: "e".to_owned(), action, condition: Condition::Always };
        match dry_run(&edit, &options()) {
            Err(error) => format!("refused: {error}"),
            Ok(config) => {
                check(&config);
                "permitted".to_owned()
            }
        }
    });
    decisions.join("\n")
}

fn options() -> LoadOptions<'static> {
    let environment = [
        ("SECRET", MARK),
        ("FINE", "fine"),
        ("HAFT__POLICY__ALLOWED_COMMANDS", "[cat]"),
        ("HAFT__POLICY__ALLOWED_VARIABLES", "[FINE]"),
        ("HAFT__POLICY__ALLOWED_ENV", "[FINE_*]"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    // The root exists on every machine; no file in it is read, because the documents are given.
    let root = Path::new("/").to_path_buf();
    LoadOptions {
        files: vec![root.clone()],
        cwd: root,
        environment: environment.into(),
        ..LoadOptions::default()
    }
}

/// Checks a configuration whose entries were all permitted.
fn check(config: &Config) {
    let mut texts: Vec<String> =
        vec![format!("{:?} {:?} {:?}", config.servers, config.local, config.tools)];
    for server in &config.servers {
        texts.extend(server.config.iter().map(|config| config.expose().to_string()));
        match &server.endpoint {
            Endpoint::Stdio(stdio) => {
                assert_eq!(stdio.command.expose(), "cat", "a program");
                assert!(stdio.args.is_empty(), "arguments");
                assert!(stdio.cwd.is_none() && stdio.env_file.is_none(), "a folder or a file");
                assert_ne!(stdio.inherit_env.value, InheritEnv::All, "the whole environment");
                for (name, value) in &stdio.env {
                    assert!(name.starts_with("FINE_"), "the variable `{name}`");
                    texts.extend(value.iter().map(|value| value.expose().to_owned()));
                }
            }
            Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => {
                texts.push(remote.url.expose().to_string());
                texts.extend(remote.headers.iter().map(|(_, value)| value.expose().to_owned()));
            }
        }
    }
    for tool in &config.local {
        let (script, words) = match &tool.program {
            LocalProgram::Python { script_path, .. } => (Some(script_path), Vec::new()),
            LocalProgram::Command { command, script_path, args } => {
                let words = command.iter().chain(args).map(Masked::expose).collect();
                (script_path.as_ref(), words)
            }
        };
        assert!(words.is_empty() || (words == ["cat"] && script.is_none()), "a command: {words:?}");
        let is_hidden =
            |script: &String| script.split('/').any(|part| part.starts_with('.') && part != ".");
        assert!(!script.is_some_and(is_hidden), "a hidden script: {script:?}");
        texts.extend(script.cloned());
    }
    assert!(!texts.iter().any(|text| text.contains(MARK)), "a variable that is not allowed");
}
