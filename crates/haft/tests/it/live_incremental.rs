//! A change compiles the changed entries alone. The result is that of a start from the written files.

use std::fs;
use std::time::Duration;

use haft::config::{EntryCache, LoadOptions};
use haft::live::{Action, Live, RegistryDocument};
use haft::{Code, Config, Runtime, ToolCall};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::live_support::{Place, add, echo, edit, end, json_of, made, raw, remove};

/// Number of names that edits choose from.
const NAMES: usize = 5;
/// Number of kinds of entries.
const KINDS: usize = 10;

#[derive(Debug, Clone)]
enum Step {
    Put {
        name: usize,
        kind: usize,
    },
    Remove {
        name: usize,
    },
    /// Several edits that wait together.
    Together {
        first: usize,
        kind: usize,
    },
    /// The file is written by hand: rotated, with another entry, in another layout.
    ByHand {
        turns: usize,
        kind: usize,
        layout: usize,
    },
    /// Another `haft.yaml`.
    Defaults {
        variant: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..NAMES, 0..KINDS).prop_map(|(name, kind)| Step::Put { name, kind }),
        2 => (0..NAMES).prop_map(|name| Step::Remove { name }),
        1 => (0..NAMES, 0..KINDS).prop_map(|(first, kind)| Step::Together { first, kind }),
        2 => (0..4_usize, 0..KINDS, 0..4_usize)
            .prop_map(|(turns, kind, layout)| Step::ByHand { turns, kind, layout }),
        3 => (0..5_usize).prop_map(|variant| Step::Defaults { variant }),
    ]
}

/// An entry of every kind that is treated in a way of its own. The last ones are refused over the API.
fn entry(name: &str, kind: usize) -> Value {
    let mut entry = echo(name);
    let fields = match kind {
        0 => json!({}),
        1 => json!({
            "timeout": 7, "output_schema": {"type": "object"},
            "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        }),
        // A warning: the entry has no description.
        2 => json!({"description": null}),
        3 => json!({"config": {"script_path": "echo.py", "env": {"A": "${FINE}-and-more-9x7"}}}),
        4 => json!({
            "title": "A title", "annotations": {"readOnlyHint": true}, "icons": [{"src": "https://a.example/i.png"}],
            "max_instances": 3, "parallel_capable": true, "approval": "ask", "on_limit": "reject",
            "rate": "60/min", "burst": 2, "quota": "1000/day", "examples": ["é: say it\nagain"],
            "background": "allow",
        }),
        // Its value is a secret, which is masked in the descriptions of all tools.
        5 => json!({
            "description": "Uses hunter2-x9-literal here.",
            "config": {"script_path": "echo.py", "env": {"API_TOKEN": "hunter2-x9-literal"}},
        }),
        6 => json!({"type": "mcp", "config": null, "input_schema": null, "timeout": 3}),
        // A warning about a key inside.
        7 => json!({"config": {"script_path": "echo.py", "args": ["-x"]}}),
        8 => json!({"input_schema": {"type": "nothing"}}),
        _ => json!({"sandbox": {"kind": "none", "memory": "1GB"}}),
    };
    for (key, value) in fields.as_object().unwrap() {
        match value {
            Value::Null => drop(entry.as_object_mut().unwrap().shift_remove(key)),
            value => entry[key] = value.clone(),
        }
    }
    entry
}

fn name(number: usize) -> String {
    // Two of them look alike, and clients do not accept one of the names.
    ["first", "f1rst", "second", "third", "a b"][number % NAMES].to_owned()
}

fn defaults(variant: usize) -> &'static str {
    match variant {
        0 => "",
        1 => "defaults: {tool_timeout: 9s, on_name_collision: first_wins}",
        2 => "defaults: {sandbox: {kind: none, memory: 512MB}}",
        3 => "tools: [{name: first, timeout: 4}, {name: gone}]",
        _ => "defaults: {python: python3, on_limit: reject}\nlimits: {message_nodes_max: 1000}",
    }
}

fn haft_yaml(variant: usize) -> String {
    let policy = "policy: {allowed_variables: [FINE], allowed_env: [A, API_TOKEN]}";
    format!("registry: {{dir: tools}}\n{policy}\n{}\n", defaults(variant))
}

fn options(place: &Place) -> LoadOptions<'static> {
    let mut options = place.options();
    options.environment.insert("FINE".to_owned(), "fine-secret-value".to_owned());
    options
}

