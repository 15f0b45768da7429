//! Rates and quotas: a burst belongs to a rate.

use super::explicit;
use crate::config::call_limits::{BURST_WITHOUT_RATE, Burst, LimitSettings, Quota, Rate};
use crate::config::place::{At, Problems};

pub(super) fn compile(
    rate: Option<At<Rate>>,
    burst: Option<At<Burst>>,
    quota: Option<At<Quota>>,
    problems: &mut Problems,
) -> LimitSettings {
    if let (None, Some(burst)) = (&rate, &burst) {
        problems.error(&burst.place, BURST_WITHOUT_RATE, "add `rate: 60/min`, or delete `burst`");
    }
    LimitSettings {
        rate: rate.map(|at| explicit(at, |rate| rate)),
        burst: burst.map(|at| explicit(at, |Burst(burst)| burst)),
        quota: quota.map(|at| explicit(at, |quota| quota)),
    }
}
