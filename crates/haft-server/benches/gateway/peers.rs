//! Published gateways: `cargo xtask bench gateway` installs them and passes their paths, or the reason of a failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::json;

use super::Failure;

/// A JSON list of [`Peer`]s.
const PEERS: &str = "HAFT_BENCH_PEERS";

/// A published gateway.
#[derive(Deserialize)]
pub(crate) struct Peer {
    /// With the registry and the version.
    pub(crate) name: String,
    which: Which,
    /// The program and what it needs to run at all.
    #[serde(default)]
    program: Vec<PathBuf>,
    /// Why it could not be installed.
    left_out: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Which {
    CargoMcpProxy,
    NpmMcpProxy,
    NpmSupergateway,
    PypiMcpProxy,
    PypiFastmcp,
}

/// The peers that are there, and those that should be.
pub(crate) fn all() -> Result<Vec<Peer>, Failure> {
    let Ok(peers) = std::env::var(PEERS) else {
        eprintln!("no peers: `cargo xtask bench gateway` installs them");
        return Ok(Vec::new());
    };
    Ok(serde_json::from_str(&peers)?)
}

impl Peer {
    pub(crate) fn is_rust(&self) -> bool {
        matches!(self.which, Which::CargoMcpProxy)
    }

    pub(crate) fn path(&self) -> &'static str {
        match self.which {
            Which::CargoMcpProxy => "/",
            Which::NpmMcpProxy
            | Which::NpmSupergateway
            | Which::PypiMcpProxy
            | Which::PypiFastmcp => "/mcp",
        }
    }

    /// Each in front of the server over stdio, with sessions, and with little logging.
    pub(crate) fn command(&self, port: u16, folder: &Path) -> Result<Command, Failure> {
        if let Some(reason) = &self.left_out {
            return Err(reason.as_str().into());
        }
        let (program, before) = self.program.split_first().ok_or("no program")?;
        let mut command = Command::new(program);
        command.args(before);
        let server = std::env::current_exe()?;
        let server = server.to_str().ok_or("the path of this program is not text")?;
        let port_text = port.to_string();
        match self.which {
            Which::CargoMcpProxy => {
                let config = folder.join("proxy.toml");
                fs::write(&config, toml(port, server))?;
                command.arg("--config").arg(config);
            }
            Which::NpmMcpProxy => {
                command.args(["--host", "127.0.0.1", "--port", &port_text, "--server", "stream"]);
                command.args(["--", server, "--role", "backend"]);
            }
            Which::NpmSupergateway => {
                command.args(["--stdio", &format!("'{server}' --role backend")]);
                command.args(["--outputTransport", "streamableHttp", "--stateful"]);
                command.args(["--port", &port_text, "--logLevel", "none"]);
            }
            Which::PypiMcpProxy => {
                command.args(["--port", &port_text, "--log-level", "WARNING"]);
                command.args([server, "--", "--role", "backend"]);
            }
            Which::PypiFastmcp => {
                let config = folder.join("mcp.json");
                let server = json!({ "command": server, "args": ["--role", "backend"] });
                fs::write(&config, json!({ "mcpServers": { "behind": server } }).to_string())?;
                command.arg("run").arg(config);
                command.args(["--transport", "http", "--host", "127.0.0.1", "--port", &port_text]);
                command.args(["--log-level", "WARNING", "--no-banner"]);
            }
        }
        Ok(command)
    }
}

fn toml(port: u16, server: &str) -> String {
    format!(
        "[proxy]\nname = \"bench\"\nseparator = \"_\"\n\
         [proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\
         [[backends]]\nname = \"behind\"\ntransport = \"stdio\"\n\
         command = '{server}'\nargs = [\"--role\", \"backend\"]\n"
    )
}