/// The registry's file with one more entry, in one of several layouts. A change that the loader refuses is undone.
async fn by_hand(live: &Live, place: &Place, (turns, kind, layout): (usize, usize, usize)) {
    let before = fs::read_to_string(place.tools_file()).unwrap();
    let mut document: Value = serde_json::from_str(&before).unwrap();
    let tools = document["tools"].as_array_mut().unwrap();
    tools.retain(|tool| tool["name"] != "by hand");
    let turns = turns % tools.len().max(1);
    tools.rotate_left(turns);
    tools.insert(turns, entry("by hand", kind));
    let text = match layout {
        0 => document.to_string(),
        1 => format!("\n\n  {document:#}\n"),
        2 => format!("{document:#}").replace('\n', "\r\n\t"),
        // Every entry on a line of its own.
        _ => {
            let tools = document["tools"].as_array().unwrap();
            let lines: Vec<String> = tools.iter().map(Value::to_string).collect();
            format!("{{ \"tools\" : [\n{}\n]}}", lines.join(" ,\n"))
        }
    };
    fs::write(place.tools_file(), text).unwrap();
    if live.reload().await.is_err() {
        fs::write(place.tools_file(), before).unwrap();
        live.reload().await.unwrap();
    }
}

async fn make(live: &Live, place: &Place, step: &Step) {
    let put = |number: usize, kind: usize| {
        let name = name(number);
        let entry = raw(&entry(&name, kind));
        edit(RegistryDocument::Tools, &name, Action::Put(entry))
    };
    // An edit that is refused leaves everything as it was, so its result does not matter here.
    match *step {
        Step::Put { name, kind } => drop(live.edit(put(name, kind)).await),
        Step::Remove { name: number } => drop(live.edit(remove(&name(number))).await),
        Step::Together { first, kind } => {
            let edits = (0..3).map(|at| live.edit(put(first + at, kind + at)));
            futures_util::future::join_all(edits).await;
        }
        Step::ByHand { turns, kind, layout } => by_hand(live, place, (turns, kind, layout)).await,
        Step::Defaults { variant } => {
            let before = fs::read_to_string(place.path("haft.yaml")).unwrap();
            fs::write(place.path("haft.yaml"), haft_yaml(variant)).unwrap();
            if live.reload().await.is_err() {
                fs::write(place.path("haft.yaml"), before).unwrap();
                live.reload().await.unwrap();
            }
        }
    }
}

/// The state in use is that of a start from the files: the configuration with places and warnings, and the tools with
/// schemas, settings and limits.
async fn assert_as_from_the_files(live: &Live, place: &Place, steps: &[Step]) {
    let config =
        Config::load(&options(place)).unwrap_or_else(|error| panic!("{error}\n{steps:#?}"));
    let fresh = Runtime::builder(config).dry_run().start().await.unwrap();
    let config = |runtime: &Runtime| format!("{:#?}", runtime.config());
    assert_same(&config(&fresh), &config(live.runtime()), steps);
    let tools = |runtime: &Runtime| serde_json::to_string_pretty(&runtime.tools()).unwrap();
    assert_same(&tools(&fresh), &tools(live.runtime()), steps);
    // The compiled schemas are those of the definitions.
    for tool in live.runtime().tools() {
        if tool.input_schema["required"] == json!(["a"]) {
            let checked = live.runtime().call(ToolCall::new(&tool.name, &json!({}))).await;
            let code = checked.error.map(|error| error.code);
            assert_eq!(code, Some(Code::ValidationError), "{}: {steps:#?}", tool.name);
        }
    }
}

