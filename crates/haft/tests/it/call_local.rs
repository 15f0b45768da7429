//! Scripts and commands through the whole path: registry file, limits, schemas, log.

use std::time::Duration;

use haft::{Code, Envelope, Runtime, Status, ToolCall};
use serde_json::{Value, json};

use crate::support::{Bench, empty, until};

fn tool(name: &str, config: &Value) -> Value {
    json!({"name": name, "description": "A tool.", "type": "local",
           "input_schema": {"type": "object"}, "config": config})
}

fn data(answer: &Envelope) -> Value {
    let data = answer.data.as_ref().unwrap_or_else(|| panic!("{:?}", answer.error));
    serde_json::from_str(data.get()).unwrap()
}

/// Processes whose environment holds `mark`, which the test puts into its own.
fn alive(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let holds = |path: std::path::PathBuf| {
        let command = std::fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(mark)
    };
    processes.filter(|entry| holds(entry.path())).count()
}

/// Proves S2-FR-001, S2-FR-002, S2-US3-T (without a core change), S2-KE-01.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_scripts_run_sync_and_async_with_their_entrypoint() {
    let bench = Bench::new();
    let tools = json!([
        tool("sync", &json!({"script_path": "sync.py"})),
        tool("async", &json!({"script_path": "async.py", "entrypoint": "main"})),
    ]);
    let scripts = [
        ("sync.py", "def run(args):\n    print('noise')\n    return {'got': args}\n"),
        (
            "async.py",
            "import asyncio\nasync def main(args):\n    await asyncio.sleep(0)\n    return {'n': args['n'] + 1}\n",
        ),
    ];
    let runtime = Runtime::start(bench.registry(&tools, &scripts)).await.unwrap();
    let big = r#"{"n": 1234567890123456789012345678901234567890, "b": [1.10], "a": "ä"}"#;
    let answer = runtime.call(ToolCall::from_text("sync", big)).await;
    // Large numbers, key order and letters survive the way in and out.
    let expected = r#"{"got":{"n":1234567890123456789012345678901234567890,"b":[1.1],"a":"ä"}}"#;
    assert_eq!(answer.data.as_ref().unwrap().get(), expected);
    let answer = runtime.call(ToolCall::from_text("async", r#"{"n": 41}"#)).await;
    assert_eq!(data(&answer), json!({"n": 42}));
    let info = serde_json::to_value(runtime.tool("async").unwrap()).unwrap();
    assert_eq!(info["program"]["entrypoint"], "main");
    assert_eq!((&info["source"], &info["kind"]), (&json!("local"), &json!("local")));
    runtime.shutdown(Duration::from_secs(2)).await;
}

/// Proves S2-Q-01, S2-EC-03, S2-FR-009: the script has what the runtime has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_runs_with_the_runtimes_own_user_folder_and_environment() {
    let bench = Bench::new();
    let script = "import os\ndef run(args):\n    return {'cwd': os.getcwd(), 'uid': os.getuid(), 'crate': os.environ['CARGO_MANIFEST_DIR']}\n";
    let config = bench
        .registry(&json!([tool("who", &json!({"script_path": "who.py"}))]), &[("who.py", script)]);
    let runtime = Runtime::start(config).await.unwrap();
    let found = data(&runtime.call(empty("who")).await);
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
    assert_eq!(found["cwd"], json!(std::env::current_dir().unwrap()));
    assert_eq!(found["uid"], uid);
    assert_eq!(found["crate"], env!("CARGO_MANIFEST_DIR"));
    runtime.shutdown(Duration::from_secs(2)).await;
}

/// Proves S2-EC-08: the start succeeds, the call names the path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_script_fails_the_call_and_not_the_start() {
    let bench = Bench::new();
    let tools = json!([tool("gone", &json!({"script_path": "gone.py"}))]);
    let runtime = Runtime::start(bench.registry(&tools, &[])).await.unwrap();
    let error = runtime.call(empty("gone")).await.error.unwrap();
    assert_eq!(error.code, Code::ToolExecutionError);
    assert!(error.message.contains("tools/gone.py"), "{}", error.message);
    assert!(error.remedy.is_some());
}

