//! One rate, as the generic cell rate algorithm counts it: no timer, one atomic number.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter as Governor};
use haft_config::config::call_limits::Rate;
use tokio::time::Instant;

pub(super) struct RateLimiter {
    clock: TokioClock,
    governor: Governor<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Duration>>,
}

impl RateLimiter {
    pub(super) fn new(rate: Rate, burst: Option<NonZeroU32>) -> Self {
        let clock = TokioClock { origin: Instant::now() };
        let burst = burst.unwrap_or_else(|| rate.default_burst());
        // The interval is above zero: a second has more nanoseconds than a rate has calls.
        let quota = Quota::with_period(rate.interval()).unwrap_or(Quota::per_hour(NonZeroU32::MIN));
        let governor = Governor::direct_with_clock(quota.allow_burst(burst), clock);
        Self { clock, governor }
    }

    /// Takes one call. If there is none left, returns the time until there is one.
    pub(super) fn check(&self) -> Result<(), Duration> {
        self.governor.check().map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

/// Tokio's clock, which a test can pause.
#[derive(Clone, Copy)]
struct TokioClock {
    origin: Instant,
}

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}
