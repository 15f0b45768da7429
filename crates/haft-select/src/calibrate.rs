//! Calibrates "no tool fits" for a toolbox: the similarity of its tools to bundled small talk and
//! to questions that need no tool.

use std::sync::LazyLock;

use super::arguments::Given;
use super::index::Index;
use super::rank::{self, Scores};
use super::values;
use super::vector::Vector;
use super::weights::WEIGHTS;

static NO_TOOL: LazyLock<Vec<Vector>> =
    LazyLock::new(|| include_str!("../assets/no_tool.txt").lines().map(Vector::of).collect());

/// The number of nearest bundled requests considered.
const NEAREST: usize = 3;
/// Requests with more words than this are equally long, with fewer than the other equally short.
const WORDS_MAX: usize = 12;
const WORDS_MIN: usize = 7;
/// More kinds of values than this add no evidence.
const KINDS_MAX: f32 = 2.0;

/// The similarity of a toolbox's tools to requests that need none.
#[derive(Debug)]
pub(super) struct Calibration {
    small_talk: f32,
    /// The logarithm of the number of tools: of many tools, one is near by chance.
    tools: f32,
}

/// Facts about a request and its best tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    /// The best cosine of any tool.
    pub(super) semantic: f32,
    /// Shared words of the best tool, relative to a perfect match.
    pub(super) lexical: f32,
    /// Similarity of the request to those that need no tool.
    pub(super) no_tool: f32,
    /// Kinds of values in the request that the best tool takes, less those it does not take.
    pub(super) accepted: f32,
    /// True if the request has an id of the kind that the best tool accepts.
    pub(super) has_id: bool,
    /// True if the best tool shows examples, which are nearer to requests than descriptions.
    pub(super) has_examples: bool,
    /// The length of the request, up to 1.
    pub(super) length: f32,
}

impl Evidence {
    #[allow(clippy::cast_precision_loss, reason = "it is at most a dozen")]
    pub(super) fn new(index: &Index, request: &str, scores: &Scores, best: usize) -> Self {
        let given = Given::new(index, &values::chunks(request));
        let entry = &index.entries[best];
        Self {
            // The table's cosines, also where a service knows better ones: the calibration is the table's.
            semantic: scores.semantic.iter().copied().fold(0.0, f32::max),
            lexical: scores.lexical[best],
            no_tool: nearness(request),
            accepted: given.taken_by(entry).clamp(-KINDS_MAX, KINDS_MAX),
            has_id: given.has_id_for(entry),
            has_examples: entry.has_examples(),
            length: rank::content(&scores.words).clamp(WORDS_MIN, WORDS_MAX) as f32
                / WORDS_MAX as f32,
        }
    }
}

impl Calibration {
    #[allow(clippy::cast_precision_loss, reason = "there are thousands at most")]
    pub(super) fn new(index: &Index) -> Self {
        let best = |talk: &Vector| {
            index.entries.iter().map(|entry| entry.nearest(talk)).fold(0.0, f32::max)
        };
        let count = NO_TOOL.len() as f32;
        Self {
            small_talk: NO_TOOL.iter().map(best).sum::<f32>() / count,
            tools: (index.entries.len().max(1) as f32).ln(),
        }
    }

    /// Above zero, a tool fits. A logistic regression; `docs/research/tool-choice.md` describes its data
    /// sets.
    pub(super) fn confidence(&self, evidence: &Evidence) -> f32 {
        let Evidence { semantic, lexical, no_tool, accepted, has_id, has_examples, length } =
            *evidence;
        let one = |is: bool| f32::from(u8::from(is));
        5.8 * semantic + 2.2 * lexical - 4.7 * no_tool
            + 0.3 * self.small_talk
            + 2.0 * accepted.max(0.0)
            + 0.9 * one(has_id)
            + 1.0 * one(has_examples)
            + 1.3 * length
            + 0.1 * self.tools
            - 2.0
    }
}

/// The similarity of a request to those that need no tool.
#[allow(clippy::cast_precision_loss, reason = "it is three")]
fn nearness(request: &str) -> f32 {
    let direction = Vector::of_request(request, &WEIGHTS);
    let mut cosines: Vec<f32> = NO_TOOL.iter().map(|it| it.cosine(&direction)).collect();
    cosines.sort_unstable_by(|a, b| b.total_cmp(a));
    cosines.iter().take(NEAREST).sum::<f32>() / NEAREST as f32
}
