//! For any servers and any file: nothing is dropped silently.

use haft::config::Config;
use haft::registry::{Discovered, Registration, register};
use proptest::prelude::*;
use serde_json::json;

use super::registry_support::{definition, log, native};

const SERVERS: [&str; 3] = ["a", "b", "c"];
const RULES: [&str; 4] = ["last_wins", "first_wins", "error", "prefix"];
/// Few names, so that they collide: by themselves, by normalization, by a prefix that a server's
/// own name happens to make.
const NAMES: [&str; 9] =
    ["get", "put", "get it", "get/it", "get-it", "a__get", "b__get", "drop", ""];

/// The shape of one server.
#[derive(Debug, Clone)]
struct Server {
    is_strict: bool,
    has_prefix: bool,
    is_filtered: bool,
    /// Names of tools; those with `true` have a schema that cannot be used.
    tools: Vec<(usize, bool)>,
}

fn server() -> impl Strategy<Value = Server> {
    let tools = proptest::collection::vec((0..NAMES.len(), proptest::bool::weighted(0.1)), 0..8);
    (any::<bool>(), any::<bool>(), any::<bool>(), tools).prop_map(
        |(is_strict, has_prefix, is_filtered, tools)| Server {
            is_strict,
            has_prefix,
            is_filtered,
            tools,
        },
    )
}

/// An entry: which name, for which server if any, `mode: strict`, how much it sets.
type Entry = (usize, Option<usize>, bool, bool);

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    // An entry without a name is an error of the file.
    let entry =
        (0..NAMES.len() - 1, proptest::option::of(0..SERVERS.len()), any::<bool>(), any::<bool>());
    proptest::collection::vec(entry, 0..8).prop_map(|mut entries| {
        // A file may not contain the same entry twice.
        entries.sort_unstable();
        entries.dedup_by_key(|(name, server, ..)| (*name, *server));
        entries
    })
}

fn config(rule: &str, servers: &[Server], entries: &[Entry]) -> Config {
    let servers: serde_json::Map<_, _> = SERVERS
        .iter()
        .zip(servers)
        .map(|(name, server)| {
            let mut object = json!({
                "url": format!("http://{name}/mcp"),
                "mode": if server.is_strict { "strict" } else { "dynamic" },
                "tool_prefix": if server.has_prefix { "server" } else { "none" },
            });
            if server.is_filtered {
                object["tool_denylist"] = json!(["drop", "get it"]);
            }
            ((*name).to_owned(), object)
        })
        .collect();
    let tools: Vec<_> = entries
        .iter()
        .map(|(name, server, is_strict, is_complete)| {
            let mut entry = json!({"name": NAMES[*name]});
            if let Some(server) = server {
                entry["mcp"] = json!(SERVERS[*server]);
            }
            if *is_strict {
                entry["mode"] = json!("strict");
            }
            if *is_complete {
                entry["max_instances"] = json!(2);
                entry["timeout"] = json!("5s");
            }
            entry
        })
        .collect();
    let all = json!({
        "defaults": {"on_name_collision": rule},
        "servers": servers,
        "tools": tools,
    });
    native(&all.to_string())
}

fn found(local: &[usize], servers: &[Server]) -> Discovered {
    let tools = |server: &Server| {
        let tool = |(name, is_unusable): &(usize, bool)| {
            let mut tool = definition(NAMES[*name]);
            if *is_unusable {
                tool.input_schema = json!({"type": "nothing"});
            }
            tool
        };
        server.tools.iter().map(tool).collect()
    };
    Discovered {
        local: local.iter().map(|name| super::registry_support::function(NAMES[*name])).collect(),
        servers: SERVERS
            .iter()
            .zip(servers)
            .map(|(name, server)| ((*name).to_owned(), tools(server)))
            .collect(),
    }
}

/// Counts the tools that each kind of record reports as absent.
fn left_out(registration: &Registration) -> [usize; 4] {
    let count = |level: &str, phrase: &str| {
        let lines = log(registration);
        let is_one = |line: &&String| line.starts_with(level) && line.contains(phrase);
        lines.iter().filter(is_one).count()
    };
    [
        count("DEBUG: ", "is left out by its allow or deny list"),
        count("ERROR: ", "is not configured in the toolbox")
            + count("ERROR: ", "is refused: its entry says `mode: strict`")
            + count("ERROR: ", "To resolve:\n1. Set `tool_prefix: server`"),
        count("WARNING: ", "is not registered"),
        count("WARNING: ", " is used (on_name_collision: "),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves S0-87, S3-FR-015, X-7: each tool is registered once, or a record explains why not.
    #[test]
    fn every_tool_is_registered_or_a_line_says_why_not(
        rule in 0..RULES.len(),
        local in proptest::collection::vec(0..NAMES.len(), 0..3),
        servers in proptest::collection::vec(server(), 3),
        entries in entries(),
    ) {
        let config = config(RULES[rule], &servers, &entries);
        let found = found(&local, &servers);
        let registration = register(&config, &found, None);

        let all = found.local.len() + found.servers.iter().map(|(_, it)| it.len()).sum::<usize>();
        let absent: usize = left_out(&registration).iter().sum();
        prop_assert_eq!(
            registration.tools.len() + absent,
            all,
            "{:#?}\n{:#?}",
            super::registry_support::names(&registration),
            log(&registration)
        );

        let mut tools = super::registry_support::own_names(&registration);
        let count = tools.len();
        tools.sort_unstable();
        tools.dedup();
        prop_assert_eq!(tools.len(), count, "one tool is there twice");
        let is_found = |(source, own): &(String, String)| {
            let is_own = |tool: &haft::ToolDefinition| tool.name == *own;
            let mut servers = found.servers.iter();
            servers.any(|(server, tools)| server == source && tools.iter().any(is_own))
                || (source == "local" && found.local.iter().any(|it| is_own(&it.definition)))
        };
        prop_assert!(tools.iter().all(is_found), "{tools:?}");

        let mut names: Vec<_> = registration.tools.iter().map(|tool| &tool.name).collect();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), registration.tools.len(), "two tools have one name");

        let is_local = |tool: &haft::registry::RegisteredTool| {
            tool.source == haft::registry::ToolSource::Local
        };
        prop_assert!(
            registration.tools.is_sorted_by_key(|tool| !is_local(tool)),
            "local tools come first"
        );
        let errors = log(&registration).iter().filter(|it| it.starts_with("ERROR")).count();
        prop_assert!(registration.violations.len() <= errors);
    }

    /// Proves S0-38 (purity): the same input always gives the same tools, lines and memory.
    #[test]
    fn registration_is_a_pure_function(
        rule in 0..RULES.len(),
        servers in proptest::collection::vec(server(), 3),
        entries in entries(),
    ) {
        let config = config(RULES[rule], &servers, &entries);
        let found = found(&[], &servers);
        let (one, two) = (register(&config, &found, None), register(&config, &found, None));
        prop_assert_eq!(log(&one), log(&two));
        prop_assert_eq!(super::registry_support::offered(&one), super::registry_support::offered(&two));
        prop_assert_eq!(one.known, two.known);
    }
}
