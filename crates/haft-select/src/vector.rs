//! Directions as short whole numbers, so that thousands are compared in microseconds.

use super::table::{self, DIMENSIONS};
use super::weights::Weights;

/// A direction. Two of them are compared by their cosine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Vector(Box<[i16; DIMENSIONS]>);

/// The fixed-point value of one: the sum of 256 products stays within 32 bits.
const ONE: f32 = 16_000.0;

impl Vector {
    /// The direction of a sum.
    #[allow(clippy::cast_possible_truncation, reason = "no part of a unit vector is above one")]
    fn new(sum: &[f32; DIMENSIONS]) -> Self {
        let length = sum.iter().map(|it| it * it).sum::<f32>().sqrt();
        let scale = if length > 0.0 { ONE / length } else { 0.0 };
        let mut vector = Box::new([0; DIMENSIONS]);
        for (kept, it) in vector.iter_mut().zip(sum) {
            *kept = (it * scale) as i16;
        }
        Self(vector)
    }

    /// The direction of a string.
    pub(super) fn of(text: &str) -> Self {
        Self::new(&table::embed(text))
    }

    /// The direction of a request, in which quotes and values count less.
    pub(super) fn of_request(request: &str, weights: &Weights) -> Self {
        Self::new(&table::embed_request(request, weights))
    }

    /// The direction of a weighted sum of directions.
    pub(super) fn blend(parts: &[(&Self, f32)]) -> Self {
        let mut sum = [0.0; DIMENSIONS];
        for (vector, weight) in parts {
            for (sum, part) in sum.iter_mut().zip(vector.0.iter()) {
                *sum += weight * f32::from(*part);
            }
        }
        Self::new(&sum)
    }

    pub(super) fn cosine(&self, other: &Self) -> f32 {
        let dot: i32 =
            self.0.iter().zip(other.0.iter()).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        #[allow(clippy::cast_precision_loss, reason = "seven digits are plenty")]
        let dot = dot as f32;
        dot / (ONE * ONE)
    }
}
