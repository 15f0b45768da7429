//! Lists processes through `/proc`. Without `/proc` it finds none, and only the process group can
//! be killed.

use std::fs;

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
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        Stat::parse(&stat).map_or(Self::EVER, |stat| stat.start)
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

/// Returns every live process that started no earlier than `since`, or `None` without `/proc`. A
/// descendant starts after its ancestor, so older processes are skipped.
pub(super) fn processes(since: Start) -> Option<Vec<Process>> {
    let mut processes = with_zombies(since)?;
    processes.retain(|process| !process.is_zombie);
    Some(processes)
}

/// Like [`processes`], with zombies.
pub(super) fn with_zombies(since: Start) -> Option<Vec<Process>> {
    if !fs::exists("/proc/self/stat").unwrap_or(false) {
        return None;
    }
    let entries = fs::read_dir("/proc").ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(pids.filter_map(|pid| process(pid, since)).collect())
}

/// Returns every descendant of `pid`, without a scan of other processes. It is fast, and finds a
/// descendant that cleared its environment and left the group, while its parent lives.
pub(super) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while next < found.len() && found.len() < DESCENDANTS_MAX {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}

/// Bounds the walk of a tree that grows meanwhile.
const DESCENDANTS_MAX: usize = 4096;

fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

fn process(pid: i32, since: Start) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let Stat { state, parent, group, start } = Stat::parse(&String::from_utf8_lossy(&stat))?;
    if start < since {
        return None;
    }
    let is_zombie = matches!(state, 'Z' | 'X');
    // Another user's environment is unreadable; such a process does not descend from Haft.
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    Some(Process { pid, parent, group, marker: Marker::find(&environment), is_zombie })
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: i32,
    group: i32,
    start: Start,
}

impl Stat {
    /// Parses `pid (name) state parent group ...`; the name may contain spaces and brackets.
    fn parse(stat: &str) -> Option<Self> {
        let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            // The 22nd field of the line.
            start: Start(fields.nth(16)?.parse().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_mislead() {
        let line = "7 (a) R (b) S 3 5 5 0 -1 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        let expected = Stat { state: 'S', parent: 3, group: 5, start: Start(4242) };
        assert_eq!(Stat::parse(line), Some(expected));
        assert_eq!(Stat::parse(""), None);
    }

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
