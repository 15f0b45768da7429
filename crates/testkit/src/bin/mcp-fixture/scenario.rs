//! The server that a test wants. Everything has a default: `{}` is a healthy legacy server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The whole behaviour of one server process.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
// They are independent switches of a test, not a state.
#[allow(clippy::struct_excessive_bools)]
pub struct Scenario {
    /// Which protocol eras it speaks.
    pub era: Era,
    /// `serverInfo.name`.
    pub name: String,
    /// `instructions`, where given.
    pub instructions: Option<String>,
    /// Revisions of the legacy era it accepts; the last one is offered for any other.
    pub protocol_versions: Vec<String>,
    /// Replaces the capabilities it declares.
    pub capabilities: Option<Value>,
    /// A number of generated tools, or a list of built-in names and [`Tool`] objects.
    pub tools: Option<Tools>,
    /// A number of generated prompts, or `Prompt` objects as `prompts/list` shows them. A field
    /// `messages` holds what `prompts/get` answers.
    pub prompts: Option<Entries>,
    /// Resources as `resources/list` shows them; a field `text` or `blob` holds the content.
    pub resources: Option<Vec<Map<String, Value>>>,
    /// Resource templates as `resources/templates/list` shows them.
    pub templates: Option<Vec<Map<String, Value>>>,
    /// Entries per page of any list; all on one page by default.
    pub page_size: Option<usize>,
    /// The behaviour of cursors.
    pub pages: Pages,
    /// `ttlMs` of modern lists and reads.
    pub ttl_ms: u64,
    /// `cacheScope` of modern lists and reads.
    pub cache_scope: String,

    /// Steps before it listens or reads.
    pub start: Start,
    /// Methods that are never answered.
    pub silent_on: Vec<String>,
    /// Methods answered with this JSON-RPC error object.
    pub errors_on: BTreeMap<String, Value>,
    /// Methods on which the process ends with this code.
    pub exit_on: BTreeMap<String, i32>,
    /// Methods answered after this many milliseconds.
    pub delay_ms: BTreeMap<String, u64>,
    /// Ends with code 1 on any other request than `initialize` or `ping` before `initialize`.
    pub exit_before_initialize: bool,
    /// The process ends in the middle of the call after this many calls.
    pub crash_after_calls: Option<u64>,
    /// A call continues although the client cancelled it.
    pub ignore_cancel: bool,

    /// Lines put on the channel before every message (stdio; `\u001b[32m` is one).
    pub noise: Vec<String>,
    /// This many `tools/list_changed` notices right after `notifications/initialized`.
    pub storm_after_initialized: u64,
    /// Log messages at all eight levels right after `notifications/initialized`.
    pub log_after_initialized: bool,

    /// A file that gets one JSON line per event; several processes may share it.
    pub facts: Option<PathBuf>,
    /// Only stdio: a label of the encoding it reads and writes, such as `latin1`.
    pub encoding: Option<String>,
    /// SIGTERM has no effect.
    pub ignore_sigterm: bool,
    /// Only stdio: stays alive after its input ended.
    pub ignore_eof: bool,

    /// Faults of HTTP requests, for `http`, `sse` and the upgrade of `ws`. The first that applies
    /// is used.
    pub faults: Vec<Fault>,
    /// Only streamable HTTP.
    pub http: Http,
    /// Only legacy SSE.
    pub sse: Sse,
    /// Only WebSocket.
    pub ws: Ws,
}

/// Which protocol eras a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize` and sessions.
    #[default]
    Legacy,
    /// Stateless, `server/discover`.
    Modern,
    /// Whatever a request asks for.
    Both,
}

/// A number of generated entries or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Entries {
    /// This many, with generated names.
    Count(usize),
    /// These.
    List(Vec<Map<String, Value>>),
}

/// A number of generated tools or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Tools {
    /// `tool_0001` and so on, which behave like `echo`.
    Count(usize),
    /// These, in this order.
    List(Vec<Tool>),
}

/// A tool of a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Tool {
    /// A built-in one, by name.
    BuiltIn(String),
    /// Shown by `tools/list` exactly as given, except for `behaves` (the built-in tool that runs
    /// when it is called, `echo` by default) and `result` (a fixed result instead).
    Own(Map<String, Value>),
}

/// The behaviour of cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// As they should.
    #[default]
    Normal,
    /// The second page has the legal cursor `""`.
    EmptyCursor,
    /// Every page names the same next cursor.
    EndlessSame,
    /// Every page names the next cursor `""`.
    EndlessEmpty,
    /// Every page names another next cursor and brings other names.
    EndlessNew,
}

