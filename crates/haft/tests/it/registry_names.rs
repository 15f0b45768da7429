//! The names under which tools are offered, and what happens where two are alike.

use haft::config::Config;
use haft::config::model::ToolSettings;
use haft::registry::{Discovered, Registration, register};

use super::registry_support::{
    dynamic, first_run, found, log, log_from, names, native, offered, pairs, strict, toolbox,
};

const TEN: &str = "{max_instances: 10, timeout: 30s}";

/// Dynamic servers `a`, `b` and `c` under a switch.
fn three(rule: &str) -> Config {
    native(&format!(
        "defaults: {{on_name_collision: {rule}}}\nservers:\n  \
         a: {{url: 'http://a/mcp'}}\n  b: {{url: 'http://b/mcp'}}\n  c: {{url: 'http://c/mcp'}}\n"
    ))
}

/// Servers and a local tool that needs no entry.
fn with_local(name: &str, servers: &[(&str, &[&str])]) -> Discovered {
    let mut found = found(&[name], servers);
    found.local[0].settings = Some(ToolSettings::default().into());
    found
}

/// The end of a WARNING about a tool of `server` and an earlier one.
fn way_out(server: &str) -> String {
    format!(
        "to choose the names, set `tool_prefix: server` for '{server}', or leave one out with \
         `tool_denylist`"
    )
}

/// Names, and warnings or worse.
fn outcome(registration: &Registration) -> (Vec<(String, String)>, Vec<String>) {
    (names(registration), log_from("WARNING", registration))
}

/// Proves S0-69, S0-92: allowed, warned of, and the later server in the file answers.
#[test]
fn of_two_servers_with_one_tool_name_the_later_one_answers() {
    let config = toolbox("{name: get}", &[strict("a"), dynamic("b", TEN)]);
    let registration = first_run(&config, &[("a", &["get"]), ("b", &["get", "put"])]);
    assert_eq!(
        offered(&registration),
        ["get of dynamic b: 10 at once, 30s, Merged", "put of dynamic b: 10 at once, 30s, Default",]
    );
    assert_eq!(
        log_from("WARNING", &registration),
        [format!(
            "WARNING: Tool 'get' is offered by MCP server 'a' and by MCP server 'b': the latter is \
             used (on_name_collision: last_wins); {}",
            way_out("b")
        )]
    );
    assert_eq!(registration.violations, [""; 0]);
}

/// Proves S0-70.
#[test]
fn a_tool_of_a_server_replaces_a_local_one_of_the_same_name() {
    let config = toolbox("{name: sum}", &[strict("a")]);
    let registration = register(&config, &found(&["sum"], &[("a", &["sum"])]), None);
    assert_eq!(
        outcome(&registration),
        (
            pairs(&[("sum", "a")]),
            vec![format!(
                "WARNING: Tool 'sum' is offered by a local tool and by MCP server 'a': the latter \
                 is used (on_name_collision: last_wins); {}",
                way_out("a")
            )]
        )
    );
}

/// Proves X-7 (`last_wins`, spelled out).
#[test]
fn last_wins_means_the_last_of_all() {
    let config = three("last_wins");
    let servers: [(&str, &[&str]); 3] = [("a", &["get"]), ("b", &["get"]), ("c", &["get"])];
    let registration = first_run(&config, &servers);
    assert_eq!(names(&registration), pairs(&[("get", "c")]));
    assert_eq!(
        log_from("WARNING", &registration),
        [("a", "b"), ("b", "c")].map(|(one, other)| format!(
            "WARNING: Tool 'get' is offered by MCP server '{one}' and by MCP server '{other}': the latter is \
             used (on_name_collision: last_wins); {}", way_out(other)
        ))
    );
}

/// Proves X-7 (`first_wins`).
#[test]
fn first_wins_keeps_the_first_and_warns_of_the_others() {
    let config = three("first_wins");
    let registration = first_run(&config, &[("a", &["get"]), ("b", &["get"])]);
    assert_eq!(names(&registration), pairs(&[("get", "a")]));
    assert_eq!(
        log_from("WARNING", &registration),
        [format!(
            "WARNING: Tool 'get' is offered by MCP server 'a' and by MCP server 'b': the former is \
         used (on_name_collision: first_wins); {}",
            way_out("b")
        )]
    );
    let local = register(&config, &with_local("sum", &[("a", &["sum"])]), None);
    assert_eq!(names(&local), pairs(&[("sum", "local")]));
}

