//! The messages between a command and the service: JSON documents, each with its length before it. Both sides are the
//! same version of Haft, so the types are the library's own.

use haft::human_input::{HumanAnswer, InboxItem, ItemKind};
use haft::{
    Content, Envelope, Message, PromptInfo, ResourceInfo, RunningCall, ServerInfo, ToolInfo,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use crate::cli::Failure;

/// The version of both sides.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Largest message. The answers of tools are the largest ones.
const FRAME_BYTES_MAX: usize = 1024 * 1024 * 1024;

pub(super) type Frames = Framed<UnixStream, LengthDelimitedCodec>;

pub(super) fn frames(stream: UnixStream) -> Frames {
    let codec = LengthDelimitedCodec::builder().max_frame_length(FRAME_BYTES_MAX).new_codec();
    Framed::new(stream, codec)
}

/// A request of a command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum Request {
    /// The first request of a connection.
    Hello {
        version: String,
    },
    /// Every tool.
    Tools,
    /// One tool.
    Tool {
        name: String,
    },
    /// The servers of these names, or all.
    Servers {
        names: Vec<String>,
        connect: bool,
    },
    /// The time that servers take to answer.
    Ping {
        names: Vec<String>,
    },
    Prompts {
        server: Option<String>,
    },
    Prompt {
        server: String,
        name: String,
        arguments: Box<RawValue>,
    },
    Resources {
        server: Option<String>,
    },
    ReadResource {
        server: String,
        uri: String,
    },
    Call(Box<CallRequest>),
    /// During a call: the answer to a question of it.
    Answer {
        id: String,
        answer: AnswerBody,
    },
    /// During a call: end it.
    CancelCall,
    Status,
    /// The calls in flight.
    Running,
    /// End a call in flight.
    Cancel {
        execution_id: String,
    },
}

/// A call of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::cli) struct CallRequest {
    pub(in crate::cli) tool: String,
    /// The arguments, as text that need not be JSON.
    pub(in crate::cli) arguments: String,
    pub(in crate::cli) session: Option<String>,
    pub(in crate::cli) request: Option<String>,
    pub(in crate::cli) approved: bool,
    /// True if a person at the terminal can answer questions.
    pub(in crate::cli) attended: bool,
}

/// A response of the service.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum Reply {
    Welcome {
        version: String,
    },
    Tools {
        tools: Vec<ToolInfo>,
        servers: Vec<ServerInfo>,
    },
    Tool(Option<Box<ToolInfo>>),
    Servers(Vec<ServerInfo>),
    Pings(Vec<PingAnswer>),
    Prompts {
        prompts: Vec<PromptInfo>,
        servers: Vec<ServerInfo>,
    },
    Messages(Vec<Message>),
    Resources {
        resources: Vec<ResourceInfo>,
        servers: Vec<ServerInfo>,
        refused: Vec<RefusedList>,
    },
    Contents(Vec<Content>),
    /// During a call: a question to a person.
    Question(Box<QuestionBody>),
    /// During a call: a question is over.
    Closed {
        id: String,
    },
    /// During a call without a person: a question waits in the service's inbox.
    Waiting {
        /// Its address in the API.
        url: String,
    },
    Result(Box<CallResult>),
    Status(Box<ServiceStatus>),
    Running(Vec<RunningCall>),
    Cancelled(Option<RunningCall>),
    Failed(FailureBody),
}

/// The end of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::cli) struct CallResult {
    pub(in crate::cli) envelope: Envelope,
    /// The text that a script printed, which an envelope does not carry.
    pub(in crate::cli) stdout: Option<String>,
    /// The warning if the execution log fails.
    pub(in crate::cli) unrecorded: Option<String>,
    /// True if a call that is not logged counts as failed.
    pub(in crate::cli) must_record: bool,
}

/// A server whose resources could not be listed.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::cli) struct RefusedList {
    pub(in crate::cli) server: String,
    pub(in crate::cli) failure: FailureBody,
}

/// The answer of one server to a ping.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::cli) struct PingAnswer {
    pub(in crate::cli) server: String,
    pub(in crate::cli) outcome: Result<f64, FailureBody>,
}

/// A failed request, as the terminal reports it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::cli) struct FailureBody {
    pub(in crate::cli) message: String,
    pub(in crate::cli) remedy: Option<String>,
    pub(in crate::cli) code: u8,
}

impl From<Failure> for FailureBody {
    fn from(Failure { message, remedy, code }: Failure) -> Self {
        Self { message, remedy, code }
    }
}

impl From<FailureBody> for Failure {
    fn from(FailureBody { message, remedy, code }: FailureBody) -> Self {
        Self { message, remedy, code }
    }
}

/// A question of the inbox.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::cli) struct QuestionBody {
    pub(super) id: String,
    pub(super) kind: ItemKind,
    pub(super) question: String,
    pub(super) options: Vec<String>,
    pub(super) schema: Option<Value>,
    pub(super) tool: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) server: Option<String>,
}

impl From<&InboxItem> for QuestionBody {
    fn from(item: &InboxItem) -> Self {
        Self {
            id: item.id.clone(),
            kind: item.kind,
            question: item.question.clone(),
            options: item.options.clone(),
            schema: item.schema.clone(),
            tool: item.tool.clone(),
            arguments: item.arguments.as_deref().map(ToOwned::to_owned),
            server: item.server.clone(),
        }
    }
}

/// The answer of a person.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum AnswerBody {
    Given(Value),
    Refused(Option<String>),
}

impl From<AnswerBody> for HumanAnswer {
    fn from(answer: AnswerBody) -> Self {
        match answer {
            AnswerBody::Given(value) => Self::Given(value),
            AnswerBody::Refused(reason) => Self::Refused { reason },
        }
    }
}

/// The service at a glance.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::cli) struct ServiceStatus {
    pub(in crate::cli) version: String,
    pub(in crate::cli) pid: u32,
    pub(in crate::cli) started: String,
    pub(in crate::cli) url: String,
    pub(in crate::cli) files: Vec<String>,
    pub(in crate::cli) state_dir: String,
    pub(in crate::cli) log_dir: String,
    pub(in crate::cli) tools: usize,
    pub(in crate::cli) servers: Vec<ServerInfo>,
    pub(in crate::cli) calls_in_flight: u32,
    pub(in crate::cli) calls_waiting: u32,
    pub(in crate::cli) max_concurrent: u32,
    /// Number of questions that wait for a person.
    pub(in crate::cli) questions: usize,
    /// The reason why the files as they are now are not in use.
    pub(in crate::cli) files_problem: Option<String>,
    /// Changed settings that take effect at the next start only.
    #[serde(default)]
    pub(in crate::cli) waiting_for_restart: Vec<String>,
    /// The problem of the execution log.
    pub(in crate::cli) log_problem: Option<String>,
}
