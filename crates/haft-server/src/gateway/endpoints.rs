//! The addresses of the gateway: one for the whole toolbox, one for each profile. Each has its own sessions.

use std::num::NonZeroU16;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use haft::mcp_server::{EndpointOptions, HeldBytes, HttpEndpoint, KeptBytes, Replica, SigningKeys};
use haft::memory::{MemoryBudget, Owner};
use haft::{Config, Runtime};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Gateway, Hub, View};
use crate::serve::{Caller, Problem, name_of};

/// The endpoints in use, as far as they are still configured.
pub(super) struct Endpoints {
    runtime: Runtime,
    hub: Hub,
    /// By profile; none is the whole toolbox. A key with lists has its own. Requests read it without a lock.
    open: ArcSwap<Vec<Open>>,
    /// Held by changes of the list.
    changing: Mutex<()>,
    tasks: TaskTracker,
    following: CancellationToken,
    /// This replica and the keys of all, if the service has several.
    replica: Option<(NonZeroU16, SigningKeys)>,
}

#[derive(Clone)]
struct Open {
    profile: Option<String>,
    /// The only caller, if its key has lists. Other keys share an endpoint.
    key: Option<ListedKey>,
    endpoint: Arc<HttpEndpoint>,
    made_for: SessionLimits,
}

/// A key with a list of tools or servers.
#[derive(Clone)]
struct ListedKey {
    owner: Arc<str>,
    ended: Arc<CancellationToken>,
}

impl ListedKey {
    fn of(caller: &Caller) -> Option<Self> {
        let listed = || Self { owner: Arc::clone(&caller.owner), ended: Arc::clone(&caller.ended) };
        (!caller.lists.is_whole()).then(listed)
    }
}

impl Open {
    fn is_for(&self, caller: &Caller, profile: Option<&str>) -> bool {
        let is_caller = match &self.key {
            None => caller.lists.is_whole(),
            // Lists that changed end the key's token.
            Some(key) => {
                !caller.lists.is_whole() && key.owner == caller.owner && !key.ended.is_cancelled()
            }
        };
        is_caller && self.profile.as_deref() == profile
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct SessionLimits {
    sessions_max: u32,
    session_idle: Duration,
    nodes_max: usize,
}

impl Endpoints {
    /// Needs a tokio runtime around it.
    pub(super) fn new(
        runtime: Runtime,
        hub: Hub,
        replica: Option<(NonZeroU16, SigningKeys)>,
    ) -> Arc<Self> {
        let following = CancellationToken::new();
        let changes = runtime.changes();
        let endpoints = Arc::new(Self {
            runtime,
            hub,
            open: ArcSwap::default(),
            changing: Mutex::default(),
            tasks: TaskTracker::new(),
            following: following.clone(),
            replica,
        });
        let work = follow(Arc::downgrade(&endpoints), changes);
        endpoints.tasks.spawn(async move {
            let _ = following.run_until_cancelled(work).await;
        });
        endpoints
    }

    /// The endpoint for a caller who asks for a profile, or for none.
    pub(super) fn find(
        &self,
        caller: &Caller,
        asked: Option<&str>,
    ) -> Result<Arc<HttpEndpoint>, Problem> {
        let config = self.runtime.config();
        let profile = permitted(caller, asked, &config)?;
        let limits = SessionLimits::of(&config);
        let is_it = |it: &&Open| it.is_for(caller, profile) && it.made_for == limits;
        if let Some(open) = self.open.load().iter().find(is_it) {
            return Ok(Arc::clone(&open.endpoint));
        }
        self.open(caller, asked)
    }

    /// Opens an endpoint, unless another request was faster.
    fn open(&self, caller: &Caller, asked: Option<&str>) -> Result<Arc<HttpEndpoint>, Problem> {
        let _changing = self.lock();
        // Read under the lock: a slower request must not bring back what is gone.
        let config = self.runtime.config();
        let mut all = self.tidy(&config);
        let profile = permitted(caller, asked, &config)?;
        if let Some(open) = all.iter().find(|it| it.is_for(caller, profile)) {
            return Ok(Arc::clone(&open.endpoint));
        }
        let made_for = SessionLimits::of(&config);
        let view = View::new(&self.runtime, profile).limited_to(&caller.lists);
        let gateway = Gateway::new(self.runtime.clone(), view, &self.hub, &self.tasks);
        let options = EndpointOptions {
            replica: self.replica(profile),
            ..made_for.options(self.runtime.memory())
        };
        let endpoint = HttpEndpoint::new(gateway, options);
        let profile = profile.map(ToOwned::to_owned);
        let key = ListedKey::of(caller);
        all.push(Open { profile, key, endpoint: Arc::clone(&endpoint), made_for });
        self.open.store(Arc::new(all));
        Ok(endpoint)
    }

    fn replica(&self, profile: Option<&str>) -> Option<Replica> {
        let (number, keys) = self.replica.clone()?;
        Some(Replica { number, keys, endpoint: profile.unwrap_or_default().into() })
    }

    /// Ends the endpoints whose profiles or keys are gone or whose sessions have other limits now, and returns the others. What
    /// a changed profile shows, its clients receive as changed lists.
    fn tidy(&self, config: &Config) -> Vec<Open> {
        let limits = SessionLimits::of(config);
        let before = self.open.load_full();
        let stays = |open: &&Open| {
            let profile = open.profile.as_ref();
            let is_over = open.key.as_ref().is_some_and(|key| key.ended.is_cancelled());
            !is_over
                && profile.is_none_or(|name| config.profile(name).is_some())
                && open.made_for == limits
        };
        let (kept, gone): (Vec<&Open>, Vec<&Open>) = before.iter().partition(stays);
        let kept: Vec<Open> = kept.into_iter().cloned().collect();
        if !gone.is_empty() {
            self.open.store(Arc::new(kept.clone()));
            for open in gone {
                open.endpoint.stop();
            }
        }
        kept
    }

    /// Ends every session, and what follows the toolbox.
    pub(super) async fn stop(&self) {
        let open = {
            let _changing = self.lock();
            self.open.swap(Arc::default())
        };
        for open in open.iter() {
            open.endpoint.stop();
        }
        drop(open);
        self.following.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        self.following.cancel();
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

    fn options(self, memory: &MemoryBudget) -> EndpointOptions {
        let memory = memory.clone();
        let count = move |principal: &str, bytes: usize| -> HeldBytes {
            let owner = Owner::Caller(Some(name_of(principal)));
            Box::new(memory.charge(bytes, Some(owner)))
        };
        let mut options = EndpointOptions {
            kept_bytes: KeptBytes::counted_by(count),
            sessions_max: usize::try_from(self.sessions_max).unwrap_or(usize::MAX),
            session_idle: self.session_idle,
            ..EndpointOptions::default()
        };
        options.limits.nodes_max = self.nodes_max;
        options
    }
}

/// Ends endpoints as soon as they are no longer configured: a notification stream may be all that is left of one.
async fn follow(endpoints: Weak<Endpoints>, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let Some(endpoints) = endpoints.upgrade() else { return };
        let _changing = endpoints.lock();
        endpoints.tidy(&endpoints.runtime.config());
    }
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
    let remedy = match haft_text::nearest(name, known()) {
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
