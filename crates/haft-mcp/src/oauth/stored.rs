//! Tokens from the token folder, refreshed when needed. Never starts a sign-in.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::{AuthError, Authorizer, BoxFuture, Grant, Login, TokenStore, guard::shown};

/// A refresh that failed is not tried again before this.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// A refusal this soon after new tokens came is about the old ones, sent by another call.
const JUST_NOW: Duration = Duration::from_secs(5);

/// Gives out the stored tokens of one server.
///
/// Never asks a person: without usable tokens, [`refused`](Authorizer::refused) returns `false`.
pub struct StoredTokens {
    shared: Arc<Shared>,
}

struct Shared {
    login: Login,
    store: TokenStore,
    tasks: TaskTracker,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    grant: Option<Arc<Grant>>,
    /// The grant that the authorization server ended. Its file is not believed again.
    ended: Option<Arc<Grant>>,
    /// Counts new grants, to notice that another caller got one.
    generation: u64,
    renewed_at: Option<Instant>,
    refreshed_at: Option<Instant>,
    failed: Option<(Instant, AuthError)>,
    refresh: Option<watch::Receiver<Option<Refreshed>>>,
}

type Refreshed = Result<Arc<Grant>, AuthError>;

impl StoredTokens {
    /// Reads what the folder holds for the server of `login`. Refreshes run on `tasks`, so that a
    /// call which is cancelled meanwhile does not lose tokens that were already exchanged.
    pub fn new(login: Login, store: TokenStore, tasks: TaskTracker) -> Result<Self, AuthError> {
        let grant = match store.load(login.server()) {
            Ok(grant) => grant.map(Arc::new),
            // Signing in again repairs it, so it must not stand in the way of that.
            Err(error @ AuthError::Unreadable { .. }) => {
                tracing::warn!(%error, "ignoring a damaged sign-in");
                None
            }
            Err(error) => return Err(error),
        };
        let state = Mutex::new(State { grant, ..State::default() });
        Ok(Self { shared: Arc::new(Shared { login, store, tasks, state }) })
    }

    /// The sign-in in use.
    pub fn grant(&self) -> Option<Arc<Grant>> {
        self.shared.state().grant.clone()
    }

    pub(crate) fn login(&self) -> &Login {
        &self.shared.login
    }

    pub(crate) fn generation(&self) -> u64 {
        self.shared.state().generation
    }

    pub(crate) fn was_refreshed_just_now(&self) -> bool {
        self.shared.state().refreshed_at.is_some_and(|at| at.elapsed() < JUST_NOW)
    }

    fn was_renewed_just_now(&self) -> bool {
        self.shared.state().renewed_at.is_some_and(|at| at.elapsed() < JUST_NOW)
    }

    /// Takes over a new sign-in and stores it.
    pub(crate) async fn adopt(&self, grant: Grant) -> Result<(), AuthError> {
        let saved = self.shared.save(grant.clone()).await;
        self.shared.state().replace(Arc::new(grant));
        saved
    }