/// Proves S2-Q-06, S2-EC-01, S2-FR-014: killed with everything it started, by its own limit or the
/// system-wide one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_kills_the_whole_process_tree() {
    let bench = Bench::new();
    let mark = format!("haft-test-{}", uuid_like());
    let shell = format!(
        "#!/bin/sh\nsetsid sleep 1000 {mark} &\nsh -c 'sleep 1000; : {mark}' &\ntrap '' TERM\nsleep 1000; : {mark}\n"
    );
    // `sleep` rejects a word that is not a number, so the mark is in a shell's own text.
    let shell = shell.replace(
        &format!("setsid sleep 1000 {mark} &"),
        &format!("setsid sh -c 'sleep 1000; : {mark}' &"),
    );
    let mut limited = tool("limited", &json!({"command": ["sh"], "script_path": "hang.sh"}));
    limited["timeout"] = json!("300ms");
    let tools =
        json!([limited, tool("default", &json!({"command": ["sh"], "script_path": "hang.sh"}))]);
    let mut config = bench.registry(&tools, &[("hang.sh", &shell)]);
    config.defaults.tool_timeout.value = Duration::from_millis(200);
    let runtime = Runtime::start(config).await.unwrap();
    for (name, limit) in [("limited", 300), ("default", 200)] {
        let answer = runtime.call(empty(name)).await;
        assert_eq!(answer.status, Status::Error);
        let error = answer.error.unwrap();
        assert_eq!(error.code, Code::Timeout);
        assert_eq!(
            error.message,
            format!("`{name}` gave no answer within {limit}ms and was stopped")
        );
        assert_eq!(error.details["timeout_ms"], limit);
        until(|| alive(&mark) == 0).await;
    }
    runtime.shutdown(Duration::from_secs(2)).await;
}

fn uuid_like() -> String {
    format!("{}-{:?}", std::process::id(), std::time::Instant::now())
        .replace(|c: char| !c.is_ascii_alphanumeric(), "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_executable_is_a_tool() {
    let bench = Bench::new();
    let node = "let s='';process.stdin.on('data',d=>s+=d).on('end',()=>console.log(JSON.stringify({sum:JSON.parse(s).xs.reduce((a,b)=>a+b)})))";
    let tools = json!([
        tool("shell", &json!({"command": ["sh"], "script_path": "hi.sh", "args": ["there"]})),
        tool("node", &json!({"command": "node", "script_path": "sum.js"})),
        tool("itself", &json!({"script_path": "run.sh"})),
        tool("plain", &json!({"command": ["cat"]})),
        tool("fails", &json!({"command": ["sh", "-c", "echo bad >&2; exit 3"]})),
    ]);
    let scripts = [
        ("hi.sh", "echo \"hi $1\""),
        ("sum.js", node),
        ("run.sh", "#!/bin/sh\necho '{\"ran\": true}'\n"),
    ];
    let config = bench.registry(&tools, &scripts);
    let runtime = Runtime::start(config).await.unwrap();
    let text =
        |answer: &Envelope| serde_json::to_value(&answer.content).unwrap()[0]["text"].clone();
    assert_eq!(text(&runtime.call(empty("shell")).await), "hi there");
    let answer = runtime.call(ToolCall::new("node", &json!({"xs": [1, 2, 3]}))).await;
    assert_eq!(data(&answer), json!({"sum": 6}));
    let error = runtime.call(empty("itself")).await.error.unwrap();
    assert!(error.remedy.as_ref().unwrap().to_string().contains("chmod +x"), "{error:?}");
    let script = bench.path().join("tools/run.sh");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(data(&runtime.call(empty("itself")).await), json!({"ran": true}));
    assert_eq!(
        data(&runtime.call(ToolCall::new("plain", &json!({"a": 1}))).await),
        json!({"a": 1})
    );
    let error = runtime.call(empty("fails")).await.error.unwrap();
    assert_eq!((error.code, &error.details["exit_code"]), (Code::ToolExecutionError, &json!(3)));
    assert!(error.details["stderr"].as_str().unwrap().contains("bad"));
    runtime.shutdown(Duration::from_secs(2)).await;
}

/// Proves S2-EC-11 for scripts: calls overlap without mixing up, or never overlap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_calls_of_a_script_do_not_mix() {
    let bench = Bench::new();
    let script = "import os\ndef run(args):\n    return {'n': args['n'], 'pid': os.getpid()}\n";
    let mut parallel = tool("parallel", &json!({"script_path": "who.py"}));
    parallel["parallel_capable"] = json!(true);
    let tools = json!([parallel, tool("single", &json!({"script_path": "who.py"}))]);
    let runtime = Runtime::start(bench.registry(&tools, &[("who.py", script)])).await.unwrap();
    let calls = (0..40).map(|n| ToolCall::new("parallel", &json!({"n": n}))).collect();
    for (n, answer) in runtime.call_batch(calls).await.iter().enumerate() {
        assert_eq!(data(answer)["n"], n);
    }
    let calls = (0..10).map(|n| ToolCall::new("single", &json!({"n": n}))).collect();
    let answers = runtime.call_batch(calls).await;
    let mut workers: Vec<Value> =
        answers.iter().map(|answer| data(answer)["pid"].clone()).collect();
    workers.dedup();
    assert_eq!(workers.len(), 1, "one at a time means one worker");
    runtime.shutdown(Duration::from_secs(2)).await;
}

