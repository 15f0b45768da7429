//! A tool that comes with its call instead of the toolbox. It takes the same way as every other.

use std::sync::Arc;

use super::snapshot::{Offered, Snapshot};
use crate::policy::Gate;
use crate::record::Source as RecordSource;
use crate::registry;
use crate::tool::Tool;

impl Snapshot {
    /// The tool with the limits of a local one. Nothing where its own schema is of no use.
    pub(crate) fn adopt(&self, tool: &Arc<dyn Tool>) -> Option<Arc<Offered>> {
        let registered = registry::adopted(tool.definition(), &self.config.defaults)?;
        let gate = Arc::new(Gate::new(registered.effective.max_instances.value));
        let backend = Arc::clone(tool);
        Some(Arc::new(Offered { registered, backend, gate, kind: RecordSource::Builtin }))
    }
}
