//! Resource limits of this process and of the program that it becomes.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use super::spec::LimitSpec;

/// Sets the limits. Fails if the kernel refuses one of them. `processes` needs a user whom it counts: see
/// [`is_exempt`], which must be asked outside of a sandbox.
pub(super) fn apply(limits: &LimitSpec) -> Result<(), String> {
    let LimitSpec { memory, processes, open_files, cpu_secs } = *limits;
    // A core dump is a file that no rule about files covers.
    set(Resource::Core, "core", 0, 0)?;
    if let Some(bytes) = memory {
        set(Resource::Data, "memory", bytes, bytes)?;
    }
    if let Some(number) = processes {
        let number = tasks_of_user()? + u64::from(number);
        set(Resource::Nproc, "processes", number, number)?;
    }
    if let Some(number) = open_files {
        set(Resource::Nofile, "open_files", number.into(), number.into())?;
    }
    if let Some(secs) = cpu_secs {
        // A program that handles the first signal is killed a second later.
        set(Resource::Cpu, "cpu", secs, secs + 1)?;
    }
    Ok(())
}

/// The error of `processes` for root.
pub(super) const ROOT_IS_EXEMPT: &str = "the kernel does not limit the processes of root";
/// Its remedy.
pub(super) const ROOT_REMEDY: &str = "run Haft as another user, or delete `processes`";

/// Sets a limit. It never raises one that holds already.
fn set(resource: Resource, name: &str, soft: u64, hard: u64) -> Result<(), String> {
    let held = getrlimit(resource);
    let lower = |limit: u64, held: Option<u64>| Some(held.map_or(limit, |held| held.min(limit)));
    let maximum = lower(hard, held.maximum);
    let current = lower(soft, held.current);
    setrlimit(resource, Rlimit { current, maximum })
        .map_err(|error| format!("the limit `{name}` cannot be set: {error}"))
}

/// Returns true if the kernel does not count this user's processes: root. In a user namespace, the user outside of it
/// counts; if that one may be root, the answer is true.
pub(super) fn is_exempt() -> bool {
    let uid = getuid().as_raw();
    let Ok(map) = fs::read_to_string("/proc/self/uid_map") else { return uid == 0 };
    outer_uid(&map, uid).is_none_or(|outer| outer == 0)
}

/// The user outside of the namespace, by the lines `inside outside length`.
fn outer_uid(map: &str, uid: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let (inside, outside, length) =
            (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        let offset = uid.checked_sub(inside).filter(|offset| *offset < length)?;
        outside.checked_add(offset)
    })
}

/// Number of tasks that this user has now. The kernel counts all of them, not those of the program alone.
#[cfg(target_os = "linux")]
fn tasks_of_user() -> Result<u64, String> {
    let uid = getuid().as_raw().to_string();
    let entries =
        fs::read_dir("/proc").map_err(|error| format!("`/proc` cannot be read: {error}"))?;
    let mut tasks = 0;
    for entry in entries.flatten() {
        let is_process =
            entry.file_name().to_str().is_some_and(|it| it.bytes().all(|b| b.is_ascii_digit()));
        if !is_process {
            continue;
        }
        // A process that has just ended is not counted.
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next().map(str::to_owned)
        };
        if field("Uid:").as_deref() == Some(&uid) {
            tasks += field("Threads:").and_then(|number| number.parse::<u64>().ok()).unwrap_or(1);
        }
    }
    Ok(tasks)
}

#[cfg(not(target_os = "linux"))]
fn tasks_of_user() -> Result<u64, String> {
    Err("`processes` is supported on Linux only".to_owned())
}

#[cfg(test)]
mod tests {
    use super::outer_uid;

    #[test]
    fn the_user_outside_of_a_namespace_is_read_from_its_map() {
        assert_eq!(outer_uid("         0          0 4294967295\n", 0), Some(0));
        assert_eq!(outer_uid("         0       1000          1\n", 0), Some(1000));
        assert_eq!(outer_uid("0 1000 1\n1 100000 65536\n", 34), Some(100_033));
        assert_eq!(outer_uid("0 1000 1\n", 1), None);
        assert_eq!(outer_uid("", 0), None);
    }
}
