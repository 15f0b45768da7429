//! `log.sync: disk`: the system calls, seen with strace.

use testkit::Program;

use crate::toolbox;

/// The entry is synced, and so is the folder that lists its new file: a power cut must not lose the
/// name of a file whose content is safe.
#[test]
fn a_synced_log_syncs_the_folder_of_a_new_file() {
    let workspace = toolbox();
    let config = workspace.read("haft.yaml").unwrap();
    workspace.write("haft.yaml", config + "log: {dir: deep/logs, sync: disk}\n");
    let trace = workspace.path().join("trace");
    let haft = env!("CARGO_BIN_EXE_haft");
    let calls = "trace=fsync,fdatasync";
    let strace = ["-f", "-y", "-e", calls, "-o", trace.to_str().unwrap(), haft];
    let is_there = std::process::Command::new("strace").arg("-V").output().is_ok();
    assert!(is_there, "strace is missing: install the package `strace`");
    let call = ["call", "greet", "name=Ada"];
    let finished = Program::new("strace", &workspace).args(&strace).args(&call).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let trace = std::fs::read_to_string(trace).unwrap();
    let folder = |name: &str| trace.find(&format!("/{name}>"));
    let (logs, entry) = (folder("deep/logs"), trace.find(".jsonl>"));
    assert!(folder("deep").is_some(), "the new folder's own name: {trace}");
    assert!(logs.is_some() && entry.is_some() && logs < entry, "{trace}");
}
