//! The tools of one state of a toolbox, ready to be searched.

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::{Entry, ToolText};
use super::names;
use super::text::Words;
use super::weights::{WEIGHTS, Weights};

pub(super) struct Index {
    pub(super) entries: Vec<Arc<Entry>>,
    /// The names, without what separates their words.
    pub(super) names: Vec<String>,
    terms: HashMap<Box<str>, Term>,
    /// For each tool the first tool of its server.
    pub(super) servers: Vec<u32>,
    /// By the first tool of a server: parameters that all its tools need.
    context: HashMap<u32, Vec<String>>,
    pub(super) words: Words,
    pub(super) weights: Weights,
}

/// A stem, and the tools that have it.
struct Term {
    rarity: f32,
    /// Tools in their order, with what the stem adds to their score.
    tools: Box<[(u32, f32)]>,
}

impl Index {
    /// Unchanged tools reuse the results of the previous index.
    pub(super) fn new(tools: &[ToolText], before: Option<&Self>) -> Self {
        Self::with_weights(tools, before, WEIGHTS)
    }

    pub(super) fn with_weights(
        tools: &[ToolText],
        before: Option<&Self>,
        weights: Weights,
    ) -> Self {
        let words = Words::new();
        let known: HashMap<[u8; 32], &Arc<Entry>> =
            before.into_iter().flat_map(|it| &it.entries).map(|it| (it.fingerprint, it)).collect();
        let entry = |tool: &ToolText| {
            let fingerprint = tool.fingerprint();
            known.get(&fingerprint).map_or_else(
                || Arc::new(Entry::new(tool, fingerprint, &words, &weights)),
                |entry| Arc::clone(entry),
            )
        };
        let entries: Vec<Arc<Entry>> = tools.iter().map(entry).collect();
        let names = entries.iter().map(|entry| names::key(&entry.name)).collect();
        let servers = servers(&entries);
        let context = context(&entries, &servers);
        let terms = terms(&entries, &weights);
        Self { entries, names, terms, servers, context, words, weights }
    }

    /// Adds `weight` times a stem's score for each tool to `scores`. Returns the score of a perfect
    /// tool.
    pub(super) fn add(&self, stem: &str, weight: f32, scores: &mut [f32]) -> f32 {
        let Some(term) = self.terms.get(stem) else {
            return weight * rarity(self.entries.len(), 0) * (self.weights.k1 + 1.0);
        };
        for (tool, score) in &term.tools {
            scores[*tool as usize] += weight * score;
        }
        weight * term.rarity * (self.weights.k1 + 1.0)
    }

    /// The nouns of which descriptions show ids that begin with `prefix`.
    pub(super) fn nouns_of_ids(&self, prefix: &str) -> Vec<String> {
        let samples = self.entries.iter().flat_map(|entry| &entry.sample_ids);
        samples.filter(|(known, _)| known == prefix).map(|(_, noun)| noun.clone()).collect()
    }

    /// Returns true if every tool of a tool's server needs a parameter: the subject of the server,
    /// such as a repository, which the caller knows from the context.
    pub(super) fn is_context(&self, tool: usize, parameter: &str) -> bool {
        let context = self.context.get(&self.servers[tool]);
        context.is_some_and(|names| names.iter().any(|name| name == parameter))
    }

    /// Returns true if a tool has a stem.
    pub(super) fn has(&self, tool: usize, stem: &str) -> bool {
        let tools = self.terms.get(stem).map(|term| &term.tools);
        tools.is_some_and(|tools| tools.binary_search_by_key(&tool, |it| it.0 as usize).is_ok())
    }
}

/// For each tool the first tool of its server. A local tool has no server, and stands alone.
fn servers(entries: &[Arc<Entry>]) -> Vec<u32> {
    let mut first: HashMap<&str, u32> = HashMap::new();
    let mut servers = Vec::with_capacity(entries.len());
    for (tool, entry) in (0..).zip(entries) {
        let server = entry.server.as_deref();
        servers.push(server.map_or(tool, |server| *first.entry(server).or_insert(tool)));
    }
    servers
}

/// With fewer tools, a parameter that all need is not significant.
const CONTEXT_TOOLS_MIN: usize = 3;

fn context(entries: &[Arc<Entry>], servers: &[u32]) -> HashMap<u32, Vec<String>> {
    let mut by_server: HashMap<u32, Vec<&Arc<Entry>>> = HashMap::new();
    for (entry, server) in entries.iter().zip(servers) {
        by_server.entry(*server).or_default().push(entry);
    }
    by_server.retain(|_, tools| tools.len() >= CONTEXT_TOOLS_MIN);
    let shared = |tools: Vec<&Arc<Entry>>| -> Vec<String> {
        let needs = |tool: &Arc<Entry>, name: &str| tool.required.iter().any(|it| it.name == name);
        let names = tools[0].required.iter().map(|it| it.name.clone());
        names.filter(|name| tools.iter().all(|tool| needs(tool, name))).collect()
    };
    by_server.into_iter().map(|(server, tools)| (server, shared(tools))).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a toolbox has thousands of tools, not millions")]
fn rarity(all: usize, tools: usize) -> f32 {
    let (all, tools) = (all as f32, tools as f32);
    (1.0 + (all - tools + 0.5) / (tools + 0.5)).ln()
}

#[allow(clippy::cast_precision_loss, reason = "a toolbox has thousands of tools, not millions")]
fn terms(entries: &[Arc<Entry>], weights: &Weights) -> HashMap<Box<str>, Term> {
    let mut counts: HashMap<&str, Vec<(u32, f32)>> = HashMap::new();
    for (tool, entry) in (0..).zip(entries) {
        for (stem, count) in entry.terms() {
            counts.entry(stem).or_default().push((tool, count));
        }
    }
    let lengths: f32 = entries.iter().map(|entry| entry.length).sum();
    let average = (lengths / entries.len().max(1) as f32).max(f32::MIN_POSITIVE);
    let (k1, b) = (weights.k1, weights.b);
    let term = |tools: Vec<(u32, f32)>| {
        let rarity = rarity(entries.len(), tools.len());
        let score = |(tool, count): (u32, f32)| {
            let length = entries[tool as usize].length / average;
            (tool, rarity * count * (k1 + 1.0) / (count + k1 * (1.0 - b + b * length)))
        };
        Term { rarity, tools: tools.into_iter().map(score).collect() }
    };
    counts.into_iter().map(|(stem, tools)| (stem.into(), term(tools))).collect()
}
