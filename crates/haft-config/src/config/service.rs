//! Haft as a service: its address, its registration policy, its trace export.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::choices::{AllowedScripts, Approvals, Definitions};
use super::model::Setting;
use super::pattern::WordPattern;
use super::rules::Rule;
use super::secret::{Secret, ServerUrl};

/// The HTTP API.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// Its address.
    pub listen: Setting<SocketAddr>,
    /// The file with its keys.
    pub keys_file: Setting<PathBuf>,
    /// Certificate and key for TLS.
    pub tls: Option<Setting<TlsFiles>>,
    /// Names under which clients reach it, beside `localhost` and IP addresses.
    pub allowed_hosts: Setting<Vec<String>>,
    /// Origins of web pages that may use it.
    pub allowed_origins: Setting<Vec<String>>,
    /// Time after SIGTERM in which new requests are taken and `/readyz` answers 503.
    pub drain_delay: Setting<Duration>,
    /// Time for requests in flight to end at shutdown.
    pub shutdown_grace: Setting<Duration>,
}

/// An address with a port. Names but `localhost` are not looked up: what a name means can change between
/// the check and the listening.
pub fn parse_listen(text: &str) -> Option<SocketAddr> {
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let local = local.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    local.or_else(|| text.parse().ok())
}

/// Certificate and key for TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, as PEM.
    pub cert: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
}

/// The operator's policy for clients of the API.
#[derive(Debug, Clone)]
pub struct PolicyConfig {
    /// Command lines that may be run.
    pub allowed_commands: Setting<Vec<CommandPattern>>,
    /// Variables of Haft's environment that entries may name.
    pub allowed_variables: Setting<Vec<String>>,
    /// Environment variables that entries may set for a server's process.
    pub allowed_env: Setting<Vec<WordPattern>>,
    /// Scripts that tools may run.
    pub allowed_scripts: Setting<AllowedScripts>,
    /// Approver of calls that need approval. Unset: people.
    pub approvals: Option<Setting<Approvals>>,
    /// Rules for calls, in their order: the first that matches decides.
    pub rules: Setting<Vec<Rule>>,
    /// Handling of definitions that differ from the lock file.
    pub definitions: Setting<Definitions>,
}

/// The export of traces.
#[derive(Debug, Clone)]
pub struct TelemetryConfig {
    /// The collector's address; nowhere without one.
    pub otlp_endpoint: Option<Setting<ServerUrl>>,
    /// Headers sent to it.
    pub otlp_headers: Vec<(String, Secret)>,
    /// The name of this service.
    pub service_name: Setting<String>,
}

/// A command line with gaps in its words, see [`WordPattern`]; a last word `...` stands for any further
/// words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<WordPattern>,
    is_open: bool,
}

impl CommandPattern {
    /// Parses a pattern; `None` if it names no program, or a wildcard stands for the program
    /// itself.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let is_open = words.last().is_some_and(|last| *last == "...");
        if is_open {
            words.pop();
        }
        let program = words.first()?;
        let names_a_program = program.chars().any(|it| it != '*' && it != '/');
        let words = words.iter().map(|word| WordPattern::new(word)).collect();
        names_a_program.then_some(Self { words, is_open })
    }

    /// Returns true if a word contains a wildcard.
    pub fn has_anything(&self) -> bool {
        self.words.iter().any(WordPattern::has_anything)
    }

    /// Returns true if a command line matches, word by word.
    pub fn allows(&self, command: &[&str]) -> bool {
        let is_as_long = command.len() == self.words.len();
        (is_as_long || (self.is_open && command.len() > self.words.len()))
            && self.words.iter().zip(command).all(|(pattern, word)| pattern.fits(word))
    }
}

impl std::fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = self.words.iter().map(ToString::to_string);
        let words: Vec<String> = words.chain(self.is_open.then(|| "...".to_owned())).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, command: &[&str]) -> bool {
        CommandPattern::parse(pattern).unwrap().allows(command)
    }

    #[test]
    fn a_pattern_fits_word_by_word() {
        assert!(allows("npx -y @scope/*", &["npx", "-y", "@scope/server"]));
        assert!(!allows("npx -y @scope/*", &["npx", "-y", "@scope/x@https://evil/x.tgz"]));
        assert!(!allows("npx -y @scope/*", &["npx", "-y", "@other/server"]));
        assert!(!allows("npx -y @scope/*", &["npx", "-y", "@scope/server", "more"]));
        assert!(!allows("npx -y @scope/*", &["npx", "-y"]));
        assert!(allows("npx -y @scope/* ...", &["npx", "-y", "@scope/a", "x", "y"]));
        assert!(allows("uvx", &["uvx"]) && !allows("uvx", &["uvx", "evil"]));
        assert!(allows("uvx ...", &["uvx", "anything"]) && allows("uvx ...", &["uvx"]));
    }

    #[test]
    fn a_gap_is_not_a_second_word_and_not_a_prefix() {
        assert!(!allows("a*c", &["ab"]) && allows("a*c", &["abc"]) && allows("a*c", &["ac"]));
        assert!(!allows("tools/*", &["tools/../x"]) && allows("tools/*", &["tools/a..b"]));
        assert!(!allows("aa*aa", &["aaa"]) && allows("a*b*c", &["axbyc"]));
        assert!(!allows("python3", &["/tmp/python3"]) && !allows("python3", &["python3.1"]));
        // One word with a space in it is one word.
        assert!(!allows("npx -y pkg", &["npx", "-y pkg"]));
    }

    #[test]
    fn a_pattern_names_a_program() {
        for nothing in ["", "  ", "...", "*", "**", "* -y", "/*"] {
            assert_eq!(CommandPattern::parse(nothing), None, "{nothing}");
        }
    }
}
