//! The frame of the HTTP service: what every request passes before it reaches an endpoint, and the
//! listener it comes from. Knows no endpoint and no configuration.

mod accept;
mod access;
mod activity;
mod body;
mod caller_paths;
mod checked_service;
mod connection;
mod cors;
mod direct;
mod extract;
mod failures;
mod guard;
mod http_service;
mod identification;
mod listener;
mod memory;
mod peer_events;
mod peers;
mod problem;
mod refusal;
mod request_id;
mod self_wake;
mod sessions;
mod socket;
mod table;
mod tls;

pub(crate) use access::name_of;
pub use access::{AdminOnly, Caller, may_listen};
pub use activity::RequestBody;
pub use body::{Response, ResponseBody};
pub use checked_service::CheckedService;
pub use direct::{DirectEndpoints, DirectRequest, RouterOnly};
pub use extract::{BODY_BYTES_MAX, BodyLimits, CallJson, Json, Path, Query};
pub(crate) use extract::{
    BODY_COPIES, CALL_COPIES, parse_json, read_body, read_bytes, require_json,
};
pub use guard::GuardSettings;
pub use http_service::HttpService;
pub use listener::{Connection, Ended, EndsByItself, ListenError, Listener, ListenerSettings};
pub(crate) use memory::RequestMemory;
pub(crate) use peer_events::{PeerEvent, PeerEvents, PeerUpdate};
pub(crate) use peers::{GATHER_TIMEOUT, Gone, PeerRequest, is_forwarded};
pub use peers::{Peers, ReplicaInfo, Replicas};
pub(crate) use problem::{DOCS, long_name};
pub use problem::{FieldProblem, Problem, ProblemDocument};
pub use request_id::RequestId;
pub(crate) use request_id::with_current as with_current_request;
pub use sessions::Sessions;
pub use tls::{TlsError, TlsFiles};
