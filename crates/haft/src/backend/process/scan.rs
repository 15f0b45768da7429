//! Which processes there are, as `/proc` tells. Where there is no `/proc`, nothing is found and
//! the process group is all that can be killed.

use std::fs;

use super::marker::Marker;

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Its mark, if it comes from this Haft.
    pub(super) marker: Option<Marker>,
    /// Whether it is dead already and waits only to be collected.
    pub(super) is_zombie: bool,
}

/// When a process started, in clock ticks since the system did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Start(u64);

impl Start {
    /// Before every process.
    pub(super) const EVER: Self = Self(0);

    /// When the process started; unknown counts as the beginning of all.
    pub(super) fn of(pid: i32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        Stat::parse(&stat).map_or(Self::EVER, |stat| stat.start)
    }
}

/// A process as it was seen once. Its number alone may be another process's later.
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

/// Every live process that started no earlier than `since`, or nothing where `/proc` does not exist.
/// A descendant starts after its ancestor, so the many old processes of a machine are passed over.
pub(super) fn processes(since: Start) -> Option<Vec<Process>> {
    let mut processes = with_zombies(since)?;
    processes.retain(|process| !process.is_zombie);
    Some(processes)
}

/// The same, with the dead that their parents have not collected.
pub(super) fn with_zombies(since: Start) -> Option<Vec<Process>> {
    if !fs::exists("/proc/self/stat").unwrap_or(false) {
        return None;
    }
    let entries = fs::read_dir("/proc").ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(pids.filter_map(|pid| process(pid, since)).collect())
}

/// Every descendant of `pid`, found without a look at any other process. It is quick, and it finds
/// a descendant that cleared its environment and left the group, as long as its parent lives.
pub(super) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while next < found.len() && found.len() < DESCENDANTS_MAX {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}

/// A tree that grows while it is walked must not keep the walker busy.
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
    // Another user's environment cannot be read; such a process is none of ours.
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
    /// Reads `pid (name) state parent group ...`; the name may hold spaces and brackets itself.
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
