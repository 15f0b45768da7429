//! Conversations of the agent: listing, reading and deleting them.

use std::sync::Arc;

use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use haft::Content;
use haft_agent::model::ChatMessage;
use haft_agent::{ConversationStore, OwnerCheck, Saved, SessionStoreError};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::gather::Gather;
use super::{Routes, Service};
use crate::keys::Scope;
use crate::runs::{ConversationOwner, Run};
use crate::serve::{Caller, Path, Problem, is_forwarded};

pub(super) fn routes() -> Routes {
    let calling = OpenApiRouter::new().routes(routes!(list)).routes(routes!(show, remove));
    Routes { calling, ..Routes::default() }
}

/// The stored conversations.
#[derive(Debug, Serialize, ToSchema)]
struct ConversationList {
    /// The one used last comes first.
    conversations: Vec<ConversationSummary>,
}

/// A stored conversation.
#[derive(Debug, Serialize, ToSchema)]
struct ConversationSummary {
    /// Its id: `session` of its runs.
    id: String,
    /// When it began, RFC 3339.
    created: String,
    /// When its last message was stored, RFC 3339.
    updated: String,
    /// The model it began with.
    model: String,
    /// The beginning of its first message.
    title: String,
    /// The number of its messages.
    messages: usize,
}

/// A stored conversation with its messages.
#[derive(Debug, Serialize, ToSchema)]
struct StoredConversation {
    /// Its id: `session` of its runs.
    id: String,
    /// The model it began with.
    model: String,
    /// Its messages, the oldest first.
    messages: Vec<ConversationMessage>,
}

/// A message of a conversation. Images and audio are left out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
enum ConversationMessage {
    /// A message of the user.
    User {
        /// Its text.
        text: String,
    },
    /// An answer of the model.
    Assistant {
        /// Its text; empty if it only calls tools.
        text: String,
        /// The tools that it calls.
        calls: Vec<ConversationCall>,
    },
    /// The results of the calls before it.
    Tools {
        /// One for each call.
        results: Vec<ConversationResult>,
    },
}

/// A tool call of the model.
#[derive(Debug, Serialize, ToSchema)]
struct ConversationCall {
    /// The model's id of the call.
    id: String,
    /// The tool.
    tool: String,
    /// The arguments as JSON text, or the model's invalid text.
    arguments: String,
}

/// The result of such a call.
#[derive(Debug, Serialize, ToSchema)]
struct ConversationResult {
    /// The call that it answers.
    call_id: String,
    /// Its text.
    text: String,
    /// True if the call failed.
    is_error: bool,
}

/// Lists the stored conversations.
///
/// An admin key sees all of them, a call key its own.
#[utoipa::path(
    get, path = "/api/v1/conversations", operation_id = "list_conversations", tag = "runs",
    responses(
        (status = 200, description = "The conversations.", body = ConversationList),
        (status = 503, description = "They cannot be read."),
    )
)]
async fn list(
    State(service): State<Arc<Service>>,
    caller: Caller,
) -> Result<JsonAnswer<ConversationList>, Problem> {
    let owner = (caller.scope != Scope::Admin).then(|| Arc::clone(&caller.owner));
    let saved = store(&service).list(owner.as_deref()).await.map_err(|error| problem(&error))?;
    let visible = saved.into_iter().filter(|it| owns(&caller, &it.id, it.owner.as_deref()));
    let conversations = visible.map(ConversationSummary::from).collect();
    Ok(JsonAnswer(ConversationList { conversations }))
}

