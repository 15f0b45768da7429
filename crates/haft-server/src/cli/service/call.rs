//! A call over the link: its questions to the person at the terminal, its cancellation and its result.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use haft::config::choices::OnLogFailure;
use haft::human_input::{
    HumanInbox, HumanInputError, HumanQuestion, InboxEvent, InboxItem, ItemKind,
};
use haft::oauth::BoxFuture;
use haft::record::LogHealth;
use haft::{Envelope, ToolCall};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::client::{ServiceClient, unexpected};
use super::protocol::{AnswerBody, CallRequest, CallResult, Frames, QuestionBody, Reply, Request};
use super::session::{ServiceContext, receive, send};
use crate::cli::{Failure, call as command, remedy};
use crate::stderr::say;

/// The caller's name in the log, as that of a command without a service.
const CALLER: &str = "cli";
/// The name of the person at the terminal.
const TERMINAL: &str = "terminal";
const ALLOW: &str = "allow";
/// An approval for later calls too. A command has one call, so it counts once.
const ALWAYS: &str = "always";

/// The end of a call.
pub(in crate::cli) struct CallOutcome {
    pub(in crate::cli) envelope: Envelope,
    pub(in crate::cli) unrecorded: Option<String>,
    pub(in crate::cli) must_record: bool,
}

/// Runs a call for a command. Dropped connections cancel it.
pub(super) async fn run(
    context: &ServiceContext,
    frames: &mut Frames,
    request: CallRequest,
) -> Option<CallResult> {
    let runtime = context.runtime();
    let cancel = CancellationToken::new();
    let _cancel_with_us = cancel.clone().drop_guard();
    let id = Arc::<OnceLock<String>>::default();
    let CallRequest { tool, arguments, session, request, approved, attended } = request;
    let noted = Arc::clone(&id);
    let mut call = ToolCall::from_text(tool, arguments)
        .caller(CALLER)
        .approval_hint(command::APPROVAL_HINT)
        .cancelled_by(cancel.clone())
        .on_start(move |id| drop(noted.set(id.to_owned())));
    if let Some(session) = session {
        call = call.session(session);
    }
    if let Some(request) = request {
        call = call.user_request(request);
    }
    if approved {
        call = call.approved();
    } else if attended {
        call = call.asking_people();
    }
    if let Some(trace) = context.telemetry.begin(None) {
        call = call.trace_context(trace);
    }
    let inbox = runtime.inbox();
    let (_, mut updates) = inbox.follow();
    let mut shown = Vec::new();
    let mut running = std::pin::pin!(runtime.call(call));
    let mut envelope = loop {
        tokio::select! {
            biased;
            envelope = &mut running => break envelope,
            request = receive(frames) => match request {
                Some(Request::Answer { id, answer }) if shown.contains(&id) => {
                    // It may have been answered elsewhere.
                    let _ = inbox.answer(&id, once(answer).into(), TERMINAL).await;
                }
                Some(Request::CancelCall) => cancel.cancel(),
                Some(_) | None => {
                    cancel.cancel();
                    running.await;
                    return None;
                }
            },
            update = updates.recv() => {
                let items = match update {
                    Ok(InboxEvent::Asked(item)) => vec![item],
                    Ok(InboxEvent::Closed { id, .. }) => {
                        if shown.contains(&id) {
                            send(frames, &Reply::Closed { id }).await?;
                        }
                        Vec::new()
                    }
                    Err(RecvError::Lagged(_)) => inbox.open(),
                    Err(RecvError::Closed) => Vec::new(),
                };
                for item in items.iter().filter(|item| is_of(item, &id)) {
                    if approved && item.kind == ItemKind::Sampling {
                        let allow = AnswerBody::Given(ALLOW.into());
                        let _ = inbox.answer(&item.id, allow.into(), TERMINAL).await;
                    } else if !shown.contains(&item.id) {
                        shown.push(item.id.clone());
                        let reply = if attended {
                            Reply::Question(Box::new(item.into()))
                        } else {
                            waiting(&context.url, item)
                        };
                        send(frames, &reply).await?;
                    }
                }
            }
        }
    };
    remedy::render(&mut envelope);
    command::add_stderr(&mut envelope, &runtime.servers());
    // A service keeps what it cannot write, so only a failure at present concerns this call.
    let unrecorded = match runtime.log_health() {
        Some(health @ LogHealth::Failing { .. }) => command::unrecorded(health),
        Some(LogHealth::Working { .. }) | None => None,
    };
    envelope.set_message(unrecorded.clone());
    let must_record = runtime.config().log.on_failure.value == OnLogFailure::Refuse;
    let stdout = envelope.stdout.take();
    Some(CallResult { envelope, stdout, unrecorded, must_record })
}

