//! `haft keys`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use testkit::{Finished, Workspace};

use crate::{run, transcript};

/// A transcript with every key replaced.
fn masked(workspace: &Workspace, finished: &Finished) -> String {
    let text = transcript(workspace, finished);
    let words = text.split_inclusive(['\n', '"']).map(|word| {
        let end = word.len() - word.trim_end_matches(['\n', '"']).len();
        let (word, end) = word.split_at(word.len() - end);
        let scope = ["haft_admin_", "haft_call_"].into_iter().find(|it| word.starts_with(it));
        match scope {
            Some(scope) => format!("{scope}{}{end}", "*".repeat(word.len() - scope.len())),
            None => format!("{word}{end}"),
        }
    });
    words.collect()
}

fn mode(workspace: &Workspace, path: &str) -> u32 {
    std::fs::metadata(workspace.path().join(path)).unwrap().permissions().mode() & 0o777
}

/// A key is created, listed and revoked, without any configuration file. Only its hash is kept, and only
/// the key itself is on stdout.
#[test]
fn keys_come_and_go() {
    let workspace = Workspace::new();
    let mut text = masked(&workspace, &run(&workspace, &["keys", "list"]));
    let created = run(&workspace, &["keys", "create", "--scope", "admin", "--name", "me"]);
    let key = created.stdout.trim().to_owned();
    assert_eq!((created.stdout.lines().count(), key.len()), (1, "haft_admin_".len() + 43));
    text += &masked(&workspace, &created);
    let file = workspace.read(".haft/keys.json").unwrap();
    assert!(!file.contains(&key) && !created.stderr.contains(&key));
    assert_eq!((mode(&workspace, ".haft/keys.json"), mode(&workspace, ".haft")), (0o600, 0o700));
    assert_eq!(workspace.read(".haft/.gitignore").as_deref(), Some("/keys*\n"));
    let second = ["keys", "create", "--scope", "call", "--name", "agent", "--json"];
    text += &masked(&workspace, &run(&workspace, &second));
    text += &masked(&workspace, &run(&workspace, &["keys", "list"]));
    text += &masked(&workspace, &run(&workspace, &["keys", "list", "--json"]));
    text += &masked(&workspace, &run(&workspace, &["keys", "revoke", "me"]));
    text += &masked(&workspace, &run(&workspace, &["keys", "list"]));
    insta::assert_snapshot!(text);
}

/// The keys lie in the state folder of the configuration.
#[test]
fn keys_lie_in_the_state_folder() {
    let workspace = Workspace::with(&[("haft.yaml", "state_dir: state\n")]);
    assert_eq!(run(&workspace, &["keys", "create", "--scope", "call", "--name", "a"]).code, 0);
    assert!(workspace.read("state/keys.json").is_some());
    assert!(!workspace.path().join(".haft").exists());
}

/// The service creates the registry's folder when it starts, so keys can be created before.
#[test]
fn keys_need_no_registry() {
    let workspace = Workspace::with(&[("haft.yaml", "registry: {dir: tools}\n")]);
    let created = run(&workspace, &["keys", "create", "--scope", "admin", "--name", "me"]);
    assert_eq!(created.code, 0, "{}", created.stderr);
    assert!(workspace.read(".haft/keys.json").is_some());
    assert!(!workspace.path().join("tools").exists());
}

/// Wrong input is refused with a remedy, and a broken file is not overwritten.
#[test]
fn wrong_keys_are_refused_with_a_remedy() {
    let workspace = Workspace::new();
    assert_eq!(run(&workspace, &["keys", "create", "--scope", "call", "--name", "agent"]).code, 0);
    let mut text = String::new();
    let lines: [&[&str]; 6] = [
        &["create", "--scope", "admin", "--name", "agent"],
        &["create", "--scope", "admin", "--name", "../x"],
        &["create", "--scope", "root", "--name", "x"],
        &["create", "--name", "x"],
        &["revoke", "agnt"],
        &["revoke", "agnt", "--json"],
    ];
    for line in lines {
        let finished = run(&workspace, &[&["keys"], line].concat());
        assert_ne!(finished.code, 0, "{line:?}");
        let transcript = transcript(&workspace, &finished);
        text += &format!("$ haft keys {}\n{transcript}\n", line.join(" "));
    }
    let path = workspace.write(".haft/keys.json", "{\"version\": 1");
    for line in [&["list"][..], &["create", "--scope", "call", "--name", "x"]] {
        let finished = run(&workspace, &[&["keys"], line].concat());
        assert_eq!(finished.code, 2, "{line:?}");
        text += &transcript(&workspace, &finished);
    }
    assert_eq!(workspace.read(".haft/keys.json").as_deref(), Some("{\"version\": 1"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    text += &transcript(&workspace, &run(&workspace, &["keys", "list"]));
    insta::assert_snapshot!(text);
}

/// Twenty at the same time: every one that was acknowledged is there.
#[test]
fn keys_created_at_once_are_all_kept() {
    let workspace = Workspace::new();
    std::thread::scope(|scope| {
        for number in 0..20 {
            let workspace = &workspace;
            scope.spawn(move || {
                let name = format!("key-{number}");
                let args = ["keys", "create", "--scope", "call", "--name", &name];
                assert_eq!(run(workspace, &args).code, 0);
            });
        }
    });
    let listed = run(&workspace, &["keys", "list", "--json"]);
    let keys: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(keys.len(), 20);
}

/// No command takes a key as an argument, so that none is ever in a process's command line.
#[test]
fn no_option_takes_a_key() {
    let workspace = Workspace::new();
    for command in [&["keys", "create"][..], &["keys", "revoke"], &["keys", "list"]] {
        let help = run(&workspace, &[command, &["--help"]].concat()).stdout;
        assert!(!help.contains("--key") && !help.contains("<KEY>"), "{help}");
    }
}
