//! `read_output`: the rest of a result that was too long for its caller.

use haft_bounds::parse_error::describe;
use serde::Deserialize;
use serde_json::json;

use crate::content::ToolOutput;
use crate::error::ToolFailure;
use crate::outputs::{OutputStore, READ_OUTPUT, note};
use crate::policy::Admitted;
use crate::tool::{BoxFuture, Tool, ToolDefinition};
use haft_config::tool_metadata::ToolAnnotations;

/// Room for the note that follows a part.
const NOTE_BYTES: usize = 256;
const PART_BYTES_MIN: usize = 256;

/// The tool.
pub(crate) struct ReadOutput {
    outputs: OutputStore,
    part_bytes: usize,
}

#[derive(Deserialize)]
struct ReadOutputParams {
    execution_id: String,
    #[serde(default)]
    offset: usize,
}

impl ReadOutput {
    /// A tool whose answers have at most `bytes_max` bytes.
    pub(crate) fn new(outputs: OutputStore, bytes_max: usize) -> Self {
        let part_bytes = bytes_max.saturating_sub(NOTE_BYTES).max(PART_BYTES_MIN);
        Self { outputs, part_bytes }
    }

    fn read(&self, call: &Admitted<'_>) -> Result<ToolOutput, ToolFailure> {
        let ReadOutputParams { execution_id, offset } =
            serde_json::from_str(call.arguments().raw().get())
                .map_err(|error| ToolFailure::execution(describe(&error)))?;
        let reader = call.context().reader();
        let Some(part) = self.outputs.read(&execution_id, reader, offset, self.part_bytes) else {
            return Err(ToolFailure::execution(format!(
                "there is no result `{execution_id}` to read: it was not cut, is no longer kept, or belongs \
                 to another caller; call the tool again"
            )));
        };
        let mut text = part.text;
        if let Some(next) = part.next {
            text.push_str(&note(&execution_id, part.total - next, part.total, next));
        }
        Ok(ToolOutput::from_text(text))
    }
}

impl Tool for ReadOutput {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {
                "execution_id": {"type": "string", "description": "The id that the cut result names."},
                "offset": {
                    "type": "integer", "minimum": 0, "default": 0,
                    "description": "Where to read on, as the cut result names it.",
                },
            },
            "required": ["execution_id"],
            "additionalProperties": false,
        });
        let mut definition = ToolDefinition::new(
            READ_OUTPUT,
            "Reads on in a result of another tool that was too long and was cut. The end of the cut result \
             names the execution_id and the offset to pass.",
            schema,
        );
        definition.annotations =
            Some(ToolAnnotations::new().read_only(true).idempotent(true).open_world(false));
        definition
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(std::future::ready(self.read(call)))
    }
}
