//! Messages as lines over two pipes: what stdio servers speak. Who owns the process is not known
//! here.

use std::borrow::Cow;
use std::io::IoSlice;
use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::lines::Lines;
use super::{Outgoing, Transport};
use crate::MessageRouter;
use crate::error::{Failure, TransportError};
use crate::handler::BoxFuture;
use crate::wire;

/// Two pipes to a server that speaks a line for each message.
pub struct Pipes<W: AsyncWrite + Unpin + Send + 'static> {
    /// Nothing, once the pipe is closed or broken.
    writer: Arc<Mutex<Option<W>>>,
    encoding: &'static Encoding,
    router: MessageRouter,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Pipes<W> {
    /// Starts to read `reader` line by line into `router`.
    pub fn start(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: W,
        encoding: &'static Encoding,
        router: MessageRouter,
    ) -> Self {
        router.spawn(Lines::new(router.clone()).read(reader, encoding));
        Self { writer: Arc::new(Mutex::new(Some(writer))), encoding, router }
    }

    /// The bytes of a message and of its line end. A message in UTF-8 is not copied.
    fn line<'a>(&self, message: &'a Outgoing) -> (Cow<'a, [u8]>, &'static [u8]) {
        let body = &message.body;
        let is_one_line = memchr::memchr2(b'\n', b'\r', body.as_bytes()).is_none();
        if self.encoding == UTF_8 && is_one_line {
            return (Cow::Borrowed(body.as_bytes()), b"\n");
        }
        let mut text = wire::on_one_line(body.clone());
        text.push('\n');
        (Cow::Owned(encode(text, self.encoding)), b"")
    }
}

fn encode(text: String, encoding: &'static Encoding) -> Vec<u8> {
    // The encoder takes these for UTF-8, as web pages want it.
    if encoding == UTF_16LE {
        return text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    }
    if encoding == UTF_16BE {
        return text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    }
    if encoding == UTF_8 {
        return text.into_bytes();
    }
    // What the encoding lacks must not be lost, and JSON has a spelling for it.
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        let mut room = [0; 4];
        let (encoded, _, is_lost) = encoding.encode(character.encode_utf8(&mut room));
        if is_lost {
            for unit in character.encode_utf16(&mut [0; 2]) {
                bytes.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        } else {
            bytes.extend_from_slice(&encoded);
        }
    }
    bytes
}

impl<W: AsyncWrite + Unpin + Send + 'static> Transport for Pipes<W> {
    fn deliver<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(async move {
            let pipe = Arc::clone(&self.writer).lock_owned().await;
            let (body, end) = self.line(message);
            let writing = Writing { pipe: Some(pipe), body, end, written: 0, router: &self.router };
            writing.finish().await
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // The end of its input is how a stdio server is asked to end.
        Box::pin(async { *self.writer.lock().await = None })
    }
}

/// A line on its way. Given up in the middle, the rest still goes out: half a line would spoil the
/// message after it.
struct Writing<'a, W: AsyncWrite + Unpin + Send + 'static> {
    pipe: Option<OwnedMutexGuard<Option<W>>>,
    body: Cow<'a, [u8]>,
    /// The bytes after the body, written together with it.
    end: &'static [u8],
    written: usize,
    router: &'a MessageRouter,
}

/// The parts of a line that are left after `written` bytes.
fn rest<'a>(body: &'a [u8], end: &'a [u8], written: usize) -> [&'a [u8]; 2] {
    let of_body = written.min(body.len());
    [&body[of_body..], &end[written - of_body..]]
}

impl<W: AsyncWrite + Unpin + Send + 'static> Writing<'_, W> {
    async fn finish(mut self) -> Result<(), TransportError> {
        let Some(guard) = self.pipe.as_mut() else { return Ok(()) };
        let Some(pipe) = guard.as_mut() else {
            return Err(closed("the connection to the server is closed".into()));
        };
        while self.written < self.body.len() + self.end.len() {
            let parts = rest(&self.body, self.end, self.written).map(IoSlice::new);
            match pipe.write_vectored(&parts).await {
                Ok(count @ 1..) => self.written += count,
                ended => {
                    let why = match ended {
                        Err(error) => error.to_string(),
                        Ok(_) => "nothing can be written".to_owned(),
                    };
                    **guard = None;
                    // Half a line is not a message, so the server cannot have acted on it.
                    return Err(closed(format!("the server takes no messages any more: {why}")));
                }
            }
        }
        Ok(())
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> Drop for Writing<'_, W> {
    fn drop(&mut self) {
        let is_half = self.written > 0 && self.written < self.body.len() + self.end.len();
        let Some(mut guard) = self.pipe.take().filter(|guard| is_half && guard.is_some()) else {
            return;
        };
        let rest = rest(&self.body, self.end, self.written).concat();
        self.router.spawn(async move {
            if let Some(pipe) = guard.as_mut()
                && pipe.write_all(&rest).await.is_err()
            {
                *guard = None;
            }
        });
    }
}

fn closed(message: String) -> TransportError {
    TransportError::unsent(Failure::Closed, message)
}
