//! Calls that cannot be recorded, each made by a process of its own.

use std::os::unix::fs::symlink;

use testkit::Workspace;

use crate::{run, toolbox};

/// Two days, in case midnight passes meanwhile.
fn fill_disk(workspace: &Workspace) {
    std::fs::create_dir_all(workspace.path().join("logs")).unwrap();
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    for date in [today, today.tomorrow().unwrap()] {
        let path = workspace.path().join(format!("logs/tools-{date}.jsonl"));
        symlink("/dev/full", path).unwrap();
    }
}

fn touching() -> Workspace {
    let workspace = toolbox();
    workspace
        .write("tools/greet.py", "def run(args):\n    open('ran', 'w').close()\n    return {}\n");
    workspace
}

/// The default: no tool runs without a record, not even the first one of a process.
#[test]
fn a_full_disk_refuses_the_first_call() {
    let workspace = touching();
    fill_disk(&workspace);
    let finished = run(&workspace, &["call", "greet", "name=Ada"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (1, ""), "{}", finished.stderr);
    assert!(finished.stderr.contains("No space left on device"), "{}", finished.stderr);
    assert!(finished.stderr.contains("help:"), "{}", finished.stderr);
    assert!(!workspace.path().join("ran").exists() && !workspace.path().join("tools/ran").exists());
}

/// The disk fills while the tool runs: the answer is shown, and the exit code reports the loss.
#[test]
fn an_entry_that_is_lost_at_the_end_fails_the_command() {
    let workspace = toolbox();
    let logs = workspace.path().join("logs");
    workspace.write(
        "tools/greet.py",
        format!(
            "import os\n\ndef run(args):\n    logs = {logs:?}\n    for name in os.listdir(logs):\n        if name.startswith('tools-'):\n            os.remove(os.path.join(logs, name))\n            os.symlink('/dev/full', os.path.join(logs, name))\n    return {{'done': True}}\n"
        ),
    );
    let finished = run(&workspace, &["call", "greet", "name=Ada"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stdout.contains("done"), "{}", finished.stdout);
    assert!(
        finished.stderr.contains("is not in the execution log: ")
            && !finished.stderr.contains("yet"),
        "{}",
        finished.stderr
    );
}

/// `degrade` means that calls run, also where the log cannot even be opened.
#[test]
fn a_log_that_may_fail_does_not_stop_calls() {
    let workspace = toolbox();
    workspace.write("haft.yaml", "registry: {dir: tools}\nlog: {on_failure: degrade}\n");
    workspace.write("logs", "");
    let finished = run(&workspace, &["call", "greet", "name=Ada"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("Hello, Ada!"));
    assert!(finished.stderr.contains("the execution log fails"), "{}", finished.stderr);
    assert!(finished.stderr.contains("is not in the execution log: "), "{}", finished.stderr);
}
