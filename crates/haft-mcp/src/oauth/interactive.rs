//! Tokens that a person is asked for: when there are none, and when they allow too little.

use std::{fmt, sync::Arc};

use tokio::sync::Mutex;

use super::{
    AuthError, Authorizer, BoxFuture, Browser, StoredTokens,
    login::{Asking, SignedIn, union},
};

/// Largest number of sign-ins before a server that is never satisfied is given up.
const LOGINS_MAX: u32 = 5;

/// Stored tokens, and a person to ask for better ones.
pub struct Interactive {
    tokens: StoredTokens,
    browser: Arc<dyn Browser>,
    /// Held while a person is asked, so that they are asked one thing at a time.
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    logins: u32,
    /// Scopes that were asked for here. Asking for them again would change nothing.
    asked: Vec<String>,
}

impl Interactive {
    /// Asks through `browser` when `tokens` are refused.
    pub fn new(tokens: StoredTokens, browser: impl Browser) -> Self {
        Self { tokens, browser: Arc::new(browser), progress: Mutex::default() }
    }

    /// Signs in now, whether or not there are tokens.
    pub async fn sign_in(&self) -> Result<(), AuthError> {
        let mut progress = self.progress.lock().await;
        *progress = Progress::default();
        self.ask(&mut progress, None, Asking::Discovered).await.map(|_| ())
    }

    async fn answer(&self, status: u16, challenge: Option<&str>) -> Result<bool, AuthError> {
        let before = self.tokens.generation();
        let mut progress = self.progress.lock().await;
        if self.tokens.generation() != before {
            return Ok(true);
        }
        match status {
            401 => {
                // Tokens refused right after a refresh need a person.
                if !self.tokens.was_refreshed_just_now()
                    && let Ok(true) = self.tokens.recover().await
                {
                    return Ok(true);
                }
                self.ask(&mut progress, challenge, Asking::Discovered).await
            }
            403 => match self.step_up(&progress, challenge) {
                Some(scopes) => self.ask(&mut progress, challenge, Asking::Exactly(scopes)).await,
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Everything allowed so far and what is missing, unless it was asked for already.
    fn step_up(&self, progress: &Progress, challenge: Option<&str>) -> Option<Vec<String>> {
        let challenge = self.tokens.login().challenge(challenge?);
        if !challenge.is_insufficient_scope() {
            return None;
        }
        let missing = challenge.scope?;
        if missing.split_whitespace().all(|scope| progress.asked.iter().any(|s| s == scope)) {
            return None;
        }
        let granted = self.tokens.grant();
        let granted = granted.as_ref().map_or(&[][..], |grant| grant.scopes());
        Some(union(&union(granted, &progress.asked.join(" ")), &missing))
    }

    async fn ask(
        &self,
        progress: &mut Progress,
        challenge: Option<&str>,
        asking: Asking,
    ) -> Result<bool, AuthError> {
        if progress.logins >= LOGINS_MAX {
            return Ok(false);
        }
        progress.logins += 1;
        let earlier = self.tokens.grant();
        let login = self.tokens.login();
        let SignedIn { grant, asked } =
            login.run(self.browser.as_ref(), challenge, asking, earlier.as_deref()).await?;
        progress.asked = union(&progress.asked, &asked.join(" "));
        self.tokens.adopt(grant).await?;
        Ok(true)
    }
}

impl Authorizer for Interactive {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, AuthError>> {
        self.tokens.token()
    }

    fn refused<'a>(
        &'a self,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, AuthError>> {
        Box::pin(self.answer(status, www_authenticate))
    }
}

impl fmt::Debug for Interactive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interactive").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}
