//! Editing the registry of a running toolbox.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::live::{
    Action, Condition, Documents, Edit, EditEffect, FolderStore, Live, RegistryDocument,
    RegistryEditError, RegistryStore, Revision, StoreError, Stored,
};
use haft::{BoxFuture, Code, Config, Runtime, Status};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::live_support::{
    Place, add, call, echo, edit, end, json_of, made, names, raw, refused, remove,
};

/// Proves S2-Q-02, S2-Q-10, S2-US3-1, S2-US3-2, S2-US3-3, S2-FR-010: what is added is in the file,
/// in the list and callable at once, and what is removed is gone from all three; both outlive a
/// restart.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_in_the_file_and_in_use_when_it_is_answered() {
    let place = Place::new("");
    let live = place.start().await;
    let added = made(&live, add("echo")).await;
    assert_eq!(added.what, EditEffect::Added);
    assert_eq!(json_of(&place.tools_file())["tools"][0]["name"], "echo");
    assert_eq!(names(&live), ["echo"]);
    assert_eq!(call(&live, "echo").await.status, Status::Success);
    end(live).await;

    let live = place.start().await;
    assert_eq!(names(&live), ["echo"]);
    let removed = made(&live, remove("echo")).await;
    assert_eq!((removed.what, removed.tag), (EditEffect::Removed, None));
    assert_eq!(json_of(&place.tools_file()), json!({"tools": []}));
    assert_eq!(names(&live), [""; 0]);
    let gone = call(&live, "echo").await;
    assert_eq!(gone.error.unwrap().code, Code::UnknownTool);
    end(live).await;
    assert_eq!(Config::load(&place.options()).unwrap().local.len(), 0);
}

/// Proves S2-FR-010: an update replaces the entry in its place, and takes effect.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_replaced_where_it_stands() {
    let place = Place::new("");
    let live = place.start().await;
    for name in ["a", "b", "c"] {
        made(&live, add(name)).await;
    }
    let mut entry = echo("b");
    entry["description"] = json!("Another.");
    entry["input_schema"]["required"] = json!(["other"]);
    let replaced = made(&live, edit(RegistryDocument::Tools, "b", Action::Put(raw(&entry)))).await;
    assert_eq!(replaced.what, EditEffect::Replaced);
    assert_eq!(names(&live), ["a", "b", "c"]);
    assert_eq!(json_of(&place.tools_file())["tools"][1]["description"], "Another.");
    assert_eq!(call(&live, "b").await.error.unwrap().code, Code::ValidationError);
    end(live).await;
}

/// Proves S2-Q-04, S2-FR-012: what is not valid is refused with every reason, and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_valid_changes_nothing() {
    let place = Place::new("");
    let live = place.start().await;
    made(&live, add("good")).await;
    let before = fs::read_to_string(place.tools_file()).unwrap();
    let bad = [
        json!({"name": "bad"}),
        json!({"name": "bad", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "../../etc/x.py"}}),
        json!({"name": "bad", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "x.py"}, "unknown": 1}),
        json!({"name": "bad", "type": "local", "input_schema": {"type": 7},
               "config": {"script_path": "x.py"}}),
        json!({"name": "", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "x.py"}}),
        json!(["no object"]),
    ];
    for entry in &bad {
        let name = entry["name"].as_str().unwrap_or_default();
        let error =
            refused(&live, edit(RegistryDocument::Tools, name, Action::Add(raw(entry)))).await;
        let is_explained =
            matches!(error, RegistryEditError::Invalid(_) | RegistryEditError::NotAllowed { .. });
        assert!(is_explained && !error.remedy().to_string().is_empty(), "{entry}: {error:?}");
    }
    assert_eq!(fs::read_to_string(place.tools_file()).unwrap(), before);
    assert_eq!(names(&live), ["good"]);
    end(live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_there_or_not_there_are_told_apart() {
    let place = Place::new("servers: {fixed: {url: 'http://localhost:1/mcp', start: lazy}}");
    let live = place.start().await;
    made(&live, add("echo")).await;
    let exists = refused(&live, add("echo")).await;
    assert!(matches!(exists, RegistryEditError::Exists { .. }), "{exists:?}");
    let missing = refused(&live, remove("ech")).await;
    assert_eq!(missing.remedy().to_string(), "did you mean `echo`?");
    let server = Action::Put(raw(&json!({"url": "http://localhost:2/mcp"})));
    let fixed = refused(&live, edit(RegistryDocument::Servers, "fixed", server)).await;
    assert_eq!(
        fixed.to_string(),
        "`fixed` is configured in `haft.yaml`, which Haft does not write to"
    );
    end(live).await;
}

/// Two who read the same state cannot both change it.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_something_else_than_was_read_is_refused() {
    let place = Place::new("");
    let live = place.start().await;
    let first = made(&live, add("echo")).await;
    let put = |text: &str| {
        let mut entry = echo("echo");
        entry["description"] = json!(text);
        let mut edit = edit(RegistryDocument::Tools, "echo", Action::Put(raw(&entry)));
        edit.condition = Condition::EntryIs(first.tag.clone().unwrap());
        edit
    };
    let (one, other) = tokio::join!(live.edit(put("one")), live.edit(put("other")));
    assert!(one.is_ok(), "{one:?}");
    assert!(matches!(other, Err(RegistryEditError::Changed { .. })), "{other:?}");
    let at_start = |name: &str| {
        let mut edit = add(name);
        edit.condition = Condition::RegistryIs(one.as_ref().unwrap().revision.clone());
        edit
    };
    let (one, other) = tokio::join!(live.edit(at_start("x")), live.edit(at_start("y")));
    assert!(
        one.is_ok() && matches!(other, Err(RegistryEditError::Changed { .. })),
        "{one:?} {other:?}"
    );
    end(live).await;
}

