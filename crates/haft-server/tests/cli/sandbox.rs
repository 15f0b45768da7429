//! `code_execution` in the real `bwrap`: what code can do there, and what it cannot.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Program, Workspace};

/// A workspace whose code runs in the sandbox, with more settings of it.
fn workspace(settings: &str) -> Workspace {
    let config = format!("builtin: {{code_execution: {{sandbox: bubblewrap{settings}}}}}\n");
    Workspace::with(&[("haft.yaml", &config)])
}

/// The envelope of a call.
fn call(workspace: &Workspace, arguments: &Value) -> Value {
    let args = ["call", "code_execution", &arguments.to_string(), "--json"];
    let program = Program::new(env!("CARGO_BIN_EXE_haft"), workspace).with_builtins().args(&args);
    let finished = program.env("OUR_SECRET", "canary").run();
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr))
}

/// The output of code.
fn printed(workspace: &Workspace, language: &str, code: &str) -> String {
    let answer = call(workspace, &json!({"language": language, "code": code}));
    let printed = answer["data"]["stdout"].as_str();
    printed.unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

/// Returns true if a process has this text in its command line.
fn runs(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(text))
}

/// Proves S2-FR-007 for the sandbox: code computes, and writes into its folder and a `/tmp` of its own alone.
#[test]
fn code_in_the_sandbox_writes_only_where_it_may() {
    let workspace = workspace("");
    assert_eq!(printed(&workspace, "python", "print(6 * 7)"), "42\n");
    let name = format!("haft-was-here-{}", std::process::id());
    let code = format!(
        "echo kept > here && cat here
        touch /tmp/{name} && echo tmp
        for to in / /etc /usr /var /home; do touch $to/{name} 2> /dev/null && echo $to; done
        env | grep -c canary
        tr '\\0' '\\n' < /proc/1/environ | grep -c canary
        ls /run"
    );
    assert_eq!(printed(&workspace, "shell", &code), "kept\ntmp\n0\n0\n");
    for folder in ["/tmp", "/", "/etc"] {
        assert!(!Path::new(folder).join(&name).exists(), "{folder}");
    }
}

/// Settings of the kernel are not the code's to change, also where it runs as root.
#[test]
fn code_in_the_sandbox_changes_nothing_of_the_kernel() {
    let code = "for path in ['/proc/sys/kernel/threads-max', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger']:\n    \
                try:\n        open(path, 'a').close(); print('open:', path)\n    \
                except OSError:\n        pass\nprint('tried')\n";
    assert_eq!(printed(&workspace(""), "python", code), "tried\n");
}

/// Code that empties its folder still counts as run; the marker of that is not shown.
#[test]
fn code_in_the_sandbox_may_empty_its_folder() {
    let code = "rm -rf ./* ./.[!.]*; echo gone; echo why >&2";
    let answer = call(&workspace(""), &json!({"language": "shell", "code": code}));
    assert_eq!(
        (&answer["data"]["stdout"], &answer["data"]["stderr"]),
        (&json!("gone\n"), &json!("why\n"))
    );
}

/// Code in the sandbox has no network unless `network` permits it.
#[test]
fn code_in_the_sandbox_has_no_network_unless_it_may() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let code = format!(
        "import socket\n\
         try:\n    socket.create_connection(('127.0.0.1', {port}), 5); print('reached')\n\
         except OSError as error:\n    print(error.strerror)\n"
    );
    assert_eq!(printed(&workspace(""), "python", &code), "Connection refused\n");
    assert_eq!(printed(&workspace(", network: true"), "python", &code), "reached\n");
}

/// A process that left its session and cleared its environment, and so cannot be found from outside, ends with the
/// sandbox: at the code's end and at its timeout.
#[test]
fn nothing_is_left_of_code_in_the_sandbox() {
    let workspace = workspace("");
    // A length that no other process sleeps for.
    let length = 100_000 + std::process::id();
    let left = format!("env -i setsid nohup sleep {length} > /dev/null 2>&1 &");
    assert_eq!(printed(&workspace, "shell", &format!("{left}\necho done")), "done\n");
    assert!(!runs(&format!("sleep {length}")));

    let code = format!("{left}\necho begun\nsleep 1000");
    let started = Instant::now();
    let answer = call(&workspace, &json!({"language": "shell", "code": code, "timeout": 2}));
    assert!(started.elapsed() < Duration::from_secs(30), "{answer:#}");
    assert!(answer["error"].to_string().contains("begun"), "{answer:#}");
    assert!(!runs(&format!("sleep {length}")));
}

/// Landlock restricts code too; a list of files in place of the whole machine, and the sandbox of `defaults`.
#[test]
fn code_runs_in_landlock_too() {
    let other = Workspace::with(&[("secret", "canary")]);
    let secret = other.path().join("secret");
    let code = format!(
        "echo kept > here && cat here
        touch $TMPDIR/new && echo temporary
        touch {there}/new 2> /dev/null && echo outside
        cat {there}/secret 2> /dev/null
        env | grep -c canary; true",
        there = other.path().display()
    );
    let builtin = |settings: &str| format!("builtin: {{code_execution: {{{settings}}}}}\n");
    let listed = "kept\ntemporary\n0\n";
    let all = "kept\ntemporary\ncanary0\n";
    for (config, expected) in [
        (builtin("sandbox: landlock"), all),
        (builtin("sandbox: {kind: landlock, read: [], cpu: 20s}"), listed),
        (format!("{}defaults: {{sandbox: landlock}}\n", builtin("")), listed),
        (builtin("sandbox: {kind: bubblewrap, read: [], memory: 1GiB}"), "kept\n0\n"),
    ] {
        let workspace = Workspace::with(&[("haft.yaml", &config)]);
        if config.contains("landlock")
            && let Err(missing) = haft::sandbox::support().landlock
        {
            println!("SKIPPED: landlock is not enforced here: {missing}");
            let answer = call(&workspace, &json!({"language": "shell", "code": code}));
            assert_eq!(answer["error"]["code"], "ServiceUnavailable", "{answer:#}");
            continue;
        }
        assert_eq!(printed(&workspace, "shell", &code), expected, "{config}");
    }
    assert!(secret.exists() && !other.path().join("new").exists());
}
