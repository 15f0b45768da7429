//! `oauth` of a remote server: what its grant needs must be there, what contradicts itself is refused.

use url::{Host, Url};

use crate::config::oauth::{ClientSecret, OauthConfig, OauthGrant};
use crate::config::place::{At, Place, Problems};
use crate::config::raw_oauth::{RawOauth, SecretVariable};

/// The most scopes.
const SCOPES_MAX: usize = 100;

pub(super) fn compile(server: &str, raw: &At<RawOauth>, problems: &mut Problems) -> OauthConfig {
    let place = &raw.place;
    let raw = raw.value.clone();
    let grant = raw.grant.as_ref().map_or(OauthGrant::AuthorizationCode, |at| at.value);
    check_client(server, &raw, grant, place, problems);
    check_scopes(raw.scopes.as_ref(), problems);
    check_issuer(raw.issuer.as_ref(), problems);
    OauthConfig {
        grant,
        client_metadata_url: raw.client_metadata_url.and_then(|at| document(&at, problems)),
        client_id: raw.client_id.map(|at| at.value),
        client_secret: raw.client_secret_env.and_then(|at| secret(at.value)),
        scopes: raw.scopes.map(|at| at.value).unwrap_or_default(),
        issuer: raw.issuer.map(|at| at.value),
    }
}

/// A variable without a value was already reported.
fn secret(SecretVariable { name, value }: SecretVariable) -> Option<ClientSecret> {
    Some(ClientSecret { variable: name, value: value? })
}

fn check_client(
    server: &str,
    raw: &RawOauth,
    grant: OauthGrant,
    place: &Place,
    problems: &mut Problems,
) {
    let is_machine = grant == OauthGrant::ClientCredentials;
    let is_missing =
        |key: &'static str, is_set: bool| !is_set && !raw.broken.contains(&key) && is_machine;
    let needs = [
        (
            "client_id",
            raw.client_id.is_some(),
            "write the id of a client that is registered with the authorization server",
        ),
        (
            "client_secret_env",
            raw.client_secret_env.is_some(),
            "name the environment variable that holds the client's secret",
        ),
    ];
    for (key, _, remedy) in needs.into_iter().filter(|(key, is_set, _)| is_missing(key, *is_set)) {
        let problem = format!(
            "`oauth` of server `{server}` has no `{key}`, which `grant: client_credentials` needs"
        );
        problems.error(place, problem, remedy);
    }
    if let Some(id) = raw.client_id.as_ref().filter(|at| !is_client_id(&at.value)) {
        problems.error(
            &id.place,
            "the `client_id` is empty or has control characters",
            "write the id that the authorization server gave the client",
        );
    }
    let with_id_only = [
        ("client_secret_env", raw.client_secret_env.as_ref().map(|at| &at.place)),
        ("issuer", raw.issuer.as_ref().map(|at| &at.place)),
    ];
    for (key, place) in with_id_only.into_iter().filter_map(|(key, at)| Some((key, at?))) {
        if raw.client_id.is_none() && !raw.broken.contains(&"client_id") && !is_machine {
            problems.error(
                place,
                format!("`{key}` has no effect without `client_id`"),
                "add `client_id`, or delete it",
            );
        }
    }
    if let Some(url) = &raw.client_metadata_url {
        if is_machine {
            problems.error(
                &url.place,
                "`client_metadata_url` has no effect with `grant: client_credentials`",
                "delete it",
            );
        } else if raw.client_id.is_some() {
            problems.error(
                &url.place,
                "`client_id` and `client_metadata_url` are both given",
                "keep one: each identifies Haft to the authorization server",
            );
        }
    }
}

fn is_client_id(id: &str) -> bool {
    !id.is_empty() && !id.chars().any(char::is_control)
}

/// The address is the client id (Client ID Metadata Documents). Haft never opens it itself.
fn document(At { value, place }: &At<String>, problems: &mut Problems) -> Option<Url> {
    let is_plain = |url: &Url| {
        let is_open = url.username().is_empty() && url.password().is_none();
        // The parser has removed dot segments, which the rules forbid: what is left must be what is written.
        is_open && url.fragment().is_none() && url.path() != "/" && url.as_str() == value
    };
    match Url::parse(value) {
        Ok(url) if url.scheme() == "https" && url.has_host() && is_plain(&url) => Some(url),
        _ => {
            problems.error(
                place,
                "`client_metadata_url` is not the address of a client metadata document",
                "write an https: address with a path, without user name, fragment and `..`, such as \
                 https://example.com/haft.json",
            );
            None
        }
    }
}

fn check_scopes(raw: Option<&At<Vec<String>>>, problems: &mut Problems) {
    let Some(At { value: scopes, place }) = raw else { return };
    // RFC 6749, 3.3.
    let is_token = |scope: &String| {
        !scope.is_empty()
            && scope.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
    };
    if scopes.len() > SCOPES_MAX {
        problems.error(
            place,
            format!("`scopes` has more than {SCOPES_MAX} entries"),
            "ask for fewer",
        );
    }
    if !scopes.iter().all(is_token) {
        problems.error(
            place,
            "`scopes` has an entry that is not a scope",
            "write one scope per entry, without spaces, such as [read, write]",
        );
    }
}

fn check_issuer(raw: Option<&At<String>>, problems: &mut Problems) {
    let Some(At { value, place }) = raw else { return };
    let is_loopback = |url: &Url| match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_issuer =
        |url: &Url| url.scheme() == "https" || url.scheme() == "http" && is_loopback(url);
    if !Url::parse(value).is_ok_and(|url| is_issuer(&url)) {
        problems.error(
            place,
            "`issuer` is not the address of an authorization server",
            "write its `issuer`, an https: address",
        );
    }
}
