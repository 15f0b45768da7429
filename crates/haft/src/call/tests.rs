//! A call and a toolbox that is replaced meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::*;
use crate::config::{LoadOptions, check_text};
use crate::error::Code;
use crate::policy::Gate;
use crate::record::{ExecutionLog, LogOptions, RecordSource, SystemClock};
use crate::registry;
use crate::tool::{FunctionTool, Tool};
use haft_config::redact::Redactor;

/// A source whose toolbox is replaced while the servers are connected.
struct ReplacedToolbox {
    old: Arc<Toolbox>,
    new: Arc<Toolbox>,
    is_replaced: AtomicBool,
    changes: watch::Sender<u64>,
}

impl ToolboxSource for ReplacedToolbox {
    fn current(&self) -> Arc<Toolbox> {
        let is_replaced = self.is_replaced.load(Ordering::SeqCst);
        Arc::clone(if is_replaced { &self.new } else { &self.old })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn discover(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.is_replaced.store(true, Ordering::SeqCst) })
    }

    fn confirm(&self, _: &ActiveTool) -> Option<BoxFuture<'_, ()>> {
        None
    }

    fn unapproved(&self, _: &str, _: &ToolFilter) -> Option<CallError> {
        None
    }

    fn unavailable(&self, _: &str, _: &ToolFilter) -> Option<ToolFailure> {
        None
    }
}

fn toolbox(log: &ExecutionLog, gate: &Arc<Gate>, tool: Option<&str>) -> Toolbox {
    let text = r#"{"defaults": {"on_limit": "reject"}}"#;
    let config = check_text(text, Path::new("haft.json"), &LoadOptions::default()).unwrap();
    let active = |name: &str| {
        let tool = FunctionTool::new(name, "", json!({"type": "object"}), |_, _| async {
            Ok(ToolOutput::default())
        });
        let registered = registry::inline_tool(tool.definition(), &config.defaults).unwrap();
        let gate = Arc::new(Gate::new(1));
        Arc::new(ActiveTool::new(Arc::new(registered), Arc::new(tool), gate, RecordSource::Builtin))
    };
    let tools = tool.map(active).into_iter().collect();
    let policy = Policy::new(&config.defaults, Arc::clone(gate));
    Toolbox::new(tools, ToolboxParts { policy, log: Some(log.clone()), config: Arc::new(config) })
}

/// A call that finds its tool in a newer toolbox is admitted by the policy of that toolbox: the old one has room,
/// the new one has none.
#[tokio::test]
async fn the_toolbox_that_has_the_tool_admits_its_call() {
    let dir = tempfile::tempdir().unwrap();
    let redactor = Redactor::new([]);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let log =
        ExecutionLog::open(LogOptions::new(dir.path()), redactor, Arc::clone(&clock)).unwrap();
    let (roomy, full) = (Arc::new(Gate::new(1)), Arc::new(Gate::new(1)));
    let _taken = full.try_enter().unwrap();
    let source = ReplacedToolbox {
        old: Arc::new(toolbox(&log, &roomy, None)),
        new: Arc::new(toolbox(&log, &full, Some("late"))),
        is_replaced: AtomicBool::new(false),
        changes: watch::Sender::new(0),
    };
    let calls = Calls::new(
        MemoryBudget::new(1 << 20),
        HumanInbox::default(),
        crate::outputs::OutputStore::default(),
        Arc::clone(&clock),
        None,
        Arc::new(LimitTable::open(dir.path(), clock, None)),
        crate::ReplicaNumber::ALONE,
    );
    let envelope = calls.run(&source, ToolCall::new("late", &json!({}))).await;
    assert_eq!(envelope.error.map(|error| error.code), Some(Code::Busy));
}
