//! Scripts that are broken.

use super::*;
use crate::backend::script::ANSWER_BYTES_MAX;

/// Proves S2-EC-08.
#[tokio::test]
async fn a_missing_script_is_named() {
    let bench = Bench::new("");
    fs::remove_file(bench.tools.path().join("tool.py")).unwrap();
    let (message, remedy, details) = bench.failure("{}").await;
    let path = bench.path("tool.py");
    assert_eq!(message, format!("the script `{path}` does not exist"));
    assert_eq!(remedy, "put the file there, or correct `script_path`");
    assert_eq!(details["path"], path);
    bench.write("tool.py", "def run(args): return 1");
    assert_eq!(bench.data("{}").await, "1");
}

#[tokio::test]
async fn a_script_path_that_leads_out_is_refused_at_the_call() {
    let bench = Bench::with("", |settings| settings.script_path = "../tool.py".into());
    let (message, _, _) = bench.failure("{}").await;
    assert_eq!(message, "the script path `../tool.py` is refused: it contains `..`");
}

#[tokio::test]
async fn a_syntax_error_names_file_line_and_text() {
    let bench = Bench::new("import os\ndef run(:\n    pass");
    let (message, remedy, details) = bench.failure("{}").await;
    let path = bench.path("tool.py");
    assert_eq!(
        message,
        format!(
            "the script `{path}` cannot be loaded: `SyntaxError`: invalid syntax in `{path}`, line 2: `def run(:`"
        )
    );
    assert_eq!(remedy, format!("correct line 2 of `{path}`; the next call loads it again"));
    assert_eq!(
        (details["line"].as_u64(), details["file"].as_str()),
        (Some(2), Some(path.as_str()))
    );
    bench.write("tool.py", "def run(args): return 1");
    assert_eq!(bench.data("{}").await, "1");
}

#[tokio::test]
async fn an_error_while_loading_is_told_with_its_traceback() {
    let bench = Bench::new("import no_such_module");
    let (message, _, details) = bench.failure("{}").await;
    let path = bench.path("tool.py");
    assert_eq!(
        message,
        format!(
            "the script `{path}` cannot be loaded: `ModuleNotFoundError`: No module named 'no_such_module'"
        )
    );
    let traceback = details["traceback"].as_str().unwrap();
    assert!(traceback.contains(&format!("File \"{path}\", line 1, in <module>")), "{traceback}");
    assert_eq!(traceback.matches("File ").count(), 1, "{traceback}");
}

#[tokio::test]
async fn a_missing_entrypoint_is_named() {
    let bench = Bench::new("def main(args): pass\nrun = 3");
    let (message, remedy, _) = bench.failure("{}").await;
    assert_eq!(message, format!("the script `{}` has no function `run`", bench.path("tool.py")));
    assert_eq!(remedy, "define it, as in `def run(args)`, or correct `entrypoint`");
}

