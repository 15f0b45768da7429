//! Processes that a call leaves in a process tree that outlives the call.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::marker::Marker;
use super::reaper::{KillTarget, members};
use super::scan::{self, Sighting, Start};

/// Time limit for killing leftovers: some start others faster than one scan finds them.
const KILL_WAIT_MAX: Duration = Duration::from_secs(1);
const LOOK_PAUSE: Duration = Duration::from_millis(2);

/// Looks for processes that joined the tree of a child after it was set up.
///
/// Without `/proc` it finds nothing, and leftovers end with the whole tree.
#[derive(Debug, Clone)]
pub struct Leftovers {
    marker: Marker,
    /// The child, which leads its group.
    child: Pid,
    since: Start,
    /// Processes that belong to the tree and stay.
    expected: Vec<Sighting>,
}

/// The result of [`Leftovers::kill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Killed {
    /// Number of killed processes.
    pub processes: usize,
    /// Number of zombies that the child has not reaped.
    pub zombies: usize,
}

#[derive(Debug, Default)]
struct Scan {
    unexpected: Vec<i32>,
    zombies: usize,
}

impl Leftovers {
    pub(super) fn new(marker: Marker, child: Pid, since: Start) -> Self {
        Self { marker, child, since, expected: Vec::new() }
    }

    /// Excludes every process that is in the tree now.
    pub async fn expect_present(&mut self) {
        let found = self.scan().await.unexpected;
        self.expected.extend(found.into_iter().map(Sighting::of));
    }

    /// Kills every unexpected process, and waits for at most a second until none is left.
    pub async fn kill(&self) -> Killed {
        let deadline = Instant::now() + KILL_WAIT_MAX;
        let mut killed = Killed::default();
        loop {
            let Scan { unexpected, zombies } = self.scan().await;
            killed.zombies = zombies;
            if unexpected.is_empty() || Instant::now() >= deadline {
                return killed;
            }
            killed.processes = killed.processes.max(unexpected.len());
            for pid in unexpected.into_iter().filter_map(Pid::from_raw) {
                // It may have ended since the scan.
                let _ = kill_process(pid, Signal::KILL);
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    /// Scans all processes, which takes milliseconds, on a blocking thread.
    async fn scan(&self) -> Scan {
        let leftovers = self.clone();
        // Fails only while the runtime shuts down, which ends the tree as well.
        spawn_blocking(move || leftovers.scan_now()).await.unwrap_or_default()
    }

    fn scan_now(&self) -> Scan {
        let Some(mut processes) = scan::with_zombies(self.since) else { return Scan::default() };
        let child = self.child.as_raw_pid();
        let zombies = processes.iter().filter(|it| it.is_zombie && it.parent == child).count();
        processes.retain(|process| !process.is_zombie);
        let Self { marker, child: group, since, .. } = *self;
        let mut unexpected = members(&KillTarget::Tree { marker, group, since }, &processes);
        unexpected.remove(&child);
        for pid in self.expected.iter().filter_map(|sighting| sighting.pid()) {
            unexpected.remove(&pid);
        }
        Scan { unexpected: unexpected.into_iter().collect(), zombies }
    }
}
