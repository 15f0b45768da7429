//! A helper process that outlives Haft: if Haft is killed with -9, it kills everything Haft
//! started.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Pid;
use tracing::warn;

use super::ProcessScope;
use super::marker::instance_prefix;

/// Starts the helper unless it runs already.
pub(super) fn start() {
    watchdog().start();
}

/// Registers a process group with the helper, which then kills it even if the marker was cleared.
pub(super) fn watch(group: Pid, scope: ProcessScope) {
    let mut watchdog = watchdog();
    watchdog.groups.insert(group.as_raw_pid(), scope);
    watchdog.send('+', group);
}

/// Unregisters an ended group, whose number may be reused.
pub(super) fn forget(group: Pid) {
    let mut watchdog = watchdog();
    watchdog.groups.remove(&group.as_raw_pid());
    watchdog.send('-', group);
}

/// The watched groups of `scope`.
pub(super) fn groups(scope: ProcessScope) -> Vec<Pid> {
    let watchdog = watchdog();
    let groups = watchdog.groups.iter().filter(|(_, owner)| **owner == scope);
    groups.filter_map(|(&group, _)| Pid::from_raw(group)).collect()
}

struct Watchdog {
    groups: BTreeMap<i32, ProcessScope>,
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
    WATCHDOG.lock()
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

    fn send(&mut self, change: char, group: Pid) {
        let group = group.as_raw_pid();
        let Helper::Running(helper) = &mut self.helper else {
            return;
        };
        if write_line(helper, &format!("{change} {group}\n")).is_err() {
            // The helper was killed or stopped. A new one receives all groups at its start.
            let _ = helper.kill();
            let _ = helper.wait();
            self.helper = Helper::NotStarted;
            self.start();
        }
    }
}

fn spawn_helper(groups: &BTreeMap<i32, ProcessScope>) -> io::Result<Child> {
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
        // A helper that does not read must not block Haft.
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
