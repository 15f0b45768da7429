//! Frames as server-sent events.

use std::ops::DerefMut;

use axum::body::Body;
use futures_util::stream;

use crate::channel::{Frame, Frames, acknowledge};

/// A body that sends every frame as an event, after `first`.
pub fn body<F>(first: Vec<u8>, frames: F) -> Body
where
    F: DerefMut<Target = Frames> + Send + 'static,
{
    let start = (Some(first).filter(|first| !first.is_empty()), frames);
    Body::from_stream(stream::unfold(start, |(first, mut frames)| async move {
        let event = match first {
            Some(first) => Ok(first),
            None => next(&mut frames).await?,
        };
        Some((event, (None, frames)))
    }))
}

/// A message as an event.
pub fn event(data: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    [b"event: message\ndata: ", &lines.join(&b"\ndata: "[..])[..], b"\n\n"].concat()
}

async fn next(frames: &mut Frames) -> Option<Result<Vec<u8>, std::io::Error>> {
    loop {
        match frames.recv().await? {
            Frame::Message(message) => return Some(Ok(event(message.to_string().as_bytes()))),
            Frame::Raw(bytes) => return Some(Ok(event(bytes.trim_ascii_end()))),
            Frame::Flushed(done) => acknowledge(done),
            Frame::Close => return Some(Err(std::io::Error::other("closed"))),
        }
    }
}
