//! The log from outside: real files, an injected clock, and disks that fail.

mod failure;
mod following;
mod lines;
mod reading;
mod rotation;
mod shipping;
mod size;
mod stall;
mod writing;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::*;
use crate::content::Content;
use crate::envelope::{ErrorBody, Status};
use crate::error::{Code, Stage};

const NOON: &str = "2026-07-15T12:00:00.123Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(at(NOON)))
}

fn open(options: LogOptions) -> ExecutionLog {
    ExecutionLog::open(options, Redactor::new([]), clock()).unwrap()
}

/// A log that looks at its file before each write.
fn open_checking(options: LogOptions) -> ExecutionLog {
    let limits = Limits { path_check_every: Duration::ZERO, ..Limits::default() };
    ExecutionLog::open_with(options, limits, Redactor::new([]), clock()).unwrap()
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.into()).unwrap()
}

/// A small successful call.
fn entry<'a>(execution_id: &'a str, input: &'a RawValue) -> Entry<'a> {
    Entry {
        execution_id,
        timestamp: at(NOON),
        tool: "weather",
        source: RecordSource::Local,
        server: None,
        caller: None,
        session: None,
        request: None,
        trace_id: None,
        input,
        started: true,
        data: None,
        content: &[],
        raw: None,
        policy: None,
        stdout: None,
        error: None,
        status: Status::Success,
        outcome: Outcomes::default(),
        queued_ms: 0,
        duration_ms: 1,
    }
}

async fn append(log: &ExecutionLog, execution_id: &str, timestamp: &str) -> Result<(), LogError> {
    let input = raw("{}");
    log.append(&Entry { timestamp: at(timestamp), ..entry(execution_id, &input) }).await
}

/// The ids in the log, in order.
fn ids(dir: &Path) -> Vec<String> {
    read(dir, &Filter::default()).unwrap().map(|call| call.unwrap().execution_id).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const TODAY: &str = "tools-2026-07-15.jsonl";
