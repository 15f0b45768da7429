//! Choosing tools of a running toolbox: the index belongs to one state, and begins with that of the state before.

use std::sync::{Arc, OnceLock};

use super::Runtime;
use super::snapshot::{Offered, Snapshot};
use crate::registry::Source;
use crate::select::{Decision, Ranked, Selector, ToolText};

/// The index of one state, made when it is first asked for.
#[derive(Default)]
pub(crate) struct Choice {
    selector: OnceLock<Arc<Selector>>,
    before: Option<Arc<Selector>>,
}

impl Choice {
    /// The index of the state after another one. What was computed for tools that stay is used again.
    pub(super) fn after(old: Option<&Self>) -> Self {
        let before = old.and_then(|old| old.selector.get().or(old.before.as_ref()).cloned());
        Self { selector: OnceLock::new(), before }
    }
}

impl Runtime {
    /// The best `count` tools for a request in plain words, best first, and what each rests on. Needs no model and no
    /// network.
    pub fn select(&self, request: &str, count: usize) -> Vec<Ranked> {
        selector(&self.inner.snapshot.load()).select(request, count)
    }

    /// Whether a request calls for one of the tools, for none, or for asking back.
    pub fn decide(&self, request: &str, count: usize) -> Decision {
        selector(&self.inner.snapshot.load()).decide(request, count)
    }
}

fn selector(snapshot: &Snapshot) -> &Selector {
    let Choice { selector, before } = &snapshot.choice;
    selector.get_or_init(|| {
        let tools: Vec<ToolText> = snapshot.tools().map(|tool| text(tool)).collect();
        Arc::new(match before {
            Some(before) => before.updated(&tools),
            None => Selector::new(&tools),
        })
    })
}

fn text(tool: &Offered) -> ToolText {
    let registered = &tool.registered;
    let definition = &registered.definition;
    let mut examples = tool.backend.examples();
    examples.extend(registered.effective.examples.iter().cloned());
    ToolText {
        name: registered.name.clone(),
        server: match &registered.source {
            Source::Local => None,
            Source::Mcp { mcp_name, .. } => Some(mcp_name.clone()),
        },
        title: definition.title.clone(),
        description: definition.description.clone(),
        input_schema: definition.input_schema.clone(),
        examples,
    }
}
