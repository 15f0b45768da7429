//! `code_execution`: code of a model, from the call to the answer, and what is left of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::record::RecordSource;
use haft::{Code, Content, Envelope, Runtime, Status, ToolCall};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, until};

/// The most bytes of an output stream that an answer carries.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

const ENABLED: &str = "builtin: {code_execution: {}, web_search: {enabled: false}, request_human_input: {enabled: false}}\n";

async fn start(bench: &Bench) -> Runtime {
    Runtime::start(bench.config(ENABLED)).await.unwrap()
}

async fn run(runtime: &Runtime, arguments: Value) -> Envelope {
    runtime.call(ToolCall::new("code_execution", &arguments)).await
}

fn data(answer: &Envelope) -> Value {
    let data = answer.data.as_ref().unwrap_or_else(|| panic!("{:?}", answer.error));
    serde_json::from_str(data.get()).unwrap()
}

fn failure(answer: Envelope) -> haft::ErrorBody {
    assert_eq!(answer.status, Status::Error, "{:?}", answer.data);
    answer.error.unwrap()
}

/// Code that writes its folder to a file, and then waits.
fn waiting(note: &Path) -> String {
    let note = note.display();
    format!("pwd > '{note}.new'; mv '{note}.new' '{note}'; touch made; sleep 1000")
}

async fn noted(note: &Path) -> PathBuf {
    until(|| note.exists()).await;
    PathBuf::from(std::fs::read_to_string(note).unwrap().trim())
}

/// Counts the processes that work in a folder.
fn working_in(folder: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let at = |path: PathBuf| std::fs::read_link(path.join("cwd")).unwrap_or_default();
    processes.filter(|process| at(process.path()).starts_with(folder)).count()
}

/// Proves S2-US2-3, S2-US2-T, S2-US2-1, S2-FR-007.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_and_shell_code_run_with_their_files() {
    let bench = Bench::new();
    let runtime = start(&bench).await;
    let code = "\
import csv, os
with open('data/numbers.csv') as file:
    rows = list(csv.DictReader(file))
a, b = 0, 1
for _ in range(90):
    a, b = b, a + b
print(sum(int(row['n']) for row in rows), a)
open('out.txt', 'w').write('made')
";
    let files = json!({"data/numbers.csv": "n\n1\n2\n39\n"});
    let answer = run(&runtime, json!({"language": "python", "code": code, "files": files})).await;
    let found = data(&answer);
    assert_eq!(found["stdout"], "42 2880067194370816120\n");
    assert_eq!((&found["exit_code"], &found["stderr"]), (&json!(0), &json!("")));
    assert_eq!(found["files"], json!(["out.txt"]));
    assert_eq!(answer.content, [Content::text("42 2880067194370816120\n")]);

    let code = "set -e; wc -l < input.txt | tr -d ' '; echo oops >&2; pwd";
    let files = json!({"./input.txt": "a\nb\n"});
    let answer = run(&runtime, json!({"language": "shell", "code": code, "files": files})).await;
    let found = data(&answer);
    let (count, folder) = found["stdout"].as_str().unwrap().split_once('\n').unwrap();
    assert_eq!((count, &found["stderr"]), ("2", &json!("oops\n")));
    assert!(!Path::new(folder.trim()).exists(), "the folder is gone: {folder}");
    assert_eq!(answer.content, [Content::text(format!("2\n{folder}\nstderr:\noops\n"))]);

    let quiet = run(&runtime, json!({"language": "shell", "code": "true"})).await;
    assert_eq!(quiet.model_text(), "(exit code 0, and nothing was printed)");
    let kinds: Vec<RecordSource> = bench.logged().iter().map(|call| call.source).collect();
    assert_eq!(kinds, [RecordSource::Builtin; 3]);
}

