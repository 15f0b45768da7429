//! The settings a tool ends up with, field by field, and where each came from.

use std::time::Duration;

use haft::config::call_limits::LimitSettings;
use haft::config::choices::{Approval, OnLimit};
use haft::config::model::{Config, Setting};
use haft::config::{LoadOptions, Severity};
use haft::registry::{Effective, SettingsOrigin, register};

use super::registry_support::{dynamic, first_run, found, load, native, offered, strict, toolbox};

/// The settings of `get`, the one tool of the server `customers`.
fn settings(config: &Config) -> Effective {
    let registration = first_run(config, &[("customers", &["get"])]);
    registration.tools[0].effective.clone()
}

/// `{max_instances, timeout}` of `get` with this entry and this default.
fn merged(entry: &str, default: &str) -> (u32, Duration) {
    let effective = settings(&toolbox(entry, &[dynamic("customers", default)]));
    (effective.max_instances.value, effective.timeout.value)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Proves S0-39, S0-57 (overrides all), S0-85.
#[test]
fn an_entry_that_sets_everything_overrides_the_whole_default() {
    let entry = "{name: get, max_instances: 20, timeout: 60s}";
    assert_eq!(merged(entry, "{max_instances: 10, timeout: 30s}"), (20, secs(60)));
}

/// Proves S0-40, S0-57 (overrides some): what an entry does not set comes from the default, not
/// from what is built in.
#[test]
fn an_entry_that_sets_one_field_takes_the_other_from_the_default() {
    let default = "{max_instances: 10, timeout: 45s}";
    assert_eq!(merged("{name: get, max_instances: 20}", default), (20, secs(45)));
    assert_eq!(merged("{name: get, timeout: 60s}", default), (10, secs(60)));
    assert_eq!(merged("{name: get}", default), (10, secs(45)));
}

/// Proves S0-41, S0-57 (none).
#[test]
fn without_an_entry_the_default_holds_and_what_it_leaves_open_is_built_in() {
    assert_eq!(merged("", "{max_instances: 10, timeout: 45s}"), (10, secs(45)));
    assert_eq!(merged("", "{max_instances: 10}"), (10, secs(30)));
    assert_eq!(merged("", "{timeout: 45s}"), (5, secs(45)));
    assert_eq!(merged("", "{}"), (5, secs(30)));
}

/// Proves S0-18: a default needs no name; one that it has is ignored, with a warning.
#[test]
fn a_name_in_a_default_is_ignored_with_a_warning() {
    let default = "{name: put, max_instances: 10, timeout: 45s}";
    let config = toolbox("", &[dynamic("customers", default)]);
    let [warning] = &config.warnings[..] else { panic!("{:?}", config.warnings) };
    assert_eq!(
        (warning.severity, warning.problem.as_str(), warning.place.path.as_str()),
        (
            Severity::Warning,
            "a default has no name; it is ignored",
            "myai.toolbox.mcps[0].default_tool_config.name"
        )
    );
    let registration = first_run(&config, &[("customers", &["get", "put"])]);
    assert_eq!(
        offered(&registration),
        [
            "get of dynamic customers: 10 at once, 45s, Default",
            "put of dynamic customers: 10 at once, 45s, Default",
        ]
    );
}

/// Proves S0-19, S0-20: 5 concurrent calls and 30 s by default, with that origin.
#[test]
fn an_entry_that_sets_nothing_gets_what_is_built_in() {
    let effective = settings(&toolbox("{name: get}", &[strict("customers")]));
    assert_eq!(
        effective,
        Effective {
            max_instances: Setting::default(5),
            timeout: Setting { value: secs(30), origin: effective.timeout.origin.clone() },
            parallel_capable: Setting::default(true),
            approval: Setting::default(Approval::Auto),
            on_limit: Setting::default(OnLimit::Wait),
            limits: LimitSettings::default(),
            examples: Vec::new(),
            origin: SettingsOrigin::Explicit,
        }
    );
    assert_eq!(effective.timeout.origin.to_string(), "default of toolbox files");
}

/// Proves S0-21.
#[test]
fn instance_counts_is_no_setting_and_the_refusal_says_to_delete_it() {
    let text = "myai: {toolbox: {tools: [{name: get, instance_counts: 3}]}}";
    let error = load(text).unwrap_err();
    let [problem] = &error.problems[..] else { panic!("{error}") };
    insta::assert_snapshot!(
        format!("{}: {}\nhelp: {}", problem.place.path, problem.problem, problem.remedy),
        @r"
    myai.toolbox.tools[0]: `instance_counts` was removed: it is state at run time, not configuration; delete it
    help: delete `instance_counts`
    "
    );
}

/// Proves X-6: the tool's own timeout, otherwise its server's default, otherwise the server's
/// request timeout; a local tool falls back to `defaults.tool_timeout`.
#[test]
fn the_nearest_timeout_wins() {
    let timeout = |entry: &str, default: &str, server: &str| {
        let config = native(&format!(
            "tools: [{{name: get{entry}}}]\n\
             servers: {{customers: {{url: 'http://customers/mcp', mode: dynamic{default}{server}}}}}"
        ));
        settings(&config).timeout.value
    };
    let (entry, default, server) =
        (", timeout: 7s", ", default_tool_config: {timeout: 8s}", ", request_timeout: 9s");
    assert_eq!(timeout(entry, default, server), secs(7));
    assert_eq!(timeout("", default, server), secs(8));
    assert_eq!(timeout("", "", server), secs(9));
    assert_eq!(timeout("", "", ""), secs(60));

    let local = |text: &str| {
        let registration = register(&native(text), &found(&["sum"], &[]), None);
        registration.tools[0].effective.timeout.value
    };
    assert_eq!(local("tools: [{name: sum}]"), secs(30));
    let shorter = "defaults: {tool_timeout: 4s}\ntools: [{name: sum}]";
    assert_eq!(local(shorter), secs(4));
    let own = "defaults: {tool_timeout: 4s}\ntools: [{name: sum, timeout: 3s}]";
    assert_eq!(local(own), secs(3));
}

/// Proves X-9: local tools run one at a time, tools of servers concurrently; `parallel_capable:
/// false` means one at a time whatever the value of `max_instances`.
#[test]
fn whether_calls_run_side_by_side_depends_on_the_source_unless_it_is_said() {
    let of = |tool: &str, entry: &str| {
        let config = native(&format!(
            "tools: [{{name: {tool}{entry}}}]\nservers: {{customers: {{url: 'http://customers/mcp'}}}}"
        ));
        let found = match tool {
            "sum" => found(&["sum"], &[("customers", &["get"])]),
            _ => found(&[], &[("customers", &["get"])]),
        };
        let registration = register(&config, &found, None);
        let tool = registration.tools.iter().find(|it| it.name == tool);
        let effective = &tool.unwrap().effective;
        let from = effective.max_instances.origin.to_string();
        let settings = (effective.parallel_capable.value, effective.max_instances.value);
        (settings, from.starts_with("parallel_capable: false"))
    };
    assert_eq!(of("sum", ""), ((false, 1), true));
    assert_eq!(of("sum", ", parallel_capable: true"), ((true, 5), false));
    assert_eq!(of("sum", ", max_instances: 3"), ((true, 3), false));
    assert_eq!(of("sum", ", max_instances: 1"), ((false, 1), true));
    assert_eq!(of("get", ""), ((true, 5), false));
    assert_eq!(of("get", ", max_instances: 3"), ((true, 3), false));
    let alone = ", max_instances: 3, parallel_capable: false";
    assert_eq!(of("get", alone), ((false, 1), true));
    assert_eq!(of("sum", alone), ((false, 1), true));
}

/// Proves S0-53 (the origin of each value): one tool may have a value from each of four places.
#[test]
fn each_value_says_where_it_came_from() {
    let config = native(
        "defaults: {on_limit: reject}\n\
         tools:\n  - {name: get, max_instances: 2}\n\
         servers:\n  customers:\n    url: http://customers/mcp\n    mode: dynamic\n    \
         default_tool_config: {timeout: 8s}\n",
    );
    let effective = settings(&config);
    let from = [
        ("max_instances", effective.max_instances.origin.to_string()),
        ("timeout", effective.timeout.origin.to_string()),
        ("approval", effective.approval.origin.to_string()),
        ("on_limit", effective.on_limit.origin.to_string()),
    ];
    insta::assert_snapshot!(from.map(|(key, from)| format!("{key}: {from}")).join("\n"), @r"
    max_instances: haft.yaml:3:32
    timeout: default_tool_config of `customers`, haft.yaml:8:36
    approval: default
    on_limit: haft.yaml:1:22
    ");
    assert_eq!(effective.origin, SettingsOrigin::Merged);
}

/// Proves S0-97.
#[test]
fn the_mixed_example_of_the_toolbox_ends_where_it_says() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/good/toolbox");
    let config = Config::load(&LoadOptions {
        files: vec!["seed-0-appendix-a3.yaml".into()],
        cwd: corpus.into(),
        ..LoadOptions::default()
    })
    .unwrap();
    let servers: [(&str, &[&str]); 2] =
        [("customers", &["get_customer", "list_customers"]), ("external-api", &[])];
    let registration = register(&config, &found(&["sum_numbers"], &servers), None);
    assert_eq!(
        offered(&registration),
        [
            "sum_numbers of local: 20 at once, 30s, Explicit",
            "get_customer of dynamic customers: 50 at once, 60s, Merged",
            "list_customers of dynamic customers: 10 at once, 30s, Default",
        ]
    );
}
