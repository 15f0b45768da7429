//! Selects the values of a configuration that are masked in descriptions of servers and tools.
//!
//! The log masks every value that may be a secret. In a description that would hurt: a server with
//! `NODE_ENV: production` may well describe its use in production. There a value counts if its name
//! marks it as a secret, or if it does not look like an ordinary word, path or address.

use super::model::{Config, Endpoint, LocalProgram, RemoteEndpoint};
use super::secret::{Masked, Opaque, ServerUrl};
use super::show::{client_secret, header_secrets, service_secrets};
use crate::redact::is_secret_name;

/// The longest word that people write.
const WORD_CHARS_MAX: usize = 20;
/// The longest number in a name such as `eu-west-1` or `2026-07-15`.
const NUMBER_CHARS_MAX: usize = 4;

/// The secrets that are masked in descriptions.
pub(super) fn secrets(config: &Config) -> Vec<String> {
    let mut secrets = service_secrets(config);
    secrets.extend(config.left_out.described.iter().map(|secret| secret.expose().to_owned()));
    for server in &config.servers {
        match &server.endpoint {
            Endpoint::Stdio(stdio) => {
                let env = stdio.env.iter();
                let env = env.filter_map(|(name, value)| Some((&**name, value.as_ref()?.expose())));
                secrets.extend(env.filter_map(|(name, value)| named(name, value)));
                secrets.extend(words(stdio.args.iter().chain([&stdio.command])));
            }
            Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => {
                secrets.extend(of_remote(remote));
            }
        }
        let settings = server.config.iter().flat_map(Opaque::texts);
        secrets.extend(settings.filter(|text| !is_ordinary(text)));
    }
    let fixed = config.tools.iter().flat_map(|tool| tool.overrides.secrets());
    secrets.extend(fixed.filter(|text| !is_ordinary(text)).cloned());
    for tool in &config.local {
        let env = tool.env.iter();
        let env = env.filter_map(|(name, value)| Some((&**name, value.as_ref()?.expose())));
        secrets.extend(env.filter_map(|(name, value)| named(name, value)));
        if let LocalProgram::Command { command, args, .. } = &tool.program {
            secrets.extend(words(command.iter().chain(args)));
        }
    }
    secrets
}

fn of_remote(RemoteEndpoint { url, headers, oauth }: &RemoteEndpoint) -> Vec<String> {
    let mut secrets = ServerUrl::secrets(url);
    secrets.extend(client_secret(oauth.as_ref()));
    for (name, value) in headers {
        let values = header_secrets(value).into_iter();
        secrets.extend(values.filter_map(|value| named(name, &value)));
    }
    secrets
}

fn named(name: &str, value: &str) -> Option<String> {
    (is_secret_name(name) || !is_ordinary(value)).then(|| value.to_owned())
}

fn words<'a>(words: impl Iterator<Item = &'a Masked>) -> impl Iterator<Item = String> {
    words.flat_map(|word| {
        let variables = word.variables().into_iter().filter(|value| !is_ordinary(value));
        variables.chain(word.literals().iter().cloned())
    })
}

/// Returns true if a value looks like words, a path or an address, as ordinary settings do.
fn is_ordinary(value: &str) -> bool {
    if value.contains("://") {
        return is_plain_url(value);
    }
    let is_path = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    is_path || value.split(|c: char| !c.is_ascii_alphanumeric()).all(is_word)
}

fn is_plain_url(value: &str) -> bool {
    url::Url::parse(value).is_ok_and(|url| {
        let is_plain = url.username().is_empty() && url.password().is_none();
        url.has_host() && is_plain && url.query().is_none()
    })
}

/// `production`, `INFO`, `Europe`, `2026`, or nothing between two separators.
fn is_word(piece: &str) -> bool {
    if piece.bytes().all(|byte| byte.is_ascii_digit()) {
        return piece.len() <= NUMBER_CHARS_MAX;
    }
    let rest = piece.get(1..).unwrap_or_default();
    let is_lower = rest.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_upper = piece.bytes().all(|byte| byte.is_ascii_uppercase());
    let starts = piece.starts_with(|c: char| c.is_ascii_alphabetic());
    piece.len() <= WORD_CHARS_MAX && starts && (is_lower || is_upper)
}

#[cfg(test)]
mod tests {
    use super::is_ordinary;

    #[test]
    fn words_paths_and_addresses_are_ordinary_and_tokens_are_not() {
        for value in [
            "production",
            "INFO",
            "Europe/Berlin",
            "eu-west-1",
            "2026-07-15",
            "/home/me/my-docs2x",
            "./data",
            "http://localhost:3000/api",
            "true",
        ] {
            assert!(is_ordinary(value), "{value}");
        }
        for value in [
            "canary-env-3f9a1c",
            "hunter2",
            "QWxhZGRpbjpvcGVu",
            "sk-abcdefgh12345678",
            "9f86d081884c7d65",
            "123456789",
            "https://user:word@host/",
            "https://host/?key=word",
            "correcthorsebatterystaple",
        ] {
            assert!(!is_ordinary(value), "{value}");
        }
    }
}
