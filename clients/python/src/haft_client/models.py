"""Shapes of the API, generated from its OpenAPI document by generate.py. Do not edit."""

from __future__ import annotations

from typing import Any, Literal, Union

from typing_extensions import NotRequired, TypedDict


class Alive(TypedDict):
    """The service lives."""

    status: str


class AnswerRequest(TypedDict):
    """An answer, or that there will be none."""

    answer: NotRequired[Any]
    reason: NotRequired[Union[str, None]]
    refuse: NotRequired[bool]


class ApproveRequest(TypedDict):
    """The definitions to approve."""

    hash: NotRequired[Union[str, None]]
    kind: NotRequired[Union[LockedKind, None]]
    name: NotRequired[Union[str, None]]
    server: str


class Approved(TypedDict):
    """The approved definitions."""

    approved: list[Drift]


AuditEntry = TypedDict(
    "AuditEntry",
    {
        "action": "str",
        "after": "NotRequired[dict[str, Any]]",
        "at": "str",
        "before": "NotRequired[dict[str, Any]]",
        "from": "str",
        "id": "str",
        "outcome": "str",
        "status": "NotRequired[int]",
        "target": "NotRequired[str]",
        "who": "str",
    },
)


class AuditList(TypedDict):
    """Actions of admins."""

    actions: list[AuditEntry]
    malformed: int


class BatchAnswer(TypedDict):
    """The answers, in the order of the calls."""

    results: list[Envelope]


class BatchCall(TypedDict):
    """One of several calls."""

    approved: NotRequired[bool]
    arguments: NotRequired[dict[str, Any]]
    request: NotRequired[Union[str, None]]
    session: NotRequired[Union[str, None]]
    tool: str


class BatchRequest(TypedDict):
    """Several calls."""

    calls: list[BatchCall]


class BlockedDefinition(TypedDict):
    """The definition of a tool that is not the approved one."""

    approved: NotRequired[Union[str, None]]
    current: str


class Busy(TypedDict):
    """The load of the toolbox. Calls start and end while it is read, so the numbers need not add up."""

    in_flight: int
    max_concurrent: int
    tools: list[BusyTool]
    waiting: int


class BusyTool(TypedDict):
    """The load of one tool."""

    in_flight: int
    max_instances: int
    tool: str
    waiting: int


class CallError(TypedDict):
    """Why a call failed."""

    code: CallErrorCode
    details: NotRequired[Any]
    docs: NotRequired[str]
    message: str
    remedy: NotRequired[Union[str, None]]


CallErrorCode = Literal['UnknownTool', 'Denied', 'ValidationError', 'OutputValidationError', 'Busy', 'Timeout', 'Cancelled', 'ToolExecutionError', 'ServiceUnavailable', 'ProtocolError', 'OutcomeUnknown', 'DefinitionChanged', 'Stopping']


class CallRequest(TypedDict):
    """Arguments and options of a call."""

    approved: NotRequired[bool]
    arguments: NotRequired[dict[str, Any]]
    request: NotRequired[Union[str, None]]
    session: NotRequired[Union[str, None]]


CallState = Literal['waiting', 'running']


CallStatus = Literal['success', 'error']


class Changed(TypedDict):
    """The result of a change, which is durable and in use."""

    name: str
    outcome: Outcome
    revision: str
    tool: NotRequired[Union[Tool, None]]


class ClosedItem(TypedDict):
    """The outcome of a question, and the question."""

    how: str
    warning: NotRequired[Union[str, None]]


Content = dict[str, Any]


class Contents(TypedDict):
    """A resource."""

    contents: list[dict[str, Any]]


class ConversationCall(TypedDict):
    """A tool call of the model."""

    arguments: str
    id: str
    tool: str


class ConversationList(TypedDict):
    """The stored conversations."""

    conversations: list[ConversationSummary]


ConversationMessage = dict[str, Any]


class ConversationResult(TypedDict):
    """The result of such a call."""

    call_id: str
    is_error: bool
    text: str


class ConversationSummary(TypedDict):
    """A stored conversation."""

    created: str
    id: str
    messages: int
    model: str
    title: str
    updated: str


class CreatedKey(TypedDict):
    """A new key. Its text cannot be shown again."""

    key: str
    name: str
    profile: NotRequired[Union[str, None]]
    scope: str


class DefinitionChange(TypedDict):
    """One change of a definition."""

    after: NotRequired[Any]
    at: str
    before: NotRequired[Any]
    kind: str
    words: NotRequired[list[WordEdit]]


