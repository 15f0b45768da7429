//! The addresses of the gateway: one for the whole toolbox, one for each profile. Each has its own sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use haft::mcp_server::{HeldBytes, HttpEndpoint, HttpOptions, KeptBytes};
use haft::memory::{MemoryBudget, Owner};
use haft::{Config, Runtime};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::{Gateway, Hub, View};
use crate::serve::{Caller, Problem, name_of};

/// The endpoints that somebody used, as far as they are still configured.
pub(super) struct Endpoints {
    runtime: Runtime,
    hub: Hub,
    /// By profile; none is the whole toolbox.
    open: Mutex<HashMap<Option<String>, Open>>,
    _following: DropGuard,
}

struct Open {
    endpoint: Arc<HttpEndpoint>,
    made_for: SessionLimits,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct SessionLimits {
    sessions_max: u32,
    session_idle: Duration,
    nodes_max: usize,
}

impl Endpoints {
    /// Needs a tokio runtime around it.
    pub(super) fn new(runtime: Runtime, hub: Hub) -> Arc<Self> {
        let end = CancellationToken::new();
        let changes = runtime.changes();
        let open = Mutex::default();
        let guard = end.clone().drop_guard();
        let endpoints = Arc::new(Self { runtime, hub, open, _following: guard });
        let following = follow(Arc::downgrade(&endpoints), changes);
        TaskTracker::new().spawn(async move {
            let _ = end.run_until_cancelled(following).await;
        });
        endpoints
    }

    /// The endpoint for a caller who asks for a profile, or for none.
    pub(super) fn find(
        &self,
        caller: &Caller,
        asked: Option<&str>,
    ) -> Result<Arc<HttpEndpoint>, Problem> {
        let mut open = self.lock();
        // Read under the lock, so that nobody who was slower brings back what is gone.
        let config = self.runtime.config();
        tidy(&mut open, &config);
        let profile = permitted(caller, asked, &config)?;
        let made_for = SessionLimits::of(&config);
        let entry = open.entry(profile.map(ToOwned::to_owned));
        let open = entry.or_insert_with(|| {
            let view = View::new(&self.runtime, profile);
            let gateway = Gateway::new(self.runtime.clone(), view, &self.hub);
            Open {
                endpoint: HttpEndpoint::new(gateway, made_for.options(self.runtime.memory())),
                made_for,
            }
        });
        Ok(Arc::clone(&open.endpoint))
    }

    /// Ends every session.
    pub(super) fn stop(&self) {
        for (_, open) in self.lock().drain() {
            open.endpoint.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<String>, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionLimits {
    fn of(config: &Config) -> Self {
        let gateway = &config.gateway;
        Self {
            sessions_max: gateway.sessions_max.value,
            session_idle: gateway.session_idle.value,
            nodes_max: config.limits.nodes_max(),
        }
    }

    fn options(self, memory: &MemoryBudget) -> HttpOptions {
        let memory = memory.clone();
        let count = move |principal: &str, bytes: usize| -> HeldBytes {
            let owner = Owner::Caller(Some(name_of(principal)));
            Box::new(memory.charge(bytes, Some(owner)))
        };
        let mut options = HttpOptions {
            kept_bytes: KeptBytes::counted_by(count),
            sessions_max: usize::try_from(self.sessions_max).unwrap_or(usize::MAX),
            session_idle: self.session_idle,
            ..HttpOptions::default()
        };
        options.limits.nodes_max = self.nodes_max;
        options
    }
}

/// Ends endpoints as soon as they are configured no more: a stream of news may be all that is left of one.
async fn follow(endpoints: Weak<Endpoints>, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let Some(endpoints) = endpoints.upgrade() else { return };
        let mut open = endpoints.lock();
        tidy(&mut open, &endpoints.runtime.config());
    }
}

/// Ends the endpoints whose profiles are gone or whose sessions have other limits now. What a changed
/// profile shows, its clients hear as changed lists.
fn tidy(open: &mut HashMap<Option<String>, Open>, config: &Config) {
    let limits = SessionLimits::of(config);
    open.retain(|profile, open| {
        let is_there = profile.as_ref().is_none_or(|name| config.profile(name).is_some());
        let stays = is_there && open.made_for == limits;
        if !stays {
            open.endpoint.stop();
        }
        stays
    });
}

/// The profile a caller gets who asks for one, or for none.
fn permitted<'a>(
    caller: &'a Caller,
    asked: Option<&'a str>,
    config: &Config,
) -> Result<Option<&'a str>, Problem> {
    let Some(own) = caller.profile.as_deref() else {
        return match asked {
            Some(name) if config.profile(name).is_none() => Err(unknown(name, config)),
            Some(_) | None => Ok(asked),
        };
    };
    if asked.is_some_and(|asked| asked != own) {
        let detail = format!("`{}` is bound to the profile `{own}`", caller.name);
        return Err(Problem::forbidden(detail).remedy(format!("use `/mcp` or `/mcp/{own}`")));
    }
    if config.profile(own).is_none() {
        let detail = format!("`{}` is bound to the profile `{own}`, which is gone", caller.name);
        let remedy = format!("let the operator configure `profiles.{own}`, or use another key");
        return Err(Problem::forbidden(detail).remedy(remedy));
    }
    Ok(Some(own))
}

fn unknown(name: &str, config: &Config) -> Problem {
    let known = || config.profiles.iter().map(|profile| profile.name.as_str());
    let remedy = match haft::nearest(name, known()) {
        Some(near) => format!("did you mean `/mcp/{near}`?"),
        None if config.profiles.is_empty() => {
            "there are no profiles; `/mcp` is the whole toolbox".to_owned()
        }
        None => {
            let known: Vec<String> = known().map(|name| format!("`/mcp/{name}`")).collect();
            format!("there are {}, and `/mcp` for the whole toolbox", known.join(", "))
        }
    };
    Problem::not_found(format!("there is no profile `{name}`")).remedy(remedy)
}
