//! `haft resources`.

use serde_json::{Value, json};
use testkit::fixture::messages;

use crate::mcp_support::{at_terminal, broken, facts_file, server, three, transcript, workspace};
use crate::{haft, run};

/// Proves S2-US4-T: the resources of a server are listed, with templates.
#[test]
fn resources_are_listed() {
    let workspace = three();
    let finished = run(&workspace, &["resources", "list"]);
    assert_eq!(finished.code, 0);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let finished = run(&workspace, &["resources", "list", "--json", "--server", "good"]);
    let resources: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(
        (&resources[0]["kind"], &resources[0]["uri"], &resources[2]["uriTemplate"]),
        (&json!("resource"), &json!("test://static-text"), &json!("test://template/{id}/data"))
    );
    let none = run(&workspace, &["resources", "list", "--server", "late"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, "no resources\n"));
    let failed = run(&workspace, &["resources", "list", "--server", "bad"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (3, "no resources\n"));
}

/// Proves S2-US4-2, S2-US4-T, S3-US3-6: `resources/read` is sent to the server that lists it, and
/// its content comes out as it is.
#[test]
fn a_resource_is_read_from_its_server() {
    let workspace = workspace(&json!({}));
    let facts = facts_file(&workspace);
    let own = json!({"resources": [{"uri": "own://note", "name": "note", "text": "mine\u{1b}[31m\n"}],
        "templates": []});
    let servers = json!({"servers": {"own": server(&own), "s": server(&json!({"facts": facts}))}});
    workspace.write("haft.json", servers.to_string());
    let read = |args: &[&str]| {
        let finished = run(&workspace, &[&["resources", "read"], args].concat());
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{args:?}");
        finished.stdout
    };
    assert_eq!(read(&["test://static-text"]), "This is a text resource.");
    assert_eq!(messages(&facts, "resources/read").len(), 1);
    assert_eq!(read(&["own://note"]), "mine\u{1b}[31m\n", "for a program, as it is");
    assert_eq!(read(&["test://template/7/data"]), "data of 7");
    assert_eq!(read(&["test://static-text", "--server", "s"]), "This is a text resource.");
    let json: Value = serde_json::from_str(&read(&["test://static-binary", "--json"])).unwrap();
    assert_eq!(json[0]["data"], json!("AAEC/w=="));
    let shown = at_terminal(&workspace, 80, "\"$haft\" resources read own://note");
    assert!(shown.stdout.contains("mine\\u{1b}[31m"), "{:?}", shown.stdout);
}

/// Proves S3-US3-6: bytes go to a file or a pipe, and never to a terminal.
#[test]
fn a_binary_resource_is_written_to_a_file() {
    let workspace = workspace(&json!({"s": server(&json!({}))}));
    let args = ["resources", "read", "test://static-binary", "--output", "bytes"];
    let finished = haft(&workspace, &args).run();
    assert_eq!((finished.code, finished.stdout.as_str(), finished.stderr.as_str()), (0, "", ""));
    let bytes = || std::fs::read(workspace.path().join("bytes")).unwrap();
    assert_eq!(bytes(), [0, 1, 2, 255]);
    let piped =
        at_terminal(&workspace, 80, "\"$haft\" resources read test://static-binary | cat > bytes");
    assert_eq!((piped.code, bytes()), (0, vec![0, 1, 2, 255]), "{}", piped.stdout);
    let refused = at_terminal(&workspace, 80, "\"$haft\" resources read test://static-binary");
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.contains("--output FILE"), "{}", refused.stdout);
    let unwritable =
        run(&workspace, &["resources", "read", "test://static-text", "-o", "no/where"]);
    assert_eq!(unwritable.code, 1);
    assert!(unwritable.stderr.contains("`no/where` cannot be written"), "{}", unwritable.stderr);
}

/// Unknown and ambiguous resources, invalid base64, and refusals of the server.
#[test]
fn wrong_resources_are_refused_with_a_remedy() {
    let one = json!({"templates": [], "resources": [{"uri": "a://shared", "name": "s", "text": "1"},
        {"uri": "a://broken", "name": "b", "blob": "no base64!"}]});
    let two = json!({"templates": [], "resources": [{"uri": "a://shared", "name": "s", "text": "2"},
        {"uri": "a://own", "name": "o", "text": ""}],
        "errors_on": {"resources/read": {"code": -32002, "message": "it is gone"}}});
    let workspace = workspace(&json!({"one": server(&one), "two": server(&two)}));
    let mut text = String::new();
    let lines: [(&[&str], i32); 5] = [
        (&["a://shared"], 2),
        (&["a://nothing"], 1),
        (&["a://broken"], 1),
        (&["a://own"], 1),
        (&["a://own", "--server", "tow"], 2),
    ];
    for (line, code) in lines {
        let finished = run(&workspace, &[&["resources", "read"], line].concat());
        assert_eq!(finished.code, code, "{line:?}: {}", finished.stderr);
        text += &format!("$ haft resources read {}\n{}", line.join(" "), finished.stderr);
    }
    insta::assert_snapshot!(text);
    let one = run(&workspace, &["resources", "read", "a://shared", "--server", "one"]);
    assert_eq!(one.stdout, "1");
}

/// Servers that fail are named, as their list would have mattered.
#[test]
fn a_missing_resource_names_the_servers_that_could_not_be_asked() {
    let refusing = json!({"errors_on": {"resources/list": {"code": -32603, "message": "no list"}}});
    let workspace = workspace(&json!({"s": server(&refusing), "bad": broken()}));
    let missing = run(&workspace, &["resources", "read", "a://b"]);
    assert_eq!(missing.code, 3);
    insta::assert_snapshot!(transcript(&workspace, &missing));
    let failed = run(&workspace, &["resources", "read", "a://b", "--server", "bad"]);
    assert_eq!(failed.code, 3, "{}", failed.stderr);
    let listed = run(&workspace, &["resources", "list"]);
    assert_eq!(listed.code, 3);
    assert!(listed.stderr.contains("no list"), "{}", listed.stderr);
}