/// Proves S2-Q-08, S2-EC-09, S2-FR-015: with 50 and with 500 concurrent writers, a reader always
/// sees valid JSON, and the file holds exactly the acknowledged entries.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_lose_nothing() {
    for writers in [50, 500] {
        let place = Place::new("");
        let live = place.start().await;
        let is_done = Arc::new(AtomicBool::new(false));
        let (file, done) = (place.tools_file(), Arc::clone(&is_done));
        let reader = std::thread::spawn(move || {
            let mut reads = 0;
            while !done.load(Ordering::Acquire) {
                let text = fs::read_to_string(&file).unwrap();
                let value: Value = serde_json::from_str(&text).unwrap();
                assert!(value["tools"].is_array());
                reads += 1;
            }
            reads
        });
        let mut writing = JoinSet::new();
        for at in 0..writers {
            let live = live.clone();
            writing.spawn(async move {
                let name = format!("tool_{at}");
                let added = live.edit(add(&name)).await.is_ok();
                // Every third is taken out again, some are added twice.
                let removed = at % 3 == 0 && live.edit(remove(&name)).await.is_ok();
                let again = at % 7 == 0 && live.edit(add(&name)).await.is_ok();
                (name, (added && !removed) || again)
            });
        }
        let mut expected = BTreeSet::new();
        for (name, is_there) in writing.join_all().await {
            if is_there {
                expected.insert(name);
            }
        }
        is_done.store(true, Ordering::Release);
        assert!(reader.join().unwrap() > 0);
        let value = json_of(&place.tools_file());
        let entries = value["tools"].as_array().unwrap();
        let found: BTreeSet<String> =
            entries.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!((found.len(), &found), (entries.len(), &expected));
        assert_eq!(names(&live).into_iter().collect::<BTreeSet<_>>(), expected);
        end(live).await;
    }
}

/// Of edits that wait together, one that is bad fails alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_edit_spoils_no_other() {
    let place = Place::new("");
    let live = place.start().await;
    let mut writing = JoinSet::new();
    for at in 0..40 {
        let live = live.clone();
        writing.spawn(async move {
            let name = format!("tool_{at}");
            let mut entry = echo(&name);
            if at % 4 == 0 {
                entry["input_schema"] = json!({"type": "nonsense"});
            }
            live.edit(edit(RegistryDocument::Tools, &name, Action::Add(raw(&entry)))).await.is_ok()
        });
    }
    let made = writing.join_all().await.into_iter().filter(|is_made| *is_made).count();
    assert_eq!((made, names(&live).len()), (30, 30));
    end(live).await;
}

