//! Results that ask back (2026-07-28): the server wants something of the client before it answers.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;
use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Client, Params};
use crate::error::{RequestError, RpcError};
use crate::handler::{Handler, ServerRequest};
use crate::session::RequestOptions;

/// How often a server may ask back in one request.
const ROUNDS_MAX: usize = 16;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input_requests: Option<BTreeMap<String, InputRequest<'a>>>,
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct InputRequest<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl Client {
    /// Sends a request; answers what the server asks in between; sends it again with the answers.
    pub(super) async fn ask_with_input(
        &self,
        method: &str,
        params: Params,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        let handler = options.handler.clone();
        let handler = handler.as_ref().unwrap_or_else(|| self.session.inbox().handler());
        let mut again = params.clone();
        for _ in 0..ROUNDS_MAX {
            let result = self.send(method, &again, options.clone()).await?;
            let Some(asked) = read(&result)? else { return Ok(result) };
            again = params.clone();
            if let Some(requests) = &asked.input_requests {
                again = again.raw("inputResponses", &self.answers(requests, &**handler).await?);
            }
            if let Some(state) = asked.request_state {
                again = again.raw("requestState", state.get());
            }
        }
        Err(RequestError::protocol(format!(
            "the server asked for input more than {ROUNDS_MAX} times in one `{method}`"
        )))
    }

    /// The answers to what the server wants to know, as a JSON object. All are asked for at once.
    async fn answers(
        &self,
        requests: &BTreeMap<String, InputRequest<'_>>,
        handler: &dyn Handler,
    ) -> Result<String, RequestError> {
        let asking = requests.iter().map(async |(key, InputRequest { method, params })| {
            let request = ServerRequest {
                name: Some(key.clone()),
                method: method.clone().into_owned(),
                params: params.map(ToOwned::to_owned),
            };
            let answer = handler.request(request).await.map_err(|refusal| RpcError {
                message: format!(
                    "the server wants `{method}`, which was refused: {}",
                    refusal.message
                ),
                ..refusal
            })?;
            Ok::<_, RpcError>((key.as_str(), answer))
        });
        let answers: BTreeMap<_, _> = try_join_all(asking).await?.into_iter().collect();
        serde_json::to_string(&answers).map_err(|error| RequestError::protocol(error.to_string()))
    }
}

/// What the server asks, if the result is a question.
fn read(result: &RawValue) -> Result<Option<Asked<'_>>, RequestError> {
    let contains = |part: &[u8]| memchr::memmem::find(result.get().as_bytes(), part).is_some();
    let is_question = contains(b"input_required");
    // A large answer is not read to find out that it is none: without an escape, the words would
    // stand there as they are.
    if !is_question && !contains(br"\u") {
        return Ok(None);
    }
    // A result that is no object, or has fields of these names in other shapes, is no question.
    let asked = serde_json::from_str::<Asked<'_>>(result.get());
    match asked {
        Ok(asked) if asked.result_type.as_deref() == Some("input_required") => Ok(Some(asked)),
        Err(error) if is_question => Err(RequestError::protocol(format!(
            "the server asks for input in a way that cannot be read: {}",
            describe(&error)
        ))),
        Ok(_) | Err(_) => Ok(None),
    }
}
