//! Random numbers that a seed repeats (SplitMix64).

use std::ops::Range;

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another sequence, determined by this one.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// The next number.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number of the range, which is not empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// One of the items.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = usize::try_from(self.next() >> 32).unwrap_or_default() % items.len();
        &items[at]
    }
}