/// An entrypoint is a function that the script defines: imported functions are not tools.
#[tokio::test]
async fn an_imported_entrypoint_is_refused() {
    for script in [
        "from subprocess import check_output as run",
        "import subprocess\nrun = subprocess.check_output",
        "import functools, subprocess\nrun = functools.partial(subprocess.check_output, shell=True)",
        "from subprocess import *\nfrom subprocess import Popen as run",
        "from builtins import eval as run",
        "from helper import run",
        "import helper\nrun = helper.Tool()",
        "import helper\nrun = helper.Tool().run",
        "def outer():\n    def run(args): pass\nclass C:\n    def run(args): pass\nfrom helper import run",
    ] {
        let bench = Bench::new(script);
        bench.write(
            "helper.py",
            "def run(args): return 'ran'\nclass Tool:\n    def __call__(self, args): return 'ran'\n    run = __call__",
        );
        let (message, remedy, _) = bench.failure(r#"["touch", "ran"]"#).await;
        let path = bench.path("tool.py");
        assert_eq!(
            message,
            format!("the script `{path}` does not define `run` itself"),
            "{script}"
        );
        assert!(remedy.contains("def run(args)"), "{remedy}");
    }
    let bench = Bench::with("def run(args): pass", |settings| {
        settings.entrypoint = "__class__".into();
    });
    assert!(bench.failure("{}").await.0.ends_with("does not define `__class__` itself"));
}

/// Proves the exception row of the faults: type, message, and the frames of the tool only.
#[tokio::test]
async fn an_exception_is_reported_with_the_frames_of_the_tool() {
    for run in ["def run(args)", "async def run(args)"] {
        let bench = Bench::new(&format!(
            "class Bad(Exception): pass\n\
             def inner():\n    print('on my way')\n    raise Bad('no such city')\n{run}:\n    inner()"
        ));
        let (message, remedy, details) = bench.failure("{}").await;
        let path = bench.path("tool.py");
        assert_eq!(message, "`tool` raised `Bad`: no such city");
        assert_eq!(remedy, format!("the traceback shows the line in `{path}`"));
        let traceback = details["traceback"].as_str().unwrap();
        let frame = |line: u32, name: &str| format!("File \"{path}\", line {line}, in {name}\n");
        assert!(traceback.contains(&frame(6, "run")), "{traceback}");
        assert!(traceback.contains(&frame(4, "inner")), "{traceback}");
        assert_eq!(traceback.matches("File ").count(), 2, "{traceback}");
        // An exception does not cost the warm worker.
        assert_eq!(bench.failure("{}").await.0, message);
    }
}

#[tokio::test]
async fn what_json_cannot_hold_is_named() {
    for (value, kind, problem) in [
        ("{1, 2}", "set", "Object of type set is not JSON serializable"),
        ("{'a': [object()]}", "dict", "Object of type object is not JSON serializable"),
        ("[float('nan')]", "list", "Out of range float values are not JSON compliant"),
        ("'\\ud800'", "str", "surrogates not allowed"),
    ] {
        let bench = Bench::new(&format!("def run(args): return {value}"));
        let (message, _, _) = bench.failure("{}").await;
        assert!(message.starts_with(&format!("`tool` returned a `{kind}` that is not JSON: ")));
        assert!(message.contains(problem), "{message}");
    }
}

/// Proves the exit-code row of the faults.
#[tokio::test]
async fn a_script_that_ends_its_process_is_reported_with_code_and_stderr() {
    for (script, message, code, signal) in [
        ("import sys\ndef run(args): sys.exit(3)", "exit code 3 before it answered", Some(3), None),
        (
            "import sys\ndef run(args): sys.exit('no luck')",
            "exit code 1 before it answered: no luck",
            Some(1),
            None,
        ),
        (
            "import os\ndef run(args):\n    print('bye')\n    os._exit(5)",
            "exit code 5 before it answered: bye",
            Some(5),
            None,
        ),
        (
            "import os\ndef run(args): os.kill(os.getpid(), 9)",
            "signal 9 (SIGKILL) before it answered",
            None,
            Some(9),
        ),
        (
            "import os\ndef run(args): os.abort()",
            "signal 6 (SIGABRT) before it answered",
            None,
            Some(6),
        ),
    ] {
        let (told, _, details) = Bench::new(script).failure("{}").await;
        assert_eq!(told, format!("`tool` ended with {message}"));
        assert_eq!((details["exit_code"].as_i64(), details["signal"].as_i64()), (code, signal));
    }
}

/// Proves the print row of the faults: not even C code or a subprocess breaks the answer.
#[tokio::test]
async fn prints_never_reach_the_answer() {
    let bench = Bench::new(
        "import os, subprocess, sys\n\
         def run(args):\n    print('{\"fake\": 1}')\n    os.write(1, b'R' * 100)\n    \
         subprocess.run(['sh', '-c', 'echo shell; cat'])\n    sys.stdout.buffer.write(b'x' * 200000)\n    \
         return {'ok': True}",
    );
    for _ in 0..3 {
        assert_eq!(bench.data("{}").await, r#"{"ok":true}"#);
    }
}

/// A forked copy that returns from `run` must not answer in the tool's name.
#[tokio::test]
async fn a_forked_copy_does_not_answer() {
    let bench = Bench::new(
        "import os\ndef run(args):\n    pid = os.fork()\n    if pid == 0: return 'copy'\n    os.waitpid(pid, 0)\n    return 'original'",
    );
    for _ in 0..3 {
        assert_eq!(bench.data("{}").await, r#""original""#);
    }
}

/// Proves the megabytes row of the faults.
#[tokio::test]
async fn megabytes_pass_in_both_directions() {
    let bench = Bench::new("def run(args):\n    return args['text']");
    let long = "é".repeat(4 * 1024 * 1024);
    let answer = bench.data(&format!(r#"{{"text":"{long}"}}"#)).await;
    assert_eq!(answer.len(), long.len() + 2);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused_and_the_next_call_works() {
    let bench = Bench::new("def run(args):\n    return 'x' * args['size']");
    let (message, remedy, _) = bench.failure(&format!(r#"{{"size":{ANSWER_BYTES_MAX}}}"#)).await;
    assert_eq!(message, "`tool` answered 16777218 bytes of JSON; 16777216 bytes are the limit");
    assert_eq!(remedy, "let the tool answer less, or write a file and answer its path");
    assert_eq!(bench.data(r#"{"size":1}"#).await, r#""x""#);
}

#[tokio::test]
async fn a_missing_interpreter_is_named_with_the_path_that_was_searched() {
    let bench = Bench::with("", |settings| settings.python = "python-of-nowhere".into());
    let (message, remedy, details) = bench.failure("{}").await;
    assert_eq!(
        message,
        "the program `python-of-nowhere` could not be started: it is in no directory of PATH"
    );
    assert_eq!(details["path"], std::env::var("PATH").unwrap());
    assert_eq!(remedy, "install `python-of-nowhere`, or give its whole path in `defaults.python`");
}

/// A Python that starts in a directory of its own, as if Haft had been started there.
fn python_in(directory: &std::path::Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let python = directory.join("python");
    let script = format!("#!/bin/sh\ncd '{}' && exec python3 \"$@\"\n", directory.display());
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    python.to_str().unwrap().to_owned()
}

/// The directory Haft was started in does not belong to the tool: its files are never imported.
#[tokio::test]
async fn modules_in_the_current_directory_are_not_imported() {
    let elsewhere = tempfile::tempdir().unwrap();
    for module in ["inspect", "json", "struct", "traceback", "asyncio", "importlib"] {
        let broken = "raise SystemExit('imported from the current directory')";
        fs::write(elsewhere.path().join(format!("{module}.py")), broken).unwrap();
    }
    let python = python_in(elsewhere.path());
    let script = "import helper, json, os\nasync def run(args): return [helper.A, os.getcwd()]";
    let bench = Bench::with(script, |settings| settings.python = python);
    bench.write("helper.py", "A = 1");
    let cwd = elsewhere.path().canonicalize().unwrap();
    assert_eq!(bench.data("{}").await, format!("[1,\"{}\"]", cwd.display()));
}

/// The remedy does not mention return values if Python fails to start or the script ends while
/// loading.
#[tokio::test]
async fn a_python_that_ends_before_the_tool_is_ready_is_reported() {
    let elsewhere = tempfile::tempdir().unwrap();
    let broken = python_in(elsewhere.path());
    fs::write(&broken, "#!/bin/sh\necho no home >&2\nexit 1\n").unwrap();
    let run = "def run(args): return 1";
    for (python, script, ended) in [
        ("/bin/true", run, "exit code 0 before `tool` was ready"),
        (&broken, run, "exit code 1 before `tool` was ready: no home"),
        ("python3", "raise SystemExit(4)", "exit code 4 before `tool` was ready"),
        (
            "python3",
            "import os\nprint('bye')\nos._exit(0)",
            "exit code 0 before `tool` was ready: bye",
        ),
    ] {
        let bench = Bench::with(script, |settings| settings.python = python.into());
        let (message, remedy, details) = bench.failure("{}").await;
        assert_eq!(message, format!("Python (`{python}`) ended with {ended}"));
        let path = bench.path("tool.py");
        assert_eq!(
            remedy,
            format!(
                "see that `defaults.python` names a Python 3 that works, and that `{path}` does not \
                 end the process while it is loaded"
            )
        );
        assert!(details["stderr"].is_string() && details["exit_code"].is_number(), "{details}");
    }
}
