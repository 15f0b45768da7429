//! Results that ask back (2026-07-28): the server wants something of the client before it answers.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::result::{self, ResultKind};
use super::{Client, Params};
use crate::error::{RequestError, RpcError};
use crate::handler::{Handler, ServerRequest};
use crate::session::RequestOptions;

/// Largest number of input rounds in one request.
pub(super) const ROUNDS_MAX: usize = 16;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    #[serde(borrow, default)]
    input_requests: Option<BTreeMap<String, InputRequest<'a>>>,
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct InputRequest<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl InputRequest<'_> {
    /// Returns the question as a request that the handler answers.
    pub(super) fn named(&self, name: &str) -> ServerRequest {
        ServerRequest {
            name: Some(name.to_owned()),
            method: self.method.clone().into_owned(),
            params: self.params.map(ToOwned::to_owned),
        }
    }
}

impl Client {
    /// Sends a request; answers what the server asks in between; sends it again with the answers. A call that becomes a
    /// task is followed to its end.
    pub(super) async fn ask_with_input(
        &self,
        method: &str,
        params: Params,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        let handler = options.handler.clone();
        let handler = handler.as_ref().unwrap_or_else(|| self.session.router().handler());
        let mut again = params.clone();
        for _ in 0..ROUNDS_MAX {
            let result = self.send(method, &again, options.clone()).await?;
            match result::kind(&result)? {
                ResultKind::Complete => return Ok(result),
                ResultKind::InputRequired => {}
                ResultKind::Task if method == "tools/call" && self.negotiated_tasks(&**handler) => {
                    // Boxed: it is rare, and every request would have its size.
                    return Box::pin(self.follow_task(&result, options.clone(), handler)).await;
                }
                ResultKind::Task => {
                    return Err(RequestError::protocol(format!(
                        "the server answers `{method}` with a task, which was not negotiated"
                    )));
                }
            }
            let asked = read(&result)?;
            again = params.clone();
            if let Some(requests) = &asked.input_requests {
                let requests = requests.iter().map(|(key, it)| it.named(key)).collect();
                again = again.raw("inputResponses", &answers(requests, Arc::clone(handler)).await?);
            }
            if let Some(state) = asked.request_state {
                again = again.raw("requestState", state.get());
            }
        }
        Err(RequestError::protocol(format!(
            "the server asked for input more than {ROUNDS_MAX} times in one `{method}`"
        )))
    }
}

/// Returns the answers to what the server wants to know, as a JSON object. All are asked for at once.
pub(super) async fn answers(
    requests: Vec<ServerRequest>,
    handler: Arc<dyn Handler>,
) -> Result<String, RequestError> {
    let asking = requests.into_iter().map(async |request| {
        let (key, method) = (request.name.clone().unwrap_or_default(), request.method.clone());
        let answer = handler.request(request).await.map_err(|refusal| RpcError {
            message: format!("the server wants `{method}`, which was refused: {}", refusal.message),
            ..refusal
        })?;
        Ok::<_, RpcError>((key, answer))
    });
    let answers: BTreeMap<_, _> = try_join_all(asking).await?.into_iter().collect();
    serde_json::to_string(&answers).map_err(|error| RequestError::protocol(error.to_string()))
}

/// Reads what the server asks.
fn read(result: &RawValue) -> Result<InputRequired<'_>, RequestError> {
    serde_json::from_str(result.get()).map_err(|error| {
        RequestError::protocol(format!(
            "the server asks for input in a way that cannot be read: {}",
            describe(&error)
        ))
    })
}
