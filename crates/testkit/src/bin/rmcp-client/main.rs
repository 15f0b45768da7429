//! A client made with `rmcp`, the official Rust SDK: both eras, over HTTP or stdio.
//!
//! Reads where the gateway is, and the era, from standard input and prints one report of everything it
//! got: the same as the clients in other languages, beside the tests of the gateway.

mod events;
mod lists;
mod visit;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::events::{Handler, ServerEvents};
use crate::visit::Visit;

const WAIT_MAX: Duration = Duration::from_mins(1);

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    // Nothing here is encrypted, but the HTTP client wants to know with what it would be.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut report = json!({});
    let ended = tokio::time::timeout(WAIT_MAX, run(&mut report)).await;
    // Also after a failure: the progress made shows where to look.
    println!("{report}");
    match ended {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
        Err(_) => {
            eprintln!("no end within {WAIT_MAX:?}");
            ExitCode::FAILURE
        }
    }
}

async fn run(report: &mut Value) -> Result<(), Failure> {
    let request: Value = serde_json::from_reader(std::io::stdin())?;
    let is_modern = request["era"] == "modern";
    let received = Arc::new(ServerEvents::default());
    let client = connect(&request, Handler(Arc::clone(&received)), is_modern).await?;
    let about = client.peer_info().ok_or("the server did not send its name")?;
    report["version"] = json!(about.protocol_version);
    report["server"] = json!(about.server_info.as_ref().map(|it| &it.name));
    let visit = Visit { client, received, is_modern };
    visit.tools(report).await?;
    visit.prompts_and_resources(report).await?;
    visit.asked_back(report).await?;
    visit.changes(report, &request).await?;
    visit.client.cancel().await?;
    Ok(())
}

async fn connect(
    request: &Value,
    handler: Handler,
    is_modern: bool,
) -> Result<RunningService<RoleClient, Handler>, Failure> {
    let lifecycle = if is_modern {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    if request["transport"] == "http" {
        let url = request["url"].as_str().ok_or("no URL")?;
        let transport = StreamableHttpClientTransport::from_uri(url);
        return Ok(handler.serve_with_lifecycle(transport, lifecycle).await?);
    }
    let words: Vec<String> = serde_json::from_value(request["command"].clone())?;
    let (program, args) = words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(args);
    Ok(handler.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?)
}
