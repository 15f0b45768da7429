//! Search queries.

use haft_bounds::parse_error::describe;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ToolFailure;

/// Maximum number of results.
pub const RESULTS_MAX: usize = 20;
const RESULTS_DEFAULT: usize = 5;
/// Brave's limit.
const QUERY_CHARS_MAX: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct Question {
    pub(super) query: String,
    #[serde(default = "results_default")]
    pub(super) max_results: usize,
    pub(super) time_range: Option<TimeRange>,
}

/// The maximum age of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TimeRange {
    Day,
    Week,
    Month,
    Year,
}

impl TimeRange {
    /// The value for `SearXNG` and Tavily.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// The value for Brave and `DuckDuckGo`.
    pub(super) fn letter(self) -> &'static str {
        &self.word()[..1]
    }
}

fn results_default() -> usize {
    RESULTS_DEFAULT
}

impl Question {
    pub(super) fn read(arguments: &str) -> Result<Self, ToolFailure> {
        let mut question: Self = serde_json::from_str(arguments).map_err(|error| {
            ToolFailure::execution(format!("the arguments: {}", describe(&error)))
        })?;
        question.query = question.query.split_whitespace().collect::<Vec<_>>().join(" ");
        if question.query.is_empty() {
            return Err(ToolFailure::Execution {
                message: "`query` is empty".into(),
                remedy: Some("write the words to search for".into()),
                details: Value::Null,
            });
        }
        question.max_results = question.max_results.clamp(1, RESULTS_MAX);
        Ok(question)
    }
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": QUERY_CHARS_MAX,
                "description": "What to search for, in a few words.",
            },
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "maximum": RESULTS_MAX,
                "default": RESULTS_DEFAULT,
                "description": "How many results at most.",
            },
            "time_range": {
                "type": "string",
                "enum": ["day", "week", "month", "year"],
                "description": "Only pages of the last day, week, month or year.",
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}
