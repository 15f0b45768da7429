//! The path that every request takes, independent of the transport.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::{Call, Outcome};
use crate::channel::{Outbox, Peer};
use crate::methods;
use crate::modern;
use crate::scenario::Era;
use crate::server::Server;
use crate::tools::notices;

/// Handles a message of a client, which the transport has noted. Whatever answers it goes to
/// `out`.
pub fn handle(server: &Arc<Server>, peer: &Arc<Peer>, message: Value, out: Outbox) {
    let Some(method) = message["method"].as_str().map(str::to_owned) else {
        peer.answered(message);
        return;
    };
    if let Some(code) = server.scenario.exit_on.get(&method) {
        server.facts.exit(*code);
    }
    if message.get("id").is_none() {
        notified(server, peer, &method, &message["params"]);
        return;
    }
    let early = !peer.initialized.load(Ordering::SeqCst);
    if server.scenario.exit_before_initialize
        && early
        && !matches!(method.as_str(), "initialize" | "ping")
    {
        eprintln!("Error: ExpectedInitializeRequest");
        server.facts.exit(1);
    }
    let era = era(server, &message);
    if method == "initialize" && era == Era::Legacy {
        peer.initialized.store(true, Ordering::SeqCst);
    }
    let id = message["id"].clone();
    let call = Call {
        server: Arc::clone(server),
        peer: Arc::clone(peer),
        out,
        id: id.clone(),
        method,
        params: message["params"].clone(),
        era,
    };
    let task = server.tasks.spawn(answer(call));
    peer.started(&id, task.abort_handle());
}

/// The era a message belongs to.
pub fn era(server: &Server, message: &Value) -> Era {
    let marked = !message["params"]["_meta"][modern::PROTOCOL_VERSION].is_null();
    let modern_only =
        matches!(message["method"].as_str(), Some("server/discover" | "subscriptions/listen"));
    match server.scenario.era {
        Era::Modern => Era::Modern,
        Era::Both if message["method"] != "initialize" && (marked || modern_only) => Era::Modern,
        Era::Legacy | Era::Both => Era::Legacy,
    }
}

async fn answer(call: Call) {
    let scenario = &call.server.scenario;
    if let Some(ms) = scenario.delay_ms.get(&call.method) {
        tokio::time::sleep(Duration::from_millis(*ms)).await;
    }
    let outcome = if scenario.silent_on.contains(&call.method) {
        Outcome::Silence
    } else if let Some(error) = scenario.errors_on.get(&call.method) {
        Outcome::Failure(error.clone())
    } else if let Some(error) = modern::refusal(&call) {
        Outcome::Failure(error)
    } else {
        // Closing the stream cancels a modern request; elsewhere the stream outlives the request.
        tokio::select! {
            outcome = methods::run(&call) => outcome,
            () = call.out.closed(), if call.era == Era::Modern && !scenario.ignore_cancel => {
                call.server.facts.note("stream_closed", json!({ "id": call.id }));
                return;
            }
        }
    };
    call.peer.ended(&call.id);
    match outcome {
        Outcome::Result(result) => call.respond(result),
        Outcome::ResultText(text) => call.respond_text(&text),
        Outcome::Failure(error) => call.fail(&error),
        Outcome::Said => {}
        // An HTTP request must not end, so its stream is held.
        Outcome::Silence => call.out.closed().await,
    }
}

fn notified(server: &Server, peer: &Peer, method: &str, params: &Value) {
    match method {
        "notifications/cancelled" => {
            server.unsubscribe(&params["requestId"], &peer.general);
            if !server.scenario.ignore_cancel {
                peer.cancel(&params["requestId"]);
            }
        }
        "notifications/initialized" => {
            if server.scenario.log_after_initialized {
                notices::log_levels(&peer.general, 0);
            }
            for _ in 0..server.scenario.storm_after_initialized {
                peer.general.message(json!({ "jsonrpc": "2.0",
                    "method": "notifications/tools/list_changed" }));
            }
        }
        // Other notifications have no answer.
        _ => {}
    }
}
