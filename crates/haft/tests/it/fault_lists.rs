//! Faults of what a server offers: lists without end, storms of changes, hostile schemas.

use serde_json::{Value, json};

use super::fault_support::{Fault, Scene, Then, Untouched, faults};

fn endless(pages: &str) -> Value {
    json!({"pages": pages, "page_size": 2, "tools": ["text", "echo"]})
}

/// The names under which the tools of the server with the fault are offered.
fn offered(scene: &Scene) -> Vec<String> {
    let names = scene.runtime.tools().into_iter().map(|tool| tool.name);
    names.filter(|name| !name.starts_with("well__")).collect()
}

fn hostile(schema: &Value) -> Value {
    json!({"tools": ["text", {"name": "hostile", "inputSchema": schema}]})
}

faults! {
    the_same_page_for_ever over [stdio, http_json, http_sse, sse, websocket]
        Fault::degraded(endless("endless_same"), &["repeats one page for ever"])
            .also(|scene| {
                assert_eq!(scene.got("tools/list"), 2);
                assert_eq!(offered(scene), ["text", "echo"]);
            });

    new_pages_for_ever over [stdio, http_json, http_sse, sse, websocket]
        Fault::degraded(endless("endless_new"), &["more than 100 pages"])
            .also(|scene| {
                assert_eq!(scene.got("tools/list"), 100);
                assert_eq!(offered(scene).len(), 200);
            });

    /// A thousand tools take their time; the way they come makes no difference.
    more_tools_than_fit over [stdio]
        Fault::degraded(
            json!({"pages": "endless_new", "page_size": 30, "tools": 30}), &["more than 1000 tools"],
        )
        .then(Then::NotAsked)
            .also(|scene| assert_eq!(offered(scene).len(), 1000));

    /// The list as a whole has a time, however quickly each page comes.
    slow_pages_for_ever over [stdio, http_json, http_sse, sse, websocket]
        Fault::degraded(
            super::super::fault_support::merged(
                endless("endless_new"), &json!({"delay_ms": {"tools/list": 100}}),
            ),
            &["list of tools", "500ms"],
        )
        .set(json!({"request_timeout": "500ms"}))
        .also(|scene| assert!(offered(scene).contains(&"text".to_owned())));

    the_empty_cursor_for_ever over [stdio, http_json, http_sse, sse, websocket]
        Fault::degraded(endless("endless_empty"), &["repeats one page for ever"]);

    /// An empty cursor is a cursor.
    the_empty_cursor over [stdio, http_json, http_sse, sse, websocket]
        Fault::answers(
            json!({"pages": "empty_cursor", "page_size": 1, "tools": ["echo", "text", "empty"]}),
            "text",
            "plain text",
        )
        .also(|scene| assert_eq!(offered(scene), ["echo", "text", "empty"]));

    a_storm_of_changes over [stdio, http_json, http_sse, sse, websocket]
        Fault::answers(json!({}), "storm", "200 notices").also(assert_few_refreshes);

    a_storm_at_the_start over [stdio, http_json, http_sse, sse, websocket]
        Fault::answers(json!({"storm_after_initialized": 200}), "text", "plain text")
            .also(assert_few_refreshes);

    /// Nothing is fetched for a schema.
    a_remote_reference over [stdio] {
        let elsewhere = Untouched::new();
        let schema = json!({"type": "object", "properties": {"x": {"$ref": elsewhere.url()}}});
        Fault::answers(hostile(&schema), "text", "plain text").also(move |scene| {
            elsewhere.assert_untouched();
            assert_eq!(offered(scene), ["text"]);
        })
    };

    a_huge_schema over [stdio] {
        let properties: serde_json::Map<String, Value> =
            (0..8_000).map(|n| (format!("property_{n:0120}"), json!({"type": "string"}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        Fault::answers(hostile(&schema), "text", "plain text")
            .also(|scene| assert_eq!(offered(scene), ["text"]))
    };

    a_schema_deeper_than_the_cap over [stdio, http_json, http_sse, sse, websocket] {
        let deep = (0..100).fold(json!({}), |inner, _| json!({"not": inner}));
        Fault::unavailable(hostile(&deep), &["does not list what it offers", "64"])
    };
}

/// A burst of notices leads to two refreshes at most. Another change, which must be seen, tells
/// that the storm is over.
fn assert_few_refreshes(scene: &Scene) {
    scene.call_now("add_tool", json!({"name": "added"}));
    let is_offered = || offered(scene).contains(&"added".to_owned()).then_some(());
    testkit::eventually("the new tool is offered", is_offered);
    let lists = scene.got("tools/list");
    assert!(lists <= 1 + 2 + 2, "{lists} times `tools/list`");
}
