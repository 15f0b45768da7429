//! Lists of a server, page by page, within limits.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;
use std::collections::HashMap;

use haft_bounds::heavy;
use haft_bounds::json;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Client, Params, param_headers, tasks};
use crate::error::RequestError;
use crate::tool::ToolDescription;
use crate::transport::Era;
use crate::{PromptDescription, ResourceDescription, ResourceTemplate};

/// The longest name and description of a tool.
const NAME_BYTES_MAX: usize = 256;
const DESCRIPTION_BYTES_MAX: usize = 64 * 1024;

/// All pages of a list together may be as large as this many messages: they stay in memory.
const LIST_MESSAGES_MAX: usize = 4;

/// A list of a server.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    /// The items that could be read, in the server's order.
    pub items: Vec<T>,
    /// Why the list may lack something: a limit was reached, an item could not be read.
    pub gaps: Vec<String>,
    /// Cache lifetime of the list (`ttlMs`), in milliseconds; the shortest of all pages.
    pub ttl_ms: Option<u64>,
}

impl Client {
    /// The server's tools.
    pub async fn list_tools(&self) -> Result<Listed<ToolDescription>, RequestError> {
        let mut listed = self.list::<ToolDescription>("tools/list", "tools").await?;
        leave_out_oversized(&mut listed);
        if self.identity.era == Era::Modern && self.session.transport().answers_in_exchange() {
            self.learn_param_headers(&mut listed);
        }
        if self.identity.era == Era::Legacy {
            let required = listed.items.iter().filter(|tool| tasks::requires_task(tool));
            *self.task_tools() = required.map(|tool| tool.name.clone()).collect();
        }
        Ok(listed)
    }

    /// The server's prompts.
    pub async fn list_prompts(&self) -> Result<Listed<PromptDescription>, RequestError> {
        self.list("prompts/list", "prompts").await
    }

    /// The server's resources.
    pub async fn list_resources(&self) -> Result<Listed<ResourceDescription>, RequestError> {
        self.list("resources/list", "resources").await
    }

    /// The server's resource templates.
    pub async fn list_resource_templates(&self) -> Result<Listed<ResourceTemplate>, RequestError> {
        self.list("resources/templates/list", "resourceTemplates").await
    }

    async fn list<T: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        key: &'static str,
    ) -> Result<Listed<T>, RequestError> {
        let limits = self.options.limits;
        // Each page has the time of a request, and all that follow the first one together as well.
        let time_max = self.options.request_timeout;
        let ends = Instant::now() + time_max;
        let mut listed = Listed { items: Vec::new(), gaps: Vec::new(), ttl_ms: None };
        let mut cursor: Option<String> = None;
        let mut room = Room {
            nodes: limits.nodes_max.saturating_mul(LIST_MESSAGES_MAX),
            bytes: limits.message_bytes_max.saturating_mul(LIST_MESSAGES_MAX),
        };
        let mut unreadable = 0;
        for _ in 0..limits.pages_max {
            let params = match &cursor {
                Some(cursor) => Params::new().text("cursor", cursor),
                None => Params::new(),
            };
            let asking = self.ask(method, params, self.limited(None));
            let answer = if cursor.is_none() {
                asking.await?
            } else if let Ok(answer) = tokio::time::timeout_at(ends, asking).await {
                answer?
            } else {
                listed.gaps.push(format!(
                    "its list of {key} did not end within {time_max:?} (`request_timeout`); the \
                     rest is left out"
                ));
                return Ok(listed);
            };
            let bytes = answer.get().len();
            // One more than is kept shows that there are more.
            let items_max = limits.items_max.saturating_add(1);
            let read = move || Page::read(&answer, method, key, items_max);
            let page = heavy::run(bytes, read).await?;
            listed.ttl_ms = listed.ttl_ms.into_iter().chain(page.ttl_ms).min();
            room.nodes = room.nodes.saturating_sub(page.nodes);
            room.bytes = room.bytes.saturating_sub(bytes);
            if room.nodes == 0 || room.bytes == 0 {
                listed.gaps.push(format!(
                    "its list of {key} is larger than {LIST_MESSAGES_MAX} messages; the rest is left out"
                ));
                return Ok(listed);
            }
            for item in page.items {
                if listed.items.len() + unreadable == limits.items_max {
                    let max = limits.items_max;
                    listed.gaps.push(format!("it has more than {max} {key}; the rest is left out"));
                    return Ok(listed);
                }
                match item {
                    Ok(item) => listed.items.push(item),
                    Err(error) => {
                        unreadable += 1;
                        if unreadable == 1 {
                            listed.gaps.push(format!(
                                "one of its {key} cannot be read: {}",
                                describe(&error)
                            ));
                        }
                    }
                }
            }
            match page.next {
                None => return Ok(listed),
                next if next == cursor => {
                    listed.gaps.push(format!("its list of {key} repeats one page for ever"));
                    return Ok(listed);
                }
                next => cursor = next,
            }
        }
        let max = limits.pages_max;
        listed.gaps.push(format!("its list of {key} has more than {max} pages"));
        Ok(listed)
    }

    /// Remembers which arguments travel as headers; leaves out tools with invalid annotations.
    fn learn_param_headers(&self, listed: &mut Listed<ToolDescription>) {
        let mut param_headers = HashMap::new();
        let Listed { items, gaps, ttl_ms: _ } = listed;
        items.retain(|tool| match param_headers::of_schema(&tool.input_schema) {
            Ok(found) => {
                if !found.is_empty() {
                    param_headers.insert(tool.name.clone(), found);
                }
                true
            }
            Err(why) => {
                gaps.push(format!("its tool `{}` is left out: {why}", tool.name));
                false
            }
        });
        *self.param_headers() = param_headers;
    }
}

