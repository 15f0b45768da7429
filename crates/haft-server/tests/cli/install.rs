//! `haft install` and `haft uninstall`: clients' files, in a home of the test's own.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};
use testkit::{Finished, Program, Workspace};

use crate::agent_support::Terminal;
use crate::{haft, toolbox, transcript};

/// `haft` with a home inside the workspace, and no `haft` on the path.
fn at_home(workspace: &Workspace, args: &[&str]) -> Program {
    let home = workspace.path().join("home");
    haft(workspace, args).env("HOME", home.to_str().unwrap()).env("PATH", "/nowhere")
}

fn run(workspace: &Workspace, args: &[&str]) -> Finished {
    at_home(workspace, args).run()
}

fn succeed(workspace: &Workspace, args: &[&str]) -> Finished {
    let finished = run(workspace, args);
    assert_eq!(finished.code, 0, "{args:?}: {}", finished.stderr);
    finished
}

/// A transcript in which the program is where it is installed.
fn told(workspace: &Workspace, args: &[&str]) -> String {
    let text = transcript(workspace, &run(workspace, args));
    let text = text.replace(env!("CARGO_BIN_EXE_haft"), "/usr/bin/haft");
    format!("$ haft {}\n{text}\n", args.join(" "))
}

const CLIENTS: [&str; 10] = [
    "claude",
    "claude-desktop",
    "vscode",
    "cursor",
    "codex",
    "goose",
    "gemini",
    "cline",
    "windsurf",
    "zed",
];

/// The entry alone goes to stdout, in the client's own words, and nothing is written.
#[test]
fn the_entry_is_printed_for_every_client() {
    let workspace = toolbox();
    let text: String =
        CLIENTS.iter().map(|client| told(&workspace, &["install", client])).collect();
    insta::assert_snapshot!(text);
    assert!(!workspace.path().join("home").exists());
    assert_eq!(workspace.read(".mcp.json"), None);
}

/// An address, with the key in a variable where the client has any.
#[test]
fn a_served_haft_is_an_address_with_a_key_in_a_variable() {
    let workspace = Workspace::new();
    let words = ["--url", "http://127.0.0.1:7300/mcp", "--key-env", "HAFT_KEY"];
    let text: String = CLIENTS
        .iter()
        .map(|client| told(&workspace, &[&["install", client], &words[..]].concat()))
        .collect();
    insta::assert_snapshot!(text);
}

/// Every client's file is written, read back by Haft's own readers, found again and removed.
#[test]
fn what_is_installed_is_listed_and_removed() {
    let workspace = toolbox();
    insta::assert_snapshot!("nowhere", told(&workspace, &["install"]));
    for client in CLIENTS {
        let written = succeed(&workspace, &["install", client, "--write", "--json"]);
        let written: Value = serde_json::from_str(&written.stdout).unwrap();
        assert_eq!((&written["outcome"], &written["backup"]), (&json!("written"), &Value::Null));
        let again = succeed(&workspace, &["install", client, "--write"]);
        assert!(again.stdout.starts_with("nothing to do"), "{}", again.stdout);
    }
    insta::assert_snapshot!("everywhere", told(&workspace, &["install"]));
    for client in CLIENTS {
        let shown = succeed(&workspace, &["uninstall", client]);
        assert!(shown.stdout.contains("haft"), "{}", shown.stdout);
        succeed(&workspace, &["uninstall", client, "--write"]);
        let again = succeed(&workspace, &["uninstall", client, "--write"]);
        assert!(again.stdout.starts_with("nothing to do"), "{}", again.stdout);
    }
    let listed = succeed(&workspace, &["install", "--json"]).stdout;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert!(listed.iter().all(|row| row["haft"] == json!([]) && row["problem"].is_null()));
}

