//! The execution log: looking calls up, and following it.

mod query;
mod shared;
mod tail;

use std::path::PathBuf;

use haft::record::{Filter, LogError};
use haft::{Code, Status};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::serve::Problem;
use crate::timestamp;

/// Largest and default number of calls in one answer.
const LIMIT_MAX: usize = 1000;
const LIMIT_DEFAULT: usize = 50;

pub(super) fn routes() -> Routes {
    let admin = OpenApiRouter::new()
        .routes(routes!(query::list))
        .routes(routes!(query::show))
        .routes(routes!(query::why))
        .routes(routes!(tail::tail));
    Routes { admin, ..Routes::default() }
}

/// Which calls.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Only calls of this tool.
    tool: Option<String>,
    /// Only calls with this status: `success` or `error`.
    #[param(value_type = Option<String>)]
    status: Option<Status>,
    /// Only calls of this caller, such as `key:NAME`.
    caller: Option<String>,
    /// Only calls of this session.
    session: Option<String>,
    /// Only calls of tools of this server.
    server: Option<String>,
    /// Only calls that failed with this error code, such as `Timeout`.
    #[param(value_type = Option<String>)]
    code: Option<Code>,
    /// Only calls whose entry contains this text, in any case: names, input, output, error.
    text: Option<String>,
    /// Only calls since then: a duration such as `2h`, a date, or a time.
    since: Option<String>,
    /// Only calls until then.
    until: Option<String>,
    /// The newest calls, at most this many; 50 by default, 1000 at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The newest first; otherwise in the order they were recorded.
    newest_first: Option<bool>,
}

impl Which {
    fn filter(self) -> Result<Filter, Problem> {
        let limit = self.limit.unwrap_or(LIMIT_DEFAULT);
        if limit == 0 || limit > LIMIT_MAX {
            return Err(Problem::bad_request(format!("`limit` is {limit}"))
                .remedy(format!("ask for 1 to {LIMIT_MAX} calls, and use `until` to go back")));
        }
        Ok(Filter {
            execution_id: None,
            tool: self.tool,
            status: self.status,
            since: parse_timestamp("since", self.since.as_deref())?,
            until: parse_timestamp("until", self.until.as_deref())?,
            session: self.session,
            server: self.server,
            caller: self.caller,
            code: self.code,
            text: self.text,
            limit: Some(limit),
        })
    }
}

fn parse_timestamp(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    text.map(timestamp::parse).transpose().map_err(|problem| {
        Problem::bad_request(format!("`{name}` is an invalid timestamp: {problem}"))
            .remedy("write `2h`, `2026-01-31` or `2026-01-31T09:00:00Z`")
    })
}

/// The folder of the log.
fn dir(service: &Service) -> PathBuf {
    service.live.runtime().config().log.dir.value.clone()
}

fn unreadable(error: &LogError) -> Problem {
    Problem::unavailable(error.problem()).remedy(error.remedy())
}
