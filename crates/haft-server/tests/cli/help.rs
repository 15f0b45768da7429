//! Help and completions.

use testkit::Workspace;

use crate::{run, transcript};

/// Proves S0-86 for the command line: every command explains itself.
#[test]
fn every_command_has_help() {
    let workspace = Workspace::new();
    let commands: [(&str, &[&str]); 56] = [
        ("haft", &[]),
        ("init", &["init"]),
        ("doctor", &["doctor"]),
        ("status", &["status"]),
        ("ps", &["ps"]),
        ("cancel", &["cancel"]),
        ("tools_new", &["tools", "new"]),
        ("tools_cost", &["tools", "cost"]),
        ("servers_add", &["servers", "add"]),
        ("servers_remove", &["servers", "remove"]),
        ("check", &["check"]),
        ("config", &["config"]),
        ("config_show", &["config", "show"]),
        ("config_schema", &["config", "schema"]),
        ("tools", &["tools"]),
        ("tools_list", &["tools", "list"]),
        ("tools_show", &["tools", "show"]),
        ("tools_search", &["tools", "search"]),
        ("tools_call", &["tools", "call"]),
        ("call", &["call"]),
        ("select", &["select"]),
        ("eval", &["eval"]),
        ("learn", &["learn"]),
        ("explain", &["explain"]),
        ("servers", &["servers"]),
        ("servers_list", &["servers", "list"]),
        ("servers_show", &["servers", "show"]),
        ("servers_ping", &["servers", "ping"]),
        ("prompts", &["prompts"]),
        ("prompts_list", &["prompts", "list"]),
        ("prompts_get", &["prompts", "get"]),
        ("resources_list", &["resources", "list"]),
        ("resources_read", &["resources", "read"]),
        ("install", &["install"]),
        ("uninstall", &["uninstall"]),
        ("import", &["import"]),
        ("keys", &["keys"]),
        ("keys_create", &["keys", "create"]),
        ("keys_list", &["keys", "list"]),
        ("keys_revoke", &["keys", "revoke"]),
        ("run", &["run"]),
        ("chat", &["chat"]),
        ("sessions", &["sessions"]),
        ("sessions_list", &["sessions", "list"]),
        ("sessions_show", &["sessions", "show"]),
        ("sessions_rm", &["sessions", "rm"]),
        ("mcp", &["mcp"]),
        ("log", &["log"]),
        ("log_show", &["log", "show"]),
        ("completions", &["completions"]),
        ("console", &["console"]),
        ("login", &["login"]),
        ("logout", &["logout"]),
        ("man", &["man"]),
        ("resources", &["resources"]),
        ("serve", &["serve"]),
    ];
    for (name, command) in commands {
        let finished = run(&workspace, &[command, &["--help"]].concat());
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{name}");
        insta::assert_snapshot!(format!("help_{name}"), finished.stdout);
    }
}

/// Proves S0-86: without a command, with an unknown one, and with a wrong value.
#[test]
fn a_wrong_command_line_names_the_expected_form() {
    let workspace = Workspace::new();
    let lines: [&[&str]; 7] = [
        &["cal"],
        &["call"],
        &["tools"],
        &["check", "--log-level", "loud"],
        &["check", "--config-format", "ini"],
        &["check", "--input", "x"],
        &["log", "--since", "soon"],
    ];
    let mut text = String::new();
    for line in lines {
        let finished = run(&workspace, line);
        assert_eq!(finished.code, 2, "{line:?}");
        text += &format!("$ haft {}\n{}\n", line.join(" "), transcript(&workspace, &finished));
    }
    insta::assert_snapshot!(text);
    let bare = run(&workspace, &[]);
    assert_eq!(bare.code, 2);
    assert!(bare.stderr.contains("Usage: haft"), "{}", bare.stderr);
}

/// Completion scripts know the commands.
#[test]
fn completions_are_printed_for_the_common_shells() {
    let workspace = Workspace::new();
    for (shell, sign) in
        [("bash", "complete -F"), ("zsh", "#compdef haft"), ("fish", "complete -c haft")]
    {
        let finished = run(&workspace, &["completions", shell]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        for word in [sign, "explain", "log-level"] {
            assert!(finished.stdout.contains(word), "{shell} has no {word}");
        }
    }
}

/// Manual pages: one for each command, readable by `man`.
#[test]
fn manual_pages_are_written_for_every_command() {
    let workspace = Workspace::new();
    let finished = run(&workspace, &["man", "pages/man1"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    for (name, text) in [
        ("haft", "haft\\-serve(1)"),
        ("haft-serve", "Serve the toolbox over HTTP"),
        ("haft-keys-create", "\\-\\-scope"),
    ] {
        let page = workspace.read(&format!("pages/man1/{name}.1")).unwrap();
        assert!(page.contains(".TH ") && page.contains(text), "{name}: {page}");
    }
    workspace.write("file", "");
    let refused = run(&workspace, &["man", "file/pages"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("the pages cannot be written to `file/pages`"));
    assert!(refused.stderr.contains("help: name a folder that you may write to"));
}
