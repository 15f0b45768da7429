//! Settings of the database, checked before anything connects.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use haft_text::Secret;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};

use crate::error::DatabaseError;

/// Time limit of one attempt to connect to one host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time after which sent data without an acknowledgement ends a connection, and idle time before a probe.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Settings of the database.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address: `postgres://USER:PASSWORD@HOST[,HOST]/DATABASE`.
    pub url: Secret,
    /// A PEM file with the certificates that sign the database's; by default those of the platform.
    pub ca: Option<PathBuf>,
    /// True to create or change tables while opening.
    pub migrates: bool,
}

/// A process as a replica.
#[derive(Debug, Clone)]
pub struct ReplicaSettings {
    /// The address at which other replicas reach it.
    pub address: String,
    /// Its version of Haft.
    pub version: String,
    /// The digest of its configuration.
    pub config: String,
    /// Days for which rows of the execution log are kept.
    pub retain_days: u32,
}

/// Parses the address. TLS is required, except for this machine and if the address turns it off.
pub(crate) fn parse(url: &str) -> Result<Config, DatabaseError> {
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    if !is_url {
        return Err(invalid(
            "`shared.url` is not the address of a PostgreSQL database",
            "write such as postgres://haft@db.example.com/haft",
        ));
    }
    let (url, ssl_mode) = take_ssl_mode(url)?;
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        let cause = crate::error::chain(&error);
        invalid(
            &format!("`shared.url` cannot be read: {cause}"),
            "write such as postgres://haft@db.example.com/haft; encode special characters of a password as %XX",
        )
    })?;
    if config.get_hosts().is_empty() {
        return Err(invalid(
            "`shared.url` names no host",
            "write such as postgres://haft@db.example.com/haft",
        ));
    }
    let is_local = config.get_hosts().iter().all(is_this_machine);
    config.ssl_mode(ssl_mode.unwrap_or(if is_local { SslMode::Disable } else { SslMode::Require }));
    if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any
    {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if config.get_hosts().len() > 1 {
        // A host that accepts connections and is silent, as a frozen one, takes the whole time of an attempt. The next
        // attempt must be able to begin with another host.
        config.load_balance_hosts(LoadBalanceHosts::Random);
    }
    config.connect_timeout(CONNECT_TIMEOUT);
    config.tcp_user_timeout(SILENCE_MAX);
    config.keepalives_idle(SILENCE_MAX);
    Ok(config)
}

/// Takes `sslmode` out of the address. The driver knows fewer modes than `psql`, and certificates are always verified.
fn take_ssl_mode(url: &str) -> Result<(String, Option<SslMode>), DatabaseError> {
    let Some((address, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut mode, mut kept) = (None, Vec::new());
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (name, value) {
            ("sslmode", "disable") => mode = Some(SslMode::Disable),
            ("sslmode", "require" | "verify-ca" | "verify-full") => mode = Some(SslMode::Require),
            ("sslmode", other) => {
                return Err(invalid(
                    &format!("`sslmode={other}` of `shared.url` is not offered"),
                    "write `sslmode=require` (the default for other machines), or `sslmode=disable`",
                ));
            }
            ("sslrootcert", _) => {
                let remedy = "write the file into `shared.ca`";
                return Err(invalid("`sslrootcert` of `shared.url` is not offered", remedy));
            }
            ("sslcert" | "sslkey", _) => {
                let remedy = "use a password, which TLS protects";
                return Err(invalid(
                    "client certificates are not offered for `shared.url`",
                    remedy,
                ));
            }
            _ => kept.push(pair),
        }
    }
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Ok((format!("{address}{query}"), mode))
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    }
}

fn invalid(problem: &str, remedy: &str) -> DatabaseError {
    DatabaseError::Settings { problem: problem.to_owned(), remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_tls_unless_the_address_turns_it_off() {
        let mode = |url: &str| parse(url).unwrap().get_ssl_mode();
        assert_eq!(mode("postgres://haft@db.example.com/haft"), SslMode::Require);
        assert_eq!(mode("postgres://haft@localhost,db.example.com/haft"), SslMode::Require);
        assert_eq!(mode("postgres://haft@10.0.0.5/haft?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://haft@127.0.0.1/haft"), SslMode::Disable);
        assert_eq!(mode("postgres://haft@localhost/haft?sslmode=verify-full"), SslMode::Require);
        assert_eq!(mode("postgres://haft@%2Frun%2Fpostgresql/haft"), SslMode::Disable);
    }

    #[test]
    fn what_cannot_hold_is_refused() {
        for url in [
            "http://db.example.com",
            "postgres://haft@db/haft?sslmode=prefer",
            "postgres://haft@db/haft?sslrootcert=ca.pem",
            "postgres://haft@db/haft?sslcert=me.pem",
            "postgres://haft@db/haft?unknown=1",
            "postgres:///haft",
        ] {
            let error = parse(url).unwrap_err();
            assert!(matches!(error, DatabaseError::Settings { .. }), "{url}: {error}");
        }
    }

    #[test]
    fn several_hosts_mean_the_one_that_takes_changes() {
        let attrs = |url: &str| parse(url).unwrap().get_target_session_attrs();
        assert_eq!(attrs("postgres://haft@a,b/haft"), TargetSessionAttrs::ReadWrite);
        assert_eq!(attrs("postgres://haft@a/haft"), TargetSessionAttrs::Any);
    }
}
