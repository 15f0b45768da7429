//! A child process and everything that descends from it.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::marker::{MARKER_VARIABLE, Marker};
use super::reaper::{self, KillTarget};
use super::scan::{self, Sighting, Start};
use super::{Exit, Leftovers, ProcessScope, watchdog};
use crate::backend::work_folder::WorkFolder;

/// Time limit of [`ProcessTree::kill`].
const KILL_WAIT_MAX: Duration = Duration::from_secs(1);

/// A child in its own process group, with all its descendants.
///
/// Dropping it kills them all: the group at once, and those that left it (`setsid`, double fork)
/// within milliseconds. They are found by [`MARKER_VARIABLE`] in their environment.
#[derive(Debug)]
pub struct ProcessTree {
    child: Child,
    marker: Marker,
    group: Pid,
    since: Start,
    leader: Leader,
    /// Descendants seen before the child was asked to end.
    seen: Vec<Sighting>,
    /// A folder of the child, removed with it.
    folder: Option<WorkFolder>,
}

/// The remains of a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// No process of the tree is alive.
    Nothing,
    /// Number of processes that could not be killed.
    Survivors(usize),
    /// Unknown in time; killing continues in the background.
    Unknown,
}

impl ProcessTree {
    /// Starts `command` in a new process group, marked in its environment as part of `scope`. The
    /// caller sets standard streams, directory and the rest of the environment.
    pub fn spawn(command: &mut Command, scope: ProcessScope) -> io::Result<Self> {
        watchdog::start();
        let marker = Marker::next(scope);
        command.process_group(0).env(MARKER_VARIABLE, marker.value()).kill_on_drop(true);
        let child = command.spawn()?;
        let group = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
            .ok_or_else(|| io::Error::other("the new process has no id"))?;
        watchdog::watch(group, scope);
        let since = Start::of(group.as_raw_pid());
        let leader = Leader::Uncollected;
        Ok(Self { child, marker, group, since, leader, seen: Vec::new(), folder: None })
    }

    /// Removes `folder` when the tree has ended.
    #[must_use]
    pub(in crate::backend) fn with_folder(mut self, folder: Option<WorkFolder>) -> Self {
        self.folder = folder;
        self
    }

    /// The process id of the child, which is also the id of its group.
    pub fn id(&self) -> i32 {
        self.group.as_raw_pid()
    }

    /// The pipe to the child's standard input, on the first call and if present.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The pipe from the child's standard output, on the first call and if present.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The pipe from the child's standard error, on the first call and if present.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits until the child ends. Its descendants may run until the tree is dropped.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        let status = self.child.wait().await?;
        self.leader = Leader::Collected;
        Ok(status.into())
    }

    /// The exit status, if the child has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<Exit>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.leader = Leader::Collected;
        }
        Ok(status.map(Exit::from))
    }

    /// Kills the whole tree and waits, for a second at most, until nothing is left.
    pub async fn kill(mut self) -> Left {
        self.strike();
        let (done, left) = oneshot::channel();
        self.hand_over(Some(done));
        let gone = async {
            // Reaps the child, so that no zombie is left.
            let _ = self.child.wait().await;
            left.await.unwrap_or(Left::Unknown)
        };
        timeout(KILL_WAIT_MAX, gone).await.unwrap_or(Left::Unknown)
    }

    /// Calls `ask`, waits up to `grace` for the child to end, then kills the rest.
    pub async fn end_after(mut self, ask: impl FnOnce(), grace: Duration) -> Left {
        self.remember_descendants();
        ask();
        let _ = timeout(grace, self.wait()).await;
        self.kill().await
    }

    /// Asks the child to end: by `ask`, then by SIGTERM, each with `grace` to take effect. Kills
    /// the rest.
    pub async fn end_by_steps(mut self, ask: impl Future<Output = ()>, grace: Duration) -> Left {
        self.remember_descendants();
        // A child that does not read blocks a message to it.
        let _ = timeout(grace, ask).await;
        if timeout(grace, self.wait()).await.is_err() {
            let _ = kill_process_group(self.group, Signal::TERM);
            let _ = timeout(grace, self.wait()).await;
        }
        self.kill().await
    }

    /// Calls `ask`, waits up to `grace` for the child to end, and leaves its descendants running.
    /// They end with their scope.
    pub async fn leave_after(mut self, ask: impl FnOnce(), grace: Duration) {
        ask();
        if timeout(grace, self.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        self.release();
    }

    /// Leaves the descendants of an ended child running. They end with their scope, which finds
    /// them by their marker.
    pub fn release(mut self) {
        self.leader = Leader::HandedOver;
        if let Some(folder) = self.folder.take() {
            folder.leave();
        }
        // The number of a group is reused once its last process ends, so the watchdog must not keep
        // it.
        watchdog::forget(self.group);
    }

    /// Returns a detector for processes that join this tree from now on.
    pub fn leftovers(&self) -> Leftovers {
        let Self { marker, group, since, .. } = *self;
        Leftovers::new(marker, group, since)
    }

    /// Called before the child is asked to end: afterwards nothing leads to a descendant that left
    /// its group and cleared its environment.
    fn remember_descendants(&mut self) {
        if self.leader == Leader::Uncollected {
            self.seen = scan::descendants(self.id()).into_iter().map(Sighting::of).collect();
        }
    }

    /// Kills the processes that are found without a full scan.
    fn strike(&self) {
        for pid in self.seen.iter().filter_map(|sighting| sighting.pid()) {
            let family = scan::descendants(pid).into_iter().chain([pid]);
            for pid in family.filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        match self.leader {
            Leader::Uncollected => {
                // Before the group: once their parent is dead, nothing leads to them.
                let descendants = scan::descendants(self.id());
                let _ = kill_process_group(self.group, Signal::KILL);
                for pid in descendants.into_iter().filter_map(Pid::from_raw) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            // The number may have been reused. While a process of the old group lives, the system
            // does not reuse the number, so a process with that number is another one.
            Leader::Collected if test_kill_process(self.group) == Err(Errno::SRCH) => {
                let _ = kill_process_group(self.group, Signal::KILL);
            }
            Leader::Collected | Leader::HandedOver => {}
        }
    }

    fn hand_over(&mut self, done: Option<oneshot::Sender<Left>>) {
        self.leader = Leader::HandedOver;
        let Self { marker, group, since, .. } = *self;
        reaper::kill_loop(KillTarget::Tree { marker, group, since }, done);
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.leader != Leader::HandedOver {
            self.strike();
            self.hand_over(None);
        }
    }
}

/// Ownership of the child's process number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leader {
    /// The child runs, or is a zombie and keeps its number until it is reaped.
    Uncollected,
    /// It was reaped and its number is free.
    Collected,
    /// The reaper has taken over.
    HandedOver,
}
