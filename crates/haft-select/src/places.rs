//! Assigns the first places. If a request has several parts, one of them with many matching tools
//! must not take all the places: the weight of a part decreases with each tool that was taken for
//! it.

use super::rank::Scores;

/// Parts take turns for this many places. Later places do not matter.
const TURNS_MAX: usize = 16;
/// The remaining weight of a part after each tool that was taken for it.
const SAY_LEFT: f32 = 0.7;

impl Scores {
    /// The best `count` tools with their scores, best first; those that the request names before all others. Equal
    /// ones keep the order of the toolbox.
    pub(super) fn best(&self, count: usize) -> Vec<(usize, f32)> {
        places(self, count)
    }
}

/// The first `count` tools with their scores, best first. Fewer places are always the beginning of more.
fn places(scores: &Scores, count: usize) -> Vec<(usize, f32)> {
    let mut left: Vec<usize> = (0..scores.total.len()).collect();
    let mut now = scores.total.clone();
    let mut taken: Vec<(usize, f32)> = Vec::new();
    if !scores.parts.is_empty() {
        take_turns(scores, count.min(TURNS_MAX), &mut left, &mut now, &mut taken);
    }
    let count = count - taken.len();
    let order = |a: &usize, b: &usize| scores.order(&now, *a, *b);
    if count < left.len() && count > 0 {
        left.select_nth_unstable_by(count - 1, order);
    }
    left.truncate(count);
    left.sort_unstable_by(order);
    taken.extend(left.into_iter().map(|tool| (tool, now[tool])));
    taken
}

fn take_turns(
    scores: &Scores,
    turns: usize,
    left: &mut Vec<usize>,
    now: &mut [f32],
    taken: &mut Vec<(usize, f32)>,
) {
    let parts = &scores.parts;
    let mut says = vec![1.0; parts.len()];
    // The scores of the whole request and of the tool's server stay.
    let whole: Vec<f32> =
        now.iter().enumerate().map(|(tool, now)| now - nearest(parts, &says, tool).1).collect();
    for _ in 0..turns {
        let first = (0..left.len()).min_by(|a, b| scores.order(now, left[*a], left[*b]));
        let Some(first) = first else { return };
        let tool = left.swap_remove(first);
        taken.push((tool, now[tool]));
        let (part, _) = nearest(parts, &says, tool);
        says[part] *= SAY_LEFT;
        for tool in &*left {
            now[*tool] = whole[*tool] + nearest(parts, &says, *tool).1;
        }
    }
}

/// The part with the highest score for a tool, and that score.
fn nearest(parts: &[Vec<f32>], says: &[f32], tool: usize) -> (usize, f32) {
    let mut nearest = (0, f32::MIN);
    for (part, (scores, say)) in parts.iter().zip(says).enumerate() {
        let score = say * scores[tool];
        if score > nearest.1 {
            nearest = (part, score);
        }
    }
    nearest
}
