//! The number of an endpoint's sessions, and their lifetime.

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
    // The session that was idle for the longest time is removed.
    let third = served.open("/mcp", None);
    assert!(!first.is_open() && second.is_open() && third.is_open());
    // One that is in use stays.
    let (_notifications, _more_notifications) = (second.notifications(), third.notifications());
    let refused = served.initialize("/mcp", None);
    assert_eq!(refused.status, 503);
    assert_eq!(refused.body["error"]["message"], "2 sessions are in use already, try again later");
    // Every endpoint has room of its own.
    assert!(served.open("/mcp/a", None).is_open());
}

#[test]
fn an_unused_session_ends() {
    let workspace = workspace(&json!({}));
    configure(&workspace, &json!({"gateway": {"session_idle": "1s"}}));
    let served = Served::start(&workspace);
    let (idle, used) = (served.open("/mcp", None), served.open("/mcp", None));
    // A session with an open stream is not idle, however long it is silent.
    let _notifications = used.notifications();
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