fn waiting(service: &str, item: &InboxItem) -> Reply {
    let url = format!("{}/api/v1/inbox/{}", service.trim_end_matches('/'), item.id);
    Reply::Waiting { url }
}

fn is_of(item: &InboxItem, id: &OnceLock<String>) -> bool {
    item.execution_id.is_some() && item.execution_id.as_ref() == id.get()
}

fn once(answer: AnswerBody) -> AnswerBody {
    match answer {
        AnswerBody::Given(value) if value == ALWAYS => AnswerBody::Given(ALLOW.into()),
        answer => answer,
    }
}

impl ServiceClient {
    /// Calls a tool. Questions of the call go to `inbox`; `cancel` ends it.
    pub(in crate::cli) async fn call(
        &mut self,
        request: CallRequest,
        inbox: Option<&HumanInbox>,
        cancel: &CancellationToken,
    ) -> anyhow::Result<CallOutcome> {
        self.send(&Request::Call(Box::new(request))).await?;
        let mut questions = Questions::default();
        let mut is_cancelled = false;
        loop {
            let reply = tokio::select! {
                reply = self.receive() => reply?,
                () = cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    self.send(&Request::CancelCall).await?;
                    continue;
                }
                Some((id, answer)) = questions.next() => {
                    if let Some(answer) = answer {
                        self.send(&Request::Answer { id, answer }).await?;
                    }
                    continue;
                }
            };
            match reply {
                Reply::Question(question) => {
                    if let Some(inbox) = inbox {
                        questions.put(inbox.clone(), *question);
                    }
                }
                Reply::Waiting { url } => say!(
                    "the call waits for an answer in the inbox: open it with `haft console`, or send \
                     `{{\"answer\": ...}}` with POST to {url}"
                ),
                Reply::Closed { id } => questions.withdraw(&id),
                Reply::Result(result) => {
                    let CallResult { mut envelope, stdout, unrecorded, must_record } = *result;
                    envelope.stdout = stdout;
                    return Ok(CallOutcome { envelope, unrecorded, must_record });
                }
                Reply::Failed(failure) => return Err(Failure::from(failure).into()),
                _ => return Err(unexpected()),
            }
        }
    }
}

/// The questions that the person at the terminal sees.
#[derive(Default)]
struct Questions {
    open: HashMap<String, CancellationToken>,
    asking: FuturesUnordered<BoxFuture<'static, (String, Option<AnswerBody>)>>,
}

impl Questions {
    fn put(&mut self, inbox: HumanInbox, body: QuestionBody) {
        let QuestionBody { id, kind, question, options, schema, tool, arguments, server } = body;
        let mut ask = HumanQuestion::new(kind, question).options(options);
        if let Some(schema) = schema {
            ask = ask.schema(schema);
        }
        if let Some(tool) = tool {
            ask = ask.tool(tool);
        }
        if let Some(arguments) = &arguments {
            ask = ask.arguments(arguments);
        }
        if let Some(server) = server {
            ask = ask.server(server);
        }
        let over = CancellationToken::new();
        self.open.insert(id.clone(), over.clone());
        let asking = async move {
            let answer = tokio::select! {
                answer = inbox.ask(ask) => answer_body(answer),
                () = over.cancelled() => None,
            };
            (id, answer)
        };
        self.asking.push(asking.boxed());
    }

    fn withdraw(&mut self, id: &str) {
        if let Some(over) = self.open.remove(id) {
            over.cancel();
        }
    }

    async fn next(&mut self) -> Option<(String, Option<AnswerBody>)> {
        self.asking.next().await
    }
}

fn answer_body(answer: Result<Value, HumanInputError>) -> Option<AnswerBody> {
    match answer {
        Ok(value) => Some(AnswerBody::Given(value)),
        Err(HumanInputError::Refused { reason }) => Some(AnswerBody::Refused(reason)),
        // The service's own limit ends the question.
        Err(_) => None,
    }
}
