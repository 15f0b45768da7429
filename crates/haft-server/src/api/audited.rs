//! Records what admins do: around each request that changes something.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use haft::live::RegistryDocument;
use haft::record::Redactor;
use haft_bounds::parse_error::describe;
use haft_text::hex;
use serde_json::{Value, json};

use super::Service;
use crate::audit::{AuditAction, AuditOutcome, AuditResult, unreadable};
use crate::keys::chain;
use crate::serve::{Caller, Connection, Problem};

/// The name of the item that a handler created, if its path does not have it.
#[derive(Debug, Clone)]
pub(super) struct CreatedName(pub(super) String);

/// The state of an item after a change, for items that are gone then.
#[derive(Debug, Clone)]
pub(super) struct StateAfter(pub(super) Value);

/// The action of a request.
struct Audited {
    action: &'static str,
    subject: Subject,
    target: Option<String>,
}

/// The item whose state is recorded before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Tool,
    Server,
    Key,
    Question,
    Configuration,
    Session,
    /// Any other change; its path is the target.
    Other,
}

/// In front of every endpoint. A change is refused if it cannot be recorded.
pub(super) async fn record(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let caller = request.extensions().get::<Caller>().cloned();
    let audited = audited(request.method(), request.uri().path());
    let (Some(caller), Some(audited)) = (caller, audited) else {
        return Ok(next.run(request).await);
    };
    let from = request.extensions().get::<Connection>().map(|it| it.peer.ip().to_string());
    let Audited { action, subject, target } = audited;
    let before = state(&service, subject, target.as_deref()).await;
    let begun = AuditAction {
        who: caller.name.to_string(),
        from: from.unwrap_or_default(),
        action: action.to_owned(),
        target: target.clone(),
        before,
    };
    let id = begin(&service, begun).await?;
    let response = next.run(request).await;
    let status = response.status();
    let is_done = status.is_success() || status.is_redirection();
    let target = target.or_else(|| created(&response));
    let after = match response.extensions().get::<StateAfter>() {
        Some(StateAfter(after)) => Some(after.clone()),
        None if is_done => state(&service, subject, target.as_deref()).await,
        None => None,
    };
    let outcome = if is_done { AuditOutcome::Done } else { AuditOutcome::Failed };
    let result = AuditResult { outcome, target, after, status: Some(status.as_u16()) };
    end(&service, id, result).await;
    Ok(response)
}

/// Reads the configuration again for a signal.
pub(super) async fn reload(service: &Arc<Service>) {
    let subject = Subject::Configuration;
    let begun = AuditAction {
        who: "signal".to_owned(),
        from: "signal".to_owned(),
        action: "config.reload".to_owned(),
        target: None,
        before: state(service, subject, None).await,
    };
    // The refusal is logged.
    let Ok(id) = begin(service, begun).await else { return };
    let is_done = service.live.reload().await.is_ok();
    let outcome = if is_done { AuditOutcome::Done } else { AuditOutcome::Failed };
    let after = state(service, subject, None).await;
    end(service, id, AuditResult { outcome, target: None, after, status: None }).await;
}

/// The action of a request; `None` for one that changes nothing that belongs to admins.
fn audited(method: &Method, path: &str) -> Option<Audited> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return None;
    }
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let parts = parts.strip_prefix(&["api", "v1"][..]).unwrap_or(&parts);
    let is_post = *method == Method::POST;
    let is_delete = *method == Method::DELETE;
    let (action, subject, target) = match parts {
        // Calls, runs and prompts have the execution log.
        ["tools", _, "call"] | ["calls" | "runs" | "prompts" | "mcp", ..] => return None,
        ["conversations", id] if is_delete => ("conversation.delete", Subject::Other, Some(*id)),
        ["tools"] | ["tools", "local"] if is_post => ("tool.create", Subject::Tool, None),
        ["tools", "mcp"] if is_post => ("server.create", Subject::Server, None),
        ["tools", name] if is_delete => ("tool.remove", Subject::Tool, Some(*name)),
        ["tools", name] => ("tool.replace", Subject::Tool, Some(*name)),
        ["servers"] => ("server.create", Subject::Server, None),
        ["servers", "import"] if is_post => ("server.import", Subject::Other, None),
        ["servers", name] if is_delete => ("server.remove", Subject::Server, Some(*name)),
        ["servers", name] => ("server.replace", Subject::Server, Some(*name)),
        ["servers", name, "enable"] => ("server.enable", Subject::Server, Some(*name)),
        ["servers", name, "disable"] => ("server.disable", Subject::Server, Some(*name)),
        ["servers", name, "sign-in"] if is_delete => {
            ("server.sign_out", Subject::Server, Some(*name))
        }
        ["servers", name, "sign-in"] => ("server.sign_in", Subject::Server, Some(*name)),
        ["servers", name, "reconnect"] => ("server.reconnect", Subject::Server, Some(*name)),
        ["keys"] => ("key.create", Subject::Key, None),
        ["keys", name, "rotate"] => ("key.rotate", Subject::Key, Some(*name)),
        ["keys", name] => ("key.revoke", Subject::Key, Some(*name)),
        ["inbox", id] => ("inbox.answer", Subject::Question, Some(*id)),
        ["lock", "approve"] => ("lock.approve", Subject::Other, None),
        ["reload"] => ("config.reload", Subject::Configuration, None),
        ["session", "link"] => ("session.link", Subject::Session, None),
        ["session"] if is_delete => ("session.sign_out", Subject::Session, None),
        ["session"] => ("session.sign_in", Subject::Session, None),
        _ => ("other", Subject::Other, Some(path)),
    };
    Some(Audited { action, subject, target: target.map(ToOwned::to_owned) })
}

