//! OAuth sign-ins that wait for a browser to come back to this service.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft::oauth::{AuthError, BoxFuture, Browser, Interactive, Login, StoredTokens, TokenStore};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use url::Url;

/// The path that authorization servers send browsers back to.
pub(crate) const CALLBACK_PATH: &str = "/oauth/callback";
/// Time limit for the person in the browser.
const WAIT_MAX: Duration = Duration::from_mins(5);
/// The number of sign-ins that wait at the same time.
const WAITING_MAX: usize = 32;

/// The sign-ins of a service.
#[derive(Debug, Default)]
pub struct SignIns {
    tasks: TaskTracker,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    /// By the `state` of the authorization request.
    waiting: HashMap<String, oneshot::Sender<String>>,
    /// By the name of the server.
    states: HashMap<String, SignInState>,
}

/// The state of a server's last sign-in.
#[derive(Debug, Clone)]
pub(crate) enum SignInState {
    /// The browser has not come back yet.
    Waiting,
    /// The tokens are stored.
    SignedIn,
    /// There are no new tokens.
    Failed(SignInProblem),
}

/// The reason why a sign-in failed.
#[derive(Debug, Clone)]
pub(crate) struct SignInProblem {
    pub(crate) message: String,
    pub(crate) remedy: Option<String>,
}

impl SignIns {
    /// Begins a sign-in and returns the address for the browser. `then` runs after the tokens are stored.
    pub(crate) async fn begin(
        &self,
        server: &str,
        login: Login,
        store: TokenStore,
        redirect: Url,
        then: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Url, SignInProblem> {
        let tokens = StoredTokens::new(login, store, self.tasks.clone())?;
        let (shown, address) = oneshot::channel();
        let table = Arc::clone(&self.table);
        let browser = ReturningBrowser {
            redirect,
            table: Arc::clone(&table),
            shown: Mutex::new(Some(shown)),
        };
        let server = server.to_owned();
        table.lock().states.insert(server.clone(), SignInState::Waiting);
        let (failed, failure) = oneshot::channel();
        self.tasks.spawn(async move {
            let state = match Interactive::new(tokens, browser).sign_in().await {
                Ok(()) => {
                    then.await;
                    SignInState::SignedIn
                }
                Err(error) => {
                    let problem = SignInProblem::from(error);
                    // Still received while the address is not known.
                    let _ = failed.send(problem.clone());
                    SignInState::Failed(problem)
                }
            };
            table.lock().states.insert(server, state);
        });
        // The browser drops its sender when the sign-in fails before there is an address.
        match address.await {
            Ok(url) => Ok(url),
            Err(_) => Err(failure.await.unwrap_or_else(|_| SignInProblem {
                message: "the sign-in ended without an answer".to_owned(),
                remedy: None,
            })),
        }
    }

    /// Hands over the address that a browser came back with. Returns false if no sign-in waits for it.
    pub(crate) fn returned(&self, query: &str) -> bool {
        let state = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "state");
        let Some((_, state)) = state else { return false };
        let waiting = self.table.lock().waiting.remove(&*state);
        waiting.is_some_and(|waiting| waiting.send(query.to_owned()).is_ok())
    }

    /// The state of a server's last sign-in.
    pub(crate) fn state(&self, server: &str) -> Option<SignInState> {
        self.table.lock().states.get(server).cloned()
    }

    /// Forgets the last sign-in of a server.
    pub(crate) fn forget(&self, server: &str) {
        self.table.lock().states.remove(server);
    }
}

/// A browser that comes back to this service.
struct ReturningBrowser {
    redirect: Url,
    table: Arc<Mutex<Table>>,
    shown: Mutex<Option<oneshot::Sender<Url>>>,
}

impl Browser for ReturningBrowser {
    fn redirect(&self) -> Url {
        self.redirect.clone()
    }

    fn authorize<'a>(
        &'a self,
        url: &'a Url,
        redirect: &'a Url,
    ) -> BoxFuture<'a, Result<String, AuthError>> {
        Box::pin(async move {
            let state = url.query_pairs().find(|(key, _)| key == "state");
            // Without a state, any page could complete the sign-in.
            let Some(state) =
                state.map(|(_, state)| state.into_owned()).filter(|it| !it.is_empty())
            else {
                let problem = "the authorization request has no `state`".to_owned();
                return Err(AuthError::Setup { problem });
            };
            let (sender, returned) = oneshot::channel();
            {
                let mut table = self.table.lock();
                if table.waiting.len() >= WAITING_MAX {
                    let problem = "too many sign-ins wait for a browser".to_owned();
                    return Err(AuthError::Setup { problem });
                }
                table.waiting.insert(state.clone(), sender);
            }
            if let Some(shown) = self.shown.lock().take() {
                let _ = shown.send(url.clone());
            }
            let query = tokio::time::timeout(WAIT_MAX, returned).await;
            self.table.lock().waiting.remove(&state);
            match query {
                Ok(Ok(query)) => {
                    let mut address = redirect.clone();
                    address.set_query(Some(&query));
                    Ok(address.into())
                }
                Ok(Err(_)) | Err(_) => Err(AuthError::Timeout { after: WAIT_MAX }),
            }
        })
    }
}

impl From<AuthError> for SignInProblem {
    fn from(error: AuthError) -> Self {
        Self { message: error.to_string(), remedy: error.remedy() }
    }
}
