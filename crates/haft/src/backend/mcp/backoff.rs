//! Pauses between attempts to connect.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::config::model::Reconnect;

/// The configured retries of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReconnectPolicy {
    pub(super) retries_max: u32,
    pub(super) base: Duration,
    pub(super) factor: f64,
    pub(super) pause_max: Duration,
}

impl From<&Reconnect> for ReconnectPolicy {
    fn from(reconnect: &Reconnect) -> Self {
        let Reconnect { attempts, base, factor, max } = reconnect;
        Self {
            retries_max: attempts.value,
            base: base.value,
            factor: factor.value,
            pause_max: max.value,
        }
    }
}

impl ReconnectPolicy {
    /// The pause before retry number `step`, counted from 0. `random` shifts it by up to a tenth, so that many
    /// clients of one server do not come back all at once.
    pub(super) fn pause(&self, step: u32, random: u64) -> Duration {
        let power = self.factor.powi(i32::try_from(step).unwrap_or(i32::MAX));
        #[expect(clippy::cast_precision_loss, reason = "at most 200")]
        let jitter = 0.9 + (random % 201) as f64 / 1000.0;
        let pause = self.base.as_secs_f64() * power * jitter;
        Duration::try_from_secs_f64(pause).unwrap_or(self.pause_max).min(self.pause_max)
    }
}

/// A number that differs between processes and connections.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(())
}
