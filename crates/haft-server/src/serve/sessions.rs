//! Sessions of the web console: a cookie that stands for the key it was exchanged for.
//!
//! The page never keeps the key. A session ends with its key, after a time without use, or when the user signs
//! out. Only a hash of each cookie is stored, so the table cannot be used to sign in.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::access::Caller;
use super::problem::Problem;

/// Without use for this long, a session ends.
const IDLE_MAX: Duration = Duration::from_hours(8);
/// The number of sessions. The one unused for longest makes room.
const SESSIONS_MAX: usize = 1000;
/// The time within which a sign-in link is used.
const LINK_AGE_MAX: Duration = Duration::from_mins(2);
/// The number of links that wait to be used.
const LINKS_MAX: usize = 16;

const COOKIE_NAME: &str = "haft_session";
/// Changes by cookie carry this header. Another origin cannot add it without a preflight, which is refused.
const CONSOLE_HEADER: HeaderName = HeaderName::from_static("x-haft-console");

type Digest = [u8; 32];

/// The sessions of a service.
#[derive(Debug, Default)]
pub struct Sessions {
    open: Mutex<HashMap<Digest, Session>>,
    links: Mutex<HashMap<Digest, Link>>,
}

#[derive(Debug)]
struct Session {
    caller: Caller,
    used: Instant,
}

#[derive(Debug)]
struct Link {
    caller: Caller,
    made: Instant,
}

impl Sessions {
    /// Opens a session for the holder of a key and returns its cookie.
    pub fn open(&self, caller: Caller, is_tls: bool) -> Result<HeaderValue, Problem> {
        let token = random()?;
        let mut open = self.open.lock();
        open.retain(|_, session| session.is_open());
        if open.len() >= SESSIONS_MAX
            && let Some(oldest) = open.iter().min_by_key(|(_, it)| it.used).map(|(id, _)| *id)
        {
            open.remove(&oldest);
        }
        open.insert(digest(&token), Session { caller, used: Instant::now() });
        cookie(&token, is_tls, IDLE_MAX)
    }

    /// Closes the session of a request and returns the cookie that removes it.
    pub fn close(&self, headers: &HeaderMap, is_tls: bool) -> Result<HeaderValue, Problem> {
        if let Some(token) = token(headers) {
            self.open.lock().remove(&digest(token));
        }
        cookie("", is_tls, Duration::ZERO)
    }

    /// Makes a token that opens one session for the same key, once and soon.
    pub fn link(&self, caller: Caller) -> Result<String, Problem> {
        let token = random()?;
        let mut links = self.links.lock();
        links.retain(|_, link| link.made.elapsed() < LINK_AGE_MAX);
        if links.len() >= LINKS_MAX {
            return Err(Problem::too_many_requests("too many sign-in links wait", LINK_AGE_MAX)
                .remedy("use one of them, or wait until they expire"));
        }
        links.insert(digest(&token), Link { caller, made: Instant::now() });
        Ok(token)
    }

    /// Returns the caller of a link, which cannot be used again.
    pub fn follow_link(&self, token: &str) -> Option<Caller> {
        let link = self.links.lock().remove(&digest(token))?;
        let is_valid = link.made.elapsed() < LINK_AGE_MAX && !link.caller.ended.is_cancelled();
        is_valid.then_some(link.caller)
    }

    /// Returns the caller of a request that carries the cookie of an open session. A change without the
    /// console's header is refused: a page of another origin may have caused it.
    pub(super) fn caller(
        &self,
        headers: &HeaderMap,
        method: &Method,
    ) -> Result<Option<Caller>, Problem> {
        let Some(token) = token(headers) else { return Ok(None) };
        let id = digest(token);
        let mut open = self.open.lock();
        let Some(session) = open.get_mut(&id) else { return Ok(None) };
        if !session.is_open() {
            open.remove(&id);
            return Ok(None);
        }
        let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if !is_read && !headers.contains_key(CONSOLE_HEADER) {
            return Err(Problem::forbidden(
                "a change by session cookie needs the header `X-Haft-Console`",
            )
            .remedy("use the console, or send a key as `X-API-Key`"));
        }
        session.used = Instant::now();
        Ok(Some(session.caller.clone()))
    }
}

impl Session {
    fn is_open(&self) -> bool {
        self.used.elapsed() < IDLE_MAX && !self.caller.ended.is_cancelled()
    }
}

fn random() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::unavailable(format!("the system gives no random numbers: {error}"))
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn digest(token: &str) -> Digest {
    Sha256::digest(token.as_bytes()).into()
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE_NAME && !value.is_empty()).then_some(value)
    })
}

fn cookie(token: &str, is_tls: bool, age: Duration) -> Result<HeaderValue, Problem> {
    let secure = if is_tls { "; Secure" } else { "" };
    let age = age.as_secs();
    let text =
        format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}");
    HeaderValue::from_str(&text).map_err(|_| Problem::internal())
}