/// Leaves out tools with an oversized name or description.
fn leave_out_oversized(listed: &mut Listed<ToolDescription>) {
    let Listed { items, gaps, ttl_ms: _ } = listed;
    items.retain(|tool| {
        let (name, description) = (tool.name.len(), tool.description.len());
        let fits = name <= NAME_BYTES_MAX && description <= DESCRIPTION_BYTES_MAX;
        if !fits {
            let shown: String = tool.name.chars().take(64).collect();
            gaps.push(format!(
                "its tool `{shown}` is left out: its name has {name} and its description \
                 {description} bytes"
            ));
        }
        fits
    });
}

/// Remaining budget of the following pages.
struct Room {
    nodes: usize,
    bytes: usize,
}

struct Page<T> {
    items: Vec<Result<T, serde_json::Error>>,
    next: Option<String>,
    ttl_ms: Option<u64>,
    nodes: usize,
}

impl<T: DeserializeOwned> Page<T> {
    fn read(
        answer: &RawValue,
        method: &str,
        key: &str,
        items_max: usize,
    ) -> Result<Self, RequestError> {
        #[derive(Deserialize)]
        struct Cursor {
            #[serde(default, rename = "nextCursor")]
            next: Option<String>,
            /// Not a number: as good as none.
            #[serde(default, rename = "ttlMs")]
            ttl: serde_json::Value,
        }
        let answer = answer.get();
        let malformed = |error: &dyn std::fmt::Display| {
            RequestError::protocol(format!(
                "the answer to `{method}` is malformed: {}",
                describe(&error)
            ))
        };
        let mut fields: HashMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(answer).map_err(|error| malformed(&error))?;
        let items = fields.remove(key).ok_or_else(|| malformed(&format!("`{key}` is missing")))?;
        let items: Vec<&RawValue> =
            serde_json::from_str(items.get()).map_err(|error| malformed(&error))?;
        let Cursor { next, ttl } =
            serde_json::from_str(answer).map_err(|error| malformed(&error))?;
        let items = items.into_iter().take(items_max);
        let items = items.map(|item| serde_json::from_str(item.get())).collect();
        Ok(Self {
            items,
            next,
            ttl_ms: ttl.as_u64(),
            nodes: json::measure(answer.as_bytes()).nodes,
        })
    }
}
