//! The answer of a call that has its log entry.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::cut::Cut;
use super::record::{CallRecord, status};
use crate::content::ToolOutput;
use crate::envelope::{Envelope, ErrorBody};
use crate::error::millis;
use crate::outputs::OutputStore;

/// The answer of a call for a gateway.
#[derive(Debug)]
pub enum CallAnswer {
    /// The result of an MCP server, unmodified.
    Unmodified(Box<RawValue>),
    /// Results of other tools, results that were cut, and failures of calls.
    Envelope(Box<Envelope>),
}

/// A call that has ended and is in the log.
pub(super) struct ClosedCall<'a> {
    pub(super) record: CallRecord<'a>,
    pub(super) output: ToolOutput,
    pub(super) error: Option<ErrorBody>,
    /// Why the log lacks its entry.
    pub(super) unlogged: Option<String>,
    pub(super) duration: Duration,
    /// The longest text for the caller, unless the call names a shorter one.
    pub(super) output_bytes_max: usize,
    pub(super) outputs: &'a OutputStore,
}

impl ClosedCall<'_> {
    /// The envelope.
    pub(super) fn envelope(mut self) -> Envelope {
        let execution_id = self.take_execution_id();
        self.keep_whole(&execution_id);
        self.into_envelope(execution_id)
    }

    /// The unmodified result of an MCP server; otherwise the envelope. Nothing is cut or copied for an envelope that
    /// the caller does not receive.
    pub(super) fn answer(mut self) -> CallAnswer {
        let execution_id = self.take_execution_id();
        self.keep_whole(&execution_id);
        match self.output.raw.take() {
            Some(raw) => CallAnswer::Unmodified(raw),
            None => CallAnswer::Envelope(Box::new(self.into_envelope(execution_id))),
        }
    }

    fn keep_whole(&mut self, execution_id: &str) {
        if self.record.call.output_bytes_max.is_some() {
            self.cut(execution_id).whole(&mut self.output);
        }
    }

    fn into_envelope(mut self, execution_id: String) -> Envelope {
        let cut = self.cut(&execution_id);
        let reader = self.record.context.reader();
        let mut error = self.error.take();
        if let Some(error) = &mut error {
            cut.text(&mut error.message, self.outputs, reader);
        }
        let content = cut.content(self.output.content, self.outputs, reader);
        let stdout = self.record.stdout.take();
        let mut envelope = Envelope {
            tool: self.record.tool.clone().into_owned(),
            status: status(error.as_ref()),
            data: self.output.data,
            content,
            message: None,
            error,
            queued_ms: millis(self.record.queued),
            duration_ms: millis(self.duration),
            stdout: stdout.map(|text| self.record.masked(&text).into_owned()),
            memory: self.output.memory,
            execution_id,
        };
        envelope.set_message(self.unlogged);
        envelope
    }

    fn cut<'id>(&self, execution_id: &'id str) -> Cut<'id> {
        let call = self.record.call;
        let own = call.output_bytes_max;
        Cut {
            bytes_max: own.map_or(self.output_bytes_max, |it| it.min(self.output_bytes_max)),
            execution_id,
            reads_on: own.is_some() || call.tool_filter.is_model,
        }
    }

    fn take_execution_id(&mut self) -> String {
        let context = &mut self.record.context;
        match Arc::get_mut(context) {
            Some(context) => std::mem::take(&mut context.execution_id),
            None => context.execution_id.clone(),
        }
    }
}
