//! Finds processes and their descendants. Without a list of processes it finds none, and only the process group can be
//! killed.

#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "compiled to check the fallback"))]
mod no_list;
#[cfg(target_os = "linux")]
mod proc_fs;

#[cfg(not(target_os = "linux"))]
use no_list as list;
#[cfg(target_os = "linux")]
use proc_fs as list;

use super::marker::Marker;

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Its marker, if it descends from this Haft.
    pub(super) marker: Option<Marker>,
    /// True for a zombie.
    pub(super) is_zombie: bool,
}

/// The start time of a process, in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Start(u64);

impl Start {
    /// Before every process.
    pub(super) const EVER: Self = Self(0);

    /// The start time of the process; unknown counts as earliest.
    pub(super) fn of(pid: i32) -> Self {
        list::start(pid).unwrap_or(Self::EVER)
    }
}

/// A process identified by number and start time, because numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sighting {
    pid: i32,
    start: Start,
}

impl Sighting {
    /// The process that has this number now.
    pub(super) fn of(pid: i32) -> Self {
        Self { pid, start: Start::of(pid) }
    }

    /// Its number, while it is the same process.
    pub(super) fn pid(self) -> Option<i32> {
        (self.start != Start::EVER && Self::of(self.pid) == self).then_some(self.pid)
    }
}

/// Returns every live process that started no earlier than `since`, or `None` without a list. A
/// descendant starts after its ancestor, so older processes are skipped.
pub(super) fn processes(since: Start) -> Option<Vec<Process>> {
    let mut processes = with_zombies(since)?;
    processes.retain(|process| !process.is_zombie);
    Some(processes)
}

/// Like [`processes`], with zombies.
pub(super) fn with_zombies(since: Start) -> Option<Vec<Process>> {
    list::processes(since)
}

/// Returns every descendant of `pid`, without a scan of other processes. It is fast, and finds a
/// descendant that cleared its environment and left the group, while its parent lives.
pub(super) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = list::children(pid);
    let mut next = 0;
    while next < found.len() && found.len() < DESCENDANTS_MAX {
        found.extend(list::children(found[next]));
        next += 1;
    }
    found
}

/// Bounds the walk of a tree that grows meanwhile.
const DESCENDANTS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_older_than_the_tree_are_passed_over() {
        let own = i32::try_from(std::process::id()).unwrap();
        let seen = |since| processes(since).unwrap().iter().any(|process| process.pid == own);
        assert!(seen(Start::EVER) && seen(Start::of(own)));
        assert!(!seen(Start(Start::of(own).0 + 1)));
    }

    #[test]
    fn a_number_that_was_given_away_is_not_taken_for_the_old_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        let sighting = Sighting::of(own);
        assert_eq!(sighting.pid(), Some(own));
        let earlier = Sighting { start: Start(sighting.start.0 + 1), ..sighting };
        assert_eq!(earlier.pid(), None);
        assert_eq!(Sighting { pid: i32::MAX, start: Start::EVER }.pid(), None);
    }
}