/// Steps before a server listens or reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// Waits this long.
    pub delay_ms: u64,
    /// Text for standard error.
    pub stderr: String,
    /// Then this many bytes of lines on standard error.
    pub stderr_bytes: usize,
    /// Lines for standard output (stdio).
    pub noise: Vec<String>,
    /// Ends with this code.
    pub exit: Option<i32>,
    /// Reads nothing, answers nothing.
    pub hang: bool,
}

/// A fault of one or more HTTP requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Only requests with this HTTP method.
    pub method: Option<String>,
    /// Only requests whose body has this JSON-RPC method.
    pub rpc: Option<String>,
    /// Number of matching requests that are spared first.
    #[serde(default)]
    pub skip: u64,
    /// Number of requests that are hit; all by default.
    pub times: Option<u64>,
    /// The fault.
    #[serde(rename = "do")]
    pub action: Action,
}

/// The fault that hits an HTTP request. The message in it is not handled.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Answers with this status.
    Answer {
        /// The status.
        status: u16,
        /// Headers, such as `Retry-After` or `WWW-Authenticate`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The body.
        #[serde(default)]
        body: String,
    },
    /// Answers with a JSON-RPC error that carries the request's id.
    AnswerError {
        /// The status.
        status: u16,
        /// The code of the error.
        code: i64,
        /// Its message.
        message: String,
    },
    /// 307 to this URL; `self` is the URL asked for, which makes a loop.
    Redirect(String),
    /// No byte of an answer, ever.
    Stall,
    /// Half an answer, then silence.
    StallMidway,
    /// Half an answer, then one byte per interval, in milliseconds.
    Drip(u64),
    /// Half an answer, then the connection is closed.
    Cut,
    /// Half an event, then the connection is closed.
    CutSse,
}

/// The behaviour of streamable HTTP.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a scenario file")]
pub struct Http {
    /// As JSON or as an event stream.
    pub answer: Answer,
    /// True if there is a GET stream (legacy); 405 otherwise.
    pub get_stream: bool,
    /// True if there are session ids (legacy).
    pub sessions: bool,
    /// The session is forgotten, once, instead of this call (counted from 1).
    pub expire_session_at_call: Option<u64>,
    /// The error of a lost session carries the id of the request it answers.
    pub expiry_names_request: bool,
    /// Number of first calls that get a stream which closes before the answer and has to be resumed with
    /// `Last-Event-ID`.
    pub resume_calls: u64,
    /// The `retry:` field of such a stream.
    pub retry_ms: Option<u64>,
    /// True if modern requests need matching `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*`
    /// headers.
    pub check_headers: bool,
}

/// The form of an HTTP answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// JSON where the answer is the first message, a stream otherwise.
    #[default]
    Auto,
    /// Always JSON; other messages go to the GET stream.
    Json,
    /// Always a stream.
    Sse,
}

/// Faults of legacy SSE.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sse {
    /// The data of the `endpoint` event instead of the right one, such as a URL elsewhere.
    pub endpoint: Option<String>,
    /// The `endpoint` event never comes.
    pub no_endpoint: bool,
}

/// Faults of WebSocket.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ws {
    /// The connection is closed in the middle of this call (counted from 1, over all connections).
    pub close_at_call: Option<u64>,
    /// ...without a close frame.
    pub close_abruptly: bool,
    /// Pings are not answered.
    pub no_pong: bool,
    /// The subprotocol `mcp` is not confirmed.
    pub no_subprotocol: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
        Self {
            era: Era::default(),
            name: "mcp-fixture".to_owned(),
            instructions: None,
            protocol_versions: known.map(str::to_owned).to_vec(),
            capabilities: None,
            tools: None,
            prompts: None,
            resources: None,
            templates: None,
            page_size: None,
            pages: Pages::default(),
            ttl_ms: 0,
            cache_scope: "private".to_owned(),
            start: Start::default(),
            silent_on: Vec::new(),
            errors_on: BTreeMap::new(),
            exit_on: BTreeMap::new(),
            delay_ms: BTreeMap::new(),
            exit_before_initialize: false,
            crash_after_calls: None,
            ignore_cancel: false,
            noise: Vec::new(),
            storm_after_initialized: 0,
            log_after_initialized: false,
            facts: None,
            encoding: None,
            ignore_sigterm: false,
            ignore_eof: false,
            faults: Vec::new(),
            http: Http::default(),
            sse: Sse::default(),
            ws: Ws::default(),
        }
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            answer: Answer::default(),
            get_stream: true,
            sessions: true,
            expire_session_at_call: None,
            expiry_names_request: false,
            resume_calls: 0,
            retry_ms: None,
            check_headers: true,
        }
    }
}
