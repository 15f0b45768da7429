//! The arguments of a tool that travel as headers too, known from its schema.

use std::sync::Arc;

use serde_json::Value;

use crate::client::param_headers::{self, ParamHeader};

/// The headers that a call of a tool has to carry beside its arguments. Found once, when the tool is registered.
#[derive(Debug, Clone)]
pub struct ParamHeaders(pub(super) Arc<[ParamHeader]>);

impl ParamHeaders {
    /// Finds them in the schema of a tool's arguments. A tool that marks its headers wrongly has none.
    pub fn of_schema(schema: &Value) -> Self {
        Self(param_headers::of_schema(schema).unwrap_or_default().into())
    }
}
