//! Selects the right tool for a request in natural language: offline, fast, measured. See
//! `docs/tool-choice.md`.

mod accepted;
mod arguments;
mod calibrate;
mod decide;
mod entry;
mod expand;
mod facts;
mod index;
mod meaning;
mod missing;
mod names;
mod operation;
mod parameter;
mod places;
mod propose;
mod rank;
mod segment;
mod table;
mod text;
mod values;
mod vector;
mod weights;

use std::sync::OnceLock;

use serde::Serialize;

pub use decide::{Choices, Decision};
pub use entry::ToolText;
pub use meaning::{CHARS_MAX, Direction, Meanings};
pub use missing::Missing;
pub use propose::{Proposal, ProposedExample};

use calibrate::Calibration;
use index::Index;
use meaning::Known;
use rank::Scores;

/// The tools of a toolbox, ready to be searched. Never changes; a changed toolbox gets a new one.
pub struct Selector {
    index: Index,
    /// Computed at the first decision.
    calibration: OnceLock<Calibration>,
}

/// A tool and how well it fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// The name under which it is called.
    pub tool: String,
    /// Its place among the tools the index was made of: names need not be unique there.
    #[serde(skip)]
    pub position: usize,
    /// Higher is better. Comparable within one request, not between requests.
    pub score: f32,
    /// The reasons of the score.
    pub why: Why,
}

/// The reasons of a tool's score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// Words of the request that the tool has too.
    pub words: Vec<String>,
    /// Their weight, relative to a tool with every word: 0 to about 1.
    pub lexical: f32,
    /// Semantic similarity: -1 to 1.
    pub semantic: f32,
}

impl Selector {
    /// An index of tools.
    pub fn new(tools: &[ToolText]) -> Self {
        Self { index: Index::new(tools, None), calibration: OnceLock::new() }
    }

    /// An index of other tools. What was computed for tools that did not change is used again.
    #[must_use]
    pub fn updated(&self, tools: &[ToolText]) -> Self {
        Self { index: Index::new(tools, Some(&self.index)), calibration: OnceLock::new() }
    }

    /// The best `count` tools for a request, best first. A tool that the request names stands before all others.
    /// The same tools and the same request always give the same answer.
    pub fn select(&self, request: &str, count: usize) -> Vec<Ranked> {
        self.ranked(&Scores::new(&self.index, request, None), count)
    }

    /// The inputs of an embedding service for a request: the whole, and its parts.
    pub fn embedding_inputs(&self, request: &str) -> Vec<String> {
        rank::texts(&self.index, request)
    }

    /// Like [`select`](Self::select), with the embeddings of a service. `request` has its results
    /// for [`embedding_inputs`](Self::embedding_inputs).
    pub fn select_by(
        &self,
        tools: &Meanings,
        request: &[(String, Direction)],
        count: usize,
    ) -> Vec<Ranked> {
        let text = request.first().map_or("", |(text, _)| text);
        self.ranked(&Scores::new(&self.index, text, Some(Known { tools, request })), count)
    }

    /// Decides if a request needs a tool, and returns the best `count` tools.
    pub fn decide(&self, request: &str, count: usize) -> Decision {
        decide::decide(self, request, None, count)
    }

    /// The same as [`decide`](Self::decide), by the meanings of a service.
    pub fn decide_by(
        &self,
        tools: &Meanings,
        request: &[(String, Direction)],
        count: usize,
    ) -> Decision {
        let text = request.first().map_or("", |(text, _)| text);
        decide::decide(self, text, Some(Known { tools, request }), count)
    }

    /// The calibration of "no tool fits" for this toolbox.
    fn calibration(&self) -> &Calibration {
        self.calibration.get_or_init(|| Calibration::new(&self.index))
    }

    fn ranked(&self, scores: &Scores, count: usize) -> Vec<Ranked> {
        let why = |tool: usize| {
            let shared = scores
                .words
                .iter()
                .filter(|word| !text::is_stop_word(&word.text) && self.index.has(tool, &word.stem));
            Why {
                words: shared.map(|word| word.text.clone()).collect(),
                lexical: scores.lexical[tool],
                semantic: scores.known.as_ref().unwrap_or(&scores.semantic)[tool],
            }
        };
        let best = scores.best(count).into_iter();
        best.map(|(tool, score)| Ranked {
            tool: self.index.entries[tool].name.clone(),
            position: tool,
            score,
            why: why(tool),
        })
        .collect()
    }
}
