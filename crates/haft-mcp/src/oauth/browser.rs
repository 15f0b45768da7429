//! The part of signing in that a person does.

use url::Url;

use super::{AuthError, BoxFuture, error::clip};

/// Shows a page to a person and learns where the person was sent back to.
pub trait Browser: Send + Sync + 'static {
    /// Where the authorization server shall send the person back to. Stays the same while this
    /// browser lives, because clients are registered with it.
    fn redirect(&self) -> Url;

    /// Lets a person sign in at `url` and returns the whole address, starting with `redirect`, to which the
    /// authorization server sent them back. It holds a code and must not be logged.
    fn authorize<'a>(
        &'a self,
        url: &'a Url,
        redirect: &'a Url,
    ) -> BoxFuture<'a, Result<String, AuthError>>;
}

/// The authorization server's parameters of the redirect.
pub(crate) struct Callback {
    pub(crate) code: String,
    pub(crate) state: String,
    pub(crate) issuer: Option<String>,
}

impl Callback {
    /// Reads an answer to the request that `asked` is.
    pub(crate) fn read(answer: &str, asked: &Url) -> Result<Self, AuthError> {
        let denied = |problem: &str| AuthError::Denied { problem: problem.into() };
        let answer = Url::parse(answer).map_err(|_| denied("the answer is not an address"))?;
        let state = parameter(&answer, "state").ok_or_else(|| denied("the answer has no state"))?;
        if parameter(asked, "state").as_ref() != Some(&state) {
            return Err(denied("the answer belongs to another sign-in"));
        }
        if let Some(error) = parameter(&answer, "error") {
            let more = parameter(&answer, "error_description").map(|more| format!(": {more}"));
            return Err(denied(&clip(&format!("{error}{}", more.unwrap_or_default()))));
        }
        let code = parameter(&answer, "code").ok_or_else(|| denied("the answer has no code"))?;
        Ok(Self { code, state, issuer: parameter(&answer, "iss") })
    }
}

pub(crate) fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str) -> Result<Callback, AuthError> {
        Callback::read(answer, &Url::parse("https://auth.example/?state=s1").unwrap())
    }

    #[test]
    fn an_answer_to_another_request_is_refused() {
        for answer in ["http://127.0.0.1/callback?code=c&state=s2", "http://127.0.0.1/?code=c"] {
            assert!(matches!(read(answer), Err(AuthError::Denied { .. })), "{answer}");
        }
    }

    #[test]
    fn a_refusal_has_a_reason() {
        let answer =
            "http://127.0.0.1/?state=s1&error=access_denied&error_description=not%20today%0A";
        assert_eq!(
            read(answer).err().unwrap().to_string(),
            "signing in was not completed: access_denied: not today "
        );
    }

    #[test]
    fn code_and_issuer_are_read() {
        let callback = read("http://127.0.0.1/?iss=https%3A%2F%2Fa&state=s1&code=c1").unwrap();
        assert_eq!((callback.code.as_str(), callback.issuer.as_deref()), ("c1", Some("https://a")));
    }
}
