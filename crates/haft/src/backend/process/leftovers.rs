//! Processes that a call leaves in a tree that outlives it.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::marker::Marker;
use super::reaper::{Quarry, members};
use super::scan::{self, Sighting, Start};

/// How long leftovers are killed again and again: some start others faster than one look finds them.
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

/// What [`Leftovers::kill`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Killed {
    /// How many processes were killed.
    pub processes: usize,
    /// How many dead children the child has not collected.
    pub zombies: usize,
}

#[derive(Debug, Default)]
struct Look {
    unexpected: Vec<i32>,
    zombies: usize,
}

impl Leftovers {
    pub(super) fn new(marker: Marker, child: Pid, since: Start) -> Self {
        Self { marker, child, since, expected: Vec::new() }
    }

    /// Lets every process that is in the tree now stay.
    pub async fn expect_present(&mut self) {
        let found = self.look().await.unexpected;
        self.expected.extend(found.into_iter().map(Sighting::of));
    }

    /// Kills every process that is not expected, and waits for a second at most until none is left.
    pub async fn kill(&self) -> Killed {
        let deadline = Instant::now() + KILL_WAIT_MAX;
        let mut killed = Killed::default();
        loop {
            let Look { unexpected, zombies } = self.look().await;
            killed.zombies = zombies;
            if unexpected.is_empty() || Instant::now() >= deadline {
                return killed;
            }
            killed.processes = killed.processes.max(unexpected.len());
            for pid in unexpected.into_iter().filter_map(Pid::from_raw) {
                // It may have ended since the look.
                let _ = kill_process(pid, Signal::KILL);
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    /// A look at every process there is takes milliseconds, so it does not run on an async worker.
    async fn look(&self) -> Look {
        let leftovers = self.clone();
        // Fails only while the runtime shuts down, which ends the tree as well.
        spawn_blocking(move || leftovers.look_now()).await.unwrap_or_default()
    }

    fn look_now(&self) -> Look {
        let Some(mut processes) = scan::with_zombies(self.since) else { return Look::default() };
        let child = self.child.as_raw_pid();
        let zombies = processes.iter().filter(|it| it.is_zombie && it.parent == child).count();
        processes.retain(|process| !process.is_zombie);
        let Self { marker, child: group, since, .. } = *self;
        let mut unexpected = members(&Quarry::Tree { marker, group, since }, &processes);
        unexpected.remove(&child);
        for pid in self.expected.iter().filter_map(|sighting| sighting.pid()) {
            unexpected.remove(&pid);
        }
        Look { unexpected: unexpected.into_iter().collect(), zombies }
    }
}
