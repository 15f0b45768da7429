//! Decides to use a tool, use none, or ask: the decision without a model, and a hint with one.

use serde::Serialize;

use super::calibrate::Evidence;
use super::meaning::Known;
use super::missing::{self, Missing};
use super::rank::Scores;
use super::text;
use super::{Ranked, Selector};

/// The decision for a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// One of these tools, best first.
    UseTool {
        /// The tools.
        ranked: Vec<Ranked>,
    },
    /// None of the tools fits.
    NoTool,
    /// The first tool fits, but required arguments are missing.
    AskHuman {
        /// The tools.
        ranked: Vec<Ranked>,
        /// The missing arguments.
        missing: Vec<Missing>,
    },
}

/// Tools for a request, for a caller that decides itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Choices {
    /// True if the best of them fits the request.
    pub fits: bool,
    /// The tools, best first: the nearest ones where none fits.
    pub ranked: Vec<Ranked>,
}

impl Choices {
    /// A decision with the `nearest` tools, which are computed only if no tool fits.
    pub fn new(decision: Decision, nearest: impl FnOnce() -> Vec<Ranked>) -> Self {
        match decision {
            Decision::UseTool { ranked } | Decision::AskHuman { ranked, .. } => {
                Self { fits: true, ranked }
            }
            Decision::NoTool => Self { fits: false, ranked: nearest() },
        }
    }
}

pub(super) fn decide(
    selector: &Selector,
    request: &str,
    known: Option<Known<'_>>,
    count: usize,
) -> Decision {
    let index = &selector.index;
    let scores = Scores::new(index, request, known);
    let Some(&(best, _)) = scores.best(1).first() else {
        return Decision::NoTool;
    };
    // "for a" carries no meaning, whatever its similarity.
    let says_something = scores.words.iter().any(|word| !text::is_stop_word(&word.text));
    if scores.named.is_empty() && !says_something {
        return Decision::NoTool;
    }
    if scores.named.is_empty() && confidence(selector, request, &scores, best) < 0.0 {
        return Decision::NoTool;
    }
    let ranked = selector.ranked(&scores, count.max(1));
    let missing = missing::missing(index, best, request);
    if missing.is_empty() {
        Decision::UseTool { ranked }
    } else {
        Decision::AskHuman { ranked, missing }
    }
}

/// Above zero, a tool fits.
pub(super) fn confidence(selector: &Selector, request: &str, scores: &Scores, best: usize) -> f32 {
    let evidence = Evidence::new(&selector.index, request, scores, best);
    selector.calibration().confidence(&evidence)
}
