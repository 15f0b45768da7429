//! The file of the socket: its place, its owner, and paths that are longer than the system takes.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio::net::{UnixListener, UnixStream};

/// The user alone may connect.
const SOCKET_MODE: u32 = 0o600;
/// Permissions of anyone else.
const OTHERS: u32 = 0o077;
/// The system takes 107 bytes; a longer path goes by way of its folder.
const PATH_BYTES_MAX: usize = 100;

/// Why a socket is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SocketRefusal {
    /// There is none, or the process that made it is gone.
    #[error("no service is running")]
    Absent,
    /// It may belong to another user.
    #[error("`{}` {problem}", path.display())]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// The reason.
        problem: &'static str,
    },
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Connects to a socket of the same user.
pub(super) async fn connect(path: &Path) -> Result<UnixStream, SocketRefusal> {
    let refuse = |problem| SocketRefusal::Foreign { path: path.to_owned(), problem };
    let file = match std::fs::symlink_metadata(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(SocketRefusal::Absent),
        Err(error) => return Err(error.into()),
    };
    if !file.file_type().is_socket() {
        return Err(refuse("is not a socket"));
    }
    if file.uid() != own_user() {
        return Err(refuse("belongs to another user"));
    }
    if file.mode() & OTHERS != 0 {
        return Err(refuse("is open to other users"));
    }
    let reachable = Reachable::of(path)?;
    let stream = match UnixStream::connect(&reachable.path).await {
        Ok(stream) => stream,
        Err(error) if is_stale(&error) => return Err(SocketRefusal::Absent),
        Err(error) => return Err(error.into()),
    };
    if !is_own_peer(&stream) {
        return Err(refuse("is served by another user, or in a sandbox"));
    }
    Ok(stream)
}

/// Binds a socket that only the user can connect to. The file of a process that is gone is replaced. `None` if a
/// running service has it.
pub(super) async fn bind(path: &Path) -> io::Result<Option<UnixListener>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let reachable = Reachable::of(path)?;
    let listener = match UnixListener::bind(&reachable.path) {
        Ok(listener) => listener,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match connect(path).await {
            Ok(_) => return Ok(None),
            Err(SocketRefusal::Absent) => {
                std::fs::remove_file(path)?;
                UnixListener::bind(&reachable.path)?
            }
            Err(refusal) => return Err(io::Error::other(refusal.to_string())),
        },
        Err(error) => return Err(error),
    };
    // Another user may connect before this line. `is_own_peer` refuses the connection.
    std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
    Ok(Some(listener))
}

/// Returns true if the other side runs as the same user, outside any sandbox. Code in a sandbox may see the socket and
/// has the user's id, but must not leave its sandbox by way of the service.
pub(super) fn is_own_peer(stream: &UnixStream) -> bool {
    let Ok(peer) = stream.peer_cred() else { return false };
    // Other systems have neither namespaces nor the sandbox.
    let is_outside = !cfg!(target_os = "linux") || peer.pid().is_some_and(is_outside_sandbox);
    peer.uid() == own_user() && is_outside
}

/// Returns true if a process shares the namespaces that every sandbox has of its own. A service manager's
/// restrictions on files are not among them.
fn is_outside_sandbox(process: i32) -> bool {
    let namespace =
        |process: &str, kind: &str| std::fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
    ["user", "pid"].iter().all(|kind| {
        let own = namespace("self", kind);
        own.is_some() && namespace(&process.to_string(), kind) == own
    })
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_stale(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// A path that is short enough for a socket.
struct Reachable {
    path: PathBuf,
    /// Keeps the folder open that `path` goes by.
    _folder: Option<File>,
}

impl Reachable {
    fn of(path: &Path) -> io::Result<Self> {
        let (folder, name) = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if path.as_os_str().len() > PATH_BYTES_MAX => (folder, name),
            _ => return Ok(Self { path: path.to_owned(), _folder: None }),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder: File = rustix::fs::open(folder, flags, Mode::empty())?.into();
        let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self { path: short, _folder: Some(folder) })
    }
}
