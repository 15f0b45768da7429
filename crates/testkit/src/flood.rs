//! A server that answers every request with bytes that never end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The most that one connection gets, should a client take all of it.
const CONNECTION_BYTES_MAX: u64 = 8 << 30;
/// Longest time that a client may leave the server's bytes unread before the server gives up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The server. It stops when it is dropped.
#[derive(Debug)]
pub struct Flood {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

/// The answers to requests, in order.
#[derive(Debug, Clone)]
struct Script {
    head: String,
    piece: Vec<u8>,
    pause: Duration,
}

impl Flood {
    /// Sends `head` once and then `piece` without end. An empty `piece` closes the connection.
    pub fn start(head: impl Into<String>, piece: impl Into<Vec<u8>>) -> Self {
        Self::paced(head, piece, Duration::ZERO)
    }

    /// The same with a pause before each piece.
    pub fn paced(head: impl Into<String>, piece: impl Into<Vec<u8>>, pause: Duration) -> Self {
        let script = Script { head: head.into(), piece: piece.into(), pause };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let flood = Self { address, sent: Arc::default(), is_over: Arc::default() };
        let (sent, is_over) = (Arc::clone(&flood.sent), Arc::clone(&flood.is_over));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (script, sent) = (script.clone(), Arc::clone(&sent));
                let is_over = Arc::clone(&is_over);
                std::thread::spawn(move || answer(stream, &script, &sent, &is_over));
            }
        });
        flood
    }

    /// Interim responses without end, and no other one.
    pub fn of_interim_responses() -> Self {
        Self::start("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(2000))
    }

    /// The host and port of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of bytes that clients and the buffers between took so far.
    pub fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
    }
}

fn answer(mut stream: TcpStream, script: &Script, sent: &AtomicU64, is_over: &AtomicBool) {
    if stream.set_write_timeout(Some(WRITE_TIMEOUT)).is_err() || !read_head(&mut stream) {
        return;
    }
    if stream.write_all(script.head.as_bytes()).is_err() || script.piece.is_empty() {
        return;
    }
    let mut written = 0;
    while written < CONNECTION_BYTES_MAX && !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(script.pause);
        let Ok(count @ 1..) = stream.write(&script.piece) else { return };
        written += count as u64;
        sent.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Reads the head of a request; its body stays in the buffers.
fn read_head(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => head.extend_from_slice(&buffer[..count]),
            Ok(0) | Err(_) => return false,
        }
    }
    true
}
