//! Lists of a server, page by page, within limits.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Client, Params, mirror};
use crate::error::RequestError;
use crate::tool::ToolDescription;
use crate::transport::Era;
use crate::{PromptDescription, ResourceDescription, ResourceTemplate};

/// The longest name and description of a tool.
const NAME_BYTES_MAX: usize = 1024;
const DESCRIPTION_BYTES_MAX: usize = 64 * 1024;

/// What a server listed.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    /// The items that could be read, in the server's order.
    pub items: Vec<T>,
    /// Why the list may lack something: a limit was reached, an item could not be read.
    pub gaps: Vec<String>,
}

impl Client {
    /// The server's tools.
    pub async fn list_tools(&self) -> Result<Listed<ToolDescription>, RequestError> {
        let mut listed = self.list::<ToolDescription>("tools/list", "tools").await?;
        leave_out_oversized(&mut listed);
        if self.identity.era == Era::Modern && self.session.transport().answers_in_exchange() {
            self.learn_mirrors(&mut listed);
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

    async fn list<T: DeserializeOwned>(
        &self,
        method: &str,
        key: &str,
    ) -> Result<Listed<T>, RequestError> {
        let limits = self.options.limits;
        // Each page has the time of a request, and all that follow the first one together as well.
        let time_max = self.options.request_timeout;
        let ends = Instant::now() + time_max;
        let mut listed = Listed { items: Vec::new(), gaps: Vec::new() };
        let mut cursor: Option<String> = None;
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
            let page = Page::read(&answer, method, key)?;
            for item in page.items {
                if listed.items.len() + unreadable == limits.items_max {
                    let max = limits.items_max;
                    listed.gaps.push(format!("it has more than {max} {key}; the rest is left out"));
                    return Ok(listed);
                }
                match serde_json::from_str(item.get()) {
                    Ok(item) => listed.items.push(item),
                    Err(error) => {
                        unreadable += 1;
                        if unreadable == 1 {
                            listed.gaps.push(format!("one of its {key} cannot be read: {error}"));
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

    /// Remembers which arguments travel as headers; leaves out tools that say it wrongly.
    fn learn_mirrors(&self, listed: &mut Listed<ToolDescription>) {
        let mut mirrors = std::collections::HashMap::new();
        let Listed { items, gaps } = listed;
        items.retain(|tool| match mirror::of_schema(&tool.input_schema) {
            Ok(found) => {
                if !found.is_empty() {
                    mirrors.insert(tool.name.clone(), found);
                }
                true
            }
            Err(why) => {
                gaps.push(format!("its tool `{}` is left out: {why}", tool.name));
                false
            }
        });
        *self.mirrors() = mirrors;
    }
}

/// Leaves out tools whose name or description is no such thing any more.
fn leave_out_oversized(listed: &mut Listed<ToolDescription>) {
    let Listed { items, gaps } = listed;
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

struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
}

impl Page {
    fn read(answer: &RawValue, method: &str, key: &str) -> Result<Self, RequestError> {
        #[derive(Deserialize)]
        struct Cursor {
            #[serde(default, rename = "nextCursor")]
            next: Option<String>,
        }
        let malformed = |error: &dyn std::fmt::Display| {
            RequestError::protocol(format!("the answer to `{method}` is malformed: {error}"))
        };
        let mut fields: std::collections::HashMap<String, Box<RawValue>> =
            serde_json::from_str(answer.get()).map_err(|error| malformed(&error))?;
        let items = fields.remove(key).ok_or_else(|| malformed(&format!("`{key}` is missing")))?;
        let items = serde_json::from_str(items.get()).map_err(|error| malformed(&error))?;
        let Cursor { next } =
            serde_json::from_str(answer.get()).map_err(|error| malformed(&error))?;
        Ok(Self { items, next })
    }
}
