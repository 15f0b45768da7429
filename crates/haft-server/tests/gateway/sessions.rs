//! How many sessions an endpoint has, and for how long.

use serde_json::json;
use testkit::eventually;

use crate::endpoint::{Served, configure};
use crate::support::workspace;

#[test]
fn an_endpoint_has_no_more_sessions_than_configured() {
    let workspace = workspace(&json!({}));
    configure(&workspace, &json!({"gateway": {"sessions_max": 2}, "profiles": {"a": {}}}));
    let served = Served::start(&workspace);
    let (first, second) = (served.open("/mcp", None), served.open("/mcp", None));
    assert!(first.is_open() && second.is_open());
    // Room is made by whoever was idle for the longest time.
    let third = served.open("/mcp", None);
    assert!(!first.is_open() && second.is_open() && third.is_open());
    // One that is in use stays.
    let (_news, _more_news) = (second.news(), third.news());
    let refused = served.initialize("/mcp", None);
    assert_eq!(refused.status, 503);
    assert_eq!(refused.body["error"]["message"], "2 sessions are in use already, try again later");
    // Every endpoint has room of its own.
    assert!(served.open("/mcp/a", None).is_open());
}

#[test]
fn a_session_that_nobody_uses_ends() {
    let workspace = workspace(&json!({}));
    configure(&workspace, &json!({"gateway": {"session_idle": "1s"}}));
    let served = Served::start(&workspace);
    let (idle, used) = (served.open("/mcp", None), served.open("/mcp", None));
    // One that is listened to is not idle, however long nothing is said.
    let _news = used.news();
    assert!(idle.is_known());
    eventually("it ends", || (!idle.is_known()).then_some(()));
    assert!(!idle.is_open());
    assert!(used.is_open());
}

#[test]
fn other_limits_take_effect_without_a_new_start() {
    let workspace = workspace(&json!({}));
    let served = Served::start(&workspace);
    let (first, second) = (served.open("/mcp", None), served.open("/mcp", None));
    assert!(first.is_open() && second.is_open());
    configure(&workspace, &json!({"gateway": {"sessions_max": 1}}));
    eventually("the sessions of before end", || {
        (!first.is_open() && !second.is_open()).then_some(())
    });
    let (first, second) = (served.open("/mcp", None), served.open("/mcp", None));
    assert!(!first.is_open() && second.is_open());
}
