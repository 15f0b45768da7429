//! A Unix socket that accepts connections of this process only.

use std::io;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use uuid::Uuid;

/// A listening socket.
pub(super) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Binds a socket under a unique name.
    pub(super) fn bind() -> io::Result<Self> {
        let path = unused_path()?;
        let listener = UnixListener::bind(&path)?;
        Ok(Self { listener, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection of this process. Those of other processes are closed at once: the relay adds no
    /// credentials, but no other process is to use this process's way to the service.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if is_own(&stream) {
                return Ok(stream);
            }
        }
    }
}

fn is_own(stream: &UnixStream) -> bool {
    let own = i32::try_from(std::process::id()).ok();
    match stream.peer_cred() {
        Ok(peer) => own.is_some() && peer.pid() == own,
        Err(_) => false,
    }
}

/// The abstract namespace needs no file: nothing is left behind, and a read-only file system works.
#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_wraps)]
fn unused_path() -> io::Result<PathBuf> {
    Ok(PathBuf::from(format!("\0haft-model-{}", Uuid::now_v7().simple())))
}

/// A file in a folder that only this user can enter.
#[cfg(not(target_os = "linux"))]
fn unused_path() -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;

    let folder = std::env::temp_dir().join(format!("haft-{}", Uuid::now_v7().simple()));
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder.join("model"))
}

#[cfg(not(target_os = "linux"))]
impl Drop for Socket {
    fn drop(&mut self) {
        // A leftover is empty, and the system clears this folder.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.path.parent().map(std::fs::remove_dir);
    }
}
