//! A contender's process: started, looked at, ended.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Failure;

/// Time for a contender to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// A process with whatever it starts. Ends with this value.
pub(crate) struct Process {
    pub(crate) child: Child,
}

/// Memory in use, in MB.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) own: f64,
    pub(crate) with_children: f64,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Result<Self, Failure> {
        // A group of its own, so that ending it ends no other.
        let child = command.process_group(0).spawn().map_err(|error| {
            format!("`{}` cannot be started: {error}", command.get_program().display())
        })?;
        Ok(Self { child })
    }

    /// Its exit, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    pub(crate) fn memory(&self) -> Memory {
        let root = self.child.id();
        let with_children = family(root).into_iter().map(resident).sum();
        Memory { own: resident(root), with_children }
    }

    /// The processor time of its own threads so far, without children.
    pub(crate) fn cpu(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let threads = threads.into_iter().flatten().flatten();
        let nanos = threads.filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < GRACE {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                break;
            }
            sleep(Duration::from_millis(5));
        }
        // Whatever is left of the group, also where its first process is gone.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A process and everything below it.
fn family(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = ids.filter_map(|id| Some((id, parent(id)?))).collect();
    let mut family = vec![root];
    let mut at = 0;
    while let Some(&id) = family.get(at) {
        family.extend(parents.iter().filter(|(_, parent)| *parent == id).map(|(child, _)| child));
        at += 1;
    }
    family
}

fn parent(id: u32) -> Option<u32> {
    status(id, "PPid:")
}

fn resident(id: u32) -> f64 {
    status(id, "VmRSS:").map_or(0.0, |kib| f64::from(kib) / 1024.0)
}

fn status(id: u32, field: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(field))?;
    value.split_whitespace().next()?.parse().ok()
}
