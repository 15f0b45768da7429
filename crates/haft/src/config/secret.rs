//! Values that never print.

use std::fmt;

use super::node::Text;

/// A secret: `Debug` and `Display` print `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A text that is used as it is and shown with references in place of what variables held.
#[derive(Clone, PartialEq, Eq)]
pub struct Masked {
    text: Secret,
    shown: String,
}

impl Masked {
    /// The text to use.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    /// The text to show.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether showing it hides something.
    pub fn hides(&self) -> bool {
        self.expose() != self.shown
    }
}

impl From<Text> for Masked {
    fn from(text: Text) -> Self {
        let shown = text.shown.unwrap_or_else(|| text.text.clone());
        Self {
            text: Secret::new(text.text),
            shown,
        }
    }
}

impl From<&str> for Masked {
    fn from(text: &str) -> Self {
        Self {
            text: Secret::new(text),
            shown: text.to_owned(),
        }
    }
}

impl fmt::Debug for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown, f)
    }
}

impl fmt::Display for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// A server's address. Shown without its password and without the values of its query.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl(url::Url);

impl ServerUrl {
    /// Wraps a checked address.
    pub fn new(url: url::Url) -> Self {
        Self(url)
    }

    /// The address itself, for the one place that connects to it.
    pub fn expose(&self) -> &url::Url {
        &self.0
    }

    /// The secret parts: password and the values of the query.
    pub fn secrets(&self) -> Vec<String> {
        let password = self.0.password().map(ToOwned::to_owned);
        let query = self.0.query_pairs().map(|(_, value)| value.into_owned());
        password.into_iter().chain(query).collect()
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.0.clone();
        if url.password().is_some() && url.set_password(Some("***")).is_err() {
            return f.write_str("***");
        }
        if url.query().is_some() {
            let masked: Vec<String> = url
                .query_pairs()
                .map(|(name, _)| format!("{name}=***"))
                .collect();
            url.set_query(Some(&masked.join("&")));
        }
        f.write_str(url.as_str())
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
