//! Which addresses may be asked while signing in.
//!
//! A server names the addresses of its metadata and its authorization server. A hostile one could
//! name something inside our network, so only public addresses over https are asked, unless the
//! person who configured the server already pointed into that network.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use url::{Host, Url};

use super::AuthError;
use crate::http_client::{Resolve, Resolving};

/// The variables in which the HTTP client looks for a proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The addresses that may be contacted on behalf of one server.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// Hosts that may have any address: the server's own, those the caller allows, and proxies.
    trusted: Vec<String>,
    /// The neighbourhood the server's own address literally is in.
    home: Reach,
}

/// The range of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Public,
    Private,
    Loopback,
    /// Link-local, multicast, unspecified, reserved: never a sign-in server.
    Special,
}

impl Guard {
    pub(crate) fn new(server: &Url, allowed_hosts: &[String]) -> Self {
        let trusted = server.host_str().map(normal).into_iter();
        let trusted = trusted.chain(allowed_hosts.iter().map(|host| normal(host)));
        Self {
            trusted: trusted.collect(),
            home: server.host().as_ref().map_or(Reach::Public, literal),
        }
    }

    /// A proxied request resolves the proxy's name, which often has a private address.
    pub(crate) fn with_proxies(mut self) -> Self {
        let proxies = PROXY_VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
        self.trusted.extend(proxies.filter_map(|proxy| {
            let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
            Url::parse(&proxy).ok()?.host_str().map(normal)
        }));
        self
    }

    /// Refuses an address by its text, before anything is resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<(), AuthError> {
        let refuse =
            |problem: &str| Err(AuthError::Address { url: shown(url), problem: problem.into() });
        let Some(host) = url.host() else {
            return refuse("it names no host");
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("it holds a user name or password");
        }
        let reach = literal(&host);
        match url.scheme() {
            "https" => {}
            "http" if reach == Reach::Loopback && self.home == Reach::Loopback => {}
            _ => return refuse("it is not https"),
        }
        let address = match host {
            Host::Domain(_) if reach == Reach::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Host::Domain(_) => return Ok(()),
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
        };
        if self.allows(url.host_str().unwrap_or_default(), address) {
            return Ok(());
        }
        refuse("its address is not public")
    }

    fn allows(&self, host: &str, address: IpAddr) -> bool {
        match reach(address) {
            Reach::Public => true,
            near @ (Reach::Private | Reach::Loopback) if near == self.home => true,
            Reach::Private | Reach::Loopback | Reach::Special => {
                self.trusted.contains(&normal(host))
            }
        }
    }

    fn filter(
        &self,
        host: &str,
        found: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, AuthError> {
        let allowed: Vec<_> = found.filter(|found| self.allows(host, found.ip())).collect();
        if allowed.is_empty() {
            let problem = "its name leads to no public address".into();
            return Err(AuthError::Address { url: host.to_owned(), problem });
        }
        Ok(allowed)
    }
}

/// The connection is made to the very addresses that were checked, so a name that changes its
/// address in between gains nothing.
pub(crate) struct GuardedResolver(pub(crate) Arc<Guard>);

impl Resolve for GuardedResolver {
    fn resolve(&self, host: &str) -> Resolving {
        let (guard, host) = (Arc::clone(&self.0), host.to_owned());
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(guard.filter(&host, found)?.into_iter())
        })
    }
}

