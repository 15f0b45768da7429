//! Real commands: good ones, broken ones, and some that misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::backend::process::{Left, kill_all_remaining};
use crate::backend::testing::{alive, line_in, until_gone};
use crate::content::Content;

/// Runs `sh -c script` with the arguments on its stdin.
async fn shell(script: &str, arguments: &str) -> Result<ToolOutput, ToolFailure> {
    run(&["sh", "-c", script], arguments).await
}

async fn run(command: &[&str], arguments: &str) -> Result<ToolOutput, ToolFailure> {
    let command = command.iter().map(ToString::to_string).collect();
    let settings = CommandSettings { name: "tool".into(), command, ..CommandSettings::default() };
    call(settings, arguments).await
}

async fn call(settings: CommandSettings, arguments: &str) -> Result<ToolOutput, ToolFailure> {
    let arguments = RawValue::from_string(arguments.into()).unwrap();
    CommandTool::new(settings, ProcessScope::new()).run(&arguments, &CallContext::default()).await
}

fn script(file: &str, text: &str, mode: u32) -> (TempDir, CommandSettings) {
    let tools = tempfile::tempdir().unwrap();
    let path = tools.path().join(file);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let settings = CommandSettings {
        name: "tool".into(),
        tools_dir: tools.path().into(),
        script_path: Some(file.into()),
        ..CommandSettings::default()
    };
    (tools, settings)
}