/// Comments and order stay, the file keeps its permissions, a copy lies beside it, and a link stays
/// a link.
#[test]
fn all_else_in_the_file_stays() {
    let workspace = toolbox();
    let text = "{\n  // mine\n  \"servers\": {\n    \"a\": {\"command\": \"x\"}, // one\n  },\n  \"inputs\": []\n}\n";
    let real = workspace.write("dotfiles/mcp.json", text);
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir(workspace.path().join(".vscode")).unwrap();
    let link = workspace.path().join(".vscode/mcp.json");
    symlink("../dotfiles/mcp.json", &link).unwrap();

    let finished = succeed(&workspace, &["install", "vscode", "--write"]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let written = workspace.read("dotfiles/mcp.json").unwrap();
    insta::assert_snapshot!("all_else_in_the_file", written);
    assert!(link.is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(workspace.read("dotfiles/mcp.json.bak").as_deref(), Some(text));
    let backup = workspace.path().join("dotfiles/mcp.json.bak");
    assert_eq!(backup.metadata().unwrap().permissions().mode() & 0o777, 0o640);

    // The first copy is never written over, and taking Haft out gives the first text back.
    succeed(&workspace, &["uninstall", "vscode", "--write"]);
    assert_eq!(workspace.read("dotfiles/mcp.json").as_deref(), Some(text));
    assert_eq!(workspace.read("dotfiles/mcp.json.bak").as_deref(), Some(text));
    assert_eq!(workspace.read("dotfiles/mcp.json.bak.1"), Some(written));
    let mut names: Vec<String> = std::fs::read_dir(workspace.path().join("dotfiles"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["mcp.json", "mcp.json.bak", "mcp.json.bak.1"]);
}

/// Another entry of the name is shown, without its secrets, and replaced only with `--force`.
#[test]
fn another_entry_is_replaced_only_by_force() {
    let workspace = toolbox();
    let text = r#"{"mcpServers": {"haft": {"command": "other", "env": {"API_KEY": "sk-live-0123456789abcdef"}}, "b": {"command": "y"}}}"#;
    workspace.write(".mcp.json", text);
    let refused = told(&workspace, &["install", "claude", "--write"]);
    assert!(!refused.contains("sk-live"), "{refused}");
    let kept = told(&workspace, &["uninstall", "claude", "--write"]);
    insta::assert_snapshot!(refused + &kept);
    assert_eq!(workspace.read(".mcp.json").as_deref(), Some(text));
    assert_eq!(workspace.read(".mcp.json.bak"), None);

    succeed(&workspace, &["install", "claude", "--write", "--force"]);
    let now: Value = serde_json::from_str(&workspace.read(".mcp.json").unwrap()).unwrap();
    assert_eq!(now["mcpServers"]["haft"]["command"], "haft");
    assert_eq!(now["mcpServers"]["b"], json!({"command": "y"}));
    assert_eq!(workspace.read(".mcp.json.bak").as_deref(), Some(text));

    // Additional fields of the entry do not cause a rewrite.
    let added = workspace
        .read(".mcp.json")
        .unwrap()
        .replace("\"stdio\",", "\"stdio\", \"env\": {\"A\": \"1\"},");
    workspace.write(".mcp.json", &added);
    let again = succeed(&workspace, &["install", "claude", "--write"]);
    assert!(again.stdout.starts_with("nothing to do"), "{}", again.stdout);
    succeed(&workspace, &["install", "claude", "--write", "--name", "second"]);
}

/// Broken files, wrong arguments, an invalid configuration: reported, and nothing is changed.
#[test]
fn what_cannot_be_done_changes_nothing() {
    let workspace = toolbox();
    let broken = [
        (".mcp.json", "{\"mcpServers\": {", "claude"),
        (".vscode/mcp.json", "{\"servers\": [1]}", "vscode"),
        ("home/.codex/config.toml", "[mcp_servers\n", "codex"),
        ("home/.config/goose/config.yaml", "extensions: [\n", "goose"),
        ("home/.config/zed/settings.json", "[]", "zed"),
    ];
    let mut text = String::new();
    for (file, content, client) in broken {
        workspace.write(file, content);
        text += &told(&workspace, &["install", client, "--write"]);
        text += &told(&workspace, &["uninstall", client, "--write"]);
        assert_eq!(workspace.read(file).as_deref(), Some(content));
        assert_eq!(workspace.read(&format!("{file}.bak")), None);
    }
    text += &told(&workspace, &["install"]);
    let wrong: [&[&str]; 9] = [
        &["install", "--write"],
        &["install", "emacs"],
        &["install", "goose", "--scope", "project"],
        &["install", "claude", "--force"],
        &["install", "claude", "--key-env", "K"],
        &["install", "claude", "--url", "ftp://h", "--key-env", "K"],
        &["install", "claude", "--url", "http://h/mcp", "--key-env", "sk-123"],
        &["install", "claude", "--name", "my haft"],
        &["-c", "nothing.yaml", "install", "cursor", "--write"],
    ];
    for args in wrong {
        text += &told(&workspace, args);
    }
    workspace.write("haft.yaml", "defaults: {tool_timeout: never}\n");
    text += &told(&workspace, &["install", "cursor", "--write"]);
    std::fs::remove_file(workspace.path().join("haft.yaml")).unwrap();
    text += &told(&workspace, &["install", "cursor", "--write"]);
    assert_eq!(workspace.read(".cursor/mcp.json"), None);
    insta::assert_snapshot!(text);
}

/// Haft is not added to the file that it reads: it would start itself without end.
#[test]
fn haft_is_not_put_into_the_file_it_reads() {
    let workspace = Workspace::with(&[(".mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#)]);
    insta::assert_snapshot!(told(&workspace, &["-c", ".mcp.json", "install", "claude", "--write"]));
}

/// A missing home directory is reported; projects need none.
#[test]
fn without_a_home_only_projects_have_files() {
    let workspace = toolbox();
    let user = at_home(&workspace, &["install", "codex"]).env("HOME", "").run();
    assert_eq!(user.code, 1, "{}", user.stderr);
    assert!(user.stderr.contains("HOME is not set"), "{}", user.stderr);
    let project = at_home(&workspace, &["install", "codex", "--scope", "project"]).env("HOME", "");
    assert_eq!(project.run().code, 0);
}

/// The installed command starts and offers the toolbox: from another folder, with nothing but the written file.
#[test]
fn an_installed_entry_serves_the_toolbox() {
    let workspace = toolbox();
    for client in ["claude", "codex"] {
        succeed(&workspace, &["install", client, "--scope", "user", "--write"]);
    }
    let claude: Value =
        serde_json::from_str(&workspace.read("home/.claude.json").unwrap()).unwrap();
    let claude = &claude["mcpServers"]["haft"];
    let codex = workspace.read("home/.codex/config.toml").unwrap();
    let codex = haft_config::edit::Document::read(&codex, haft_config::edit::Syntax::Toml).unwrap();
    let codex = &codex.entries("mcp_servers").unwrap()["haft"];
    assert_eq!((&claude["command"], &claude["args"]), (&codex["command"], &codex["args"]));

    let elsewhere = Workspace::new();
    let args: Vec<&str> =
        claude["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    let finished = Program::new(claude["command"].as_str().unwrap(), &elsewhere)
        .args(&args)
        .stdin(&format!("{hello}\n{ready}\n{list}\n"))
        .run();
    let answers: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |id: u32| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(answer(1)["result"]["serverInfo"]["name"], "haft", "{}", finished.stderr);
    let tools = answer(2)["result"]["tools"].as_array().unwrap();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["echo", "fail", "greet", "wait"]);
}

/// Whatever names the configuration, the entry names it whole: every file, in order, from anywhere.
#[test]
fn the_entry_names_the_configuration_in_use() {
    let workspace = toolbox();
    workspace.write("sub/more.json", r#"{"mcpServers": {}}"#);
    symlink("haft.yaml", workspace.path().join("link.yaml")).unwrap();
    let args = |program: Program| -> Vec<String> {
        let finished = program.run();
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let printed: Value = serde_json::from_str(&finished.stdout).unwrap();
        let args = printed["entry"]["args"].as_array().unwrap().iter();
        args.map(|arg| workspace.stable(arg.as_str().unwrap())).collect()
    };
    let install = ["install", "cursor", "--scope", "user", "--json"];
    let several = ["-c", "link.yaml", "-c", "sub/../sub/more.json", "--config-format", "claude"];
    let named = at_home(&workspace, &[&several[2..], &install[..]].concat());
    assert_eq!(args(named), ["mcp", "-c", "WORKSPACE/sub/more.json", "--config-format", "claude"]);
    let several = at_home(&workspace, &[&several[..4], &install[..]].concat());
    let expected = ["mcp", "-c", "WORKSPACE/link.yaml", "-c", "WORKSPACE/sub/more.json"];
    assert_eq!(args(several), expected);
    let folder = at_home(&workspace, &[&["-c", "tools"], &install[..]].concat());
    assert_eq!(args(folder), ["mcp", "-c", "WORKSPACE/tools"]);
    let variable = at_home(&workspace, &install).env("HAFT_CONFIG", "haft.yaml:sub/more.json");
    let expected = ["mcp", "-c", "WORKSPACE/haft.yaml", "-c", "WORKSPACE/sub/more.json"];
    assert_eq!(args(variable), expected);
}

/// A profile and a surface are part of the entry; a profile that is not there is refused.
#[test]
fn a_profile_and_a_surface_are_part_of_the_entry() {
    let workspace =
        Workspace::with(&[("haft.yaml", "profiles: {reader: {tools: [\"read_*\"]}}\n")]);
    let install = ["install", "cursor", "--json", "--surface", "search", "--profile"];
    let finished = run(&workspace, &[&install[..], &["reader"]].concat());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let printed: Value = serde_json::from_str(&finished.stdout).unwrap();
    let args = ["mcp", "--profile", "reader", "--surface", "search", "-c"];
    let printed = printed["entry"]["args"].as_array().unwrap();
    assert!(printed.iter().zip(args).all(|(is, asked)| is == asked), "{printed:?}");
    assert_eq!(run(&workspace, &[&install[..], &["reader2"]].concat()).code, 2);
}

/// A folder or a dead link in place of the file is left alone.
#[test]
fn a_folder_or_a_dead_link_in_place_of_a_file_is_reported() {
    let workspace = toolbox();
    std::fs::create_dir(workspace.path().join(".mcp.json")).unwrap();
    std::fs::create_dir(workspace.path().join(".cursor")).unwrap();
    symlink("nowhere.json", workspace.path().join(".cursor/mcp.json")).unwrap();
    workspace.write(".vscode/mcp.json", b"\xff\xfe{}");
    let clients = ["claude", "cursor", "vscode"];
    let text: String =
        clients.iter().map(|client| told(&workspace, &["install", client, "--write"])).collect();
    insta::assert_snapshot!(text);
    assert!(workspace.path().join(".cursor/mcp.json").is_symlink());
}

/// A broken entry does not prevent an installation, and the variables that the client must provide are named.
#[test]
fn variables_that_the_client_must_provide_are_named() {
    let config = "servers:\n  bad: {command: x, env: {TOKEN: '${NOT_SET_ANYWHERE}'}}\n  far: {url: 'https://${FAR_HOST:-h}/mcp'}\n";
    let workspace = Workspace::with(&[("haft.yaml", config)]);
    let printed = at_home(&workspace, &["install", "claude"]).env("FAR_HOST", "f").run();
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    let named = "these variables must be set where the client starts Haft: FAR_HOST, NOT_SET_ANYWHERE (not set here)";
    assert!(printed.stderr.contains(named), "{}", printed.stderr);
    let json = succeed(&workspace, &["--json", "install", "claude"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["variables"], json!(["FAR_HOST", "NOT_SET_ANYWHERE"]));
}

/// Files that a project shares name the program on the path and the configuration relative to the project.
#[test]
fn the_file_of_a_project_has_portable_paths() {
    let workspace = toolbox();
    succeed(&workspace, &["install", "claude", "--write"]);
    let written: Value = serde_json::from_str(&workspace.read(".mcp.json").unwrap()).unwrap();
    let entry = &written["mcpServers"]["haft"];
    assert_eq!(entry["command"], "haft");
    let args: Vec<&str> =
        entry["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let [.., option, file] = args[..] else { panic!("{args:?}") };
    assert!(
        option == "-c" && workspace.path().join(file).exists() && !file.starts_with('/'),
        "{args:?}"
    );
    // The path of this user's own file is its own affair.
    succeed(&workspace, &["install", "claude", "--scope", "user", "--write"]);
    let own = workspace.read("home/.claude.json").unwrap();
    assert!(own.contains(env!("CARGO_BIN_EXE_haft")), "{own}");
}

/// The list of clients fits a terminal of 80 columns, and file names stay whole.
#[test]
fn the_list_of_clients_fits_80_columns() {
    let workspace = Workspace::new();
    let left = Terminal::open(&workspace, "stty cols 80; HOME=$PWD \"$haft\" install").left();
    let table: Vec<&str> =
        left.screen.lines().skip_while(|line| !line.starts_with("CLIENT")).collect();
    let rows = table.iter().take_while(|line| !line.starts_with('`'));
    let rows: Vec<&str> = rows.map(|line| line.trim_end()).collect();
    assert!(rows.len() > 10, "{}", left.screen);
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains(".../cline_mcp_settings.json")), "{rows:#?}");
}
