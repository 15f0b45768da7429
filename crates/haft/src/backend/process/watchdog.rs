//! A helper process that outlives Haft by a moment: if Haft is killed with -9, it kills everything
//! Haft had started.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Pid;
use tracing::warn;

use super::Household;
use super::marker::instance_prefix;

/// Starts the helper unless it runs already.
pub(super) fn start() {
    watchdog().start();
}

/// Tells the helper about a process group, which it then kills even where the marker was cleared.
pub(super) fn watch(group: Pid, household: Household) {
    let mut watchdog = watchdog();
    watchdog.groups.insert(group.as_raw_pid(), household);
    watchdog.tell('+', group);
}

/// Tells the helper that nothing is left of a group; its number may be somebody else's soon.
pub(super) fn forget(group: Pid) {
    let mut watchdog = watchdog();
    watchdog.groups.remove(&group.as_raw_pid());
    watchdog.tell('-', group);
}

/// Every group of `household` that is watched.
pub(super) fn groups(household: Household) -> Vec<Pid> {
    let watchdog = watchdog();
    let groups = watchdog.groups.iter().filter(|(_, owner)| **owner == household);
    groups.filter_map(|(&group, _)| Pid::from_raw(group)).collect()
}

struct Watchdog {
    groups: BTreeMap<i32, Household>,
    helper: Helper,
}

enum Helper {
    NotStarted,
    /// Haft holds the only write end of its standard input; it is closed on `exec`, so no child
    /// keeps it open.
    Running(Child),
    Impossible,
}

fn watchdog() -> MutexGuard<'static, Watchdog> {
    static WATCHDOG: Mutex<Watchdog> =
        Mutex::new(Watchdog { groups: BTreeMap::new(), helper: Helper::NotStarted });
    WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchdog {
    fn start(&mut self) {
        if !matches!(self.helper, Helper::NotStarted) {
            return;
        }
        self.helper = match spawn_helper(&self.groups) {
            Ok(helper) => Helper::Running(helper),
            Err(error) => {
                warn!(
                    %error,
                    "cannot start the watchdog (`/bin/sh`); tools may survive if Haft is killed with -9"
                );
                Helper::Impossible
            }
        };
    }

    fn tell(&mut self, change: char, group: Pid) {
        let group = group.as_raw_pid();
        let Helper::Running(helper) = &mut self.helper else {
            return;
        };
        if write_line(helper, &format!("{change} {group}\n")).is_err() {
            // Somebody killed or stopped it. A new one learns all groups at its start.
            let _ = helper.kill();
            let _ = helper.wait();
            self.helper = Helper::NotStarted;
            self.start();
        }
    }
}

fn spawn_helper(groups: &BTreeMap<i32, Household>) -> io::Result<Child> {
    let mut helper = Command::new("/bin/sh")
        .args(["-c", include_str!("watchdog.sh"), "haft-watchdog", instance_prefix()])
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(stdin) = &helper.stdin {
        // A helper that does not read must not stop Haft.
        fcntl_setfl(stdin, OFlags::NONBLOCK)?;
    }
    for group in groups.keys() {
        write_line(&mut helper, &format!("+ {group}\n"))?;
    }
    Ok(helper)
}

fn write_line(helper: &mut Child, line: &str) -> io::Result<()> {
    match &mut helper.stdin {
        // A line is far shorter than a pipe's atomic write: it arrives whole or not at all.
        Some(stdin) => stdin.write_all(line.as_bytes()),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}
