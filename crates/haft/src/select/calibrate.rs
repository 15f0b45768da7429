//! What "no tool fits" looks like in this toolbox: how near its tools come to small talk and to questions that need no
//! tool, of which some are bundled.

use std::sync::LazyLock;

use super::arguments::Given;
use super::index::Index;
use super::rank::{self, Scores};
use super::values;
use super::vector::Vector;
use super::weights::WEIGHTS;

static NO_TOOL: LazyLock<Vec<Vector>> =
    LazyLock::new(|| include_str!("../../assets/no_tool.txt").lines().map(Vector::of).collect());

/// How many of the nearest bundled requests are looked at.
const NEAREST: usize = 3;
/// Requests with more words than this are equally long, with fewer than the other equally short.
const WORDS_MAX: usize = 12;
const WORDS_MIN: usize = 7;
/// More kinds of values than this say no more.
const KINDS_MAX: f32 = 2.0;

/// How near the tools of a toolbox come to what needs none.
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
    /// What the best tool shares with the request, against a perfect match.
    pub(super) lexical: f32,
    /// How near the request is to what needs no tool.
    pub(super) no_tool: f32,
    /// Kinds of values in the request that the best tool takes, less those it does not take.
    pub(super) accepted: f32,
    /// Whether the request has an id of the kind that the best tool takes.
    pub(super) has_id: bool,
    pub(super) is_question: bool,
    /// How long the request is, up to 1.
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
            is_question: request.trim_end().ends_with('?'),
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

    /// Above zero, a tool fits. A logistic regression; `docs/tool-choice.md` tells on which sets.
    pub(super) fn confidence(&self, evidence: &Evidence) -> f32 {
        let Evidence { semantic, lexical, no_tool, accepted, has_id, is_question, length } =
            *evidence;
        let one = |is: bool| f32::from(u8::from(is));
        6.9 * semantic + 6.4 * lexical - 8.4 * no_tool
            + 6.1 * self.small_talk
            + 3.2 * accepted.max(0.0)
            + 1.2 * accepted.min(0.0)
            + 3.9 * one(has_id)
            + 0.4 * one(is_question)
            + 1.1 * length
            - 0.1 * self.tools
            - 2.3
    }
}

/// How near a request is to what needs no tool.
#[allow(clippy::cast_precision_loss, reason = "it is three")]
fn nearness(request: &str) -> f32 {
    let direction = Vector::of_request(request, &WEIGHTS);
    let mut cosines: Vec<f32> = NO_TOOL.iter().map(|it| it.cosine(&direction)).collect();
    cosines.sort_unstable_by(|a, b| b.total_cmp(a));
    cosines.iter().take(NEAREST).sum::<f32>() / NEAREST as f32
}
