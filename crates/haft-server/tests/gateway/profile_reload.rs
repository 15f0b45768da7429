//! Profiles that come, change and go while `haft serve` and `haft mcp` run.

use std::io::{BufRead as _, Read as _};

use serde_json::json;
use testkit::eventually;

use crate::endpoint::{Served, configure};
use crate::profiles::toolbox;
use crate::support::Client;

#[test]
fn profiles_come_change_and_go_with_the_configuration() {
    let workspace = toolbox(&json!({"a": {"tools": ["read_*"]}, "b": {}}));
    let served = Served::start(&workspace);
    let (whole, changed, removed) =
        (served.open("/mcp", None), served.open("/mcp/a", None), served.open("/mcp/b", None));
    assert_eq!(changed.tools(), ["read_file", "read_mail"]);
    assert_eq!(removed.tools().len(), 5);
    let (mut notifications, mut last_words) = (changed.notifications(), removed.notifications());

    configure(
        &workspace,
        &json!({"profiles": {"a": {"tools": ["send_*"]}, "new": {"servers": ["local"]}}}),
    );
    // The client of the changed profile is notified, and sees the new part in its old session. An earlier
    // notification may still be about the servers, which connect while the service runs already.
    let mut line = String::new();
    while !(line.contains("notifications/tools/list_changed") && changed.tools() == ["send_mail"]) {
        line.clear();
        assert_ne!(notifications.read_line(&mut line).unwrap(), 0, "the stream ended");
    }
    // The removed one is gone, with its sessions and their streams, without a request for it.
    last_words.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(removed.request("ping", &json!({})).status, 404);
    assert_eq!(served.initialize("/mcp/b", None).status, 404);
    assert_eq!(served.open("/mcp/new", None).tools(), ["greet"]);
    assert!(whole.is_open());

    // One that comes back is a new one.
    configure(&workspace, &json!({"profiles": {"b": {}}}));
    eventually("it is there again", || {
        (served.initialize("/mcp/b", None).status == 200).then_some(())
    });
    assert!(!removed.is_open());
}

/// Over stdio there is one client, which is notified of changes and never sees tools that its profile no longer
/// shows.
#[test]
fn a_client_over_stdio_sees_its_profile_as_it_is_now() {
    let workspace = toolbox(&json!({"a": {"tools": ["read_*"]}}));
    let mut client = Client::connect_with(&workspace, &["--profile", "a"]);
    assert_eq!(client.tools(), ["read_file", "read_mail"]);
    let becomes = |client: &mut Client, names: &[&str]| {
        while client.tools() != names {
            let line = client.any_line();
            assert!(line.contains("list_changed"), "{line}");
        }
    };
    configure(&workspace, &json!({"profiles": {"a": {"tools": ["send_*"]}}}));
    becomes(&mut client, &["send_mail"]);
    configure(&workspace, &json!({"profiles": {"a": {"surface": "search"}}}));
    becomes(&mut client, &["find_tools", "describe_tool", "call_tool"]);
    configure(&workspace, &json!({"profiles": {}}));
    becomes(&mut client, &[]);
}