/// The first line that differs, because the whole is long.
fn assert_same(expected: &str, found: &str, steps: &[Step]) {
    let different = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert_eq!(different, None, "{steps:#?}");
    assert_eq!(expected.len(), found.len(), "{steps:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 60, ..ProptestConfig::default() })]

    /// After any sequence of edits and changes by hand, the state in use is that of a start from the files.
    #[test]
    fn a_changed_toolbox_is_that_of_a_start_from_the_files(
        steps in prop::collection::vec(step(), 2..14),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let place = Place::new("");
            fs::write(place.path("haft.yaml"), haft_yaml(0)).unwrap();
            let options = options(&place);
            let config = Config::load(&options).unwrap();
            let live = Live::follow(Runtime::start(config).await.unwrap(), options);
            for (at, step) in steps.iter().enumerate() {
                make(&live, &place, step).await;
                assert_as_from_the_files(&live, &place, &steps[..=at]).await;
            }
            end(live).await;
        });
    }
}

/// The property is worth something only if its changes are made: each variant of `haft.yaml`, and each kind of entry, as a
/// file or over the API.
#[tokio::test(flavor = "multi_thread")]
async fn the_changes_of_the_property_are_made() {
    let place = Place::new("");
    let tools = (0..KINDS).filter(|kind| *kind != 8).map(|kind| entry(&format!("t{kind}"), kind));
    let tools = json!({ "tools": tools.collect::<Vec<_>>() });
    for variant in 0..5 {
        fs::write(place.path("haft.yaml"), haft_yaml(variant)).unwrap();
        fs::write(place.tools_file(), tools.to_string()).unwrap();
        Config::load(&options(&place)).unwrap_or_else(|error| panic!("{variant}: {error}"));
    }
    fs::write(place.path("haft.yaml"), haft_yaml(0)).unwrap();
    let config = Config::load(&options(&place)).unwrap();
    let live = Live::follow(Runtime::start(config).await.unwrap(), options(&place));
    for kind in 0..8 {
        let name = name(kind);
        made(&live, edit(RegistryDocument::Tools, &name, Action::Put(raw(&entry(&name, kind)))))
            .await;
    }
    end(live).await;
}

/// The number of values and keys in the whole file is limited, whether its entries are known or not.
#[test]
fn known_entries_count_towards_the_limit_of_the_file() {
    let place = Place::new("limits: {message_nodes_max: 1000}");
    let cached = LoadOptions { entries: Some(EntryCache::default()), ..place.options() };
    let mut results = Vec::new();
    for values in 940..980 {
        let mut growing = echo("growing");
        growing["input_schema"]["enum"] = (0..values).collect();
        let tools = json!({"tools": [echo("known"), growing]});
        fs::write(place.tools_file(), format!("{tools:#}")).unwrap();
        let result = |options| Config::load(options).map(|config| format!("{config:?}"));
        let (whole, known) = (result(&place.options()), result(&cached));
        assert_eq!(whole, known, "{values}");
        results.push(whole.is_ok());
    }
    assert!(results[0] && !results[results.len() - 1], "{results:?}");
}

/// An edit of one entry leaves the other tools what they are: the same compiled entry, not an equal one.
#[tokio::test(flavor = "multi_thread")]
async fn other_tools_are_not_compiled_again() {
    let place = Place::new("");
    let live = place.start().await;
    for name in ["a", "b", "c"] {
        made(&live, add(name)).await;
    }
    let before = live.runtime().config();
    let mut changed = echo("b");
    changed["description"] = "Says it twice,\nor thrice.".into();
    made(&live, edit(RegistryDocument::Tools, "b", Action::Put(raw(&changed)))).await;
    let after = live.runtime().config();
    let is_same: Vec<bool> = before
        .local
        .iter()
        .zip(&after.local)
        .map(|(old, new)| std::sync::Arc::ptr_eq(old, new))
        .collect();
    assert_eq!(is_same, [true, false, true]);
    made(&live, remove("a")).await;
    // `c` moved, so its places did, and nothing else of it was made again.
    let moved = live.runtime().config();
    assert!(std::sync::Arc::ptr_eq(&after.local[2].definition, &moved.local[1].definition));
    assert_ne!(after.local[2].place, moved.local[1].place);
    assert_eq!(json_of(&place.tools_file())["tools"].as_array().unwrap().len(), 2);
    live.runtime().shutdown(Duration::from_secs(1)).await;
    end(live).await;
}
