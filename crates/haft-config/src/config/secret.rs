//! Values that never print.

use std::fmt;

pub use haft_text::Secret;
use serde_json::{Value, json};

use super::node::Text;
use crate::redact::{MASK, is_secret_name, mask_shapes};

/// A string with a masked form: values of variables show as their reference, and likely secrets are
/// hidden.
#[derive(Clone, PartialEq, Eq)]
pub struct Masked {
    text: Secret,
    /// With references.
    written: String,
    shown: String,
    /// The literals that `shown` masks.
    literals: Vec<String>,
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

    /// The parts that showing the text hides.
    pub fn hidden(&self) -> Vec<String> {
        let mut hidden = self.variables();
        hidden.extend(self.literals.iter().cloned());
        hidden
    }

    /// The secrets that are written into the text itself.
    pub(super) fn literals(&self) -> &[String] {
        &self.literals
    }

    /// The values of variables in the string.
    pub(super) fn variables(&self) -> Vec<String> {
        let mut hidden = Vec::new();
        let (mut text, mut shown) = (self.expose(), self.written.as_str());
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

    /// Words of a command line. Secrets that are written there are masked: the value of a flag such as
    /// `--token` or of a word such as `API_KEY=...`, and what looks like a token or a password.
    pub(super) fn command_line(words: impl IntoIterator<Item = Text>) -> Vec<Self> {
        let mut masked: Vec<Self> = Vec::new();
        for word in words {
            let follows_flag = masked.last().is_some_and(|flag| is_secret_flag(&flag.written));
            masked.push(Self::word(word, follows_flag));
        }
        masked
    }

    /// An address that may hold a password. Several hosts in it make it more than a URL.
    pub(super) fn address(text: Text) -> Self {
        let mut masked = Self::from(text);
        masked.literals = passwords(masked.expose());
        masked.shown = without_secrets(&masked.written);
        masked
    }

    fn word(text: Text, follows_flag: bool) -> Self {
        let mut word = Self::from(text);
        let written = &word.written;
        let start = match written.find(['=', ':']) {
            Some(at) if is_secret_name(written[..at].trim_start_matches('-').trim()) => at + 1,
            _ if follows_flag && !written.starts_with('-') => 0,
            _ => written.len(),
        };
        let value = written[start..].trim();
        // A reference is shown unmodified; its value is hidden anyway.
        let is_reference = value.starts_with("${") && value.ends_with('}');
        if value.is_empty() || is_reference {
            let (shown, literals) = mask_shapes(written);
            (word.shown, word.literals) = (shown.into_owned(), literals);
        } else {
            // `Authorization: Bearer abc`: the token alone is as secret as the whole value.
            let token = value.rsplit(' ').next().unwrap_or_default();
            let before = written.len() - written[start..].trim_start().len();
            word.shown = format!("{}{MASK}", &written[..before]);
            word.literals = vec![value.to_owned(), token.to_owned()];
        }
        word
    }
}

/// The passwords in an address: before the `@`, and in its query.
fn passwords(text: &str) -> Vec<String> {
    let (address, query) = text.split_once('?').unwrap_or((text, ""));
    let user = address.find("//").zip(address.rfind('@'));
    let user = user.and_then(|(start, end)| address.get(start + 2..end)).unwrap_or_default();
    let password = user.split_once(':').map(|(_, password)| password);
    let named = query.split('&').filter_map(|pair| pair.strip_prefix("password="));
    let found = password.into_iter().chain(named).filter(|it| !it.is_empty());
    found.map(ToOwned::to_owned).collect()
}

/// Returns true if a word marks the next one as a secret.
fn is_secret_flag(word: &str) -> bool {
    word.starts_with('-') && !word.contains('=') && is_secret_name(word.trim_start_matches('-'))
}

impl From<Text> for Masked {
    fn from(text: Text) -> Self {
        let written = text.shown.unwrap_or_else(|| text.text.clone());
        let (text, shown) = (Secret::new(text.text), written.clone());
        Self { text, written, shown, literals: Vec::new() }
    }
}

impl From<&str> for Masked {
    fn from(text: &str) -> Self {
        Self::from(Text { text: text.to_owned(), shown: None })
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

    /// The address itself. Call it only to connect.
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

/// The part after the host of an address.
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

/// Settings that are passed to a server. They may hold anything, so their values never print.
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

    #[test]
    fn secrets_that_are_written_into_a_command_line_are_masked() {
        let shown = |words: &[&str]| {
            let text = |word: &&str| Text { text: (*word).into(), shown: None };
            let words = Masked::command_line(words.iter().map(text));
            let hidden: Vec<String> = words.iter().flat_map(Masked::hidden).collect();
            let shown: Vec<&str> = words.iter().map(Masked::shown).collect();
            (shown.join(" "), hidden)
        };
        for (words, line, secret) in [
            (&["run", "--token=s3cret"][..], "run --token=***", "s3cret"),
            (&["--api-key", "s3cret", "more"], "--api-key *** more", "s3cret"),
            (&["-e", "GITHUB_TOKEN=s3cret"], "-e GITHUB_TOKEN=***", "s3cret"),
            (
                &["--header", "Authorization: Bearer s3cret"],
                "--header Authorization: ***",
                "s3cret",
            ),
            (&["postgres://me:s3cret@host/db"], "postgres://me:***@host/db", "s3cret"),
            (&["x", "sk-abcdefgh12345678"], "x ***", "sk-abcdefgh12345678"),
        ] {
            let (found, hidden) = shown(words);
            assert_eq!(found, line);
            assert!(hidden.iter().any(|it| it == secret), "{hidden:?}");
        }
        for words in
            [&["--tokens-max", "5000"][..], &["--verbose", "--token"], &["-y", "server@1.2.3"]]
        {
            assert_eq!(shown(words), (words.join(" "), Vec::new()));
        }
    }

    #[test]
    fn a_reference_in_a_command_line_stays() {
        let text = Text { text: "--token=s3cret".into(), shown: Some("--token=${A}".into()) };
        let words = Masked::command_line([text]);
        assert_eq!((words[0].shown(), words[0].hidden()), ("--token=${A}", vec!["s3cret".into()]));
    }
}
