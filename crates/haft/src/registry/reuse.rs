//! Registrations of local tools, kept from one state of the toolbox to the next.

use std::collections::HashMap;
use std::sync::Arc;

use super::effective::Fallback;
use super::{LocalDiscovery, Record, RegisteredTool};
use crate::config::model::{Defaults, ToolSettings};
use crate::tool::ToolDefinition;

/// Registrations of local tools that no entry of `tools` configures. One depends on the tool's definition, its settings
/// and the defaults alone, so it is made again only if one of them changed.
#[derive(Debug, Default)]
pub(crate) struct LocalRegistrations {
    fallback: Option<Fallback>,
    /// By the address of the definition, which each entry keeps alive.
    by_definition: HashMap<usize, LocalRegistration>,
}

/// The registration of a local tool before collisions are resolved.
#[derive(Debug, Clone)]
pub(super) struct LocalRegistration {
    definition: Arc<ToolDefinition>,
    settings: Option<Arc<ToolSettings>>,
    pub(super) tool: Arc<RegisteredTool>,
    pub(super) record: Record,
}

impl LocalRegistrations {
    /// An empty set for the same defaults.
    pub(super) fn of(defaults: &Defaults) -> Self {
        let fallback = Some(Fallback::local(defaults));
        Self { fallback, by_definition: HashMap::new() }
    }

    /// The registration of an unchanged tool, under unchanged defaults.
    pub(super) fn get(
        &self,
        tool: &LocalDiscovery,
        now: &LocalRegistrations,
    ) -> Option<&LocalRegistration> {
        let known = self.by_definition.get(&address(&tool.definition))?;
        let is_same_settings = match (&known.settings, &tool.settings) {
            (Some(known), Some(settings)) => Arc::ptr_eq(known, settings),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        (is_same_settings && self.fallback == now.fallback).then_some(known)
    }

    /// Keeps a registration.
    pub(super) fn keep(
        &mut self,
        tool: &LocalDiscovery,
        registered: Arc<RegisteredTool>,
        record: Record,
    ) {
        let (definition, settings) = (Arc::clone(&tool.definition), tool.settings.clone());
        let key = address(&definition);
        let kept = LocalRegistration { definition, settings, tool: registered, record };
        self.by_definition.insert(key, kept);
    }

    /// Keeps a registration that was kept before.
    pub(super) fn keep_again(&mut self, known: LocalRegistration) {
        self.by_definition.insert(address(&known.definition), known);
    }
}

fn address(definition: &Arc<ToolDefinition>) -> usize {
    Arc::as_ptr(definition).addr()
}
