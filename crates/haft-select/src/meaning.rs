//! Meanings that a service knows, in place of those of the table.

use std::sync::Arc;

use super::entry::{ToolText, both};
use super::weights::Weights;
use haft_text::beginning;

/// Models of embeddings read a few hundred words; what is longer, some services refuse.
pub const CHARS_MAX: usize = 1500;

/// A direction in the space of some service, of length one.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction(Arc<[f32]>);

/// Embeddings of the tools of an index, in order, from a service.
#[derive(Debug, Clone, Default)]
pub struct Meanings {
    tools: Vec<ToolMeaning>,
}

#[derive(Debug, Clone)]
struct ToolMeaning {
    said: Direction,
    examples: Vec<Direction>,
}

/// Embeddings of a request and its parts, from a service.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) tools: &'a Meanings,
    pub(super) request: &'a [(String, Direction)],
}

impl Direction {
    /// Returns `None` for a zero vector.
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
    /// The inputs of an embedding service for a tool: its description, and each example.
    pub fn embedding_inputs(tool: &ToolText) -> Vec<String> {
        // Services reject blank inputs.
        let examples = tool.looked_at().iter().filter(|it| !it.trim().is_empty());
        let said = tool.said();
        std::iter::once(&said)
            .chain(examples)
            .map(|text| beginning(text, CHARS_MAX).to_owned())
            .collect()
    }

    /// Returns true if directions of a request can be compared with those of the tools.
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

    /// From the answers for [`embedding_inputs`](Self::embedding_inputs) of each tool.
    pub fn new(answers: impl IntoIterator<Item = Vec<Direction>>) -> Self {
        let tool = |mut answers: Vec<Direction>| {
            let examples = if answers.is_empty() { Vec::new() } else { answers.split_off(1) };
            answers.pop().map(|said| ToolMeaning { said, examples })
        };
        Self { tools: answers.into_iter().filter_map(tool).collect() }
    }
}

impl Known<'_> {
    /// The similarity of each tool to a string; `None` if the service has not embedded it.
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
        // One tool, or equal tools, define no scale.
        assert_eq!(on_the_scale_of(&[0.9], &[0.3]), [0.3]);
    }
}
