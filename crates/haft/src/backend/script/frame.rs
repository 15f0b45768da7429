//! The protocol between Haft and its Python runner: lengths first, then JSON that is passed on
//! unmodified. `runner.py` is the other side.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::PythonSettings;
use super::fingerprint::ScriptFingerprint;
use crate::config::Secret;
use crate::tool::CallContext;

/// Maximum size of a tool's answer.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum size of the list of loaded files: some ten thousand files.
const FILES_BYTES_MAX: usize = 1024 * 1024;

/// Maximum size of the text that a tool printed; the runner keeps less.
const PRINTED_BYTES_MAX: usize = 1024 * 1024;

const HEADER_BYTES: usize = 14;

/// An answer of the runner.
pub(super) struct Answer {
    pub(super) kind: Kind,
    pub(super) children: Children,
    /// Every file the tool loaded so far, its script first, if the list has grown.
    pub(super) files: Option<Vec<(String, ScriptFingerprint)>>,
    /// The text that the tool printed during the call.
    pub(super) printed: String,
    pub(super) body: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Result,
    Raised,
    NotJson,
    NotLoaded,
}

/// Child processes of a worker, zombies included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Children {
    None,
    /// It has some, or cannot determine it.
    Possible,
}

/// Reasons why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The process closed its end before the script was loaded.
    NotReady,
    /// The process closed its end.
    Ended,
    /// The process closed its end before it had read the request.
    Unread,
    /// The answer is longer than [`ANSWER_BYTES_MAX`].
    TooLong(usize),
    /// The pipe contained something other than the runner's output.
    Garbled(&'static str),
}

/// The body of every answer that is not a result.
#[derive(Debug, Deserialize)]
pub(super) struct Problem {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) message: String,
    #[serde(default)]
    pub(super) traceback: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u64>,
    pub(super) text: Option<String>,
}

/// Encodes the message that assigns an idle process to one tool.
pub(super) fn setup(
    script: &str,
    tools_dir: &str,
    settings: &PythonSettings,
    adopts_orphans: bool,
) -> io::Result<Vec<u8>> {
    let PythonSettings { entrypoint, args, env, is_by_name, .. } = settings;
    let env: Vec<(&str, Option<&str>)> = env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_ref().map(Secret::expose)))
        .collect();
    let setup = (script, entrypoint, tools_dir, args, adopts_orphans, env, is_by_name);
    let body = serde_json::to_vec(&setup)?;
    let size = u32::try_from(body.len()).map_err(io::Error::other)?;
    Ok([&size.to_be_bytes()[..], &body].concat())
}

/// Encodes one request.
pub(super) fn request(
    tool: &str,
    context: &CallContext,
    arguments: &RawValue,
) -> io::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Context<'a> {
        execution_id: &'a str,
        session: Option<&'a str>,
        caller: Option<&'a str>,
        tool: &'a str,
    }
    let context = serde_json::to_vec(&Context {
        execution_id: &context.execution_id,
        session: context.session.as_deref(),
        caller: context.caller.as_deref(),
        tool,
    })?;
    let arguments = arguments.get().as_bytes();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
    let mut request = Vec::with_capacity(8 + context.len() + arguments.len());
    request.extend_from_slice(&length(&context)?.to_be_bytes());
    request.extend_from_slice(&length(arguments)?.to_be_bytes());
    request.extend_from_slice(&context);
    request.extend_from_slice(arguments);
    Ok(request)
}

/// Waits until the runner has loaded its script or failed with a reason. Returns if the script
/// started processes meanwhile.
pub(super) async fn read_ready(pipe: &mut (impl AsyncRead + Unpin)) -> Result<Children, NoAnswer> {
    match pipe.read_u8().await {
        Ok(b'+') => Ok(Children::None),
        Ok(b'*') => Ok(Children::Possible),
        Ok(_) => Err(NoAnswer::Garbled("something else comes first")),
        Err(_) => Err(NoAnswer::NotReady),
    }
}

/// Reads one answer. Usually it comes in a single read.
pub(super) async fn read_answer(pipe: &mut (impl AsyncRead + Unpin)) -> Result<Answer, NoAnswer> {
    let mut received = Vec::with_capacity(4096);
    read_until(pipe, &mut received, HEADER_BYTES).await?;
    let kind = match received[0] {
        b'R' => Kind::Result,
        b'E' => Kind::Raised,
        b'J' => Kind::NotJson,
        b'L' => Kind::NotLoaded,
        _ => return Err(NoAnswer::Garbled("it begins with an unknown kind")),
    };
    let children = match received[1] {
        0 => Children::None,
        _ => Children::Possible,
    };
    let files_size = length(&received[2..6]);
    let printed_size = length(&received[6..10]);
    let body_size = length(&received[10..14]);
    if files_size > FILES_BYTES_MAX {
        return Err(NoAnswer::Garbled("its list of files is too long"));
    }
    if printed_size > PRINTED_BYTES_MAX {
        return Err(NoAnswer::Garbled("what it printed is too long"));
    }
    if body_size > ANSWER_BYTES_MAX {
        return Err(NoAnswer::TooLong(body_size));
    }
    let head_size = HEADER_BYTES + files_size + printed_size;
    read_until(pipe, &mut received, head_size + body_size).await?;
    let body = received.split_off(head_size);
    let printed = received.split_off(HEADER_BYTES + files_size);
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let files = match &received[HEADER_BYTES..] {
        [] => None,
        files => Some(
            serde_json::from_slice(files)
                .map_err(|_| NoAnswer::Garbled("its list of files cannot be read"))?,
        ),
    };
    let body = String::from_utf8(body).map_err(|_| NoAnswer::Garbled("it is not UTF-8"))?;
    Ok(Answer { kind, children, files, printed, body })
}

async fn read_until(
    pipe: &mut (impl AsyncRead + Unpin),
    received: &mut Vec<u8>,
    size: usize,
) -> Result<(), NoAnswer> {
    received.reserve(size.saturating_sub(received.len()));
    while received.len() < size {
        if !matches!(pipe.read_buf(received).await, Ok(1..)) {
            return Err(NoAnswer::Ended);
        }
    }
    Ok(())
}

fn length(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn half_an_answer_and_garbage_are_told_apart() {
        let read = async |bytes: &[u8]| read_answer(&mut &*bytes).await;
        assert!(matches!(read(b"").await, Err(NoAnswer::Ended)));
        let empty = |rest: &[u8]| [b"R\0\0\0\0\0\0\0\0\0", rest].concat();
        assert!(matches!(read(&empty(b"\0\0\0\x02{")).await, Err(NoAnswer::Ended)));
        assert!(matches!(read(b"hello, world!!").await, Err(NoAnswer::Garbled(_))));
        assert!(matches!(read(&empty(b"\xff\0\0\0")).await, Err(NoAnswer::TooLong(_))));
        assert!(matches!(read(&empty(b"\0\0\0\x01\xff")).await, Err(NoAnswer::Garbled(_))));
        assert!(matches!(read(b"R\0\0\0\0\0\xff\0\0\0\0\0\0\0").await, Err(NoAnswer::Garbled(_))));
        let answer = b"E\x01\0\0\0\x0f\0\0\0\x03\0\0\0\x02[[\"a\",[1,2,3]]]hi!{}";
        let answer = read(answer).await.ok().unwrap();
        assert_eq!((answer.kind, answer.body.as_str()), (Kind::Raised, "{}"));
        assert_eq!(answer.printed, "hi!");
        assert_eq!(answer.children, Children::Possible);
        assert_eq!(answer.files.unwrap()[0].0, "a");
    }
}
