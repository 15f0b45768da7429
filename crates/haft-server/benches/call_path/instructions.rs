//! Instructions of a call past rules, counted by callgrind: unlike times they are the same on a busy machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::function::{Failure, one_by_one, start_with};

/// Names the work of a process that is counted: the folder, the number of calls and the settings.
const ORDER: &str = "HAFT_BENCH_COUNTED";
const CALLS: [usize; 2] = [200, 1_200];

/// The work of this process, if it is one that is counted.
pub(crate) struct Order {
    folder: PathBuf,
    calls: usize,
    settings: String,
}

impl Order {
    pub(crate) fn of_process() -> Option<Self> {
        let text = std::env::var(ORDER).ok()?;
        let (calls, rest) = text.split_once('\n')?;
        let (folder, settings) = rest.split_once('\n')?;
        Some(Self {
            folder: folder.into(),
            calls: calls.parse().ok()?,
            settings: settings.to_owned(),
        })
    }

    pub(crate) fn follow(self) -> Result<(), Failure> {
        // One worker, so that no two threads wait for each other.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(async {
            let toolbox = start_with(&self.folder, "os", &self.settings).await?;
            one_by_one(&toolbox, self.calls).await?;
            toolbox.shutdown(std::time::Duration::from_secs(1)).await;
            Ok(())
        })
    }
}

/// Instructions of one call: the difference between many calls and few. `None` without valgrind.
pub(crate) fn per_call(folder: &Path, settings: &str) -> Result<Option<u64>, Failure> {
    let has_valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !has_valgrind.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let [few, many] = CALLS;
    let more = counted(folder, settings, many)?.saturating_sub(counted(folder, settings, few)?);
    Ok(Some(more / (many - few) as u64))
}

fn counted(folder: &Path, settings: &str, calls: usize) -> Result<u64, Failure> {
    let order = format!("{calls}\n{}\n{settings}", folder.display());
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--fair-sched=yes", "--callgrind-out-file=/dev/null"]);
    let output = command.arg(std::env::current_exe()?).env(ORDER, order).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, collected) = collected
        .filter(|_| output.status.success())
        .ok_or_else(|| format!("valgrind counted nothing: {text}"))?;
    Ok(collected.trim().parse()?)
}
