//! The servers that are measured: Haft with a tool that does nothing, and an echo with nothing around it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::Json;
use axum::routing::post;
use haft::config::LoadOptions;
use haft::live::Live;
use haft::{Config, FunctionTool, Runtime, ToolOutput};
use haft_server::api::{self, Service};
use haft_server::keys::{KeyFile, Keyring, Scope};
use haft_server::serve::{GuardSettings, Listener, ListenerSettings};
use haft_server::telemetry::Telemetry;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::Failure;

/// Names the server that this process is to be; the folder of Haft's follows.
const HOST: &str = "HAFT_BENCH_HOST";

/// The file of keys in a folder of Haft's.
pub(crate) const KEYS: &str = "keys.json";

pub(crate) enum Server {
    Echo,
    Haft(PathBuf),
}

impl Server {
    /// The role of this process.
    pub(crate) fn wanted() -> Option<Self> {
        let wanted = std::env::var_os(HOST)?;
        Some(if wanted == "echo" { Self::Echo } else { Self::Haft(wanted.into()) })
    }
}

/// A server in a process of its own. Ends with this value.
pub(crate) struct Hosted {
    child: Child,
    pub(crate) url: String,
    /// The text of its admin key, or nothing.
    pub(crate) key: String,
}

impl Hosted {
    pub(crate) fn start(server: Server) -> Result<Self, Failure> {
        let wanted: OsString = match server {
            Server::Echo => "echo".into(),
            Server::Haft(folder) => folder.into(),
        };
        let mut command = Command::new(std::env::current_exe()?);
        let mut child =
            command.env(HOST, wanted).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        // Held from here on, so that it ends with this one also where reading fails.
        let mut hosted = Self { child, url: String::new(), key: String::new() };
        let mut lines = BufReader::new(stdout).lines();
        hosted.url = lines.next().ok_or("no address")??;
        hosted.key = lines.next().ok_or("no key")??;
        Ok(hosted)
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn run(server: Server) -> Result<(), Failure> {
    match server {
        Server::Echo => {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            announce(listener.local_addr()?, "")?;
            let echo = async |Json(body): Json<Value>| Json(body);
            Ok(axum::serve(listener, axum::Router::new().route("/echo", post(echo))).await?)
        }
        Server::Haft(folder) => {
            log_lines();
            let keys = KeyFile::new(folder.join(KEYS));
            let (key, _) = keys.create("bench", Scope::Admin)?;
            let keys = Arc::new(Keyring::open(keys)?);
            let (live, telemetry) = toolbox_of(&folder, Some(Arc::clone(&keys))).await?;
            let settings = ListenerSettings::new("127.0.0.1:0".parse()?);
            let listener = Listener::bind(settings, &keys).await?;
            announce(listener.local_addr(), key.expose())?;
            let service = Service::new(live, keys, telemetry, None);
            let service = api::http_service(&service, &GuardSettings::default(), None);
            listener.serve(service, CancellationToken::new()).await;
            Ok(())
        }
    }
}

/// A toolbox with `noop`, from `haft.yaml` in a folder.
pub(crate) async fn toolbox(folder: &Path) -> Result<(Live, Arc<Telemetry>), Failure> {
    toolbox_of(folder, None).await
}

/// The same, with the limits of keys.
async fn toolbox_of(
    folder: &Path,
    keys: Option<Arc<Keyring>>,
) -> Result<(Live, Arc<Telemetry>), Failure> {
    let options = LoadOptions::from_process(vec![folder.join("haft.yaml")]);
    let config = Config::load(&options)?;
    let telemetry = Telemetry::start(&config.telemetry)?;
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let noop = FunctionTool::new("noop", "Do nothing.", schema, |_, _| async {
        Ok(ToolOutput::from_text("ok"))
    });
    let observer = Arc::clone(&telemetry);
    let mut builder = Runtime::builder(config).observe(move |call| observer.observe(call));
    if let Some(keys) = keys {
        builder = builder.callers(keys);
    }
    let runtime = builder.tool(noop).start().await?;
    Ok((Live::follow(runtime, options), telemetry))
}

/// The log settings of `haft serve`, so that requests pay for their spans as they do there.
fn log_lines() {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(LevelFilter::WARN)).init();
}

fn announce(address: std::net::SocketAddr, key: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "http://{address}\n{key}")?;
    Ok(stdout.flush()?)
}