class Drift(TypedDict):
    """An item that differs from the lock file."""

    approved: NotRequired[Union[str, None]]
    changes: list[DefinitionChange]
    current: NotRequired[Union[str, None]]
    kind: LockedKind
    name: str
    renamed_from: NotRequired[Union[str, None]]
    server: str
    state: str


Effective = TypedDict(
    "Effective",
    {
        "from": "str",
        "origin": "str",
        "path": "str",
        "value": "Any",
    },
)


EffectiveValue = TypedDict(
    "EffectiveValue",
    {
        "from": "str",
        "key": "str",
        "origin": "str",
        "value": "Any",
    },
)


class Envelope(TypedDict):
    """The answer to one call, whatever ran and however it ended."""

    content: list[Content]
    data: Any
    duration_ms: int
    error: NotRequired[Union[CallError, None]]
    execution_id: str
    message: NotRequired[Union[str, None]]
    queued_ms: int
    status: CallStatus
    tool: str


class Explanation(TypedDict):
    """The decision on a call."""

    caller: NotRequired[Union[str, None]]
    decision: NotRequired[Union[dict[str, Any], None]]
    effect: NotRequired[Union[str, None]]
    error: NotRequired[Union[str, None]]
    execution_id: str
    tool: str


class FieldProblem(TypedDict):
    """One thing that is wrong with what was sent."""

    place: str
    problem: str
    remedy: NotRequired[Union[str, None]]


class File(TypedDict):
    """A file the configuration was made from."""

    format: str
    name: str
    path: str


class Filled(TypedDict):
    """A prompt, filled in."""

    messages: list[dict[str, Any]]


class Filling(TypedDict):
    """Arguments to fill in."""

    arguments: NotRequired[dict[str, Any]]


class Following(TypedDict):
    """State of the file watcher."""

    problem: NotRequired[Union[NotInUse, None]]
    revision: NotRequired[Union[str, None]]
    since: str
    waiting_for_restart: list[str]


class Found(TypedDict):
    """The tools that fit a request, and what to do."""

    decision: SearchDecision
    missing: list[MissingParameter]
    missing_servers: NotRequired[list[str]]
    tools: list[FoundTool]


class FoundTool(TypedDict):
    """A tool and how well it fits."""

    description: str


class Glance(TypedDict):
    """The service at a glance."""

    calls: Busy
    live: Following
    log: LogState
    model: NotRequired[Union[str, None]]
    servers: int
    servers_by_state: dict[str, int]
    started: str
    tools: int
    version: str


class Identity(TypedDict):
    """The server's own description. Unverified."""

    capabilities: dict[str, Any]
    instructions: NotRequired[Union[str, None]]
    name: NotRequired[Union[str, None]]
    protocol_version: str
    version: NotRequired[Union[str, None]]


class ImportRequest(TypedDict):
    """The text of a client's file."""

    text: str


class ImportedServers(TypedDict):
    """The servers of the text."""

    servers: list[ServerRegistration]
    unset: list[str]
    warnings: list[str]


class InboxItem(TypedDict):
    """A question that waits for a person."""

    arguments: Any
    asked: str
    caller: NotRequired[Union[str, None]]
    execution_id: NotRequired[Union[str, None]]
    expires: str
    id: str
    kind: InboxKind
    options: list[str]
    question: str
    rule: NotRequired[Union[str, None]]
    schema: Any
    server: NotRequired[Union[str, None]]
    session: NotRequired[Union[str, None]]
    tool: NotRequired[Union[str, None]]


InboxKind = Literal['question', 'approval', 'sampling', 'elicitation', 'definition']


class Index(TypedDict):
    """Addresses of the service."""

    docs: str
    endpoints: list[str]
    mcp: str
    name: str
    openapi: str
    version: str


class KeyLimits(TypedDict):
    """The limits of a key."""

    burst: NotRequired[Union[int, None]]
    expires: NotRequired[Union[str, None]]
    log_quota: NotRequired[Union[str, None]]
    previous_until: NotRequired[Union[str, None]]
    quota: NotRequired[Union[str, None]]
    rate: NotRequired[Union[str, None]]
    servers: NotRequired[Union[list[str], None]]
    tools: NotRequired[Union[list[str], None]]


class KeyList(TypedDict):
    """The keys of the service, without their secrets."""

    keys: list[KeySummary]


KeyScope = Literal['admin', 'approve', 'call', 'metrics']


class KeySummary(TypedDict):
    """A key, without its text."""

    created: str
    last_used: NotRequired[Union[str, None]]
    name: str
    profile: NotRequired[Union[str, None]]
    scope: str