/// An address as errors show it: without user info, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn normal(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// The reach a host has by its spelling alone.
fn literal(host: &Host<&str>) -> Reach {
    match host {
        Host::Ipv4(address) => reach_v4(*address),
        Host::Ipv6(address) => reach_v6(*address),
        Host::Domain(name) => {
            let name = normal(name);
            let loopback = name == "localhost" || name.ends_with(".localhost");
            if loopback { Reach::Loopback } else { Reach::Public }
        }
    }
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [127, ..] => Reach::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Reach::Private,
        // This network, link-local, protocol assignments, benchmarks, documentation, multicast,
        // reserved and broadcast.
        [0 | 224..=255, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Reach::Special,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        reach_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Loopback,
        // IPv4 in IPv6: compatible, mapped, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            v4(high, low)
        }
        [0x2002, high, low, ..] => v4(high, low),
        [0xfc00..=0xfdff, ..] => Reach::Private,
        // Link-local, site-local, multicast, local NAT64, Teredo, documentation, discard.
        [0xfe80..=0xffff, ..]
        | [0x64, 0xff9b, 1, ..]
        | [0x2001, 0 | 0xdb8, ..]
        | [0x100, 0, 0, 0, ..] => Reach::Special,
        _ => Reach::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(server: &str, allowed: &[&str]) -> Guard {
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        Guard::new(&Url::parse(server).unwrap(), &allowed)
    }

    fn checked(server: &str, url: &str) -> bool {
        guard(server, &[]).check(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn a_public_server_leads_only_to_public_https() {
        let server = "https://mcp.example/mcp";
        for url in ["https://auth.example/token", "https://8.8.8.8/", "https://[2606:4700::1]/"] {
            assert!(checked(server, url), "{url}");
        }
        for url in [
            "http://auth.example/token",
            "http://mcp.example/token",
            "ftp://auth.example/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://user@auth.example/",
            "https://user:word@auth.example/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "http://127.0.0.1:9/",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://10.0.0.9/",
            "https://172.31.0.1/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://169.254.169.254/latest",
            "https://0.0.0.0/",
            "https://224.0.0.1/",
            "https://255.255.255.255/",
            "https://[::]/",
            "https://[::1]/",
            "https://[fe80::1]/",
            "https://[fd00::1]/",
            "https://[ff02::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[::ffff:169.254.169.254]/",
            "https://[::127.0.0.1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:7f00:1::]/",
        ] {
            assert!(!checked(server, url), "{url}");
        }
    }

    #[test]
    fn a_server_at_home_leads_to_its_own_neighbourhood_only() {
        assert!(checked("http://127.0.0.1:8000/mcp", "http://127.0.0.1:9000/token"));
        assert!(checked("http://localhost:8000/mcp", "http://[::1]:9000/token"));
        assert!(checked("https://10.1.2.3/mcp", "https://192.168.0.4/token"));
        assert!(!checked("https://10.1.2.3/mcp", "http://10.1.2.3/token"));
        assert!(!checked("https://10.1.2.3/mcp", "https://127.0.0.1/token"));
        assert!(!checked("http://127.0.0.1/mcp", "https://10.0.0.1/token"));
        assert!(!checked("http://127.0.0.1/mcp", "https://169.254.169.254/"));
        assert!(!checked("http://127.0.0.1/mcp", "http://auth.example/"));
    }

    #[test]
    fn resolved_addresses_are_checked_like_written_ones() {
        let addresses =
            |list: &[&str]| list.iter().map(|a| SocketAddr::new(a.parse().unwrap(), 0)).collect();
        let found: Vec<SocketAddr> = addresses(&["10.0.0.9", "8.8.8.8", "::ffff:127.0.0.1"]);
        let guard = guard("https://mcp.corp/mcp", &["SSO.corp."]);
        let filter = |host: &str| guard.filter(host, found.clone().into_iter()).unwrap();
        assert_eq!(filter("auth.example"), addresses(&["8.8.8.8"]));
        assert_eq!(filter("sso.corp"), found, "an allowed host");
        assert_eq!(filter("mcp.corp"), found, "the server's own host");
        let private = addresses(&["10.0.0.9"]);
        assert_eq!(
            guard.filter("auth.example", private.into_iter()).unwrap_err().to_string(),
            "`auth.example` may not be used for signing in: its name leads to no public address"
        );
    }

    #[tokio::test]
    async fn a_name_that_leads_to_loopback_is_not_resolved() {
        let resolver = GuardedResolver(Arc::new(guard("https://mcp.example/", &[])));
        let error = resolver.resolve("localhost").await.err().unwrap();
        assert!(error.downcast_ref::<AuthError>().is_some(), "{error}");
    }
}
