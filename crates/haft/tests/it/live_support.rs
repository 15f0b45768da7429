//! A toolbox with a registry in its own folder.

use std::fs;
use std::path::{Path, PathBuf};

use haft::config::LoadOptions;
use haft::live::{Action, Condition, Edit, EditOutcome, Live, RegistryDocument, RegistryEditError};
use haft::{Config, Envelope, Runtime, ToolCall};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// A folder with `haft.yaml`, `tools/tools.json` and `tools/mcp.json`.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A registry without entries. `more` is added to `haft.yaml`.
    pub fn new(more: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.path("tools")).unwrap();
        fs::write(place.tools_file(), "{\"tools\": []}").unwrap();
        fs::write(place.servers_file(), "{\"mcp_servers\": {}}").unwrap();
        fs::write(place.path("haft.yaml"), format!("registry: {{dir: tools}}\n{more}")).unwrap();
        let script = "def run(args):\n    return {'said': args.get('text', 'hello')}\n";
        fs::write(place.path("tools/echo.py"), script).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn tools_file(&self) -> PathBuf {
        self.path("tools/tools.json")
    }

    pub fn servers_file(&self) -> PathBuf {
        self.path("tools/mcp.json")
    }

    pub fn options(&self) -> LoadOptions<'static> {
        LoadOptions {
            files: vec!["haft.yaml".into()],
            cwd: self.folder.path().to_path_buf(),
            ..LoadOptions::default()
        }
    }

    pub async fn start(&self) -> Live {
        let config = Config::load(&self.options()).unwrap_or_else(|error| panic!("{error}"));
        let runtime = Runtime::start(config).await.unwrap();
        Live::follow(runtime, self.options())
    }
}

/// The JSON of a file.
pub fn json_of(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A local tool that runs `echo.py`.
pub fn echo(name: &str) -> Value {
    json!({
        "name": name, "type": "local", "description": "Says it again.",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "config": {"script_path": "echo.py"},
    })
}

pub fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

pub fn add(name: &str) -> Edit {
    edit(RegistryDocument::Tools, name, Action::Add(raw(&echo(name))))
}

pub fn remove(name: &str) -> Edit {
    edit(RegistryDocument::Tools, name, Action::Remove)
}

pub fn edit(document: RegistryDocument, name: &str, action: Action) -> Edit {
    Edit { document, name: name.to_owned(), action, condition: Condition::Always }
}

pub async fn refused(live: &Live, edit: Edit) -> RegistryEditError {
    match live.edit(edit).await {
        Err(error) => error,
        Ok(edited) => panic!("it was made: {edited:?}"),
    }
}

pub async fn made(live: &Live, edit: Edit) -> EditOutcome {
    live.edit(edit).await.unwrap_or_else(|error| panic!("{error}\n{}", error.remedy()))
}

pub async fn call(live: &Live, tool: &str) -> Envelope {
    live.runtime().call(ToolCall::new(tool, &json!({"text": "x"}))).await
}

pub fn names(live: &Live) -> Vec<String> {
    live.runtime().tools().into_iter().map(|tool| tool.name).collect()
}

pub async fn end(live: Live) {
    live.stop().await;
    live.runtime().shutdown(std::time::Duration::from_secs(5)).await;
}
