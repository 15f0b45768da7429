//! Questions to people: seeing them, and answering one.

use std::sync::Arc;

use axum::Extension;
use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::StatusCode;
use haft::human_input::{AnswerError, AnsweredItem, CloseReason, HumanAnswer, InboxItem, ItemKind};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audited::StateAfter;
use super::gather::{Gather, Gathered, Identified, Listed};
use super::schemas::InboxItemSchema;
use super::{Routes, Service, inbox_events};
use crate::serve::{AdminOnly, Caller, FieldProblem, Json, Path, Problem};

pub(super) fn routes() -> Routes {
    let calling = OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(inbox_events::events))
        .routes(routes!(show, answer));
    Routes { calling, ..Routes::default() }
}

/// The open questions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OpenItems {
    /// The oldest first.
    #[schema(value_type = Vec<InboxItemSchema>)]
    pub(super) items: Vec<Listed<InboxItem>>,
    /// Numbers of the replicas that did not answer within a second. Their questions are missing here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(super) replicas_missing: Vec<u16>,
}

impl Identified for InboxItem {
    fn id(&self) -> &str {
        &self.id
    }
}

/// An answer, or that there will be none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"answer": "yes"}))]
struct AnswerRequest {
    /// The answer: one of `options` where there are some, and what fits `schema` where there is one.
    #[serde(default, deserialize_with = "some")]
    #[schema(required = false)]
    answer: Option<Value>,
    /// True if the question is refused instead.
    #[serde(default)]
    #[schema(required = false)]
    refuse: bool,
    /// Why it is refused.
    #[serde(default)]
    #[schema(required = false)]
    reason: Option<String>,
}

/// The outcome of a question, and the question.
#[derive(Debug, Serialize, ToSchema)]
struct ClosedItem {
    /// `answered` or `refused`.
    #[schema(value_type = String)]
    how: CloseReason,
    /// Why the answer `always` counts for this call alone: it could not be stored for all replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    warning: Option<String>,
    #[serde(flatten)]
    #[schema(value_type = InboxItemSchema)]
    item: InboxItem,
}

/// `null` is an answer; only what is left out is none.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Lists the questions that wait for a person.
///
/// An admin key sees all of them, an approve key those of its own calls and all requests for approval, a call key those
/// of its own calls. Where the service has several replicas, the list is of all of them.
#[utoipa::path(
    get, path = "/api/v1/inbox", operation_id = "list_questions", tag = "inbox",
    responses((status = 200, description = "The open questions, the oldest first.", body = OpenItems))
)]
async fn list(
    State(service): State<Arc<Service>>,
    caller: Caller,
    gather: Gather,
) -> JsonAnswer<OpenItems> {
    let mut own = service.live.runtime().inbox().open();
    own.retain(|item| caller.may_see_question(item));
    let Gathered { items, replicas_missing } = gather.list("items", own).await;
    JsonAnswer(OpenItems { items, replicas_missing })
}