class LockStatus(TypedDict):
    """The lock file and what differs from it."""

    definitions: str
    drift: list[Drift]
    exists: bool
    file: str
    gone: list[str]
    unlisted: list[str]
    unlocked: list[str]


LockedKind = Literal['server', 'instructions', 'tool', 'prompt', 'resource_template']


class LogState(TypedDict):
    """State of the execution log."""

    entries_kept: int
    entries_lost: int
    is_working: bool
    problem: NotRequired[Union[str, None]]
    remedy: NotRequired[Union[str, None]]
    since: NotRequired[Union[str, None]]
    warning: NotRequired[Union[str, None]]


class LoggedCalls(TypedDict):
    """Calls of the log."""

    calls: list[dict[str, Any]]
    malformed: int
    unreadable: list[str]


class MissingParameter(TypedDict):
    """A required parameter without a value in the request."""

    description: NotRequired[str]
    name: str


class NewKey(TypedDict):
    """A key to create."""

    burst: NotRequired[Union[int, None]]
    expires: NotRequired[Union[str, None]]
    log_quota: NotRequired[Union[str, None]]
    name: str
    profile: NotRequired[Union[str, None]]
    quota: NotRequired[Union[str, None]]
    rate: NotRequired[Union[str, None]]
    scope: NotRequired[KeyScope]
    servers: NotRequired[list[str]]
    tools: NotRequired[list[str]]


class NotInUse(TypedDict):
    """Why the files as they are now are not in use. The state before stays."""

    errors: list[FieldProblem]
    since: str
    text: str


class OpenItems(TypedDict):
    """The open questions."""

    items: list[InboxItem]
    replicas_missing: NotRequired[list[int]]


Outcome = Literal['added', 'replaced']


class Problem(TypedDict):
    """The failure, its cause, and the remedy."""

    code: str
    detail: str
    docs: NotRequired[Union[str, None]]
    errors: NotRequired[list[FieldProblem]]
    remedy: NotRequired[Union[str, None]]
    request_id: NotRequired[Union[str, None]]
    status: int
    title: str
    type: str


class ProfileList(TypedDict):
    """The profiles of the configuration."""

    profiles: list[ProfileSummary]


class ProfileSummary(TypedDict):
    """A profile and its tools."""

    endpoint: str
    name: str
    surface: str
    tools: list[ProfileTool]


class ProfileTool(TypedDict):
    """A tool of a profile."""

    description: str
    name: str
    server: NotRequired[Union[str, None]]


class Prompt(TypedDict):
    """A prompt and the server that has it."""

    arguments: list[dict[str, Any]]
    description: str
    name: str
    server: str
    title: NotRequired[Union[str, None]]


class Prompts(TypedDict):
    """The prompts of the servers that answered."""

    prompts: list[Prompt]


class RankedTool(TypedDict):
    """The score of a tool."""

    score: float
    tool: str
    why: Why


class Readiness(TypedDict):
    """True if the service can do its work."""

    reasons: NotRequired[list[Reason]]
    status: ReadyStatus


ReadyStatus = Literal['ready', 'starting', 'degraded', 'draining', 'unready']


class Reason(TypedDict):
    """One thing that does not work."""

    what: str
    why: str


class ReplicaEntry(TypedDict):
    """One replica, as it last reported itself."""

    address: str
    config: str
    number: int
    problem: NotRequired[Union[str, None]]
    revision: NotRequired[Union[str, None]]
    seen_ms_ago: int
    version: str


class ReplicaList(TypedDict):
    """The live replicas."""

    own: int
    replicas: list[ReplicaEntry]


class Resolved(TypedDict):
    """The configuration in use."""

    files: list[File]
    live: Following
    values: list[Effective]
    warnings: list[FieldProblem]


class Resources(TypedDict):
    """Resources of the servers."""

    resources: list[dict[str, Any]]
    unavailable: list[Unavailable]


class Rotation(TypedDict):
    """The options of a rotation."""

    expires: NotRequired[Union[str, None]]
    overlap: NotRequired[Union[str, None]]


class RunList(TypedDict):
    """The runs that are known."""

    replicas_missing: NotRequired[list[int]]
    runs: list[RunSummary]


class RunRequest(TypedDict):
    """The agent's task."""

    approved: NotRequired[bool]
    input: str
    max_steps: NotRequired[Union[int, None]]
    session: NotRequired[Union[str, None]]
    system: NotRequired[Union[str, None]]


RunStatus = Literal['running', 'completed', 'failed', 'cancelled']


