//! Helpers for the tests of this module: conditions to wait for, and a view of the processes that
//! is independent of the code under test.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit of a condition on a busy machine. A passing test never waits this long.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(20);

/// Waits until `condition` holds.
pub(super) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the file exists and ends in a newline, and returns its text.
pub(super) async fn line_in(path: &Path) -> String {
    let mut text = String::new();
    until(&format!("{} is written", path.display()), || {
        text = fs::read_to_string(path).unwrap_or_default();
        text.ends_with('\n')
    })
    .await;
    text.trim().to_owned()
}

/// Waits until no live process carries `mark` in its environment.
pub(super) async fn until_gone(mark: &str) {
    assert!(!mark.is_empty());
    until(&format!("everything marked {mark} is gone"), || alive(mark) == 0).await;
}

/// Counts live processes with `mark` in their environment. A zombie has none.
pub(super) fn alive(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|process| fs::read(process.path().join("environ")).ok())
        .filter(|environ| String::from_utf8_lossy(environ).contains(mark))
        .count()
}

/// Returns true if the process is alive and not a zombie.
pub(super) fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Returns true if the process exists, possibly as a zombie.
pub(super) fn exists(pid: i32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}
