//! Messages as lines over two pipes: what stdio servers speak. Who owns the process is not known
//! here.

use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::lines::Lines;
use super::{Outgoing, Transport};
use crate::Inbox;
use crate::error::{Failure, TransportError};
use crate::handler::BoxFuture;
use crate::wire;

/// Two pipes to a server that speaks a line for each message.
pub struct Pipes<W: AsyncWrite + Unpin + Send + 'static> {
    /// Nothing, once the pipe is closed or broken.
    writer: Arc<Mutex<Option<W>>>,
    encoding: &'static Encoding,
    inbox: Inbox,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Pipes<W> {
    /// Starts to read `reader` line by line into `inbox`.
    pub fn start(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: W,
        encoding: &'static Encoding,
        inbox: Inbox,
    ) -> Self {
        inbox.spawn(Lines::new(inbox.clone()).read(reader, encoding));
        Self { writer: Arc::new(Mutex::new(Some(writer))), encoding, inbox }
    }

    fn line(&self, message: &Outgoing) -> Vec<u8> {
        let mut text = String::with_capacity(message.body.len() + 1);
        text.push_str(&message.body);
        let mut text = wire::on_one_line(text);
        text.push('\n');
        encode(text, self.encoding)
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
            let writing = Writing {
                pipe: Some(pipe),
                line: self.line(message),
                written: 0,
                inbox: &self.inbox,
            };
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
    line: Vec<u8>,
    written: usize,
    inbox: &'a Inbox,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Writing<'_, W> {
    async fn finish(mut self) -> Result<(), TransportError> {
        let Some(guard) = self.pipe.as_mut() else { return Ok(()) };
        let Some(pipe) = guard.as_mut() else {
            return Err(closed("the connection to the server is closed".into()));
        };
        while self.written < self.line.len() {
            match pipe.write(&self.line[self.written..]).await {
                Ok(count @ 1..) => self.written += count,
                ended => {
                    let why = match ended {
                        Err(error) => error.to_string(),
                        Ok(_) => "nothing can be written".to_owned(),
                    };
                    **guard = None;
                    // Half a line is no message, so the server cannot have acted on it.
                    return Err(closed(format!("the server takes no messages any more: {why}")));
                }
            }
        }
        Ok(())
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> Drop for Writing<'_, W> {
    fn drop(&mut self) {
        let is_half = self.written > 0 && self.written < self.line.len();
        let Some(mut guard) = self.pipe.take().filter(|guard| is_half && guard.is_some()) else {
            return;
        };
        let rest = self.line.split_off(self.written);
        self.inbox.spawn(async move {
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