class RunSummary(TypedDict):
    """A run as it is shown."""

    caller: str
    end: NotRequired[Union[str, None]]
    ended: NotRequired[Union[str, None]]
    error: NotRequired[Union[dict[str, Any], None]]
    id: str
    model: str
    questions: list[dict[str, Any]]
    session: str
    started: str
    status: RunStatus
    steps: NotRequired[Union[int, None]]
    text: NotRequired[Union[str, None]]
    usage: NotRequired[Union[dict[str, Any], None]]


class RunningCall(TypedDict):
    """One call in flight."""

    caller: NotRequired[Union[str, None]]
    execution_id: str
    session: NotRequired[Union[str, None]]
    started: str
    state: CallState
    tool: str


class RunningCalls(TypedDict):
    """The calls in flight."""

    calls: list[RunningCall]
    replicas_missing: NotRequired[list[int]]


SearchDecision = Literal['use_tool', 'no_tool', 'ask_human']


class SeriesPoint(TypedDict):
    """One step."""

    at: str
    calls: int
    errors: int
    in_flight: int
    p50_ms: NotRequired[Union[float, None]]
    p95_ms: NotRequired[Union[float, None]]
    waiting: int


class Server(TypedDict):
    """A configured MCP server and how it is doing."""

    cached: NotRequired[bool]
    endpoint: str
    identity: NotRequired[Union[Identity, None]]
    in_registry: bool
    mode: str
    name: str
    prompts: NotRequired[Union[int, None]]
    reason: NotRequired[Union[str, None]]
    remedy: NotRequired[str]
    retries: int
    since: NotRequired[Union[str, None]]
    start: str
    state: StateName
    stray_lines: int
    tools: NotRequired[Union[int, None]]
    transport: str


class ServerDetails(TypedDict):
    """A server with everything there is to know about it."""

    definition: list[Effective]
    entry: NotRequired[Union[dict[str, Any], None]]
    history: list[StateChange]
    stderr_tail: NotRequired[Union[str, None]]
    tool_names: list[str]


class ServerRegistration(TypedDict):
    """A name and an entry of `mcp.json`: a local command or an address."""

    args: NotRequired[list[str]]
    command: NotRequired[str]
    mode: NotRequired[str]
    name: str
    url: NotRequired[str]


class Servers(TypedDict):
    """The configured servers."""

    servers: list[Server]


class Session(TypedDict):
    """The caller that a session acts for."""

    is_key: bool
    name: str
    profile: NotRequired[Union[str, None]]
    scope: str


class SignInAddress(TypedDict):
    """A sign-in that a person completes in a browser."""

    url: str


class SignInLink(TypedDict):
    """A link that opens the console signed in."""

    path: str


class SignInStatus(TypedDict):
    """The state of the last sign-in."""

    problem: NotRequired[Union[str, None]]
    remedy: NotRequired[Union[str, None]]
    state: str


class StateChange(TypedDict):
    """A change of a server's state."""

    at: str
    reason: NotRequired[Union[str, None]]
    state: StateName


StateName = Literal['misconfigured', 'disabled', 'configured', 'connecting', 'ready', 'degraded', 'unavailable', 'stopped']


class StoredConversation(TypedDict):
    """A stored conversation with its messages."""

    id: str
    messages: list[ConversationMessage]
    model: str


class TimeSeries(TypedDict):
    """The last hour in steps of equal length."""

    points: list[SeriesPoint]
    step_secs: int


class Tool(TypedDict):
    """A tool, and how busy it is."""

    entry: NotRequired[Union[dict[str, Any], None]]
    figures: ToolLoadStats
    registered: bool


class ToolEntry(TypedDict):
    """An entry of `tools.json`: a local tool, or settings for a tool of an MCP server."""

    annotations: NotRequired[ToolEntryAnnotations]
    config: NotRequired[ToolEntryConfig]
    description: NotRequired[str]
    examples: NotRequired[list[str]]
    icons: NotRequired[list[ToolEntryIcon]]
    input_schema: NotRequired[dict[str, Any]]
    max_instances: NotRequired[int]
    name: NotRequired[str]
    output_schema: NotRequired[dict[str, Any]]
    parallel_capable: NotRequired[bool]
    timeout: NotRequired[str]
    title: NotRequired[str]
    type: NotRequired[ToolSource]


class ToolEntryAnnotations(TypedDict):
    """Hints about the behaviour of a tool, as MCP defines them."""

    destructiveHint: NotRequired[bool]
    idempotentHint: NotRequired[bool]
    openWorldHint: NotRequired[bool]
    readOnlyHint: NotRequired[bool]
    title: NotRequired[str]


