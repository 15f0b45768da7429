//! Which processes there are, as `/proc` tells. Where there is no `/proc`, nothing is found and
//! the process group is all that can be killed.

use std::fs;

use super::marker::Marker;

/// One process that is still alive. A zombie is dead already and waits only to be collected.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Its mark, if it comes from this Haft.
    pub(super) marker: Option<Marker>,
}

/// Every live process, or nothing where `/proc` does not exist.
pub(super) fn processes() -> Option<Vec<Process>> {
    if !fs::exists("/proc/self/stat").unwrap_or(false) {
        return None;
    }
    let entries = fs::read_dir("/proc").ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(pids.filter_map(process).collect())
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
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let (parent, group) = parent_and_group(&String::from_utf8_lossy(&stat))?;
    // Another user's environment cannot be read; such a process is none of ours.
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    Some(Process {
        pid,
        parent,
        group,
        marker: Marker::find(&environment),
    })
}

/// Reads `pid (name) state parent group ...`; the name may hold spaces and brackets itself.
fn parent_and_group(stat: &str) -> Option<(i32, i32)> {
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_mislead() {
        assert_eq!(parent_and_group("7 (a) R (b) S 3 5 5 0"), Some((3, 5)));
        assert_eq!(parent_and_group("7 (gone) Z 3 5 5 0"), None);
        assert_eq!(parent_and_group(""), None);
    }
}
