//! The native keys of Haft as a service: `api`, `policy`, `telemetry`.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::choices::{AllowedScripts, Approvals, Definitions};
use super::node::{Node, Text};
use super::quantity::{Span, SpanOrZero};
use super::raw_rules::RawRule;
use super::read::{FromNode, Reader, record};
use super::service::parse_listen;

record! {
    /// `api`.
    pub struct RawApi("`api`", Reject) {
        /// The address of `haft serve`; `127.0.0.1:7300` by default.
        listen("listen"): Listen,
        /// The file that `haft keys` writes; `keys.json` in the state folder by default.
        keys_file("keys_file"): Text,
        /// Certificate and key, to serve over TLS.
        tls("tls"): RawTls,
        /// Names under which clients reach the service, beside `localhost` and IP addresses.
        allowed_hosts("allowed_hosts"): Vec<String>,
        /// Origins of web pages that may use the service, such as `https://console.example.com`.
        allowed_origins("allowed_origins"): Vec<String>,
        /// Time after SIGTERM in which the service takes new requests while `/readyz` answers 503, so that a load
        /// balancer moves on first; 5 s by default with `shared`, otherwise 0 s.
        drain_delay("drain_delay"): SpanOrZero,
        /// Time for requests in flight to end at shutdown; 10 s by default.
        shutdown_grace("shutdown_grace"): Span,
    }
}

record! {
    /// `api.tls`.
    pub struct RawTls("`tls`", Reject) {
        /// The certificate chain, as PEM.
        cert("cert"): Text,
        /// Its private key, as PEM.
        key("key"): Text,
    }
}

record! {
    /// `policy`.
    pub struct RawPolicy("`policy`", Reject) {
        /// Command lines that tools and servers registered over the API may run, such as
        /// `npx -y @modelcontextprotocol/server-everything@2026.8.31`; none by default. `*` within a word
        /// stands for letters, digits, `.`, `_` and `-`, `**` for anything, a last `...` for further words.
        allowed_commands("allowed_commands"): Vec<String>,
        /// Variables of Haft's environment that what is registered over the API may name as `${VAR}`; none
        /// by default.
        allowed_variables("allowed_variables"): Vec<String>,
        /// Environment variables that servers registered over the API may set for their process, such as
        /// `GITHUB_TOKEN` or `ACME_*`; none by default.
        allowed_env("allowed_env"): Vec<String>,
        /// Scripts that tools registered over the API may run: `existing` (the default: those in the registry's
        /// folder) or `upload` (also scripts and packages that the registration brings along). `upload` lets an
        /// admin key run any program as the user of Haft.
        allowed_scripts("allowed_scripts"): AllowedScripts,
        /// Approver of calls of tools with `approval: ask` and of calls that a rule asks about, over the API and at
        /// `/mcp`: `people` (the default: a key with the scope `approve` or `admin`) or `caller` (also the caller itself).
        approvals("approvals"): Approvals,
        /// Rules for calls, tried in their order after the arguments were validated. The first that matches decides;
        /// a call that matches none may run. A later file replaces the list.
        rules("rules"): Vec<RawRule>,
        /// Handling of tools, prompts and instructions of servers that differ from `haft.lock`: `block` (the default:
        /// they are not used until they are approved), `warn` or `follow`. Without a lock file it has no effect.
        definitions("definitions"): Definitions,
    }
}

record! {
    /// `telemetry`.
    pub struct RawTelemetry("`telemetry`", Reject) {
        /// The address for traces (OTLP over HTTP), such as `http://localhost:4318`; none by
        /// default.
        otlp_endpoint("otlp_endpoint"): Text,
        /// Headers sent with them.
        otlp_headers("otlp_headers"): super::read::Named<Text>,
        /// The name of this service in traces; `haft` by default.
        service_name("service_name"): String,
    }
}

/// An address to listen at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

impl FromNode for Listen {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let parsed = node.as_text().and_then(parse_listen);
        if parsed.is_none() {
            let problem = format!("`{}` is not an address with a port", node.shown_text());
            reader.error(node, problem, "write such as 127.0.0.1:7300 or [::1]:7300");
        }
        parsed.map(Self)
    }
    fn schema() -> Value {
        json!({ "type": "string", "examples": ["127.0.0.1:7300", "0.0.0.0:7300", "[::1]:7300"] })
    }
}
