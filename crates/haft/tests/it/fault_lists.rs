//! Faults of what a server offers: lists without end, storms of changes, hostile schemas.

use haft::Code;
use serde_json::{Value, json};
use testkit::LogCapture;

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

fn with_pattern(pattern: &str) -> Value {
    json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}})
}

/// The tool with this pattern is not offered, with the reason; the others are.
fn rejected(pattern: &'static str) -> Fault {
    let (heard, guard) = LogCapture::start();
    Fault::answers(hostile(&with_pattern(pattern)), "text", "plain text").also(move |scene| {
        let _listening = &guard;
        assert_eq!(offered(scene), ["text"]);
        let expected = format!(
            "WARNING: Tool 'hostile' from MCP server 'sick' is not registered: its input schema is \
             not usable: at `/properties/x/pattern`: `{pattern}` is not a regular expression without \
             look-around and back-references, the kind that takes linear time"
        );
        assert!(heard.lines().contains(&expected), "{:?}", heard.lines());
    })
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

    /// The whole list has a timeout, however quickly each page arrives.
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

    /// A pattern on which an engine that tries every way takes longer than the world is old. Ours
    /// is linear in the text, so the tool is offered and its arguments are checked.
    a_catastrophic_pattern over [stdio]
        Fault::fails(
            hostile(&with_pattern("^(a+)+$")), "hostile", Code::ValidationError, &["`/x`", "(a+)+"],
        )
        .with(json!({"x": format!("{}!", "a".repeat(10_000))}));

    /// A pattern that no engine matches in linear time is not offered, and the log names the
    /// reason.
    a_pattern_that_looks_around over [stdio]
        rejected("^(?=(a+)+$)a*b");

    a_pattern_that_refers_back over [stdio]
        rejected(r"^(a+)+\1$");

    a_schema_deeper_than_the_cap over [stdio, http_json, http_sse, sse, websocket] {
        let deep = (0..100).fold(json!({}), |inner, _| json!({"not": inner}));
        Fault::unavailable(hostile(&deep), &["does not list what it offers", "64"])
    };
}

/// A burst of notifications leads to two refreshes at most. A further change, which must be seen,
/// marks the end of the burst.
fn assert_few_refreshes(scene: &Scene) {
    scene.call_now("add_tool", json!({"name": "added"}));
    let is_offered = || offered(scene).contains(&"added".to_owned()).then_some(());
    testkit::eventually("the new tool is offered", is_offered);
    let lists = scene.got("tools/list");
    assert!(lists <= 1 + 2 + 2, "{lists} times `tools/list`");
}
