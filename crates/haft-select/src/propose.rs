//! Proposes past requests as examples: those that led to a tool which is not ranked first for them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Selector;
use super::vector::Vector;

/// Maximum number of proposed examples per tool.
const PER_TOOL_MAX: usize = 5;
/// Requests more similar than this count as equal.
const ALIKE: f32 = 0.9;
/// Longer requests are not examples.
const REQUEST_CHARS_MAX: usize = 300;

/// Examples for a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// The tool.
    pub tool: String,
    /// The examples, most frequent first.
    pub examples: Vec<ProposedExample>,
}

/// An example for a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProposedExample {
    /// The request.
    pub request: String,
    /// Its frequency.
    pub times: usize,
    /// The tool that is found first for it now.
    pub found: String,
}

impl Selector {
    /// Proposes examples from requests and the tools that served them.
    pub fn propose(&self, served: &[(&str, &str)]) -> Vec<Proposal> {
        let mut by_request: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
        for (request, tool) in served {
            let (tools, times) = by_request.entry(request.trim()).or_default();
            tools.insert(tool);
            *times += 1;
        }
        let mut by_tool: BTreeMap<&str, Vec<ProposedExample>> = BTreeMap::new();
        for (request, (tools, times)) in by_request {
            // A request that used several tools is an example of none of them.
            let (Some(tool), 1) = (tools.first(), tools.len()) else { continue };
            if let Some(found) = self.mistaken(request, tool) {
                let example = ProposedExample { request: request.to_owned(), times, found };
                by_tool.entry(tool).or_default().push(example);
            }
        }
        let proposal = |(tool, examples): (&str, Vec<ProposedExample>)| Proposal {
            tool: tool.to_owned(),
            examples: different(examples),
        };
        by_tool.into_iter().map(proposal).collect()
    }

    /// The tool that is found first for a request in place of the right one, which has to be there.
    fn mistaken(&self, request: &str, right: &str) -> Option<String> {
        let is_there = self.index.entries.iter().any(|entry| entry.name == right);
        if !is_there || request.is_empty() || request.chars().count() > REQUEST_CHARS_MAX {
            return None;
        }
        let found = self.select(request, 1).into_iter().next()?.tool;
        (found != right).then_some(found)
    }
}

/// The most frequent ones, without near-duplicates.
fn different(mut examples: Vec<ProposedExample>) -> Vec<ProposedExample> {
    examples.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.request.cmp(&b.request)));
    let mut kept: Vec<(Vector, ProposedExample)> = Vec::new();
    for example in examples {
        let direction = Vector::of(&example.request);
        if kept.len() < PER_TOOL_MAX && kept.iter().all(|it| it.0.cosine(&direction) < ALIKE) {
            kept.push((direction, example));
        }
    }
    kept.into_iter().map(|(_, example)| example).collect()
}
