//! Messages to the service manager (`sd_notify`): the socket that `NOTIFY_SOCKET` names receives the state.

use std::os::unix::net::UnixDatagram;

/// The variable with the socket of the service manager.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The service takes requests.
pub(super) fn ready() {
    send("READY=1");
}

/// The service ends.
pub(super) fn stopping() {
    send("STOPPING=1");
}

fn send(state: &str) {
    let Some(name) = std::env::var_os(SOCKET).and_then(|name| name.into_string().ok()) else {
        return;
    };
    if let Err(error) = send_to(&name, state) {
        tracing::warn!("the service manager at `{name}` was not notified of {state}: {error}");
    }
}

fn send_to(name: &str, state: &str) -> std::io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not hold up the service.
    socket.set_nonblocking(true)?;
    match name.strip_prefix('@') {
        None => socket.send_to(state.as_bytes(), name)?,
        Some(name) => send_to_abstract(&socket, name, state)?,
    };
    Ok(())
}

/// An address that is not a file.
#[cfg(target_os = "linux")]
fn send_to_abstract(socket: &UnixDatagram, name: &str, state: &str) -> std::io::Result<usize> {
    use std::os::linux::net::SocketAddrExt as _;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    socket.send_to_addr(state.as_bytes(), &address)
}

#[cfg(not(target_os = "linux"))]
fn send_to_abstract(_: &UnixDatagram, _: &str, _: &str) -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}
