//! Definitions of local tools with their secrets masked, kept from one state of the toolbox to the next.

use std::collections::HashMap;
use std::sync::Arc;

use haft_config::redact::Redactor;

use crate::tool::ToolDefinition;

/// Masked definitions, for one set of secrets.
#[derive(Default)]
pub(super) struct MaskedDefinitions {
    secrets: Vec<String>,
    /// By the address of the definition, which is kept beside its masked form.
    by_definition: HashMap<usize, (Arc<ToolDefinition>, Arc<ToolDefinition>)>,
}

impl MaskedDefinitions {
    /// An empty set for these secrets.
    pub(super) fn of(secrets: Vec<String>) -> Self {
        Self { secrets, by_definition: HashMap::new() }
    }

    /// Masks a definition, or takes the result of `before`. An unchanged definition is not copied.
    pub(super) fn mask(
        &mut self,
        definition: &Arc<ToolDefinition>,
        redactor: &Redactor,
        before: Option<&Self>,
    ) -> Arc<ToolDefinition> {
        let key = Arc::as_ptr(definition).addr();
        let known = before.filter(|before| before.secrets == self.secrets);
        let known = known.and_then(|before| before.by_definition.get(&key));
        let masked = if let Some((_, masked)) = known {
            Arc::clone(masked)
        } else {
            let masked = definition.masked(redactor);
            if masked == **definition { Arc::clone(definition) } else { Arc::new(masked) }
        };
        self.by_definition.insert(key, (Arc::clone(definition), Arc::clone(&masked)));
        masked
    }
}
