//! A TCP proxy on loopback that fails on demand.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;

/// The treatment of data on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyMode {
    /// Passes everything on.
    Pass,
    /// Cuts the next connection that sends something, without passing that on, then passes everything.
    LoseNextRequest,
    /// Cuts the next connection whose peer answers, without passing that on, then passes everything.
    LoseNextResponse,
    /// Keeps connections open and passes nothing on, as a network that drops packets.
    Silent,
    /// Cuts every connection as soon as it is made.
    Refuse,
}

/// A proxy in front of one port.
#[derive(Debug)]
pub struct TcpProxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    mode: ProxyMode,
    open: Vec<TcpStream>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Response,
}

impl TcpProxy {
    /// Starts a proxy in front of a port of 127.0.0.1.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let state = Arc::new(Mutex::new(State { mode: ProxyMode::Pass, open: Vec::new() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.lock().mode == ProxyMode::Refuse {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                relay(client, server, &shared);
            }
        });
        Self { port, state }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes the treatment of data from now on.
    pub fn set(&self, mode: ProxyMode) {
        self.state.lock().mode = mode;
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        for stream in self.state.lock().open.drain(..) {
            // Fails if it is closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn relay(client: TcpStream, server: TcpStream, state: &Arc<Mutex<State>>) {
    let copy = |stream: &TcpStream| stream.try_clone().expect("a second handle");
    state.lock().open.extend([copy(&client), copy(&server)]);
    let ways =
        [(copy(&client), copy(&server), Direction::Request), (server, client, Direction::Response)];
    for (from, to, direction) in ways {
        let state = Arc::clone(state);
        std::thread::spawn(move || pump(from, to, direction, &state));
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, direction: Direction, state: &Mutex<State>) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut state = state.lock();
        match (state.mode, direction) {
            (ProxyMode::LoseNextRequest, Direction::Request)
            | (ProxyMode::LoseNextResponse, Direction::Response) => {
                state.mode = ProxyMode::Pass;
                break;
            }
            (ProxyMode::Silent, _) => continue,
            (
                ProxyMode::Pass
                | ProxyMode::Refuse
                | ProxyMode::LoseNextRequest
                | ProxyMode::LoseNextResponse,
                _,
            ) => {}
        }
        drop(state);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Both fail if the other direction has closed them.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
