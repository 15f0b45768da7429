//! A model that is asked again when its service fails for a passing reason.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::{ChatModel, ModelError, ModelEvent, ModelFailure, ModelRequest, ModelStream};
use crate::error::human;

/// How long and how often a service is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often a request is made again.
    pub retries: u32,
    /// How long before the first time; twice as long before each further one.
    pub wait_first: Duration,
    /// The longest wait, also where the service asks for one. If it asks for more, nobody waits: to
    /// come earlier is to be refused again.
    pub wait_max: Duration,
}

impl Patience {
    /// As patient as people with a terminal in front of them.
    pub fn new(retries: u32) -> Self {
        Self { retries, wait_first: Duration::from_millis(500), wait_max: Duration::from_mins(1) }
    }

    /// How long to wait before the try with this number, from 0. Nothing where it is not worth it.
    ///
    /// Only passing failures are. A service that answers with what cannot be read speaks another
    /// format, so the same request would cost the same again for nothing.
    fn wait(&self, number: u32, failure: &ModelFailure) -> Option<Duration> {
        let asked = match failure {
            ModelFailure::Passing { retry_after } => retry_after.unwrap_or_default(),
            ModelFailure::Setup
            | ModelFailure::Rejected
            | ModelFailure::TooLong
            | ModelFailure::Pictures
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
    // Each `RandomState` has keys of its own.
    let percent = u32::try_from(RandomState::new().hash_one(0) % 101).unwrap_or(0);
    wait.saturating_mul(50 + percent) / 100
}

/// The model with patience.
pub(super) struct Patient {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) patience: Patience,
    /// The limit for one answer, with all retries and the pauses between them.
    pub(super) turn_timeout: Duration,
}

impl ChatModel for Patient {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn ask(&self, request: ModelRequest) -> ModelStream {
        let asking = Asking {
            model: Arc::clone(&self.model),
            patience: self.patience,
            request,
            stream: None,
            tries: 0,
            wait: Duration::ZERO,
            turn_timeout: self.turn_timeout,
            started: Instant::now(),
        };
        Box::pin(stream::try_unfold(Some(asking), |asking| async move {
            let Some(mut asking) = asking else { return Ok(None) };
            let event = asking.next_in_time().await?;
            let is_last = matches!(event, ModelEvent::Done(_));
            Ok(Some((event, (!is_last).then_some(asking))))
        }))
    }
}

struct Asking {
    model: Arc<dyn ChatModel>,
    patience: Patience,
    request: ModelRequest,
    /// Nothing before the first try and between two.
    stream: Option<ModelStream>,
    tries: u32,
    wait: Duration,
    turn_timeout: Duration,
    started: Instant,
}

impl Asking {
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
        let Some(wait) = self.patience.wait(self.tries, &failure.kind) else {
            return Err(failure);
        };
        self.stream = None;
        self.tries += 1;
        self.wait = wait;
        let (try_number, model) = (self.tries, self.model.name());
        // Who asks hears of it by the event, so the log need not say it to people again.
        tracing::debug!(model, %failure, try_number, ?wait, "the model is asked again");
        Ok(ModelEvent::Restarted { reason: format!("{failure}; {}", when(wait)) })
    }
}

/// When it is asked again. Nobody counts the milliseconds.
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
        let patience = Patience::new(9);
        for (number, millis) in [(0, 500), (1, 1_000), (3, 4_000), (8, 60_000)] {
            let wait = patience.wait(number, &passing(None)).unwrap();
            let range = Duration::from_millis(millis / 2)..=Duration::from_millis(millis * 3 / 2);
            assert!(range.contains(&wait), "{wait:?}");
        }
        assert!(patience.wait(0, &passing(Some(30))).unwrap() >= Duration::from_secs(30));
        assert_eq!(patience.wait(0, &passing(Some(61))), None);
        assert_eq!(patience.wait(9, &passing(None)), None);
        assert_eq!(Patience::new(0).wait(0, &passing(None)), None);
        for kind in [
            ModelFailure::Setup,
            ModelFailure::Rejected,
            ModelFailure::TooLong,
            ModelFailure::Unreadable,
        ] {
            assert_eq!(patience.wait(0, &kind), None);
        }
    }
}