/// The item as it is now, without secrets, or the reason why it cannot be read.
async fn state(service: &Service, subject: Subject, target: Option<&str>) -> Option<Value> {
    match (subject, target) {
        (Subject::Tool, Some(name)) => shown(entry(service, RegistryDocument::Tools, name).await),
        (Subject::Server, Some(name)) => {
            shown(entry(service, RegistryDocument::Servers, name).await)
        }
        (Subject::Key, Some(name)) => shown(key(service, name).await),
        (Subject::Question, Some(id)) => {
            let item = service.live.runtime().inbox().item(id)?;
            Some(serde_json::to_value(item).unwrap_or_else(|error| unreadable(describe(&error))))
        }
        (Subject::Configuration, _) => {
            let config = service.live.runtime().config();
            let files = config
                .files
                .iter()
                .map(|file| json!({"file": &*file.name, "sha256": hex(&file.digest)}));
            Some(json!({ "files": files.collect::<Vec<Value>>() }))
        }
        (Subject::Session | Subject::Other, _) | (_, None) => None,
    }
}

fn shown(state: Result<Option<Value>, String>) -> Option<Value> {
    state.unwrap_or_else(|problem| Some(unreadable(problem)))
}

async fn entry(
    service: &Service,
    document: RegistryDocument,
    name: &str,
) -> Result<Option<Value>, String> {
    let found = service.live.entry(document, name).await.map_err(|error| error.to_string())?;
    let parsed = found.map(|(text, _)| serde_json::from_str(text.get())).transpose();
    parsed.map_err(|error| describe(&error))
}

async fn key(service: &Service, name: &str) -> Result<Option<Value>, String> {
    let listed = service.keys.store().list().await.map_err(|error| chain(&error))?;
    Ok(listed.iter().find(|key| key.entry.name == name).map(|key| key.entry.shown()))
}

/// The name of what a request created.
fn created(response: &Response) -> Option<String> {
    if let Some(CreatedName(name)) = response.extensions().get() {
        return Some(name.clone());
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    location.rsplit('/').next().map(ToOwned::to_owned)
}

async fn begin(service: &Arc<Service>, action: AuditAction) -> Result<String, Problem> {
    let (audit, redactor) = (Arc::clone(&service.audit), redactor(service));
    let written = tokio::task::spawn_blocking(move || audit.begin(action, &redactor)).await;
    let problem = match written {
        Ok(Ok(id)) => return Ok(id),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::error!("refused a change: the audit log cannot be written: {problem}");
    let detail = "the change was refused, because the audit log cannot be written";
    Err(Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "ServiceUnavailable",
        "The audit log cannot be written",
        format!("{detail}: {problem}"),
    )
    .remedy("make room or fix the permissions of `audit` in `log.dir`"))
}

async fn end(service: &Arc<Service>, id: String, result: AuditResult) {
    let (audit, redactor) = (Arc::clone(&service.audit), redactor(service));
    let written = tokio::task::spawn_blocking(move || audit.end(&id, result, &redactor)).await;
    // The beginning is recorded, and shows that the end is not.
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the end of a change is not in the audit log"),
        Err(error) => tracing::error!(%error, "the end of a change is not in the audit log"),
    }
}

fn redactor(service: &Service) -> Redactor {
    Redactor::new(service.live.runtime().config().secrets())
}