/// A command is run only where the operator's file allows it; a script of the registry's folder is
/// the operator's own.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_needs_the_operators_permission() {
    let place = Place::new("policy: {allowed_commands: ['cat', 'uvx mcp-*']}");
    let live = place.start().await;
    let tool = |command: Value| {
        let mut entry = echo("it");
        entry["config"] = json!({"runtime": "command", "command": command});
        edit(RegistryDocument::Tools, "it", Action::Put(raw(&entry)))
    };
    for command in [json!(["sh", "-c", "id"]), json!(["cat", "/etc/passwd"]), json!(["/bin/cat"])] {
        let error = refused(&live, tool(command)).await;
        assert!(matches!(error, RegistryEditError::NotAllowed { .. }), "{error:?}");
    }
    made(&live, tool(json!(["cat"]))).await;
    // Under the name of another tool, which is permitted.
    let mut hidden = echo("other");
    hidden["config"] = json!({"runtime": "command", "command": ["sh"]});
    let error =
        refused(&live, edit(RegistryDocument::Tools, "it", Action::Put(raw(&hidden)))).await;
    assert!(matches!(error, RegistryEditError::NotAllowed { .. }), "{error:?}");
    let server = |entry: Value| edit(RegistryDocument::Servers, "s", Action::Put(raw(&entry)));
    let preload = json!({"command": "uvx", "args": ["mcp-x"], "env": {"LD_PRELOAD": "./evil.so"}});
    let path = json!({"command": "uvx", "args": ["mcp-x"], "env": {"PATH": "/tmp"}});
    let other = json!({"command": "uvx", "args": ["evil"]});
    for entry in [preload, path, other] {
        let error = refused(&live, server(entry)).await;
        assert!(matches!(error, RegistryEditError::NotAllowed { .. }), "{error:?}");
    }
    for (key, value) in [
        ("cwd", json!("/tmp")),
        ("env_file", json!("x.env")),
        ("inherit_env", json!("all")),
        ("env", json!({"HOME": "/tmp"})),
        ("env", json!({"BASH_FUNC_ls%%": "() { id; }"})),
        ("env", json!({"npm_Config_registry": "http://localhost"})),
    ] {
        let mut entry = json!({"command": "uvx", "args": ["mcp-x"], "disabled": true});
        entry[key] = value;
        fs::write(place.path("tools/x.env"), "A=1").unwrap();
        let error = refused(&live, server(entry)).await;
        assert!(matches!(error, RegistryEditError::NotAllowed { .. }), "{key}: {error:?}");
    }
    let fine = json!({"command": "uvx", "args": ["mcp-x"], "disabled": true});
    made(&live, server(fine)).await;
    end(live).await;
}

/// A server can be disabled and enabled, and the rest of its entry stays unmodified.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_disabled_and_enabled() {
    let place = Place::new("");
    let live = place.start().await;
    let entry = json!({"url": "http://127.0.0.1:9/mcp", "start": "lazy", "headers": {"A": "b"}});
    let put = edit(RegistryDocument::Servers, "s", Action::Put(raw(&entry)));
    made(&live, put).await;
    made(&live, edit(RegistryDocument::Servers, "s", Action::SetDisabled(true))).await;
    assert_eq!(json!(live.runtime().servers()[0].state), "disabled");
    made(&live, edit(RegistryDocument::Servers, "s", Action::SetDisabled(false))).await;
    assert_eq!(json!(live.runtime().servers()[0].state), "configured");
    assert_eq!(json_of(&place.servers_file())["mcp_servers"]["s"], entry);
    end(live).await;
}

/// Without a registry an edit is refused, and the error names the reason.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_registry_edits_are_refused() {
    let place = Place::new("");
    fs::write(place.path("haft.yaml"), "").unwrap();
    let live = place.start().await;
    let error = refused(&live, add("echo")).await;
    assert!(matches!(error, RegistryEditError::NoRegistry), "{error:?}");
    end(live).await;
}

/// A registry that cannot be written is a failed edit, and the tool is not there.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_is_not_in_use() {
    let place = Place::new("");
    let live = place.start().await;
    made(&live, add("first")).await;
    // A folder in the place of the draft cannot be replaced by a file.
    fs::create_dir_all(place.path("tools/.tools.json.new/x")).unwrap();
    let error = refused(&live, add("second")).await;
    assert!(matches!(error, RegistryEditError::Store(StoreError::Write { .. })), "{error:?}");
    assert_eq!(names(&live), ["first"]);
    fs::remove_dir_all(place.path("tools/.tools.json.new")).unwrap();
    made(&live, add("second")).await;
    end(live).await;
}

