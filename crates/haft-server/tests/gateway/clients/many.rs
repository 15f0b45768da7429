//! Many tools, seen by every SDK.

use serde_json::{Value, json};
use testkit::Program;
use testkit::peers::{Address, Era, Reference};

use super::toolbox::{Served, require_all};
use crate::support::{server, workspace};

/// Proves S3-SC-008, S0-22, S0-53: all tools of servers with 1, 50 and 500 of them, page by page, and the
/// local one before them, as `haft tools list` has them.
#[test]
fn every_sdk_sees_every_tool_of_small_and_large_servers() {
    let servers: Vec<(&str, usize)> = vec![("one", 1), ("fifty", 50), ("many", 500)];
    let names = |(server, count): &(&str, usize)| -> Vec<String> {
        (1..=*count).map(|n| format!("{server}_{n}")).collect()
    };
    let configured = servers.iter().map(|it| {
        let tools: Vec<Value> = names(it)
            .into_iter()
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
            .collect();
        (it.0.to_owned(), server(&json!({"tools": tools, "page_size": 60})))
    });
    let mut configured = Value::Object(configured.collect());
    require_all(&mut configured);
    let workspace = workspace(&configured);
    let served = Served::start(&workspace);
    let mut expected = vec!["greet".to_owned()];
    expected.extend(servers.iter().flat_map(names));

    let address = Address::Http(served.url.clone());
    let clients = [
        Reference::Python1,
        Reference::Python2(Era::Modern),
        Reference::TypeScript1,
        Reference::TypeScript2(Era::Modern),
    ];
    for client in clients {
        let seen = client.see(&address, &[("many_500", json!({"n": 1}))]);
        assert_eq!(seen.tool_names(), expected, "{client:?}");
        assert_eq!(seen.results[0]["result"]["structuredContent"], json!({"n": 1}), "{client:?}");
    }
    served.end();

    let listed = Program::new(env!("CARGO_BIN_EXE_haft"), &workspace);
    let listed = listed.args(&["tools", "list", "--json"]).run();
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let origins: Vec<(&str, &str)> = listed
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool["source"].as_str().unwrap()))
        .collect();
    let source = |name: &str| if name == "greet" { "local" } else { "mcp" };
    let expected: Vec<(&str, &str)> =
        expected.iter().map(|name| (name.as_str(), source(name))).collect();
    assert_eq!(origins, expected);
}
