//! Kills the remains of a tree on a dedicated thread, because a tree can be dropped where waiting
//! is impossible.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpgid};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::warn;

use super::marker::Marker;
use super::scan::{self, Process, Start};
use super::{Left, ProcessScope, watchdog};

/// Time limit of [`kill_all_remaining`].
const KILL_ALL_WAIT_MAX: Duration = Duration::from_secs(1);
/// Time limit for one tree. Only a process stuck in the kernel outlives this.
const KILL_LOOP_MAX: Duration = Duration::from_secs(5);
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// A process in `exec` shows no environment for an instant, so one empty scan proves nothing.
const EMPTY_SCANS: u32 = 2;

/// Kills every process of `scope` that still runs, at the end of a shutdown.
pub async fn kill_all_remaining(scope: ProcessScope) -> Left {
    let (done, left) = oneshot::channel();
    kill_loop(KillTarget::Scope(scope), Some(done));
    match timeout(KILL_ALL_WAIT_MAX, left).await {
        Ok(Ok(left)) => left,
        Ok(Err(_)) | Err(_) => Left::Unknown,
    }
}

/// The processes to kill.
pub(super) enum KillTarget {
    Tree { marker: Marker, group: Pid, since: Start },
    Scope(ProcessScope),
}

/// Starts to kill `quarry` and sends the result to `done`.
pub(super) fn kill_loop(quarry: KillTarget, done: Option<oneshot::Sender<Left>>) {
    let kill_loop =
        KillLoop { quarry, done, deadline: Instant::now() + KILL_LOOP_MAX, quiet_looks: 0 };
    // The thread ends only with the process, so sending cannot fail once the thread has started.
    if let Some(queue) = queue() {
        let _ = queue.send(kill_loop);
    }
}

struct KillLoop {
    quarry: KillTarget,
    done: Option<oneshot::Sender<Left>>,
    deadline: Instant,
    quiet_looks: u32,
}

fn queue() -> Option<&'static Sender<KillLoop>> {
    static QUEUE: OnceLock<Option<Sender<KillLoop>>> = OnceLock::new();
    let start = || {
        let (queue, hunts) = mpsc::channel();
        let reaper = thread::Builder::new().name("haft-reaper".into());
        match reaper.spawn(move || pursue(&hunts)) {
            Ok(_) => Some(queue),
            Err(error) => {
                warn!(%error, "cannot start the reaper; processes that left their group may survive");
                None
            }
        }
    };
    QUEUE.get_or_init(start).as_ref()
}

/// One scan of `/proc` serves all running kill loops, so a hundred simultaneous timeouts cost
/// little more than one.
fn pursue(queue: &Receiver<KillLoop>) {
    let mut hunts: Vec<KillLoop> = Vec::new();
    loop {
        if hunts.is_empty() {
            let Ok(kill_loop) = queue.recv() else { return };
            hunts.push(kill_loop);
        } else {
            thread::sleep(LOOK_PAUSE);
        }
        hunts.extend(queue.try_iter());
        let since =
            hunts.iter().map(|kill_loop| kill_loop.quarry.since()).min().unwrap_or(Start::EVER);
        let processes = scan::processes(since);
        hunts.retain_mut(|kill_loop| match kill_loop.look(processes.as_deref()) {
            Some(left) => {
                kill_loop.end(left);
                false
            }
            None => true,
        });
    }
}

impl KillTarget {
    fn since(&self) -> Start {
        match self {
            Self::Tree { since, .. } => *since,
            Self::Scope(_) => Start::EVER,
        }
    }
}

impl KillLoop {
    /// Kills the processes of this scan. `Some` ends the loop.
    fn look(&mut self, processes: Option<&[Process]>) -> Option<Left> {
        let found = match processes {
            Some(processes) => {
                let members = members(&self.quarry, processes);
                for pid in members.iter().filter_map(|&pid| Pid::from_raw(pid)) {
                    // It may have ended since the scan.
                    let _ = kill_process(pid, Signal::KILL);
                }
                members.len()
            }
            None => self.kill_groups(),
        };
        self.quiet_looks = if found == 0 { self.quiet_looks + 1 } else { 0 };
        if self.quiet_looks >= EMPTY_SCANS {
            return Some(Left::Nothing);
        }
        (Instant::now() >= self.deadline).then_some(Left::Survivors(found))
    }

    /// Without `/proc` only the groups are known.
    fn kill_groups(&self) -> usize {
        let groups = match self.quarry {
            KillTarget::Tree { group, .. } => vec![group],
            KillTarget::Scope(scope) => watchdog::groups(scope),
        };
        groups.iter().filter(|group| kill_process_group(**group, Signal::KILL).is_ok()).count()
    }

    fn end(&mut self, left: Left) {
        if let Left::Survivors(count) = left {
            warn!(count, "processes survive SIGKILL; they hang in the kernel");
        }
        if let KillTarget::Tree { group, .. } = self.quarry {
            // As process 1, Haft inherits the zombies of its children and has to reap them.
            while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
            watchdog::forget(group);
        }
        if let Some(done) = self.done.take() {
            // The caller may have stopped waiting.
            let _ = done.send(left);
        }
    }
}

/// The processes with the marker or in the group, and all their descendants.
pub(super) fn members(quarry: &KillTarget, processes: &[Process]) -> HashSet<i32> {
    let belongs = |process: &Process| match quarry {
        KillTarget::Scope(scope) => process.marker.is_some_and(|marker| marker.scope == *scope),
        KillTarget::Tree { marker, group, .. } => {
            process.marker == Some(*marker)
                || (process.group == group.as_raw_pid()
                    && group_is_ours(*marker, *group, processes))
        }
    };
    let mut members: HashSet<i32> =
        processes.iter().filter(|process| belongs(process)).map(|process| process.pid).collect();
    loop {
        let known = members.len();
        let children = processes.iter().filter(|process| members.contains(&process.parent));
        members.extend(children.map(|process| process.pid).collect::<Vec<_>>());
        if members.len() == known {
            return members;
        }
    }
}

/// The leader was killed before the loop began. A live process with its number and without the
/// marker reuses the number, and so does its group.
fn group_is_ours(marker: Marker, group: Pid, processes: &[Process]) -> bool {
    !processes
        .iter()
        .any(|process| process.pid == group.as_raw_pid() && process.marker != Some(marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_spared() {
        let ours = Marker::next(ProcessScope::new());
        let other = Marker::next(ProcessScope::new());
        let process =
            |pid, parent, group, marker| Process { pid, parent, group, marker, is_zombie: false };
        let found = |processes: &[Process]| {
            let group = Pid::from_raw(10).unwrap();
            let quarry = KillTarget::Tree { marker: ours, group, since: Start::EVER };
            let mut pids: Vec<i32> = members(&quarry, processes).into_iter().collect();
            pids.sort_unstable();
            pids
        };
        let mut processes = vec![
            process(15, 14, 15, None),
            process(14, 1, 14, Some(ours)),
            process(11, 1, 10, None),
            process(20, 1, 20, Some(other)),
            process(21, 1, 21, None),
        ];
        assert_eq!(found(&processes), [11, 14, 15], "group, mark and descendants");
        processes.push(process(10, 1, 10, None));
        assert_eq!(found(&processes), [14, 15], "the number of the group was given away");
    }
}
