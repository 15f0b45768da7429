//! What "no tool fits" looks like in this toolbox: how near its tools come to small talk and to questions that
//! anybody can answer. Those, and requests that do want a tool, are bundled.

use std::sync::LazyLock;

use super::index::Index;
use super::vector::Vector;

static NO_TOOL: LazyLock<Vec<Vector>> =
    LazyLock::new(|| vectors(include_str!("../../assets/no_tool.txt")));
static SOME_TOOL: LazyLock<Vec<Vector>> =
    LazyLock::new(|| vectors(include_str!("../../assets/some_tool.txt")));

/// How many of the nearest are looked at.
const NEAREST: usize = 3;

/// How near the tools of a toolbox come to what needs none.
#[derive(Debug)]
pub(super) struct Calibration {
    small_talk: f32,
}

/// What is known about a request and its best tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    /// The best cosine of any tool.
    pub(super) semantic: f32,
    /// What the best tool shares with the request, against a perfect match.
    pub(super) lexical: f32,
    /// How near the request is to what needs no tool.
    pub(super) no_tool: f32,
    /// How near it is to what needs one, in any toolbox.
    pub(super) some_tool: f32,
}

impl Calibration {
    pub(super) fn new(index: &Index) -> Self {
        let best = |talk: &Vector| {
            index.entries.iter().map(|entry| entry.nearest(talk)).fold(0.0, f32::max)
        };
        #[allow(clippy::cast_precision_loss, reason = "there are a few hundred")]
        let count = NO_TOOL.len() as f32;
        Self { small_talk: NO_TOOL.iter().map(best).sum::<f32>() / count }
    }

    /// Above zero, a tool fits. A logistic regression on the development sets; `docs/tool-choice.md`.
    pub(super) fn confidence(&self, evidence: &Evidence) -> f32 {
        let Evidence { semantic, lexical, no_tool, some_tool } = evidence;
        11.5 * semantic + 17.9 * lexical - 21.7 * no_tool
            + 11.9 * some_tool
            + 11.0 * self.small_talk
            - 5.2
    }
}

/// How near a request is to what needs no tool and to what needs one.
pub(super) fn nearness(request: &str) -> (f32, f32) {
    let direction = Vector::of(request);
    (nearest(&NO_TOOL, &direction), nearest(&SOME_TOOL, &direction))
}

#[allow(clippy::cast_precision_loss, reason = "it is three")]
fn nearest(known: &[Vector], direction: &Vector) -> f32 {
    let mut cosines: Vec<f32> = known.iter().map(|it| it.cosine(direction)).collect();
    cosines.sort_unstable_by(|a, b| b.total_cmp(a));
    cosines.iter().take(NEAREST).sum::<f32>() / NEAREST as f32
}

fn vectors(lines: &str) -> Vec<Vector> {
    lines.lines().map(Vector::of).collect()
}
