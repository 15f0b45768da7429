//! Against web pages that reach for this server: which `Host` and `Origin` a request may have.
//!
//! A page that rebinds its name to this machine's address makes the browser send that name as the host,
//! never an IP address. So IP literals and `localhost` are fine, and names only where they are listed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Request};

use super::cors::Page;
use super::listener::Connection;
use super::problem::Problem;

/// The longest a name can be in DNS.
const NAME_CHARS_MAX: usize = 253;

/// Which names and web pages are let in besides `localhost`, IP addresses and the server's own pages.
#[derive(Debug, Clone, Default)]
pub struct GuardSettings {
    /// Names under which this server is reached, without a port.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may use it, such as `https://app.example.com`.
    pub allowed_origins: Vec<String>,
}

/// The checks, ready to be made.
#[derive(Debug)]
pub(super) struct Guard {
    hosts: Vec<Host>,
    origins: Vec<String>,
}

impl Guard {
    pub(super) fn new(settings: &GuardSettings) -> Self {
        let hosts = settings.allowed_hosts.iter().filter_map(|text| {
            let authority = Authority::parse(text);
            if authority.is_none() {
                tracing::warn!(
                    "`{text}` in the allowed hosts is not a valid host and allows nothing"
                );
            }
            Some(authority?.host)
        });
        let origins = settings.allowed_origins.iter();
        Self {
            hosts: hosts.collect(),
            origins: origins.map(|it| it.trim_end_matches('/').to_owned()).collect(),
        }
    }

    /// Checks that a request may come in at all. Returns the page of another origin that makes it.
    pub(super) fn check<B>(
        &self,
        request: &Request<B>,
        connection: &Connection,
    ) -> Result<Option<Page>, Problem> {
        let host = host(request)?;
        if !self.allows(&host.host) {
            return Err(Problem::new(
                axum::http::StatusCode::FORBIDDEN,
                "ForeignHost",
                "The host is not allowed",
                "`Host` is neither an IP address nor `localhost` nor in `api.allowed_hosts`",
            )
            .remedy("use the server's IP address, or add the name to `api.allowed_hosts` of the configuration"));
        }
        let Some(origin) = single(request.headers(), &ORIGIN)? else {
            return Ok(None);
        };
        if is_same_origin(origin, &host, connection.is_tls) {
            return Ok(None);
        }
        if self.allows_origin(origin) {
            return Ok(request.headers().get(ORIGIN).cloned().map(Page));
        }
        Err(Problem::new(
            axum::http::StatusCode::FORBIDDEN,
            "ForeignOrigin",
            "The web page is not allowed",
            "the request comes from a web page of another origin",
        )
        .remedy("add the page's origin to the allowed origins"))
    }

    fn allows(&self, host: &Host) -> bool {
        match host {
            Host::Ip(_) => true,
            Host::Name(name) => name == "localhost" || self.hosts.contains(host),
        }
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let is_it = |allowed: &String| {
            // Other schemes than http have origins too, such as those of browser extensions.
            let is_same_page = || Some(Origin::parse(allowed)? == Origin::parse(origin)?);
            allowed.eq_ignore_ascii_case(origin) || is_same_page() == Some(true)
        };
        // `null` is what every sandboxed page sends, so listing it would let in all of them.
        origin != "null" && self.origins.iter().any(is_it)
    }
}

/// The addressed host. HTTP/2 and requests in absolute form have it in the address, and if both are present, they
/// must agree: two readers might choose differently.
fn host<B>(request: &Request<B>) -> Result<Authority, Problem> {
    let header = single(request.headers(), &HOST)?;
    let address = request.uri().authority().map(axum::http::uri::Authority::as_str);
    let parse = |text: &str| {
        Authority::parse(text).ok_or_else(|| Problem::bad_request("the host cannot be read"))
    };
    match (header.map(parse).transpose()?, address.map(parse).transpose()?) {
        (Some(header), Some(address)) if header != address => {
            Err(Problem::bad_request("`Host` and the request's address name different hosts"))
        }
        (Some(host), _) => Ok(host),
        (None, Some(host)) if request.version() >= axum::http::Version::HTTP_2 => Ok(host),
        (None, _) => Err(Problem::bad_request("there is no `Host`")),
    }
}

/// A header that must not be there twice.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(Some)
            .map_err(|_| Problem::bad_request(format!("`{name}` cannot be read"))),
        (Some(_), Some(_)) => Err(Problem::bad_request(format!("`{name}` is there twice"))),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    /// In lower case, without the dot at the end.
    Name(String),
}

#[derive(Debug, PartialEq, Eq)]
struct Authority {
    host: Host,
    port: Option<u16>,
}

impl Authority {
    /// `name`, `1.2.3.4` or `[::1]`, and perhaps a port. Anything else, such as a user's name, is refused.
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let host = Host::Ip(address.parse::<Ipv6Addr>().ok()?.into());
            (host, if rest.is_empty() { "" } else { rest.strip_prefix(':')? })
        } else {
            let (name, port) = text.split_once(':').unwrap_or((text, ""));
            (Host::parse(name)?, port)
        };
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = if port.is_empty() { None } else { Some(port.parse().ok()?) };
        is_port.then_some(Self { host, port })
    }
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Self::Ip(address.into()));
        }
        let is_name = (1..=NAME_CHARS_MAX).contains(&name.len())
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it));
        is_name.then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

/// The origin of a web page.
#[derive(Debug, PartialEq, Eq)]
struct Origin {
    is_https: bool,
    host: Host,
    port: u16,
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_https = scheme.eq_ignore_ascii_case("https");
        if !is_https && !scheme.eq_ignore_ascii_case("http") {
            return None;
        }
        let Authority { host, port } = Authority::parse(rest)?;
        Some(Self { is_https, host, port: port.unwrap_or(default_port(is_https)) })
    }
}

/// Returns true if a page was served by this server itself. Without TLS here there may be a proxy that has it, so the
/// page's scheme does not matter.
fn is_same_origin(origin: &str, host: &Authority, is_tls: bool) -> bool {
    Origin::parse(origin).is_some_and(|origin| {
        let port = host.port.unwrap_or(default_port(origin.is_https));
        origin.host == host.host && origin.port == port && (origin.is_https || !is_tls)
    })
}

fn default_port(is_https: bool) -> u16 {
    if is_https { 443 } else { 80 }
}
