//! A model that retries requests after transient failures.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::{ChatModel, ModelError, ModelEvent, ModelFailure, ModelRequest, ModelStream};
use haft_text::human;

/// The retry policy of requests to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of retries.
    pub retries: u32,
    /// The wait before the first retry; doubled before each further one.
    pub wait_first: Duration,
    /// The longest wait, also if the service requests one. If it requests more, the request fails:
    /// an earlier retry would be rejected again.
    pub wait_max: Duration,
}

impl RetryPolicy {
    /// Defaults for a user at a terminal.
    pub fn new(retries: u32) -> Self {
        Self { retries, wait_first: Duration::from_millis(500), wait_max: Duration::from_mins(1) }
    }

    /// The wait before the retry with this number, from 0. `None` if a retry is pointless.
    ///
    /// Only transient failures are retried. An unreadable answer means that the service uses
    /// another format, so the same request would cost the same again for nothing.
    fn wait(&self, number: u32, failure: &ModelFailure) -> Option<Duration> {
        let asked = match failure {
            ModelFailure::Passing { retry_after } => retry_after.unwrap_or_default(),
            ModelFailure::Setup
            | ModelFailure::Rejected
            | ModelFailure::TooLong
            | ModelFailure::Images
            | ModelFailure::Unreadable => return None,
        };
        if number >= self.retries || asked > self.wait_max {
            return None;
        }
        let doubled = self.wait_first.saturating_mul(2_u32.saturating_pow(number));
        Some(jittered(doubled.min(self.wait_max)).max(asked))
    }
}

/// Half to one and a half times as long: those who failed together do not come back together.
fn jittered(wait: Duration) -> Duration {
    // Each `RandomState` has its own keys.
    let percent = u32::try_from(RandomState::new().hash_one(0) % 101).unwrap_or(0);
    wait.saturating_mul(50 + percent) / 100
}

/// The model with patience.
pub(super) struct RetryingModel {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) policy: RetryPolicy,
    /// The limit for one answer, with all retries and the pauses between them.
    pub(super) turn_timeout: Duration,
}

impl ChatModel for RetryingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn ask(&self, request: ModelRequest) -> ModelStream {
        let state = RetryState {
            model: Arc::clone(&self.model),
            policy: self.policy,
            request,
            stream: None,
            tries: 0,
            wait: Duration::ZERO,
            turn_timeout: self.turn_timeout,
            started: Instant::now(),
        };
        Box::pin(stream::try_unfold(Some(state), |state| async move {
            let Some(mut state) = state else { return Ok(None) };
            let event = state.next_in_time().await?;
            let is_last = matches!(event, ModelEvent::Done(_));
            Ok(Some((event, (!is_last).then_some(state))))
        }))
    }
}

struct RetryState {
    model: Arc<dyn ChatModel>,
    policy: RetryPolicy,
    request: ModelRequest,
    /// `None` before the first attempt and between two.
    stream: Option<ModelStream>,
    tries: u32,
    wait: Duration,
    turn_timeout: Duration,
    started: Instant,
}

impl RetryState {
    async fn next_in_time(&mut self) -> Result<ModelEvent, ModelError> {
        let left = self.turn_timeout.saturating_sub(self.started.elapsed());
        match tokio::time::timeout(left, self.next()).await {
            Ok(event) => event,
            Err(_) => Err(ModelError {
                kind: ModelFailure::Passing { retry_after: None },
                message: format!(
                    "the service of `{}` did not complete its answer within {}",
                    self.model.name(),
                    human(self.turn_timeout)
                ),
                remedy: Some("raise `agent.turn_timeout` if the answer is that long".to_owned()),
            }),
        }
    }

    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                tokio::time::sleep(std::mem::take(&mut self.wait)).await;
                none.insert(self.model.ask(self.request.clone()))
            }
        };
        let failure = match stream.next().await {
            Some(Ok(event)) => return Ok(event),
            Some(Err(failure)) => failure,
            None => ModelError {
                kind: ModelFailure::Passing { retry_after: None },
                message: format!("`{}` said nothing", self.model.name()),
                remedy: None,
            },
        };
        let Some(wait) = self.policy.wait(self.tries, &failure.kind) else {
            return Err(failure);
        };
        self.stream = None;
        self.tries += 1;
        self.wait = wait;
        let (try_number, model) = (self.tries, self.model.name());
        // The caller receives the event, so the log repeats it at debug level only.
        tracing::debug!(model, %failure, try_number, ?wait, "the model is asked again");
        Ok(ModelEvent::Restarted { reason: format!("{failure}; {}", when(wait)) })
    }
}

/// The time of the retry, in whole seconds.
fn when(wait: Duration) -> String {
    match wait.as_millis().div_ceil(100) {
        0 => "it is asked again at once".to_owned(),
        tenths => {
            let wait = Duration::from_millis(100)
                .saturating_mul(u32::try_from(tenths).unwrap_or(u32::MAX));
            format!("it is asked again in {}", human(wait))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_it_is_asked_again_is_said_roughly() {
        for (millis, text) in [
            (0, "it is asked again at once"),
            (321, "it is asked again in 400ms"),
            (1_230, "it is asked again in 1.3s"),
            (59_999, "it is asked again in 60s"),
        ] {
            assert_eq!(when(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn waits_grow_up_to_a_limit_and_only_for_what_passes() {
        let passing = |retry_after: Option<u64>| ModelFailure::Passing {
            retry_after: retry_after.map(Duration::from_secs),
        };
        let policy = RetryPolicy::new(9);
        for (number, millis) in [(0, 500), (1, 1_000), (3, 4_000), (8, 60_000)] {
            let wait = policy.wait(number, &passing(None)).unwrap();
            let range = Duration::from_millis(millis / 2)..=Duration::from_millis(millis * 3 / 2);
            assert!(range.contains(&wait), "{wait:?}");
        }
        assert!(policy.wait(0, &passing(Some(30))).unwrap() >= Duration::from_secs(30));
        assert_eq!(policy.wait(0, &passing(Some(61))), None);
        assert_eq!(policy.wait(9, &passing(None)), None);
        assert_eq!(RetryPolicy::new(0).wait(0, &passing(None)), None);
        for kind in [
            ModelFailure::Setup,
            ModelFailure::Rejected,
            ModelFailure::TooLong,
            ModelFailure::Unreadable,
        ] {
            assert_eq!(policy.wait(0, &kind), None);
        }
    }
}
