//! A registered tool with its backend and its limits.

use std::sync::Arc;

use haft_config::config::rules::hints;
use haft_config::expression::Annotations;

use super::{RegisteredTool, ToolSource};
use crate::call_limit::Limiter;
use crate::policy::{Gate, ToolLimits};
use crate::record::RecordSource;
use crate::tool::Tool;

/// A tool that can be called.
pub(crate) struct ActiveTool {
    pub(crate) registered: Arc<RegisteredTool>,
    pub(crate) backend: Arc<dyn Tool>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) kind: RecordSource,
    /// The arguments that travel as headers too.
    pub(crate) param_headers: haft_mcp::server::ParamHeaders,
    /// The rates and quotas of its server and its own.
    pub(crate) call_limits: Vec<Arc<Limiter>>,
    /// The hints that rules match.
    pub(crate) hints: Annotations,
}

impl ActiveTool {
    pub(crate) fn new(
        registered: Arc<RegisteredTool>,
        backend: Arc<dyn Tool>,
        gate: Arc<Gate>,
        kind: RecordSource,
    ) -> Self {
        let param_headers =
            haft_mcp::server::ParamHeaders::of_schema(&registered.definition.input_schema);
        let hints = hints(registered.definition.annotations.as_ref());
        Self { registered, backend, gate, kind, param_headers, call_limits: Vec::new(), hints }
    }

    /// Returns true if a tool made of these parts would be the same. The limits of a local tool follow from its
    /// registration.
    pub(crate) fn is_same(
        &self,
        registered: &Arc<RegisteredTool>,
        backend: &Arc<dyn Tool>,
        kind: RecordSource,
    ) -> bool {
        registered.source == ToolSource::Local
            && Arc::ptr_eq(&self.registered, registered)
            && Arc::ptr_eq(&self.backend, backend)
            && self.kind == kind
    }

    /// The name under which it is offered.
    pub(crate) fn name(&self) -> &str {
        &self.registered.name
    }

    pub(crate) fn limits(&self) -> ToolLimits<'_> {
        ToolLimits {
            tool: self.name(),
            on_limit: self.registered.effective.on_limit.value,
            gate: &self.gate,
            waits_for_people: self.backend.waits_for_people(),
        }
    }
}
