//! The frame of the HTTP service: what every request passes before it reaches an endpoint, and the
//! listener it comes from. Knows no endpoint and no configuration.

mod access;
mod cors;
mod extract;
mod failures;
mod frame;
mod guard;
mod listener;
mod problem;
mod pulse;
mod request_id;
mod share;
mod tls;

pub(crate) use access::name_of;
pub use access::{Caller, may_listen};
pub use extract::{BODY_BYTES_MAX, Json, Path, Query};
pub(crate) use extract::{is_json, read_body};
pub use frame::Frame;
pub use guard::GuardSettings;
pub use listener::{Connection, Ended, EndsByItself, ListenError, Listener, ListenerSettings};
pub use problem::{FieldProblem, Problem, ProblemDocument};
pub use request_id::RequestId;
pub use tls::{TlsError, TlsFiles};
