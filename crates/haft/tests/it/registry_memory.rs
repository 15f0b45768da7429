//! The memory between runs: it distinguishes a new tool from one without an entry.

use haft::registry::{KnownTools, register};

use super::registry_support::{
    dynamic, first_run, found, log, log_from, next_run, offered, strict, toolbox,
};

const TEN: &str = "{max_instances: 10, timeout: 30s}";

fn using_default(tool: &str) -> String {
    format!(
        "INFO: Tool '{tool}' from MCP 'customers' not explicitly configured, using default \
         configuration"
    )
}

fn discovered(tool: &str) -> String {
    format!(
        "INFO: New tool '{tool}' discovered from MCP server 'customers', registering with default \
         configuration"
    )
}

/// Proves S0-36, S0-37, S0-38, S0-47, S0-56 (new tool): over two runs, through the file between
/// them.
#[test]
fn a_tool_that_the_last_run_did_not_see_is_announced_as_new() {
    let folder = tempfile::tempdir().unwrap();
    let config = toolbox("", &[dynamic("customers", TEN)]);
    let known = KnownTools::load(folder.path()).unwrap();
    assert_eq!(known, None);
    let first = first_run(&config, &[("customers", &["get"])]);
    assert_eq!(log(&first), [using_default("get")]);
    first.known.save(folder.path()).unwrap();

    let known = KnownTools::load(folder.path()).unwrap().unwrap();
    let second = next_run(&config, &[("customers", &["get", "put"])], &known);
    assert_eq!(log(&second), [using_default("get"), discovered("put"), using_default("put")]);
    assert_eq!(offered(&second)[1], "put of dynamic customers: 10 at once, 30s, Default");
    second.known.save(folder.path()).unwrap();

    let known = KnownTools::load(folder.path()).unwrap().unwrap();
    let third = next_run(&config, &[("customers", &["get", "put"])], &known);
    assert_eq!(log(&third), [using_default("get"), using_default("put")]);
}

/// Proves S0-38: a server that was never listed has no new tools.
#[test]
fn the_first_run_of_one_server_beside_a_known_one_announces_nothing() {
    let one = toolbox("", &[dynamic("other", TEN)]);
    let known = first_run(&one, &[("other", &["list"])]).known;
    let both = toolbox("", &[dynamic("other", TEN), dynamic("customers", TEN)]);
    let servers: [(&str, &[&str]); 2] = [("other", &["list"]), ("customers", &["get"])];
    let registration = next_run(&both, &servers, &known);
    assert_eq!(log(&registration)[1..], [using_default("get")]);
    assert_eq!(log(&registration).len(), 2);
}

/// Proves S0-36 (its limit): a new tool with an entry is not announced as using the default.
#[test]
fn a_new_tool_with_an_entry_is_not_announced() {
    let config = toolbox("{name: put}", &[dynamic("customers", TEN)]);
    let known = first_run(&config, &[("customers", &["get"])]).known;
    let registration = next_run(&config, &[("customers", &["get", "put"])], &known);
    assert_eq!(log_from("INFO", &registration), [using_default("get")]);
}

/// Proves S0-36: a server that had no tools at all is remembered as such.
#[test]
fn the_first_tool_of_an_empty_server_is_new() {
    let config = toolbox("", &[dynamic("customers", TEN)]);
    let known = first_run(&config, &[("customers", &[])]).known;
    let registration = next_run(&config, &[("customers", &["get"])], &known);
    assert_eq!(log(&registration), [discovered("get"), using_default("get")]);
}

/// Proves S0-68: the same file with one word changed starts, and the tool that stopped it uses the
/// default.
#[test]
fn a_server_switched_from_strict_to_dynamic_starts_with_the_tool_that_failed() {
    let tools = "{name: get, max_instances: 2, timeout: 5s}";
    let servers: [(&str, &[&str]); 1] = [("customers", &["get", "put"])];
    let strict = first_run(&toolbox(tools, &[strict("customers")]), &servers);
    assert_eq!(strict.violations.len(), 1);

    let dynamic = toolbox(tools, &[dynamic("customers", TEN)]);
    // A run that failed to start saves nothing, so the second has no memory.
    let after = first_run(&dynamic, &servers);
    assert_eq!(after.violations, [""; 0]);
    assert_eq!(
        offered(&after),
        [
            "get of dynamic customers: 2 at once, 5s, Merged",
            "put of dynamic customers: 10 at once, 30s, Default",
        ]
    );
    assert_eq!(log_from("INFO", &after), [using_default("put")]);
}

/// Proves S0-36, S0-67: an unreachable server keeps its memory; one that is no longer configured is
/// forgotten.
#[test]
fn memory_outlives_a_server_that_is_away_but_not_one_that_is_deleted() {
    let both = toolbox("", &[dynamic("a", TEN), dynamic("b", TEN)]);
    let known = first_run(&both, &[("a", &["get"]), ("b", &["put"])]).known;
    let away = register(&both, &found(&[], &[("b", &["put"])]), Some(&known)).known;
    assert_eq!(away, known);
    let one = toolbox("", &[dynamic("b", TEN)]);
    let deleted = register(&one, &found(&[], &[("b", &["put"])]), Some(&known)).known;
    let mut expected = KnownTools::default();
    expected.remember("b", ["put".to_owned()]);
    assert_eq!(deleted, expected);
}

/// Proves S0-38 (the file): what is saved is what is loaded, whatever the names are.
#[test]
fn what_is_remembered_survives_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("deep/state");
    let mut known = KnownTools::default();
    assert!(known.is_empty());
    known.remember("customers", ["a b/c!".to_owned(), "날씨\n\u{202e}".to_owned()]);
    known.remember("empty", []);
    known.save(&state_dir).unwrap();
    known.remember("customers", ["get".to_owned()]);
    known.save(&state_dir).unwrap();
    assert_eq!(KnownTools::load(&state_dir).unwrap(), Some(known));
    let files: Vec<_> =
        std::fs::read_dir(&state_dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["known-tools.json"], "no draft is left behind");
}

/// Proves S0-38 (the file): missing means a first run, damaged means an error, never a guess.
#[test]
fn a_damaged_memory_is_an_error_and_a_missing_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nowhere");
    assert_eq!(KnownTools::load(&missing).unwrap(), None);
    let file = folder.path().join("known-tools.json");
    for damaged in ["", "{", "[]", "{\"servers\": {\"a\": 7}}", "\u{0}\u{0}"] {
        std::fs::write(&file, damaged).unwrap();
        assert!(KnownTools::load(folder.path()).is_err(), "{damaged:?}");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(KnownTools::load(folder.path()).is_err());
}
