//! Real Python scripts: good ones, broken ones, and some that misbehave.

mod background;
mod faults;
mod lifetime;
mod misuse;
mod reload;
mod scripts;

use std::fs;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;

use super::{PythonSettings, PythonTool, WarmWorkers};
use crate::config::choices::Background;
use crate::content::{Content, ToolOutput};
use crate::error::ToolFailure;
use crate::tool::CallContext;

/// A tools directory with one script, and the tool that runs it.
struct Bench {
    tools: TempDir,
    tool: PythonTool,
    warm: Arc<WarmWorkers>,
}

impl Bench {
    fn new(script: &str) -> Self {
        Self::with(script, |_| {})
    }

    fn with(script: &str, change: impl FnOnce(&mut PythonSettings)) -> Self {
        Self::on(&WarmWorkers::new(), script, change)
    }

    fn on(warm: &Arc<WarmWorkers>, script: &str, change: impl FnOnce(&mut PythonSettings)) -> Self {
        let tools = tempfile::tempdir().unwrap();
        fs::write(tools.path().join("tool.py"), script).unwrap();
        let mut settings = PythonSettings {
            name: "tool".into(),
            tools_dir: tools.path().into(),
            script_path: "tool.py".into(),
            entrypoint: "run".into(),
            python: "python3".into(),
            args: Vec::new(),
            instances: 2,
            background: Background::End,
            env: Vec::new(),
            is_by_name: false,
            sandbox: None,
        };
        change(&mut settings);
        let warm = Arc::clone(warm);
        Self { tools, tool: PythonTool::new(settings, Arc::clone(&warm)), warm }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.tools.path().join(file), text).unwrap();
    }

    /// The real path of a file in the tools directory, as messages show it.
    fn path(&self, file: &str) -> String {
        self.tools.path().canonicalize().unwrap().join(file).display().to_string()
    }

    async fn call(&self, arguments: &str) -> Result<ToolOutput, ToolFailure> {
        let arguments = RawValue::from_string(arguments.into()).unwrap();
        let context = CallContext {
            execution_id: "e1".into(),
            caller: Some("cli".into()),
            ..CallContext::default()
        };
        self.tool.run(&arguments, &context).await
    }

    /// The unmodified JSON of a successful answer.
    async fn data(&self, arguments: &str) -> String {
        self.call(arguments).await.unwrap().data.unwrap().get().to_owned()
    }

    /// Message, remedy and details of a failed call.
    async fn failure(&self, arguments: &str) -> (String, String, Value) {
        match self.call(arguments).await.unwrap_err() {
            ToolFailure::Execution { message, remedy, details } => {
                (message, remedy.map(|it| it.to_string()).unwrap_or_default(), details)
            }
            other => panic!("{other:?}"),
        }
    }
}

fn text(output: &ToolOutput) -> &str {
    match &output.content[..] {
        [Content::Text { text }] => text,
        other => panic!("{other:?}"),
    }
}
