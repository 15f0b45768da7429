//! The frame of the HTTP service: what every request passes before it reaches an endpoint, and the
//! listener it comes from. Knows no endpoint and no configuration.

mod accept;
mod access;
mod cors;
mod extract;
mod failures;
mod frame;
mod guard;
mod listener;
mod memory;
mod problem;
mod pulse;
mod refusal;
mod request_id;
mod socket;
mod table;
mod tls;

pub(crate) use access::name_of;
pub use access::{Caller, may_listen};
pub use extract::{BODY_BYTES_MAX, BodyLimits, CallJson, Json, Path, Query};
pub(crate) use extract::{is_json, read_body};
pub use frame::Frame;
pub use guard::GuardSettings;
pub use listener::{Connection, Ended, EndsByItself, ListenError, Listener, ListenerSettings};
pub(crate) use memory::RequestMemory;
pub(crate) use problem::long_name;
pub use problem::{FieldProblem, Problem, ProblemDocument};
pub use request_id::RequestId;
pub use tls::{TlsError, TlsFiles};
