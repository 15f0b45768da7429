//! Linux: processes as `/proc` lists them. Where it is not mounted, there is no list.

use std::fs;

use super::super::marker::Marker;
use super::{Process, Start};

/// The start time of a process.
pub(super) fn start(pid: i32) -> Option<Start> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(Stat::parse(&stat)?.start)
}

/// Every process that started no earlier than `since`, with zombies, or `None` without a list.
pub(super) fn processes(since: Start) -> Option<Vec<Process>> {
    if !fs::exists("/proc/self/stat").unwrap_or(false) {
        return None;
    }
    let entries = fs::read_dir("/proc").ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(pids.filter_map(|pid| process(pid, since)).collect())
}

/// The children of a process.
pub(super) fn children(pid: i32) -> Vec<i32> {
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
}