fn failure(outcome: Result<ToolOutput, ToolFailure>) -> (String, String, Value) {
    match outcome {
        Err(ToolFailure::Execution { message, remedy, details }) => {
            (message, remedy.map(|it| it.to_string()).unwrap_or_default(), details)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn json_on_stdout_is_data_and_anything_else_is_text() {
    let output = shell("cat", r#"{"b":1,"a":[2]}"#).await.unwrap();
    assert_eq!(output.data.unwrap().get(), r#"{"b":1,"a":[2]}"#);
    let output = shell("echo hello; echo noise >&2", "{}").await.unwrap();
    assert_eq!((output.content, output.is_error), (vec![Content::text("hello")], false));
}

/// Proves S2-Q-01: shell scripts, and any other language, run unmodified.
#[tokio::test]
async fn a_script_runs_by_itself_or_behind_a_command() {
    let (_tools, settings) = script("tool.sh", "#!/bin/sh\necho \"$1 $(pwd)\"", 0o755);
    let settings = CommandSettings { args: vec!["a b; $(id)".into()], ..settings };
    let output = call(settings, "{}").await.unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!(output.content, [Content::text(format!("a b; $(id) {}", here.display()))]);

    let node = "let all = ''; process.stdin.on('data', d => all += d);\
                process.stdin.on('end', () => console.log(JSON.stringify({got: JSON.parse(all)})))";
    let (_tools, settings) = script("tool.js", node, 0o644);
    let settings = CommandSettings { command: vec!["node".into()], ..settings };
    let output = call(settings, r#"{"x":1}"#).await.unwrap();
    assert_eq!(output.data.unwrap().get(), r#"{"got":{"x":1}}"#);
}

/// Proves the exit-code row of the faults.
#[tokio::test]
async fn a_failure_reports_code_or_signal_and_both_outputs() {
    let (message, _, details) =
        failure(shell("echo half; echo first >&2; echo no luck >&2; exit 3", "{}").await);
    assert_eq!(message, "`tool` ended with exit code 3: no luck");
    assert_eq!(details["exit_code"], 3);
    assert_eq!(details["stderr"], "first\nno luck\n");
    assert_eq!(details["stdout"], "half\n");
    let (message, _, details) = failure(shell("kill -SEGV $$", "{}").await);
    assert_eq!(message, "`tool` ended with signal 11 (SIGSEGV)");
    assert_eq!((&details["exit_code"], &details["signal"]), (&Value::Null, &Value::from(11)));
}

/// Proves the megabytes row of the faults: the command echoes while it still reads.
#[tokio::test]
async fn megabytes_pass_in_both_directions() {
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(8 * 1024 * 1024));
    let output = shell("cat", &long).await.unwrap();
    assert_eq!(output.data.unwrap().get().len(), long.len());
}

#[tokio::test]
async fn a_command_need_not_read_its_arguments() {
    let long = format!(r#""{}""#, "x".repeat(1024 * 1024));
    assert_eq!(shell("exec <&-; echo done", &long).await.unwrap().content, [Content::text("done")]);
}

/// Proves the output cap: cut with a marker, the endless command killed.
#[tokio::test]
async fn too_much_output_is_cut_and_says_so() {
    let output = shell("exec yes", "{}").await.unwrap();
    let [Content::Text { text }] = &output.content[..] else { panic!() };
    let end = "\n[cut: the command printed more than 16777216 bytes and was stopped; the first 1048576 are kept]";
    assert_eq!(text.len(), STOPPED_BYTES_MAX + end.len());
    assert!(text.starts_with("y\ny\n") && text.ends_with(end));
}

#[tokio::test]
async fn a_flood_on_stderr_does_not_stop_the_command() {
    let script = "head -c 4194304 /dev/zero | tr '\\0' e >&2; exit 1";
    let (message, _, details) = failure(shell(script, "{}").await);
    assert!(message.len() < 400, "{message}");
    assert!(details["stderr"].as_str().unwrap().len() <= super::super::process::TAIL_BYTES_MAX + 3);
}

/// Proves the fault "keeps pipes open": the answer does not wait for processes that the command
/// left behind, and they are killed.
#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_does_not_hold_the_call() {
    let script = "sleep 1000 & setsid sleep 1000 & echo $HAFT_TREE";
    let output = shell(script, "{}").await.unwrap();
    let [Content::Text { text }] = &output.content[..] else { panic!() };
    until_gone(text).await;
}

/// With `background: allow`, leftover processes end with the scope and not with the call.
#[tokio::test]
async fn background_processes_may_continue_until_their_scope_ends() {
    let command = ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $HAFT_TREE"];
    let settings = CommandSettings {
        name: "tool".into(),
        command: command.map(ToOwned::to_owned).to_vec(),
        background: Background::Allow,
        ..CommandSettings::default()
    };
    let scope = ProcessScope::new();
    let arguments = RawValue::from_string("{}".into()).unwrap();
    let tool = CommandTool::new(settings, scope);
    let output = tool.run(&arguments, &CallContext::default()).await.unwrap();
    let [Content::Text { text: mark }] = &output.content[..] else { panic!() };
    assert_eq!(alive(mark), 1);
    drop(tool);
    assert_eq!(alive(mark), 1);
    assert_eq!(kill_all_remaining(scope).await, Left::Nothing);
    assert_eq!(alive(mark), 0);
}

/// Proves S2-EC-01 and S2-Q-06 for commands.
#[tokio::test]
async fn a_dropped_call_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("who");
    let script = format!(
        "trap '' TERM INT HUP; sleep 1000 & setsid sleep 1000 & sh -c 'setsid sleep 1000 & exit'; \
         echo $HAFT_TREE > {}; wait; wait; sleep 1000",
        file.display()
    );
    let mark = tokio::select! {
        ended = shell(&script, "{}") => panic!("{ended:?}"),
        mark = line_in(&file) => mark,
    };
    until_gone(&mark).await;
    assert_eq!(alive(&mark), 0);
}

/// Proves S2-EC-08 for commands: the error names a program that cannot be started, with the remedy.
#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let (message, remedy, details) = failure(run(&["no-such-program"], "{}").await);
    assert_eq!(
        message,
        "the program `no-such-program` could not be started: it is in no directory of PATH"
    );
    assert_eq!(details["path"], std::env::var("PATH").unwrap());
    assert_eq!(remedy, "install `no-such-program`, or give its whole path in `command`");

    let (tools, settings) = script("tool.sh", "#!/bin/sh\necho hello", 0o644);
    let path = tools.path().canonicalize().unwrap().join("tool.sh");
    let path = path.display();
    let (message, remedy, _) = failure(call(settings, "{}").await);
    assert_eq!(
        message,
        format!("the program `{path}` could not be started: `{path}` is not executable")
    );
    assert_eq!(remedy, format!("make it executable: `chmod +x {path}`"));

    let (_tools, settings) = script("tool.sh", "#!/opt/no/perl\n", 0o755);
    let (message, _, _) = failure(call(settings, "{}").await);
    assert!(message.ends_with("`/opt/no/perl`, which runs it, is missing"), "{message}");

    let (tools, settings) = script("tool.sh", "", 0o755);
    fs::remove_file(tools.path().join("tool.sh")).unwrap();
    let (message, _, _) = failure(call(settings, "{}").await);
    assert!(message.ends_with("/tool.sh` does not exist"), "{message}");

    let nothing = CommandSettings { name: "tool".into(), ..CommandSettings::default() };
    let (message, _, _) = failure(call(nothing, "{}").await);
    assert_eq!(message, "`tool` has neither a command nor a script");
}

#[tokio::test]
async fn a_file_without_a_first_line_is_not_handed_to_a_shell() {
    let (_tools, settings) = script("tool.sh", "echo hello", 0o755);
    let (message, _, _) = failure(call(settings, "{}").await);
    assert!(message.ends_with("the system does not know its format"), "{message}");
}

#[tokio::test]
async fn a_directory_is_told_to_be_one() {
    let (message, remedy, _) = failure(run(&["/tmp"], "{}").await);
    assert_eq!(message, "the program `/tmp` could not be started: it is a directory");
    assert_eq!(remedy, "name a program in `command`");
}
