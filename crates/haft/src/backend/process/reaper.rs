//! Kills what is left of a tree until nothing is left: on a thread of its own, because a tree is
//! also dropped where nobody can wait.

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
use super::{Household, Left, watchdog};

/// How long [`kill_all_remaining`] waits.
const KILL_ALL_WAIT_MAX: Duration = Duration::from_secs(1);
/// How long one tree is pursued. Only a process stuck in the kernel outlives this.
const HUNT_MAX: Duration = Duration::from_secs(5);
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// A process that is just being replaced (`exec`) shows no environment for a moment, so one look
/// that finds nothing proves nothing.
const QUIET_LOOKS: u32 = 2;

/// Kills every process of `household` that still runs. For the end of a shutdown, when nothing may be
/// left.
pub async fn kill_all_remaining(household: Household) -> Left {
    let (done, left) = oneshot::channel();
    hunt(Quarry::Household(household), Some(done));
    match timeout(KILL_ALL_WAIT_MAX, left).await {
        Ok(Ok(left)) => left,
        Ok(Err(_)) | Err(_) => Left::Unknown,
    }
}

/// What is to be killed.
pub(super) enum Quarry {
    Tree { marker: Marker, group: Pid, since: Start },
    Household(Household),
}

/// Starts to kill `quarry` and tells `done` how it ended.
pub(super) fn hunt(quarry: Quarry, done: Option<oneshot::Sender<Left>>) {
    let hunt = Hunt { quarry, done, deadline: Instant::now() + HUNT_MAX, quiet_looks: 0 };
    // The thread ends only with the process, so this cannot fail once the thread has started.
    if let Some(queue) = queue() {
        let _ = queue.send(hunt);
    }
}

struct Hunt {
    quarry: Quarry,
    done: Option<oneshot::Sender<Left>>,
    deadline: Instant,
    quiet_looks: u32,
}

fn queue() -> Option<&'static Sender<Hunt>> {
    static QUEUE: OnceLock<Option<Sender<Hunt>>> = OnceLock::new();
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

/// One look at `/proc` serves every hunt under way, so a hundred timeouts at once cost little more
/// than one.
fn pursue(queue: &Receiver<Hunt>) {
    let mut hunts: Vec<Hunt> = Vec::new();
    loop {
        if hunts.is_empty() {
            let Ok(hunt) = queue.recv() else { return };
            hunts.push(hunt);
        } else {
            thread::sleep(LOOK_PAUSE);
        }
        hunts.extend(queue.try_iter());
        let since = hunts.iter().map(|hunt| hunt.quarry.since()).min().unwrap_or(Start::EVER);
        let processes = scan::processes(since);
        hunts.retain_mut(|hunt| match hunt.look(processes.as_deref()) {
            Some(left) => {
                hunt.end(left);
                false
            }
            None => true,
        });
    }
}

impl Quarry {
    fn since(&self) -> Start {
        match self {
            Self::Tree { since, .. } => *since,
            Self::Household(_) => Start::EVER,
        }
    }
}

impl Hunt {
    /// Kills what this look finds. `Some` ends the hunt.
    fn look(&mut self, processes: Option<&[Process]>) -> Option<Left> {
        let found = match processes {
            Some(processes) => {
                let members = members(&self.quarry, processes);
                for pid in members.iter().filter_map(|&pid| Pid::from_raw(pid)) {
                    // It may have ended since the look.
                    let _ = kill_process(pid, Signal::KILL);
                }
                members.len()
            }
            None => self.kill_groups(),
        };
        self.quiet_looks = if found == 0 { self.quiet_looks + 1 } else { 0 };
        if self.quiet_looks >= QUIET_LOOKS {
            return Some(Left::Nothing);
        }
        (Instant::now() >= self.deadline).then_some(Left::Survivors(found))
    }

    /// Without `/proc` the groups are all that is known.
    fn kill_groups(&self) -> usize {
        let groups = match self.quarry {
            Quarry::Tree { group, .. } => vec![group],
            Quarry::Household(household) => watchdog::groups(household),
        };
        groups.iter().filter(|group| kill_process_group(**group, Signal::KILL).is_ok()).count()
    }

    fn end(&mut self, left: Left) {
        if let Left::Survivors(count) = left {
            warn!(count, "processes survive SIGKILL; they hang in the kernel");
        }
        if let Quarry::Tree { group, .. } = self.quarry {
            // Where Haft is process 1, it inherits the dead of its children and has to bury them.
            while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
            watchdog::forget(group);
        }
        if let Some(done) = self.done.take() {
            // Whoever asked may have stopped waiting.
            let _ = done.send(left);
        }
    }
}

/// The processes that carry the mark or are in the group, and all their descendants.
pub(super) fn members(quarry: &Quarry, processes: &[Process]) -> HashSet<i32> {
    let belongs = |process: &Process| match quarry {
        Quarry::Household(household) => {
            process.marker.is_some_and(|marker| marker.household == *household)
        }
        Quarry::Tree { marker, group, .. } => {
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

/// The leader was killed before the hunt began. A live process with its number and without the mark
/// is a stranger that got the number afterwards, and so is its group.
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
        let ours = Marker::next(Household::new());
        let other = Marker::next(Household::new());
        let process =
            |pid, parent, group, marker| Process { pid, parent, group, marker, is_zombie: false };
        let found = |processes: &[Process]| {
            let group = Pid::from_raw(10).unwrap();
            let quarry = Quarry::Tree { marker: ours, group, since: Start::EVER };
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