/// Proves S2-US3-1, S2-US3-2, S2-US3-3 and S0-83 on the side of the files: an entry that comes is offered, one
/// that goes is unknown, and a start from the same files gives the same tools.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_registry_file_decides_what_is_offered() {
    let bench = Bench::new();
    let script = ("hello.py", "def run(args):\n    return 'v1'\n");
    let hello = tool("hello_world", &json!({"script_path": "hello.py"}));
    let runtime = Runtime::start(bench.registry(&json!([]), &[script])).await.unwrap();
    let unknown = runtime.call(empty("hello_world")).await.error.unwrap();
    assert_eq!(unknown.code, Code::UnknownTool);
    runtime.apply(bench.registry(&json!([hello]), &[])).await.unwrap();
    assert_eq!(data(&runtime.call(empty("hello_world")).await), "v1");
    // An edited script is used at once, without a new configuration.
    std::fs::write(
        bench.path().join("tools/hello.py"),
        "def run(args):\n    return 'version two'\n",
    )
    .unwrap();
    assert_eq!(data(&runtime.call(empty("hello_world")).await), "version two");
    let again = Runtime::start(bench.registry(&json!([hello]), &[])).await.unwrap();
    assert_eq!(again.tools().len(), 1);
    runtime.apply(bench.registry(&json!([]), &[])).await.unwrap();
    let unknown = runtime.call(empty("hello_world")).await.error.unwrap();
    assert_eq!(unknown.code, Code::UnknownTool);
    runtime.shutdown(Duration::from_secs(2)).await;
    again.shutdown(Duration::from_secs(2)).await;
}

/// Proves S2-EC-02: the description is what the author wrote, to the letter.
#[tokio::test]
async fn a_description_is_never_touched() {
    let bench = Bench::new();
    let description =
        format!("Use for X, but prefer `other` if ${{Z}} is present.\n{}", "long ".repeat(2000));
    let mut entry = tool("x", &json!({"script_path": "x.py"}));
    entry["description"] = json!(description);
    let runtime = Runtime::start(bench.registry(&json!([entry]), &[])).await.unwrap();
    assert_eq!(runtime.tool("x").unwrap().description, description);
}

/// Proves S2-EC-14 and S2-FR-016 through the runtime: the record's date names the file.
#[tokio::test]
async fn the_log_rotates_by_the_day_of_the_record() {
    let bench = Bench::new();
    let clock = std::sync::Arc::new(haft::record::ManualClock::new(
        "2026-03-01T23:59:59Z".parse().unwrap(),
    ));
    std::fs::create_dir_all(bench.logs()).unwrap();
    for day in ["2026-01-30", "2026-01-31", "2026-02-01"] {
        std::fs::write(bench.logs().join(format!("tools-{day}.jsonl")), "").unwrap();
    }
    let runtime = Runtime::builder(bench.config("")).clock(clock.clone()).start().await.unwrap();
    runtime.call(empty("nobody")).await;
    clock.set("2026-03-02T00:00:01Z".parse().unwrap());
    runtime.call(empty("nobody")).await;
    let mut files: Vec<String> = std::fs::read_dir(bench.logs())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    // 30 whole days before March 2nd reach back into January 31st, which is kept; January 30th is deleted.
    let kept = ["2026-01-31", "2026-02-01", "2026-03-01", "2026-03-02"];
    assert_eq!(files, kept.map(|day| format!("tools-{day}.jsonl")));
}
