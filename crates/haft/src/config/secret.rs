//! Values that never print.

use std::fmt;

use serde_json::{Value, json};

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

    /// What variables put into the text: the parts that showing it hides.
    pub fn hidden(&self) -> Vec<String> {
        let mut hidden = Vec::new();
        let (mut text, mut shown) = (self.expose(), self.shown.as_str());
        while let Some((before, rest)) = shown.split_once("${") {
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            let literal = after.split_once("${").map_or(after, |(literal, _)| literal);
            text = text.strip_prefix(before).unwrap_or(text);
            let end = if literal.is_empty() && after.is_empty() {
                text.len()
            } else {
                text.find(literal).unwrap_or(text.len())
            };
            hidden.push(text[..end].to_owned());
            (text, shown) = (&text[end..], after);
        }
        hidden.retain(|part| !part.is_empty());
        hidden
    }
}

impl From<Text> for Masked {
    fn from(text: Text) -> Self {
        let shown = text.shown.unwrap_or_else(|| text.text.clone());
        Self { text: Secret::new(text.text), shown }
    }
}

impl From<&str> for Masked {
    fn from(text: &str) -> Self {
        Self { text: Secret::new(text), shown: text.to_owned() }
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

/// A server's address. Shown without password (or token in the user's place) and the values of its
/// query, and with references in place of what variables put into its path.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    url: url::Url,
    shown: String,
}

impl ServerUrl {
    /// Wraps a checked address.
    pub fn new(url: url::Url) -> Self {
        let shown = masked_url(&url);
        Self { url, shown }
    }

    /// Wraps a checked address that was written as `text`.
    pub(super) fn written(url: url::Url, text: &Text) -> Self {
        let references = text.shown.as_deref().filter(|shown| path_of(shown).contains("${"));
        match references {
            Some(shown) => Self { shown: without_secrets(shown), url },
            None => Self::new(url),
        }
    }

    /// The address itself, for the one place that connects to it.
    pub fn expose(&self) -> &url::Url {
        &self.url
    }

    /// The secret parts: the password, or else the user (which is then a token), and the values of
    /// the query.
    pub fn secrets(&self) -> Vec<String> {
        let user = Some(self.url.username()).filter(|user| !user.is_empty());
        let password = self.url.password().or(user).map(ToOwned::to_owned);
        let query = self.url.query_pairs().map(|(_, value)| value.into_owned());
        password.into_iter().chain(query).collect()
    }
}

fn masked_url(url: &url::Url) -> String {
    let mut url = url.clone();
    // A user without a password is a token.
    let masked = if url.password().is_some() {
        url.set_password(Some("***"))
    } else if url.username().is_empty() {
        Ok(())
    } else {
        url.set_username("***")
    };
    if masked.is_err() {
        return "***".to_owned();
    }
    if url.query().is_some() {
        let masked: Vec<String> = url
            .query_pairs()
            .map(
                |(name, value)| {
                    if value.is_empty() { "***".to_owned() } else { format!("{name}=***") }
                },
            )
            .collect();
        url.set_query(Some(&masked.join("&")));
    }
    url.into()
}

/// What follows the host in an address as it was written.
fn path_of(shown: &str) -> &str {
    let rest = match shown.split_once("://") {
        Some((_, rest)) => rest,
        // The variable at the start holds scheme and host.
        None => shown.split_once('}').map_or(shown, |(_, rest)| rest),
    };
    rest.find('/').map_or("", |at| &rest[at..])
}

/// An address as it was written, without what may be a secret: for one that cannot be parsed, or
/// that has references in it. What stands before the `@` may be a password.
pub(super) fn without_secrets(shown: &str) -> String {
    let (address, query) = match shown.split_once('?') {
        Some((address, _)) => (address, "?***"),
        None => (shown, ""),
    };
    match (address.find("//"), address.rfind('@')) {
        (Some(start), Some(end)) if start < end => {
            format!("{}//***{}{query}", &address[..start], &address[end..])
        }
        _ => format!("{address}{query}"),
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Settings that are handed to a server. They may hold anything, so their texts never print.
#[derive(Clone, PartialEq)]
pub struct Opaque(Value);

impl Opaque {
    /// Wraps the settings.
    pub fn new(value: Value) -> Self {
        Self(value)
    }

    /// The settings themselves, for the server.
    pub fn expose(&self) -> &Value {
        &self.0
    }

    /// Every text in the settings.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        collect_texts(&self.0, &mut texts);
        texts
    }

    /// The settings with every text masked.
    pub fn shown(&self) -> Value {
        masked(&self.0)
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown())
    }
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(map) => map.values().for_each(|value| collect_texts(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn masked(value: &Value) -> Value {
    match value {
        Value::String(_) => json!("***"),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), masked(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hidden_parts_are_what_the_variables_held() {
        let hidden = |text: &str, shown: &str| {
            let text = Text { text: text.into(), shown: Some(shown.into()) };
            Masked::from(text).hidden()
        };
        assert_eq!(hidden("abc", "abc"), Vec::<String>::new());
        assert_eq!(hidden("s3cret", "${A}"), ["s3cret"]);
        assert_eq!(hidden("echo s3cret >&2", "echo ${A} >&2"), ["s3cret"]);
        assert_eq!(hidden("--a=one,two", "--a=${A},${B}"), ["one", "two"]);
    }
}
