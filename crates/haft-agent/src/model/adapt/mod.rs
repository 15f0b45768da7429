//! Converts tools to the provider's form, and calls back to the toolbox's: names and schemas change
//! on the way out, and back on the way in. Descriptions never change.

mod gemini;
mod names;
mod refs;
mod strict;
mod top;

use serde_json::Value;

use self::names::Names;
use super::ModelTool;
use super::provider::Provider;

/// The tools of one request.
pub(super) struct Offer {
    tools: Vec<OfferedTool>,
    names: Names,
}

/// A tool as the model sees it.
pub(super) struct OfferedTool {
    pub(super) name: String,
    /// Word for word.
    pub(super) description: String,
    pub(super) schema: Value,
    /// True if the provider enforces the schema.
    pub(super) is_strict: bool,
    /// The schema before it was made strict.
    loose: Option<Value>,
}

impl Offer {
    pub(super) fn new(tools: &[ModelTool], provider: Provider, wants_strict: bool) -> Self {
        let names = Names::new(tools.iter().map(|tool| tool.name.as_str()), provider);
        let is_strict = wants_strict && provider == Provider::OpenAi;
        let offered = tools.iter().map(|tool| {
            let schema = top::object(&tool.input_schema);
            let schema = match provider {
                Provider::Gemini => gemini::adapt(&schema),
                Provider::OpenAi | Provider::Anthropic | Provider::Ollama | Provider::Other(_) => {
                    schema
                }
            };
            let strict = is_strict.then(|| strict::adapt(&schema)).flatten();
            let loose = strict.is_some().then(|| schema.clone());
            OfferedTool {
                name: names.for_model(&tool.name),
                description: tool.description.clone(),
                is_strict: strict.is_some(),
                schema: strict.unwrap_or(schema),
                loose,
            }
        });
        Self { tools: offered.collect(), names }
    }

    pub(super) fn tools(&self) -> &[OfferedTool] {
        &self.tools
    }

    /// The name under which the model knows a tool, also one that it is not offered any more.
    pub(super) fn name_for_model(&self, name: &str) -> String {
        self.names.for_model(name)
    }

    /// A call as the toolbox knows it. A name that the model made up stays as it is.
    pub(super) fn call_of_model(&self, name: &str, arguments: String) -> (String, String) {
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let arguments = match tool.and_then(|tool| tool.loose.as_ref()) {
            Some(schema) => strict::without_nulls(arguments, schema),
            None => arguments,
        };
        (self.names.of_model(name), arguments)
    }
}