/// Haft's own environment is the operator's: an entry names of it only what is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn variables_need_the_operators_permission() {
    let place = Place::new("policy: {allowed_variables: [FINE]}");
    let mut options = place.options();
    for name in ["FINE", "SECRET"] {
        options.environment.insert(name.to_owned(), "value".to_owned());
    }
    let config = Config::load(&options).unwrap();
    let runtime = haft::Runtime::start(config).await.unwrap();
    let live = haft::live::Live::follow(runtime, options);
    let server = |url: &str, header: &str| {
        let entry = json!({"url": url, "headers": {"A": header}, "start": "lazy"});
        edit(RegistryDocument::Servers, "s", Action::Put(raw(&entry)))
    };
    let url = "http://localhost:9/mcp";
    for (url, header) in [
        (url, "Bearer ${SECRET}"),
        (url, "${env:SECRET}"),
        (url, "${SECRET:-x}"),
        (url, "${FINE}${SECRET}"),
        ("http://localhost:9/${SECRET}", "x"),
    ] {
        let error = refused(&live, server(url, header)).await;
        assert!(matches!(error, RegistryEditError::NotAllowed { .. }), "{url} {header}: {error:?}");
    }
    made(&live, server(url, "Bearer ${FINE}")).await;
    end(live).await;
}

/// An edit that would lose unknown fields is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_more_in_it_is_not_written_over() {
    let place = Place::new("");
    let text = r#"{"tools": {"mcp_servers": {}, "other": {"keep": 1}}}"#;
    fs::write(place.servers_file(), text).unwrap();
    let live = place.start().await;
    let server = Action::Add(raw(&json!({"url": "http://localhost:9/mcp", "start": "lazy"})));
    let error = refused(&live, edit(RegistryDocument::Servers, "s", server)).await;
    assert!(
        matches!(&error, RegistryEditError::Broken { file, .. } if file == "mcp.json"),
        "{error:?}"
    );
    assert_eq!(fs::read_to_string(place.servers_file()).unwrap(), text);
    end(live).await;
}

/// A lock held by another process delays an edit, but not forever.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_held_ends_in_an_error() {
    let place = Place::new("");
    let live = place.start().await;
    let lock = fs::File::create(place.path("tools/.haft.lock")).unwrap();
    lock.lock().unwrap();
    let error = refused(&live, add("echo")).await;
    assert!(matches!(error, RegistryEditError::Store(StoreError::Write { .. })), "{error:?}");
    drop(lock);
    made(&live, add("echo")).await;
    end(live).await;
}

/// The files of a folder, with a first commit that fails.
struct FailingOnce {
    files: FolderStore,
    has_failed: AtomicBool,
}

impl RegistryStore for FailingOnce {
    fn load(&self) -> BoxFuture<'_, Result<Stored, StoreError>> {
        self.files.load()
    }

    fn commit<'a>(
        &'a self,
        expected: &'a Revision,
        new: &'a Documents,
    ) -> BoxFuture<'a, Result<Revision, StoreError>> {
        if self.has_failed.swap(true, Ordering::Relaxed) {
            return self.files.commit(expected, new);
        }
        let (cause, remedy) = ("no connection".to_owned(), "retry".to_owned());
        Box::pin(async { Err(StoreError::Unavailable { cause, remedy }) })
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.files.changed()
    }
}

/// Two edits replace the same version in one batch. The first one is not written, so it does not refuse the
/// second one.
#[tokio::test]
async fn an_edit_is_not_refused_because_of_one_that_was_not_written() {
    let place = Place::new("");
    fs::write(place.tools_file(), json!({"tools": [echo("one")]}).to_string()).unwrap();
    let config = Config::load(&place.options()).unwrap();
    let runtime = Runtime::start(config).await.unwrap();
    let files = FolderStore::new(place.path("tools"));
    let store = FailingOnce { files, has_failed: AtomicBool::new(false) };
    let live = Live::with_store(runtime, place.options(), Some(Arc::new(store)));
    let (_, tag) = live.entry(RegistryDocument::Tools, "one").await.unwrap().unwrap();
    let replace = |description: &str| {
        let mut entry = echo("one");
        entry["description"] = json!(description);
        let edit = edit(RegistryDocument::Tools, "one", Action::Put(raw(&entry)));
        Edit { condition: Condition::EntryIs(tag.clone()), ..edit }
    };
    let (first, second) = tokio::join!(live.edit(replace("first")), live.edit(replace("second")));
    let first = first.unwrap_err();
    assert!(matches!(first, RegistryEditError::Store(StoreError::Unavailable { .. })), "{first}");
    assert_eq!(second.unwrap().what, EditEffect::Replaced);
    assert_eq!(json_of(&place.tools_file())["tools"][0]["description"], "second");
    end(live).await;
}
