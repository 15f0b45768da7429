//! Scripts that misuse their own process must still get their answer.

use super::*;

/// A tool that closes its own stdout must not lose its return value.
#[tokio::test]
async fn a_tool_may_lose_its_stdout() {
    for misuse in ["sys.stdout = None", "sys.stdout.close()", "sys.stdout = object()"] {
        let bench = Bench::new(&format!("import sys\ndef run(args):\n    {misuse}\n    return 1"));
        assert_eq!(bench.data("{}").await, "1", "{misuse}");
    }
}

#[tokio::test]
async fn an_exception_without_a_module_is_told() {
    let bench = Bench::new(
        "class Bad(Exception): __module__ = None\ndef run(args): raise Bad('no such city')",
    );
    assert_eq!(bench.failure("{}").await.0, "`tool` raised `Bad`: no such city");
}

/// An exception that cannot even be shown.
#[tokio::test]
async fn an_exception_that_breaks_its_own_traceback_is_reported() {
    let bench = Bench::new("def run(args): raise SyntaxError('odd', ('f.py', 1, 1, 5))");
    let (message, _, _) = bench.failure("{}").await;
    assert_eq!(message, "`tool` raised `SyntaxError`: odd");
}

/// The numbers of the pipes are free in a forked copy. Files that reuse them must stay intact.
#[tokio::test]
async fn a_forked_copy_ends_where_it_returns() {
    let bench = Bench::new(
        r#"
import os
def run(args):
    names = [os.path.join(args["room"], str(number)) for number in range(8)]
    pid = os.fork()
    if pid == 0:
        global kept
        kept = [open(name, "w") for name in names]
        return "copy"
    return [os.waitpid(pid, 0)[1], sum(os.path.getsize(name) for name in names)]
"#,
    );
    let room = tempfile::tempdir().unwrap();
    let arguments = serde_json::json!({ "room": room.path() }).to_string();
    assert_eq!(bench.data(&arguments).await, "[0,0]");
    bench.write("tool.py", "import os\npid = os.fork()\ndone = pid and os.waitpid(pid, 0)[1]\ndef run(args): return done");
    assert_eq!(bench.data("{}").await, "0", "forked while the script is loaded");
}
