//! Sandboxes on a kernel without Landlock: nothing runs in one.

use serde_json::{Value, json};
use testkit::{Finished, Program, Workspace};

const PYTHON: &str = "/usr/bin/python3";

/// Becomes another program, for which the system calls of Landlock do not exist, as on an old kernel.
const OLD_KERNEL: &str = r"
import ctypes, os, struct, sys

FIRST, LAST, ENOSYS = 444, 446, 38
steps = [
    (0x20, 0, 0, 0),                    # the number of the call
    (0x35, 0, 2, FIRST),                # at least FIRST
    (0x25, 1, 0, LAST),                 # above LAST
    (0x06, 0, 0, 0x00050000 | ENOSYS),  # refuse
    (0x06, 0, 0, 0x7fff0000),           # allow
]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))

class Filter(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('steps', ctypes.c_void_p)]

libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(steps), ctypes.addressof(code))), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

fn on_old_kernel(workspace: &Workspace, args: &[&str]) -> Finished {
    let program = Program::new(PYTHON, workspace);
    program.args(&["-c", OLD_KERNEL, env!("CARGO_BIN_EXE_haft")]).args(args).run()
}

fn workspace(sandbox: &Value) -> Workspace {
    let tool = json!({
        "name": "touch", "description": "Makes a file.", "sandbox": sandbox,
        "config": {"command": ["touch", "made"]}, "input_schema": {"type": "object"},
    });
    let server = json!({
        "command": "touch", "args": ["made"], "sandbox": sandbox, "reconnect": {"attempts": 0},
    });
    let config = json!({"local_tools": [tool], "servers": {"files": server}});
    Workspace::with(&[("haft.json", &config.to_string())])
}

/// `check` names the kernel, a call is refused, and neither a tool nor a server is started.
#[test]
fn nothing_runs_in_landlock_on_a_kernel_without_it() {
    let made = |workspace: &Workspace| workspace.path().join("made").exists();
    let workspace = workspace(&json!("landlock"));
    let checked = on_old_kernel(&workspace, &["check"]);
    assert_eq!(checked.code, 2, "{}", checked.stderr);
    let cause = "this kernel does not have Landlock with all rules about files (Linux 6.2)";
    assert!(checked.stderr.contains(cause), "{}", checked.stderr);
    let called = on_old_kernel(&workspace, &["--standalone", "call", "touch", "{}", "--json"]);
    let envelope: Value = serde_json::from_str(&called.stdout).unwrap();
    assert_eq!(envelope["error"]["code"], "ServiceUnavailable", "{envelope:#}");
    let listed = on_old_kernel(&workspace, &["--standalone", "servers", "--json"]);
    assert!(!listed.stdout.contains("\"connected\""), "{}", listed.stdout);
    assert!(!made(&workspace));

    let grants = json!([{"path": "/", "access": "write"}]);
    let limits = json!({"memory": null, "processes": null, "open_files": null, "cpu_secs": null});
    let spec = json!({"landlock": {"grants": grants, "network": "all"}, "limits": limits});
    let path = workspace.path().join("made").display().to_string();
    let touch = ["sandbox-exec", &spec.to_string(), "touch", &path];
    let launched = on_old_kernel(&workspace, &touch);
    assert_eq!(launched.code, 125, "{}", launched.stderr);
    assert!(launched.stderr.contains("the kernel refuses the rules"), "{}", launched.stderr);
    assert!(!made(&workspace));
    // The same order is followed where the kernel has Landlock.
    if haft::sandbox::support().landlock.is_ok() {
        let launched = crate::run(&workspace, &touch);
        assert_eq!(launched.code, 0, "{}", launched.stderr);
        assert!(made(&workspace));
    }
}

/// Without a sandbox the same tool runs there.
#[test]
fn a_tool_without_a_sandbox_runs_on_a_kernel_without_landlock() {
    let workspace = workspace(&json!("none"));
    let called = on_old_kernel(&workspace, &["--standalone", "call", "touch", "{}", "--json"]);
    assert_eq!(called.code, 0, "{}{}", called.stdout, called.stderr);
    assert!(workspace.path().join("made").exists());
}