/// Shows a conversation with its messages.
///
/// An admin key may read every conversation, a call key its own.
#[utoipa::path(
    get, path = "/api/v1/conversations/{id}", operation_id = "get_conversation", tag = "runs",
    params(("id" = String, Path, description = "The conversation's id: `session` of its runs.")),
    responses(
        (status = 200, description = "The conversation.", body = StoredConversation),
        (status = 404, description = "No such conversation is stored."),
        (status = 503, description = "It cannot be read."),
    )
)]
async fn show(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<JsonAnswer<StoredConversation>, Problem> {
    let shown = store(&service).show(&id, owner_check(caller)).await;
    let (saved, messages) = shown.map_err(|error| problem(&error))?;
    let messages = messages.into_iter().map(ConversationMessage::from).collect();
    Ok(JsonAnswer(StoredConversation { id: saved.id, model: saved.model, messages }))
}

/// Deletes a conversation and forgets its ended runs.
///
/// An admin key may delete every conversation, a call key its own. The execution log keeps the calls.
#[utoipa::path(
    delete, path = "/api/v1/conversations/{id}", operation_id = "delete_conversation", tag = "runs",
    params(("id" = String, Path, description = "The conversation's id: `session` of its runs.")),
    responses(
        (status = 204, description = "It is deleted."),
        (status = 404, description = "No such conversation is stored."),
        (status = 409, description = "It is in use."),
        (status = 503, description = "It cannot be deleted."),
    )
)]
async fn remove(
    State(service): State<Arc<Service>>,
    caller: Caller,
    gather: Gather,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let is_visible = |run: &Run| caller.may_see(Some(run.owner()));
    if is_forwarded(&headers) {
        // Deleted at the replica that received the request; this one may know runs of it too.
        service.runs.forget_session(&id, is_visible);
    }
    let removed = store(&service).remove(&id, owner_check(caller.clone())).await;
    removed.map_err(|error| problem(&error))?;
    service.runs.forget_session(&id, is_visible);
    gather.notify().await;
    Ok(StatusCode::NO_CONTENT)
}

fn store(service: &Service) -> Arc<dyn ConversationStore> {
    service.runs.conversations(&service.live.runtime().config())
}

fn owner_check(caller: Caller) -> OwnerCheck {
    Arc::new(move |id, owner| owns(&caller, id, owner))
}

fn owns(caller: &Caller, id: &str, owner: Option<&str>) -> bool {
    let holder =
        ConversationOwner { caller: &caller.name, owner: &caller.owner, since: caller.since };
    match caller.scope {
        Scope::Admin => true,
        Scope::Approve | Scope::Call | Scope::Metrics => {
            owner.is_some_and(|owner| holder.owns(id, owner))
        }
    }
}

/// The text of content blocks.
fn text_of(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Content::Text { text } => Some(text.as_str()),
        Content::Resource { text, .. } => text.as_deref(),
        Content::Image { .. } | Content::Audio { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl From<ChatMessage> for ConversationMessage {
    fn from(message: ChatMessage) -> Self {
        match message {
            ChatMessage::User { content } => Self::User { text: text_of(&content) },
            ChatMessage::Assistant { text, calls, provider_state: _ } => {
                let calls = calls.into_iter().map(|call| ConversationCall {
                    id: call.id,
                    tool: call.name,
                    arguments: call.arguments,
                });
                Self::Assistant { text, calls: calls.collect() }
            }
            ChatMessage::Tools { results } => {
                let results = results.into_iter().map(|result| ConversationResult {
                    call_id: result.call_id,
                    text: text_of(&result.content),
                    is_error: result.is_error,
                });
                Self::Tools { results: results.collect() }
            }
        }
    }
}

fn problem(error: &SessionStoreError) -> Problem {
    let text = error.to_string();
    match error {
        SessionStoreError::Unknown(_)
        | SessionStoreError::Ambiguous(_)
        | SessionStoreError::Empty => Problem::not_found(text)
            .remedy("`GET /api/v1/conversations` lists those that are stored"),
        SessionStoreError::InUse(_) => {
            Problem::conflict(text).remedy("wait for the end of its run, or cancel the run")
        }
        SessionStoreError::Unreadable { .. } => {
            Problem::unavailable(text).remedy("`DELETE /api/v1/conversations/{id}` deletes it")
        }
        SessionStoreError::Unavailable { remedy, .. } => {
            Problem::unavailable(text).remedy(remedy.clone())
        }
    }
}

impl From<Saved> for ConversationSummary {
    fn from(saved: Saved) -> Self {
        let Saved { id, created, updated, model, owner: _, title, messages } = saved;
        let [created, updated] = [created, updated].map(|at| at.to_string());
        Self { id, created, updated, model, title, messages }
    }
}