    /// Gets other tokens than those in use: from the folder, otherwise by a refresh.
    pub(crate) async fn recover(&self) -> Result<bool, AuthError> {
        if self.shared.reread()? {
            return Ok(true);
        }
        let Some(grant) = self.grant().filter(|grant| grant.refresh_token.is_some()) else {
            return Ok(false);
        };
        match self.refresh(grant).await {
            Ok(_) => Ok(true),
            Err(AuthError::Ended { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// One refresh at a time: a concurrent caller gets the outcome of the running one.
    async fn refresh(&self, grant: Arc<Grant>) -> Refreshed {
        let mut running = self.shared.join_or_start(grant);
        let outcome = running.wait_for(Option::is_some).await.ok().and_then(|done| done.clone());
        outcome.unwrap_or_else(|| {
            Err(AuthError::Setup { problem: "the refresh was cut off by shutting down".into() })
        })
    }

    async fn current(&self) -> Result<Option<String>, AuthError> {
        let Some(grant) = self.grant() else {
            return Ok(None);
        };
        if !grant.is_ending() || grant.refresh_token.is_none() {
            return Ok(Some(grant.access_token.expose().to_owned()));
        }
        match self.refresh(Arc::clone(&grant)).await {
            Ok(new) => Ok(Some(new.access_token.expose().to_owned())),
            Err(AuthError::Ended { .. }) => Ok(None),
            // It is still valid for a short time; the next call retries.
            Err(_) if !grant.has_ended() => Ok(Some(grant.access_token.expose().to_owned())),
            Err(error) => Err(error),
        }
    }
}

impl Authorizer for StoredTokens {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, AuthError>> {
        Box::pin(self.current())
    }

    fn refused<'a>(
        &'a self,
        status: u16,
        _www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, AuthError>> {
        Box::pin(async move {
            match status {
                401 if self.was_renewed_just_now() => Ok(true),
                401 => self.recover().await,
                // A refresh grants no more than before. Perhaps a person has allowed more since.
                _ => self.shared.reread(),
            }
        })
    }
}

/// Shows if there is a sign-in, and none of its data.
impl fmt::Debug for StoredTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTokens")
            .field("server", &shown(self.shared.login.server()))
            .field("grant", &self.grant().map(|_| "***"))
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn join_or_start(self: &Arc<Self>, grant: Arc<Grant>) -> watch::Receiver<Option<Refreshed>> {
        let mut state = self.state();
        if let Some(running) = &state.refresh {
            return running.clone();
        }
        let (done, running) = watch::channel(None);
        // A caller that looked before the last refresh ended comes late, not for a second one.
        if let Some(current) = &state.grant
            && current.access_token != grant.access_token
        {
            done.send_replace(Some(Ok(Arc::clone(current))));
            return running;
        }
        if let Some((at, error)) = &state.failed
            && at.elapsed() < RETRY_AFTER
        {
            done.send_replace(Some(Err(error.clone())));
            return running;
        }
        state.refresh = Some(running.clone());
        let clear = ClearRefresh(Arc::clone(self));
        self.tasks.spawn(async move {
            let outcome = clear.0.refresh(&grant).await;
            clear.0.finish(&grant, &outcome);
            drop(clear);
            done.send_replace(Some(outcome));
        });
        running
    }

    async fn refresh(&self, seen: &Grant) -> Refreshed {
        let server = self.login.server();
        let _lock = self.store.lock(server).await?;
        let Some(stored) = self.store.load(server)? else {
            let problem = "the user signed out".into();
            return Err(AuthError::Ended { server: shown(server), problem });
        };
        if stored.access_token != seen.access_token {
            // Another process was faster.
            return Ok(Arc::new(stored));
        }
        let new = self.login.refresh(&stored).await?;
        if let Err(error) = self.save(new.clone()).await {
            tracing::warn!(server = shown(server), %error, "could not store refreshed tokens");
        }
        Ok(Arc::new(new))
    }

    fn finish(&self, old: &Arc<Grant>, outcome: &Refreshed) {
        let server = shown(self.login.server());
        let mut state = self.state();
        match outcome {
            Ok(new) => {
                state.replace(Arc::clone(new));
                state.refreshed_at = Some(Instant::now());
                tracing::debug!(server, "refreshed the tokens");
            }
            Err(error @ AuthError::Ended { .. }) => {
                state.grant = None;
                state.ended = Some(Arc::clone(old));
                tracing::warn!(server, %error, "lost the sign-in");
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                tracing::warn!(server, %error, "could not refresh the tokens");
            }
        }
    }

    async fn save(&self, grant: Grant) -> Result<(), AuthError> {
        let (store, server) = (self.store.clone(), self.login.server().clone());
        tokio::task::spawn_blocking(move || store.save(&server, &grant))
            .await
            .unwrap_or_else(|error| Err(AuthError::Setup { problem: error.to_string() }))
    }

    /// Takes over what another process stored since. `false`: nothing new.
    fn reread(&self) -> Result<bool, AuthError> {
        let Some(stored) = self.store.load(self.login.server())? else {
            return Ok(false);
        };
        let mut state = self.state();
        let known = [&state.grant, &state.ended].into_iter().flatten();
        if known.into_iter().any(|known| known.access_token == stored.access_token) {
            return Ok(false);
        }
        state.replace(Arc::new(stored));
        Ok(true)
    }
}

impl State {
    fn replace(&mut self, grant: Arc<Grant>) {
        self.grant = Some(grant);
        self.ended = None;
        self.failed = None;
        self.renewed_at = Some(Instant::now());
        self.generation += 1;
    }
}

/// Lets the next refresh start, also when this one was cut off.
struct ClearRefresh(Arc<Shared>);

impl Drop for ClearRefresh {
    fn drop(&mut self) {
        self.0.state().refresh = None;
    }
}
