//! `haft call`.

use serde_json::{Value, json};

use crate::{haft, run, toolbox, transcript};

/// Proves S2-FR-008, S2-KE-06: the answer for people, the envelope for programs.
#[test]
fn a_call_answers_with_data_or_an_envelope() {
    let workspace = toolbox();
    let finished = run(&workspace, &["call", "greet", "name=Ada"]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    assert_eq!(run(&workspace, &["tools", "call", "greet", "name=Ada"]), finished);
    let finished = run(&workspace, &["call", "greet", "name=Ada", "--json"]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// Every way to give arguments, as the tool saw them.
#[test]
fn arguments_come_as_json_words_files_or_standard_input() {
    let workspace = toolbox();
    workspace.write("arguments.json", r#"{"from": "file"}"#);
    workspace.write("note.txt", "two\nlines = 2\n");
    let echo = |args: &[&str], stdin: &str| -> Value {
        let args = [&["call", "echo"], args].concat();
        let finished = haft(&workspace, &args).stdin(stdin).run();
        assert_eq!(finished.code, 0, "{args:?}: {}", finished.stderr);
        serde_json::from_str(&finished.stdout).unwrap()
    };
    assert_eq!(echo(&[], ""), json!({}));
    assert_eq!(echo(&[r#" {"a": [1, {"b": null}]}"#], ""), json!({"a": [1, {"b": null}]}));
    assert_eq!(echo(&["@arguments.json"], ""), json!({"from": "file"}));
    assert_eq!(echo(&["-"], r#"{"from": "stdin"}"#), json!({"from": "stdin"}));
    assert_eq!(echo(&["text=@note.txt"], ""), json!({"text": "two\nlines = 2\n"}));
    let words = [
        "n=3",
        "f=1.5",
        "t=true",
        "z=null",
        "l=[1]",
        "o={\"a\":1}",
        "s=some text",
        "e=",
        "q=\"3\"",
        "x=a=b",
    ];
    let expected = json!({
        "n": 3, "f": 1.5, "t": true, "z": null, "l": [1], "o": {"a": 1}, "s": "some text", "e": "",
        "q": "3", "x": "a=b",
    });
    assert_eq!(echo(&words, ""), expected);
}

/// Proves S0-86: what cannot be read is refused before anything runs, exit code 2.
#[test]
fn bad_words_are_refused_with_the_ways_to_give_arguments() {
    let workspace = toolbox();
    let mut text = String::new();
    let lines: [&[&str]; 6] =
        [&["Ada"], &["=Ada"], &["@nowhere.json"], &["a=@nowhere.txt"], &["a=1", "{}"], &["a:=b"]];
    let mut refuse = |line: &[&str]| {
        let finished = run(&workspace, &[&["call", "echo"], line].concat());
        assert_eq!(finished.code, 2, "{line:?}");
        text += &format!("$ haft call echo {}\n{}", line.join(" "), finished.stderr);
    };
    for line in lines {
        refuse(line);
    }
    assert!(!workspace.path().join("logs").exists());
    // Only the tool's schema shows that the argument is not a list.
    refuse(&["a=1", "a=2"]);
    insta::assert_snapshot!(text);
    assert_eq!(run(&workspace, &["log", "--json"]).stdout, "");
}

/// Proves S2-FR-005, S2-US2-2: refused arguments, a failing tool, an unknown tool; exit code 1.
#[test]
fn failed_calls_say_why_and_what_to_do() {
    let workspace = toolbox();
    let mut text = String::new();
    let lines: [&[&str]; 6] = [
        &["greet"],
        &["greet", "name:=5"],
        &["greet", "nam=Ada", "--session", "s"],
        &["greet", "{\"name\": "],
        &["fail"],
        &["gret", "name=Ada"],
    ];
    for line in lines {
        let finished = run(&workspace, &[&["call"], line].concat());
        assert_eq!(finished.code, 1, "{line:?}");
        text += &format!("$ haft call {}\n{}\n", line.join(" "), transcript(&workspace, &finished));
    }
    insta::assert_snapshot!(text);
    let finished = run(&workspace, &["call", "greet", "--json"]);
    let envelope: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((finished.code, &envelope["error"]["code"]), (1, &json!("ValidationError")));
}

/// A call that needs a person's agreement: denied without a terminal, allowed with `--yes`.
#[test]
fn a_call_that_needs_approval_is_denied_without_a_terminal() {
    let workspace = toolbox();
    workspace.write("haft.yaml", "registry: {dir: tools}\ntools: [{name: greet, approval: ask}]\n");
    let denied = haft(&workspace, &["call", "greet", "name=Ada"]).stdin("y\n").run();
    assert_eq!(denied.code, 1);
    insta::assert_snapshot!(transcript(&workspace, &denied));
    assert_eq!(run(&workspace, &["call", "greet", "name=Ada", "--yes"]).code, 0);
    let log = run(&workspace, &["log", "--json"]).stdout;
    let codes: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["code"].clone())
        .collect();
    assert_eq!(codes, [json!("Denied"), Value::Null]);
}

/// The answer is shown as the tool wrote it, and an argument handed on as the caller did.
#[test]
fn deep_answers_and_large_numbers_come_through_unchanged() {
    let workspace = toolbox();
    workspace.write(
        "tools/big.py",
        "import sys\nsys.set_int_max_str_digits(0)\nprint('{\"z\": %d, \"a\": %s}' % (10**4000, '[' * 300 + ']' * 300))\n",
    );
    let big = r#"{"tools": [
        {"name": "echo", "description": "d", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["cat"]}},
        {"name": "big", "description": "d", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["python3", "tools/big.py"]}}]}"#;
    workspace.write(
        "tools/tools.json",
        big.replace("tools/big.py", &workspace.path().join("tools/big.py").to_string_lossy()),
    );
    for args in [&["call", "big"][..], &["call", "big", "--json"]] {
        let finished = run(&workspace, args);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let text: String = finished.stdout.split_whitespace().collect();
        let expected =
            format!(r#"{{"z":1{},"a":{}{}}}"#, "0".repeat(4000), "[".repeat(300), "]".repeat(300));
        assert!(text.contains(&expected), "{text}");
    }
    let finished = run(&workspace, &["call", "echo", "z=12345678901234567890123", "a=1.10"]);
    assert_eq!(finished.stdout, "{\n  \"z\": 12345678901234567890123,\n  \"a\": 1.10\n}\n");
}

/// Unprintable output is a failure.
#[test]
fn output_that_cannot_be_written_fails() {
    let workspace = toolbox();
    let shell = |line: &str| {
        let program = testkit::Program::new("sh", &workspace);
        program.args(&["-c", line, "sh", env!("CARGO_BIN_EXE_haft")]).run()
    };
    let full = shell("\"$1\" call echo a=1 > /dev/full");
    assert_eq!(full.code, 1, "{}", full.stderr);
    assert!(full.stderr.contains("No space left on device"), "{}", full.stderr);
    let gone = shell("{ \"$1\" call echo a=1; echo $? > code; } | true; cat code");
    assert_eq!((gone.stdout.as_str(), gone.stderr.as_str()), ("0\n", ""));
}
