//! Standard input and output for tasks. Each has a thread of its own: what they are (pipes, sockets, a
//! terminal) differs from client to client, and a read that blocks for ever must hold up nothing else.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream as Blocking;
use std::thread;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time for a client to read the last messages.
const LAST_READ_MAX: Duration = Duration::from_secs(1);

/// Size of the copy buffer.
const ROOM_BYTES: usize = 64 * 1024;

/// Returns the client's input. The thread behind it ends with the input, or with the process.
pub(super) fn input() -> io::Result<UnixStream> {
    let (ours, mut theirs) = pair()?;
    // An error ends the copy like the end of the input does.
    let copy = move || drop(carry(&mut io::stdin().lock(), &mut theirs));
    thread::Builder::new().name("stdin".to_owned()).spawn(copy)?;
    Ok(ours)
}

/// The way to what the client reads.
pub(super) struct Output {
    written: oneshot::Receiver<()>,
}

/// Returns the client's output, and a handle that reports when everything was written.
pub(super) fn output() -> io::Result<(UnixStream, Output)> {
    let (ours, mut theirs) = pair()?;
    let (done, written) = oneshot::channel();
    let copy = move || {
        // The next write notices a client that stopped reading.
        drop(carry(&mut theirs, &mut io::stdout().lock()));
        drop(theirs);
        drop(done);
    };
    thread::Builder::new().name("stdout".to_owned()).spawn(copy)?;
    Ok((ours, Output { written }))
}

impl Output {
    /// Waits until everything is written, unless the client takes too long to read it.
    pub(super) async fn finish(self) {
        // Either way there is nothing left to do.
        let _ = timeout(LAST_READ_MAX, self.written).await;
    }
}

/// Copies bytes as soon as they arrive. `io::copy` lets the kernel do it, which waits for more.
fn carry(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut room = vec![0; ROOM_BYTES];
    loop {
        match from.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&room[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn pair() -> io::Result<(UnixStream, Blocking)> {
    let (ours, theirs) = Blocking::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs))
}