/// Shows one question that waits for a person.
#[utoipa::path(
    get, path = "/api/v1/inbox/{id}", operation_id = "get_question", tag = "inbox",
    params(("id" = String, Path, description = "The question's id.")),
    responses(
        (status = 200, description = "The question.", body = InboxItemSchema),
        (status = 404, description = "No such question is open."),
    )
)]
async fn show(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<JsonAnswer<InboxItem>, Problem> {
    visible(&service, &caller, &id).map(JsonAnswer)
}

/// Answers or refuses a question.
///
/// The first valid answer counts, and the waiting call resumes with it. Invalid answers are rejected and leave the
/// question open. Questions of the kind `approval` need a key with the scope `approve` or `admin`, unless
/// `policy.approvals` is `caller`. The answer `always` also covers later calls of the same caller and session, at every
/// replica; `warning` is there if it could not be shared. Those of the kind `definition` need an admin key; the answer `approve` changes the
/// lock file.
#[utoipa::path(
    post, path = "/api/v1/inbox/{id}", operation_id = "answer_question", tag = "inbox",
    request_body = AnswerRequest,
    params(("id" = String, Path, description = "The question's id.")),
    responses(
        (status = 200, description = "The question, closed as `how` describes.", body = ClosedItem),
        (status = 400, description = "The body is neither an answer nor a refusal, or both."),
        (status = 403, description = "The question is an approval, and the key may not approve calls."),
        (status = 404, description = "No such question is open."),
        (status = 422, description = "The answer does not fit; the question stays open."),
    )
)]
async fn answer(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<AnswerRequest>,
) -> Result<(Extension<StateAfter>, JsonAnswer<ClosedItem>), Problem> {
    let answer = request.into_answer()?;
    let (how, after) = match &answer {
        HumanAnswer::Given(answer) => (CloseReason::Answered, json!({"answer": answer})),
        HumanAnswer::Refused { reason } => (CloseReason::Refused, json!({"refused": reason})),
    };
    require_approver(&service, &caller, &visible(&service, &caller, &id)?)?;
    let answered = service.live.runtime().inbox().answer(&id, answer, &caller.name).await;
    let AnsweredItem { item, warning } = answered.map_err(|error| problem(&error, &id))?;
    Ok((Extension(StateAfter(after)), JsonAnswer(ClosedItem { how, warning, item })))
}

impl AnswerRequest {
    fn into_answer(self) -> Result<HumanAnswer, Problem> {
        let Self { answer, refuse, reason } = self;
        let detail = match (answer, refuse, reason) {
            (Some(answer), false, None) => return Ok(HumanAnswer::Given(answer)),
            (None, true, reason) => return Ok(HumanAnswer::Refused { reason }),
            (Some(_), true, _) => "the body both answers and refuses",
            (Some(_), false, Some(_)) => "the body has an answer and a reason to refuse",
            (None, false, _) => "the body has neither an answer nor a refusal",
        };
        Err(Problem::bad_request(detail)
            .remedy("send `{\"answer\": ...}` or `{\"refuse\": true, \"reason\": \"...\"}`"))
    }
}

/// A question that is the caller's business. One that is not is not there for them.
fn visible(service: &Service, caller: &Caller, id: &str) -> Result<InboxItem, Problem> {
    let item = service.live.runtime().inbox().item(id);
    item.filter(|item| caller.may_see_question(item)).ok_or_else(|| not_open(id))
}

/// A permission is not given by the caller that needs it: those questions are for approvers.
fn require_approver(service: &Service, caller: &Caller, item: &InboxItem) -> Result<(), Problem> {
    let is_approval = match item.kind {
        ItemKind::Approval => true,
        // Written to the lock file, for every caller.
        ItemKind::Definition => return caller.require_admin(AdminOnly::Change),
        // Those are the caller's own to answer.
        ItemKind::Question | ItemKind::Sampling | ItemKind::Elicitation => false,
    };
    if !is_approval || service.may_approve(caller) {
        return Ok(());
    }
    let detail = format!("`{}` cannot approve calls", caller.name);
    Err(Problem::forbidden(detail).remedy(
        "answer with a key of the scope `approve` or `admin` (`haft keys create --scope approve --name me`), or set \
         `policy.approvals: caller`",
    ))
}

fn not_open(id: &str) -> Problem {
    Problem::not_found(format!("no question `{id}` is open"))
        .remedy("`GET /api/v1/inbox` lists those that are; others were answered or are over")
}

fn problem(error: &AnswerError, id: &str) -> Problem {
    match error {
        AnswerError::Unknown => not_open(id),
        AnswerError::Invalid { violations } => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let title = "The answer does not fit the question";
            let problem = Problem::new(status, "InvalidAnswer", title, error.to_string()).remedy(
                format!("`GET /api/v1/inbox/{id}` shows what fits: `options` and `schema`"),
            );
            violations.iter().fold(problem, |problem, violation| {
                problem.error(FieldProblem {
                    place: violation.pointer.clone(),
                    problem: violation.problem.clone(),
                    remedy: None,
                })
            })
        }
    }
}