/// Proves S2-US2-2: the message contains the exit code and the output.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_says_what_the_code_said() {
    let bench = Bench::new();
    let runtime = start(&bench).await;
    let code = "print('before')\nraise ValueError('the cause')";
    let answer = run(&runtime, json!({"language": "python", "code": code})).await;
    let text = answer.model_text();
    let error = failure(answer);
    assert_eq!(error.code, Code::ToolExecutionError);
    let begins =
        "ToolExecutionError: the code ended with exit code 1; stdout:\nbefore; stderr:\nTraceback";
    assert!(text.starts_with(begins), "{text}");
    assert!(text.ends_with("ValueError: the cause") && text.contains("main.py"), "{text}");
    assert_eq!(error.details["exit_code"], 1);
    assert_eq!(error.details["stdout"], "before\n");
    assert!(error.details["stderr"].as_str().unwrap().ends_with("ValueError: the cause\n"));

    let answer = run(&runtime, json!({"language": "shell", "code": "echo told; exit 7"})).await;
    assert_eq!(failure(answer).message, "the code ended with exit code 7; stdout:\ntold");
    let answer = run(&runtime, json!({"language": "shell", "code": "kill -9 $$"})).await;
    let error = failure(answer);
    assert_eq!(error.message, "the code ended with signal 9 (SIGKILL)");
    assert_eq!((&error.details["exit_code"], &error.details["signal"]), (&Value::Null, &json!(9)));
    let lines = "for i in $(seq 1 5000); do echo line $i >&2; done; exit 1";
    let message = failure(run(&runtime, json!({"language": "shell", "code": lines})).await).message;
    assert!(message.contains("the last lines of stderr:\nline ") && message.len() < 5000);
    assert!(message.ends_with("line 5000"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_that_make_no_sense_are_refused() {
    let bench = Bench::new();
    let runtime = start(&bench).await;
    for arguments in [
        json!({"language": "ruby", "code": "1"}),
        json!({"language": "python"}),
        json!({"language": "python", "code": ""}),
        json!({"language": "python", "code": "1", "timeout": 0}),
        json!({"language": "python", "code": "1", "files": {"a": 1}}),
        json!({"language": "python", "code": "1", "sandbox": false}),
    ] {
        assert_eq!(failure(run(&runtime, arguments).await).code, Code::ValidationError);
    }
    for name in ["../out", "/etc/out", "a/../../out", "main.py", "nul\0", "folder/"] {
        let files = json!({name: "text"});
        let call = json!({"language": "python", "code": "print(1)", "files": files});
        let error = failure(run(&runtime, call).await);
        assert!(error.message.contains("cannot be written for the code"), "{}", error.message);
        assert!(error.remedy.is_some());
    }
    // One of them would have to be a file and a folder.
    let files = json!({"a": "text", "a/b": "text"});
    let call = json!({"language": "python", "code": "print(1)", "files": files});
    assert!(failure(run(&runtime, call).await).message.contains("is in its place"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_output_is_cut_and_says_so() {
    let bench = Bench::new();
    let runtime = start(&bench).await;
    let code = "import sys\nfor i in range(400000):\n    print(i)\nsys.stderr.write('e' * 3000000)";
    let found = data(&run(&runtime, json!({"language": "python", "code": code})).await);
    for stream in ["stdout", "stderr"] {
        let text = found[stream].as_str().unwrap();
        assert!(text.len() < OUTPUT_BYTES_MAX + 100, "{stream}: {}", text.len());
        assert!(text.contains("bytes were cut here]"), "{stream}");
    }
    assert!(found["stdout"].as_str().unwrap().ends_with("\n399999\n"));
}

/// The code's own limit and the tool's are distinguished; after both, neither a process nor a
/// folder is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_takes_too_long_is_stopped_by_whichever_limit_comes_first() {
    let bench = Bench::new();
    let limited = format!("{ENABLED}tools: [{{name: code_execution, timeout: 3s}}]\n");
    let runtime = Runtime::start(bench.config(&limited)).await.unwrap();
    let note = bench.path().join("own");
    let code = format!("echo so far; (setsid sleep 1000 &) ; {}", waiting(&note));
    let call = json!({"language": "shell", "code": code, "timeout": 1.5});
    let error = failure(run(&runtime, call).await);
    assert_eq!(error.code, Code::ToolExecutionError);
    assert!(error.message.contains("after 1.5s, which is what its argument `timeout` allows"));
    assert!(error.message.ends_with("stdout:\nso far"), "{}", error.message);
    let folder = noted(&note).await;
    assert_eq!((folder.exists(), working_in(&folder)), (false, 0));

    let note = bench.path().join("tools");
    let call = json!({"language": "shell", "code": waiting(&note), "timeout": 1000});
    let error = failure(run(&runtime, call).await);
    assert_eq!(error.code, Code::Timeout);
    let folder = noted(&note).await;
    until(|| !folder.exists() && working_in(&folder) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_leaves_neither_process_nor_folder() {
    let bench = Bench::new();
    let runtime = start(&bench).await;
    let note = bench.path().join("note");
    let cancel = CancellationToken::new();
    // It keeps writing and closes its folders, as if to make removing them hard.
    let code = format!(
        "mkdir -p deep/er; touch deep/er/x; chmod 000 deep; (while :; do touch w$RANDOM; done) & {}",
        waiting(&note)
    );
    let call = ToolCall::new("code_execution", &json!({"language": "shell", "code": code}));
    let (answer, folder) = tokio::join!(runtime.call(call.cancelled_by(cancel.clone())), async {
        let folder = noted(&note).await;
        assert!(working_in(&folder) > 0);
        cancel.cancel();
        folder
    });
    assert_eq!(failure(answer).code, Code::Cancelled);
    until(|| !folder.exists() && working_in(&folder) == 0).await;
    runtime.shutdown(Duration::from_secs(2)).await;
}

/// A process that was left running ends with the code, which does not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_code_leaves_running_ends_with_it() {
    let bench = Bench::new();
    let runtime = start(&bench).await;
    let code = "pwd; sleep 1000 & setsid sleep 1000 & echo done";
    let found = data(&run(&runtime, json!({"language": "shell", "code": code})).await);
    let (folder, rest) = found["stdout"].as_str().unwrap().split_once('\n').unwrap();
    assert_eq!(rest, "done\n");
    assert_eq!((Path::new(folder).exists(), working_in(Path::new(folder))), (false, 0));
}

#[tokio::test]
async fn a_word_about_the_network_without_a_sandbox_is_a_warning() {
    let bench = Bench::new();
    let config = bench.config("builtin: {code_execution: {network: false}}\n");
    let [warning] = &config.warnings[..] else { panic!("{:?}", config.warnings) };
    assert!(warning.problem.contains("`network` has no effect without a sandbox"));
    let sandboxed = "builtin: {code_execution: {sandbox: bubblewrap, network: true}}\n";
    assert!(bench.config(sandboxed).warnings.is_empty());
}

/// A served toolbox runs code only if a file enables it. Proves S2-FR-007.
#[tokio::test]
async fn what_is_served_has_no_code_execution_unless_a_file_asks_for_it() {
    let names = |runtime: &Runtime| -> Vec<String> {
        runtime.tools().into_iter().map(|tool| tool.name).collect()
    };
    let bench = Bench::new();
    let load = |yaml: &str| {
        std::fs::write(bench.path().join("haft.yaml"), yaml).unwrap();
        let options = haft::config::LoadOptions {
            files: vec!["haft.yaml".into()],
            cwd: bench.path().to_owned(),
            builtin: true,
            ..haft::config::LoadOptions::default()
        };
        haft::Config::load(&options).unwrap()
    };
    let ours = |names: Vec<String>| -> Vec<String> {
        let ours = ["code_execution", "web_search"];
        names.into_iter().filter(|name| ours.contains(&name.as_str())).collect()
    };
    for (yaml, is_served, expected) in [
        ("", false, &["code_execution", "web_search"][..]),
        ("", true, &["web_search"]),
        ("builtin: {code_execution: {}}", true, &["code_execution", "web_search"]),
        ("builtin: {enabled: true}", true, &["code_execution", "web_search"]),
        // Not a word about running code.
        ("builtin: {web_search: {}}", true, &["web_search"]),
        ("builtin: {web_search: {}}", false, &["code_execution", "web_search"]),
        ("builtin: {enabled: false}", false, &[]),
        ("builtin: {code_execution: {enabled: false}}", false, &["web_search"]),
    ] {
        let builder = Runtime::builder(load(yaml));
        let builder = if is_served { builder.served() } else { builder };
        let runtime = builder.dry_run().start().await.unwrap();
        assert_eq!(ours(names(&runtime)), expected, "{yaml} served: {is_served}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_calls_of_a_minute_may_run_at_once() {
    let bench = Bench::new();
    let runtime = start(&bench).await;
    let info = serde_json::to_value(runtime.tool("code_execution").unwrap()).unwrap();
    assert_eq!(info["kind"], "builtin", "{info}");
    let config = info["config"].as_array().unwrap();
    let value = |key: &str| &config.iter().find(|row| row["key"] == key).unwrap()["value"];
    let values = ["timeout", "max_instances", "parallel_capable"].map(value);
    assert_eq!(values, [&json!("60s"), &json!(4), &json!(true)], "{info}");
}