class ToolEntryConfig(TypedDict):
    """The execution settings of a tool of `tools.json`."""

    args: NotRequired[list[str]]
    command: NotRequired[list[str]]
    entrypoint: NotRequired[str]
    env: NotRequired[dict[str, Any]]
    requirements: NotRequired[list[str]]
    runtime: NotRequired[str]
    script_path: NotRequired[str]
    server: NotRequired[str]
    source: NotRequired[str]


class ToolEntryIcon(TypedDict):
    """An icon of a tool."""

    mimeType: NotRequired[str]
    sizes: NotRequired[list[str]]
    src: str
    theme: NotRequired[str]


class ToolInfo(TypedDict):
    """A tool, its settings and where each of them came from."""

    annotations: NotRequired[Union[dict[str, Any], None]]
    blocked: NotRequired[Union[BlockedDefinition, None]]
    cached: NotRequired[bool]
    config: list[EffectiveValue]
    config_origin: str
    description: str
    icons: NotRequired[Union[list[dict[str, Any]], None]]
    input_schema: Any
    kind: str
    mcp_mode: NotRequired[Union[str, None]]
    mcp_name: NotRequired[Union[str, None]]
    name: str
    name_warning: NotRequired[Union[str, None]]
    original_name: NotRequired[Union[str, None]]
    output_schema: Any
    program: NotRequired[Any]
    source: ToolSource
    title: NotRequired[Union[str, None]]


class ToolList(TypedDict):
    """Tools, and how many there are."""

    next: NotRequired[Union[str, None]]
    tools: list[ToolInfo]
    total: int


class ToolLoadStats(TypedDict):
    """The load of a tool."""

    in_flight: int
    max_instances: int
    waiting: int


ToolSource = Literal['local', 'mcp']


class Unavailable(TypedDict):
    """A server that could not be asked."""

    reason: str
    server: str


class Why(TypedDict):
    """Parts of a tool's score."""

    lexical: float
    semantic: float
    words: list[str]


class WordEdit(TypedDict):
    """A run of words of a changed text."""

    op: str
    text: str


__all__ = [
    "Alive",
    "AnswerRequest",
    "ApproveRequest",
    "Approved",
    "AuditEntry",
    "AuditList",
    "BatchAnswer",
    "BatchCall",
    "BatchRequest",
    "BlockedDefinition",
    "Busy",
    "BusyTool",
    "CallError",
    "CallErrorCode",
    "CallRequest",
    "CallState",
    "CallStatus",
    "Changed",
    "ClosedItem",
    "Content",
    "Contents",
    "ConversationCall",
    "ConversationList",
    "ConversationMessage",
    "ConversationResult",
    "ConversationSummary",
    "CreatedKey",
    "DefinitionChange",
    "Drift",
    "Effective",
    "EffectiveValue",
    "Envelope",
    "Explanation",
    "FieldProblem",
    "File",
    "Filled",
    "Filling",
    "Following",
    "Found",
    "FoundTool",
    "Glance",
    "Identity",
    "ImportRequest",
    "ImportedServers",
    "InboxItem",
    "InboxKind",
    "Index",
    "KeyLimits",
    "KeyList",
    "KeyScope",
    "KeySummary",
    "LockStatus",
    "LockedKind",
    "LogState",
    "LoggedCalls",
    "MissingParameter",
    "NewKey",
    "NotInUse",
    "OpenItems",
    "Outcome",
    "Problem",
    "ProfileList",
    "ProfileSummary",
    "ProfileTool",
    "Prompt",
    "Prompts",
    "RankedTool",
    "Readiness",
    "ReadyStatus",
    "Reason",
    "ReplicaEntry",
    "ReplicaList",
    "Resolved",
    "Resources",
    "Rotation",
    "RunList",
    "RunRequest",
    "RunStatus",
    "RunSummary",
    "RunningCall",
    "RunningCalls",
    "SearchDecision",
    "SeriesPoint",
    "Server",
    "ServerDetails",
    "ServerRegistration",
    "Servers",
    "Session",
    "SignInAddress",
    "SignInLink",
    "SignInStatus",
    "StateChange",
    "StateName",
    "StoredConversation",
    "TimeSeries",
    "Tool",
    "ToolEntry",
    "ToolEntryAnnotations",
    "ToolEntryConfig",
    "ToolEntryIcon",
    "ToolInfo",
    "ToolList",
    "ToolLoadStats",
    "ToolSource",
    "Unavailable",
    "Why",
    "WordEdit",
]
