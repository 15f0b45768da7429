//! The service's side of the link: takes connections of the same user, within a limit.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::session::{ServiceContext, serve};
use super::socket;

/// Largest number of commands that are answered at once. Others wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// Pause when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The socket of a running service. Dropping it removes the file.
pub(in crate::cli) struct ServiceSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Tells its file from that of a service that was started later.
    inode: Option<u64>,
}

impl ServiceSocket {
    /// Binds the socket. `None` if another service of the same configuration has it.
    pub(in crate::cli) async fn bind(path: &Path) -> io::Result<Option<Self>> {
        let Some(listener) = socket::bind(path).await? else { return Ok(None) };
        Ok(Some(Self { listener, path: path.to_owned(), inode: inode(path) }))
    }

    /// Answers commands until `stop`. Requests in flight are finished.
    pub(in crate::cli) async fn serve(self, context: Arc<ServiceContext>, stop: CancellationToken) {
        let (tasks, room) = (TaskTracker::new(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
        loop {
            let next = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = stop.cancelled() => break,
                next = next => next,
            };
            match accepted {
                Ok((stream, _)) if socket::is_own_peer(&stream) => {
                    let (context, stop) = (Arc::clone(&context), stop.clone());
                    tasks.spawn(async move {
                        serve(&context, stream, stop).await;
                        drop(permit);
                    });
                }
                Ok(_) => tracing::warn!("refused a command of another user"),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(self);
        tasks.close();
        tasks.wait().await;
    }
}

impl Drop for ServiceSocket {
    fn drop(&mut self) {
        if self.inode.is_some() && inode(&self.path) == self.inode {
            // A file that is left behind is recognized by the next command.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path).ok().map(|file| file.ino())
}
