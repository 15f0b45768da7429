//! Tools and a prompt that need input, as servers of the modern era ask for it: the result names what is missing, and
//! the client calls again with it.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    InputRequest, InputRequests, InputRequiredResult, InputResponses,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Mixed into every seal. A fixture guards nothing, so it need not be secret.
const SALT: &str = "conformance-server";

/// Calls one of these tools, if there is one of that name.
pub(crate) fn call(
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let tool = request.name.as_ref();
    let round = Round {
        tool,
        responses: request.input_responses.as_ref(),
        state: request.request_state.as_deref(),
    };
    let asked = match tool {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            round.once(&[("user_name", name())], State::None)
        }
        "test_input_required_result_sampling" => round
            .once(&[("capital_question", sample("What is the capital of France?"))], State::None),
        "test_input_required_result_list_roots" => {
            round.once(&[("client_roots", roots())], State::None)
        }
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            round.once(&[("confirm", confirm())], State::Sealed)
        }
        "test_input_required_result_multiple_inputs" => {
            let greeting = sample("Generate a greeting");
            let requests =
                [("user_name", name()), ("greeting", greeting), ("client_roots", roots())];
            round.once(&requests, State::Sealed)
        }
        "test_input_required_result_multi_round" => round.twice(),
        "test_input_required_result_capabilities" => {
            let mut requests = Vec::new();
            if capabilities.sampling.is_some() {
                requests.push(("greeting", sample("Generate a greeting")));
            }
            if capabilities.elicitation.is_some() {
                requests.push(("user_name", name()));
            }
            round.once(&requests, State::None)
        }
        _ => return None,
    };
    Some(asked.map(|asked| match asked {
        InputKind::Missing(missing) => missing.into(),
        InputKind::Complete(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
    }))
}

/// Returns the input that the prompt `test_input_required_result_prompt` still needs, or the context it was given.
pub(crate) fn prompt_context(
    responses: Option<&InputResponses>,
) -> Result<Result<String, InputRequiredResult>, ErrorData> {
    let round = Round { tool: "test_input_required_result_prompt", responses, state: None };
    let context = ask("What context should the prompt use?", "context", "string");
    Ok(match round.once(&[("user_context", context)], State::None)? {
        InputKind::Missing(missing) => Err(missing),
        InputKind::Complete(text) => Ok(text),
    })
}

/// Returns the input that a tool with the user's name still needs, or the name it was given.
pub(crate) fn user_name(
    request: &CallToolRequestParams,
) -> Result<Result<String, InputRequiredResult>, ErrorData> {
    let round = Round {
        tool: request.name.as_ref(),
        responses: request.input_responses.as_ref(),
        state: request.request_state.as_deref(),
    };
    Ok(match round.once(&[("user_name", name())], State::None)? {
        InputKind::Missing(missing) => Err(missing),
        InputKind::Complete(text) => Ok(text),
    })
}

/// A question that asks the user to agree.
pub(crate) fn confirm_request() -> Result<InputRequest, ErrorData> {
    serde_json::from_value(confirm())
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// True if the client has to bring back a sealed state with its answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    None,
    Sealed,
}

enum InputKind {
    Missing(InputRequiredResult),
    Complete(String),
}

/// One request: what the client brought along.
struct Round<'a> {
    tool: &'a str,
    responses: Option<&'a InputResponses>,
    state: Option<&'a str>,
}

impl Round<'_> {
    /// Asks for everything at once, and again for as long as something is missing.
    fn once(&self, requests: &[(&str, Value)], state: State) -> Result<InputKind, ErrorData> {
        let echoed = self.unsealed()?;
        let state_is_back = state == State::None || echoed.as_deref() == Some("asked");
        if let Some(given) = self.given(requests)
            && state_is_back
        {
            // The suite looks for these words where a state was needed.
            let note = if state == State::Sealed { " (state-ok)" } else { "" };
            return Ok(InputKind::Complete(format!("Received {given}{note}")));
        }
        let state = (state == State::Sealed).then(|| self.sealed("asked"));
        missing(requests, state)
    }

    /// Asks two things, one after the other.
    fn twice(&self) -> Result<InputKind, ErrorData> {
        let first = [("step1", ask("Step 1: What is your name?", "name", "string"))];
        let second = [("step2", ask("Step 2: What is your favorite color?", "color", "string"))];
        let before = self.unsealed()?.unwrap_or_default();
        match before.as_str() {
            "first" => match self.given(&first) {
                Some(given) => missing(&second, Some(self.sealed(&format!("second {given}")))),
                None => missing(&first, Some(self.sealed("first"))),
            },
            before => match (before.strip_prefix("second "), self.given(&second)) {
                (Some(first), Some(second)) => {
                    Ok(InputKind::Complete(format!("Received {first} and {second}")))
                }
                (Some(_), None) => missing(&second, Some(self.sealed(before))),
                (None, _) => missing(&first, Some(self.sealed("first"))),
            },
        }
    }

    /// The answers to all requests, if they are there and can be used. What was not asked for is ignored.
    fn given(&self, requests: &[(&str, Value)]) -> Option<String> {
        let responses = self.responses?;
        let answers = requests.iter().map(|(key, request)| {
            let answer = responses.get(*key)?;
            let part = match request["method"].as_str()? {
                "elicitation/create" => {
                    let accepted = answer["action"] == "accept" && answer["content"].is_object();
                    accepted.then(|| &answer["content"])?
                }
                "sampling/createMessage" => Some(&answer["content"]).filter(|it| !it.is_null())?,
                _ => Some(&answer["roots"]).filter(|roots| roots.is_array())?,
            };
            Some(part.to_string())
        });
        let answers: Option<Vec<String>> = answers.collect();
        answers.map(|answers| answers.join(", "))
    }

    /// A state that only this server can have written, and only for this tool.
    fn sealed(&self, state: &str) -> String {
        format!("{}.{state}", self.seal(state))
    }

    /// The state that came back.
    fn unsealed(&self) -> Result<Option<String>, ErrorData> {
        let Some(text) = self.state else { return Ok(None) };
        match text.split_once('.') {
            Some((seal, state)) if seal == self.seal(state) => Ok(Some(state.to_owned())),
            _ => Err(ErrorData::invalid_params("the requestState is not one of ours", None)),
        }
    }

    fn seal(&self, state: &str) -> String {
        let digest = Sha256::digest(format!("{SALT}\n{}\n{state}\n{SALT}", self.tool));
        digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }
}

fn missing(requests: &[(&str, Value)], state: Option<String>) -> Result<InputKind, ErrorData> {
    let mut list = InputRequests::new();
    for (key, request) in requests {
        let request = serde_json::from_value::<InputRequest>(request.clone());
        let request = request.map_err(|error| {
            ErrorData::internal_error(format!("the SDK refuses `{key}`: {error}"), None)
        })?;
        list.insert((*key).to_owned(), request);
    }
    Ok(InputKind::Missing(InputRequiredResult::new(Some(list), state)))
}

fn name() -> Value {
    ask("What is your name?", "name", "string")
}

fn confirm() -> Value {
    ask("Please confirm", "ok", "boolean")
}

fn ask(message: &str, field: &str, kind: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": {field: {"type": kind}},
                "required": [field],
            },
        },
    })
}

fn sample(text: &str) -> Value {
    json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
            "maxTokens": 100,
        },
    })
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}