/// Proves X-7 (`error`).
#[test]
fn error_refuses_the_second_tool_and_stops_the_start() {
    let config = three("error");
    let registration = first_run(&config, &[("a", &["get"]), ("b", &["get"])]);
    assert_eq!(names(&registration), pairs(&[("get", "a")]));
    let text = "Tool 'get' is offered by MCP server 'a' and by MCP server 'b'.\n\nTo resolve:\n\
                1. Set `tool_prefix: server` for one of them, OR\n\
                2. Leave one out with `tool_denylist`, OR\n\
                3. Set `on_name_collision` to `last_wins`, `first_wins` or `prefix`";
    assert_eq!(registration.violations, [text]);
    assert!(log(&registration).contains(&format!("ERROR: {text}")));
}

/// Proves X-7 (`prefix`): the first keeps its name.
#[test]
fn prefix_offers_the_later_tool_under_the_name_of_its_server() {
    let config = three("prefix");
    let servers: [(&str, &[&str]); 2] = [("a", &["get", "list"]), ("b", &["get", "put"])];
    let registration = first_run(&config, &servers);
    assert_eq!(
        names(&registration),
        pairs(&[("get", "a"), ("list", "a"), ("b__get", "b"), ("put", "b")])
    );
    assert_eq!(
        log_from("WARNING", &registration),
        [format!(
            "WARNING: Tool 'get' is offered by MCP server 'a' and by MCP server 'b': the latter is offered \
             as 'b__get' (on_name_collision: prefix); {}",
            way_out("b")
        )]
    );
    assert_eq!(registration.tools[2].definition.name, "get");
}

/// Proves X-7 (`prefix`, a third server).
#[test]
fn prefix_holds_for_the_third_server_too() {
    let config = three("prefix");
    let servers: [(&str, &[&str]); 3] = [("a", &["get"]), ("b", &["get"]), ("c", &["get"])];
    let registration = first_run(&config, &servers);
    assert_eq!(names(&registration), pairs(&[("get", "a"), ("b__get", "b"), ("c__get", "c")]));
    assert_eq!(
        log_from("WARNING", &registration),
        ["b", "c"].map(|later| format!(
            "WARNING: Tool 'get' is offered by MCP server 'a' and by MCP server '{later}': the latter is \
             offered as '{later}__get' (on_name_collision: prefix); {}", way_out(later)
        ))
    );
}

/// Proves X-7 (`prefix`, local): a local tool keeps its name, it has no server to be named after.
#[test]
fn prefix_leaves_a_local_tool_its_name() {
    let config = three("prefix");
    let found = with_local("sum", &[("a", &["sum"]), ("b", &["sum"])]);
    let registration = register(&config, &found, None);
    assert_eq!(names(&registration), pairs(&[("sum", "local"), ("a__sum", "a"), ("b__sum", "b")]));
}

