//! Meanings that a service knows, in place of those of the table.

use std::sync::Arc;

use super::entry::{ToolText, both};
use super::weights::Weights;
use crate::text::beginning;

/// Models of embeddings read a few hundred words; what is longer, some services refuse.
pub(crate) const CHARS_MAX: usize = 1500;

/// A direction in the space of some service, of length one.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction(Arc<[f32]>);

/// What a service says of the tools of an index, in their order.
#[derive(Debug, Clone, Default)]
pub struct Meanings {
    tools: Vec<ToolMeaning>,
}

#[derive(Debug, Clone)]
struct ToolMeaning {
    said: Direction,
    examples: Vec<Direction>,
}

/// What a service says of a request and its parts, beside the tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) tools: &'a Meanings,
    pub(super) request: &'a [(String, Direction)],
}

impl Direction {
    /// Nothing where the numbers point nowhere.
    pub fn new(numbers: &[f32]) -> Option<Self> {
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt();
        let points = length.is_finite() && length > f32::MIN_POSITIVE;
        points.then(|| Self(numbers.iter().map(|it| it / length).collect()))
    }

    /// The numbers.
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }

    fn cosine(&self, other: &Self) -> f32 {
        self.0.iter().zip(other.0.iter()).map(|(a, b)| a * b).sum()
    }
}

impl Meanings {
    /// What a service has to be asked about a tool: what is said of it, and each example.
    pub fn texts(tool: &ToolText) -> Vec<String> {
        // Services refuse texts that say nothing.
        let examples = tool.looked_at().iter().filter(|it| !it.trim().is_empty());
        let said = tool.said();
        std::iter::once(&said)
            .chain(examples)
            .map(|text| beginning(text, CHARS_MAX).to_owned())
            .collect()
    }

    /// Whether directions of a request can be compared with those of the tools.
    pub fn fits(&self, request: &[(String, Direction)]) -> bool {
        let length = |direction: &Direction| direction.numbers().len();
        let mut lengths = request.iter().map(|(_, direction)| length(direction));
        let wanted = self.tools.first().map(|tool| length(&tool.said));
        wanted.is_none_or(|wanted| lengths.all(|length| length == wanted))
    }

    /// Those of the tools at these places.
    #[must_use]
    pub fn only(&self, positions: &[usize]) -> Self {
        let tools = positions.iter().filter_map(|position| self.tools.get(*position).cloned());
        Self { tools: tools.collect() }
    }

    /// From the answers for [`texts`](Self::texts) of each tool.
    pub fn new(answers: impl IntoIterator<Item = Vec<Direction>>) -> Self {
        let tool = |mut answers: Vec<Direction>| {
            let examples = if answers.is_empty() { Vec::new() } else { answers.split_off(1) };
            answers.pop().map(|said| ToolMeaning { said, examples })
        };
        Self { tools: answers.into_iter().filter_map(tool).collect() }
    }
}

impl Known<'_> {
    /// How near each tool is to a text; nothing where the service was not asked about it.
    pub(super) fn cosines(&self, text: &str, weights: &Weights) -> Option<Vec<f32>> {
        let (_, direction) = self.request.iter().find(|(asked, _)| asked == text)?;
        let near = |tool: &ToolMeaning| {
            let examples = tool.examples.iter().map(|example| example.cosine(direction));
            both(tool.said.cosine(direction), examples, weights)
        };
        Some(self.tools.tools.iter().map(near).collect())
    }
}

/// `cosines` with the mean and the spread of `like`. Services differ in what they call near, and the weights of the
/// ranking are those of the table.
pub(super) fn on_the_scale_of(cosines: &[f32], like: &[f32]) -> Vec<f32> {
    let ((mean, spread), (mean_like, spread_like)) = (moments(cosines), moments(like));
    let factor = if spread > f32::EPSILON { spread_like / spread } else { 0.0 };
    cosines.iter().map(|cosine| mean_like + factor * (cosine - mean)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a toolbox has thousands of tools, not millions")]
fn moments(numbers: &[f32]) -> (f32, f32) {
    let count = numbers.len().max(1) as f32;
    let mean = numbers.iter().sum::<f32>() / count;
    let variance = numbers.iter().map(|it| (it - mean).powi(2)).sum::<f32>() / count;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_has_length_one_or_is_none() {
        assert_eq!(Direction::new(&[3.0, 4.0]).unwrap().numbers(), [0.6, 0.8]);
        for nowhere in [&[] as &[f32], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY]] {
            assert_eq!(Direction::new(nowhere), None, "{nowhere:?}");
        }
    }

    #[test]
    fn another_scale_keeps_the_order() {
        let scaled = on_the_scale_of(&[0.90, 0.92, 0.91], &[0.1, 0.4, 0.7]);
        assert!(scaled[0] < scaled[2] && scaled[2] < scaled[1]);
        assert!((scaled.iter().sum::<f32>() - 1.2).abs() < 1e-3, "{scaled:?}");
        // One tool, or tools that are all alike, say nothing about a scale.
        assert_eq!(on_the_scale_of(&[0.9], &[0.3]), [0.3]);
    }
}