/// Proves X-7 (`prefix`): a name that a prefix makes may itself be taken.
#[test]
fn prefix_never_drops_a_tool_whose_name_happens_to_look_prefixed() {
    let config = three("prefix");
    let servers: [(&str, &[&str]); 3] =
        [("a", &["get", "b__get"]), ("b", &["get"]), ("c", &["a__get"])];
    let registration = first_run(&config, &servers);
    let own: Vec<_> = registration
        .tools
        .iter()
        .map(|tool| format!("{} ({})", tool.name, tool.definition.name))
        .collect();
    insta::assert_snapshot!(own.join("\n"), @r"
    get (get)
    b__get (b__get)
    b__get-672678d6 (get)
    a__get (a__get)
    ");
}

/// Proves X-7: a tool listed twice by its own server is one tool, under every switch.
#[test]
fn a_tool_that_its_server_lists_twice_is_there_once_with_a_warning() {
    for (rule, used) in [("last_wins", "latter"), ("first_wins", "former"), ("prefix", "latter")] {
        let registration = first_run(&three(rule), &[("a", &["get", "get"])]);
        assert_eq!(names(&registration), pairs(&[("get", "a")]), "{rule}");
        assert_eq!(
            log_from("WARNING", &registration)[0],
            format!(
                "WARNING: Tool 'get' is offered by MCP server 'a' and by MCP server 'a': the \
                 {used} is used (on_name_collision: {rule}); leave one out with `tool_denylist`"
            )
        );
    }
}

/// Proves X-7 (`tool_prefix`).
#[test]
fn a_tool_prefix_names_every_tool_after_its_server() {
    let config = native(
        "servers:\n  a: {url: 'http://a/mcp', tool_prefix: server}\n  b: {url: 'http://b/mcp'}\n\
         tools:\n  - {name: a__get, max_instances: 3}\n  - {name: put, mcp: a, max_instances: 4}\n",
    );
    let registration = first_run(&config, &[("a", &["get", "put"]), ("b", &["get"])]);
    assert_eq!(
        offered(&registration),
        [
            "a__get (get) of dynamic a: 3 at once, 60s, Merged",
            "a__put (put) of dynamic a: 4 at once, 60s, Merged",
            "get of dynamic b: 5 at once, 60s, Default",
        ]
    );
    assert_eq!(log_from("WARNING", &registration), [""; 0]);
}

/// Proves S3-US4-3: the offered name is one that models accept, the own name stays for the server.
#[test]
fn each_invalid_character_of_a_name_is_offered_as_a_dash() {
    let config = toolbox("", &[dynamic("a", TEN)]);
    let registration = first_run(&config, &[("a", &["a b/c!", "날씨"])]);
    assert_eq!(
        offered(&registration),
        [
            "a-b-c- (a b/c!) of dynamic a: 10 at once, 30s, Default",
            "-- (날씨) of dynamic a: 10 at once, 30s, Default",
        ]
    );
}

/// Proves S3-FR-015: names that become alike are a collision, and the warning gives both names.
#[test]
fn names_that_become_alike_are_warned_of_with_the_names_their_servers_gave() {
    let config = toolbox("", &[dynamic("a", TEN), dynamic("b", TEN)]);
    let registration = first_run(&config, &[("a", &["get it"]), ("b", &["get/it"])]);
    assert_eq!(
        outcome(&registration),
        (
            pairs(&[("get-it", "b")]),
            vec![format!(
                "WARNING: Tool 'get-it' is offered by MCP server 'a' as 'get it' and by MCP server \
                 'b' as 'get/it': the latter is used (on_name_collision: last_wins); {}",
                way_out("b")
            )]
        )
    );
}

/// Proves S3-FR-015, X-7 (`prefix` within one server): a hash of the own name distinguishes them.
#[test]
fn names_of_one_server_that_become_alike_are_told_apart_under_prefix() {
    let registration = first_run(&three("prefix"), &[("a", &["get it", "get/it", "get!it"])]);
    let own: Vec<_> = registration
        .tools
        .iter()
        .map(|tool| format!("{} ({})", tool.name, tool.definition.name))
        .collect();
    insta::assert_snapshot!(own.join("\n"), @r"
    get-it (get it)
    get-it-4ee187c1 (get/it)
    get-it-c777ef18 (get!it)
    ");
}

/// Proves S0-28, S3-FR-015: an entry may use the name the server gives or the one that is offered.
#[test]
fn an_entry_finds_its_tool_by_either_name() {
    let config = toolbox("{name: get it}, {name: put-it}", &[strict("a")]);
    let registration = first_run(&config, &[("a", &["get it", "put it"])]);
    assert_eq!(names(&registration), pairs(&[("get-it", "a"), ("put-it", "a")]));
    assert_eq!(registration.violations, [""; 0]);
}

/// Proves X-7 (the default): only the toolbox's document lets the last tool win. A server of another format
/// beside it does not.
#[test]
fn without_a_switch_the_first_keeps_its_name() {
    let plain = native("servers: {a: {url: 'http://a/mcp'}, b: {url: 'http://b/mcp'}}");
    let found = with_local("get", &[("a", &["get"]), ("b", &["get"])]);
    let registration = register(&plain, &found, None);
    assert_eq!(names(&registration), pairs(&[("get", "local"), ("a__get", "a"), ("b__get", "b")]));
    let toolbox = toolbox("{name: get}", &[strict("a"), strict("b")]);
    assert_eq!(names(&register(&toolbox, &found, None)), pairs(&[("get", "b")]));

    let folder = tempfile::tempdir().unwrap();
    let (mcps, native) =
        ([strict("a"), strict("b")].join(", "), "servers: {c: {url: 'http://c/mcp'}}");
    let toolbox = format!("myai: {{toolbox: {{tools: [{{name: get}}], mcps: [{mcps}]}}}}");
    std::fs::write(folder.path().join("toolbox.yaml"), toolbox).unwrap();
    std::fs::write(folder.path().join("haft.yaml"), native).unwrap();
    let mixed = Config::load(&haft::config::LoadOptions {
        files: vec!["toolbox.yaml".into(), "haft.yaml".into()],
        cwd: folder.path().to_path_buf(),
        ..haft::config::LoadOptions::default()
    });
    let found = with_local("get", &[("a", &["get"]), ("b", &["get"]), ("c", &["get"])]);
    let registration = register(&mixed.unwrap(), &found, None);
    assert_eq!(names(&registration), pairs(&[("get", "b"), ("c__get", "c")]));
}

/// The tool in use needs approval if its rival would have, whichever of the two is used.
#[test]
fn of_two_rivals_the_stricter_approval_holds() {
    for rule in ["last_wins", "first_wins"] {
        for strict in ["a", "b"] {
            let config = native(&format!(
                "defaults: {{on_name_collision: {rule}}}\n\
                 servers: {{a: {{url: 'http://a/mcp'}}, b: {{url: 'http://b/mcp'}}}}\n\
                 tools: [{{name: get, mcp: {strict}, approval: ask}}]\n"
            ));
            let registration = first_run(&config, &[("a", &["get"]), ("b", &["get"])]);
            let approval = registration.tools[0].effective.approval.value;
            assert_eq!((registration.tools.len(), approval.word()), (1, "ask"), "{rule} {strict}");
        }
    }
    let config =
        native("defaults: {on_name_collision: last_wins}\nservers: {a: {url: 'http://a/mcp'}}\n");
    let mut found = with_local("sum", &[("a", &["sum"])]);
    let ask = native("tools: [{name: sum, approval: ask}]").tools[0].settings.clone();
    found.local[0].settings = Some(ask.into());
    let registration = register(&config, &found, None);
    assert_eq!(names(&registration), pairs(&[("sum", "a")]));
    assert_eq!(registration.tools[0].effective.approval.value.word(), "ask");
}

/// A tool without a visible name is not offered under any.
#[test]
fn a_tool_without_a_name_is_not_offered() {
    let config = native("servers: {a: {url: 'http://a/mcp', tool_prefix: server}}");
    let registration = first_run(&config, &[("a", &["", " ", "\u{200b}", "get"])]);
    assert_eq!(names(&registration), pairs(&[("a__get", "a")]));
    assert_eq!(
        log_from("WARNING", &registration),
        ["WARNING: A tool from MCP server 'a' has no name and is not registered"; 3]
    );
}

/// Names with characters that cannot be seen or look like others are flagged, and so are names that look
/// like another tool's.
#[test]
fn names_that_mislead_are_flagged() {
    let config = three("prefix");
    let registration = first_run(
        &config,
        &[
            ("a", &["read_file", "날씨"]),
            ("b", &["r\u{435}ad_file", "read_fi1e", "put\u{200b}", "put"]),
        ],
    );
    let flags: Vec<_> = registration
        .tools
        .iter()
        .map(|tool| format!("{}: {}", tool.name, tool.name_warning.as_deref().unwrap_or("-")))
        .collect();
    insta::assert_snapshot!(flags.join("\n"), @r"
    read_file: -
    --: -
    r-ad_file: it has U+0435 (looks like `e`); it looks like 'read_file' from MCP server 'a'
    read_fi1e: it looks like 'read_file' from MCP server 'a'
    put-: it has U+200B (invisible)
    put: it looks like 'put-' from MCP server 'b'
    ");
    assert_eq!(
        log_from("WARNING", &registration)[1],
        "WARNING: Tool 'read_fi1e' from MCP server 'b' has a name that may mislead: it looks like 'read_file' \
         from MCP server 'a'; if you do not trust it, leave it out with `tool_denylist` of 'b'"
    );
}
