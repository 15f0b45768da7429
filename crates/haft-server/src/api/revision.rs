//! `Haft-Revision`: a client that changed the registry at one replica sees its change at every other one. Each response of
//! a replica names the revision of the registry that it uses, and a request that names one waits for it.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use haft::live::Live;
use tokio::time::{Instant, sleep, timeout_at};

const HEADER: HeaderName = HeaderName::from_static("haft-revision");
/// Longest wait for a revision. The request is answered with the revision there is then.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Interval between looks, besides those after each change of the toolbox.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Around every endpoint of a replica.
pub(super) async fn follow(State(live): State<Live>, request: Request, next: Next) -> Response {
    wait(&live, request.headers()).await;
    let mut response = next.run(request).await;
    stamp(&live, response.headers_mut());
    response
}

/// Waits for the revision that a request names.
pub(super) async fn wait(live: &Live, headers: &HeaderMap) {
    let Some(wanted) = headers.get(HEADER).and_then(|wanted| wanted.to_str().ok()) else { return };
    let until = Instant::now() + WAIT_MAX;
    let mut changes = live.runtime().changes();
    while !is_reached(live, wanted) && Instant::now() < until {
        let change = async {
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep(LOOK_EVERY) => {}
            }
        };
        // The end of the wait ends the loop, too.
        let _ = timeout_at(until, change).await;
    }
}

/// Names the revision in use, unless another replica has.
pub(super) fn stamp(live: &Live, headers: &mut HeaderMap) {
    let revision = live.status().revision;
    let revision = revision.and_then(|revision| HeaderValue::from_str(revision.as_str()).ok());
    if let Some(revision) = revision {
        headers.entry(HEADER).or_insert(revision);
    }
}

fn is_reached(live: &Live, wanted: &str) -> bool {
    live.status().revision.is_some_and(|current| includes(current.as_str(), wanted))
}

/// Returns true if `current` is `wanted` or a later revision. A failover may give a number to another writer, so the order
/// only serves to end a wait.
fn includes(current: &str, wanted: &str) -> bool {
    let number = |revision: &str| revision.split_once('-')?.0.parse::<u64>().ok();
    let is_later = match (number(current), number(wanted)) {
        (Some(current), Some(wanted)) => current > wanted,
        (_, _) => false,
    };
    current == wanted || is_later
}

#[cfg(test)]
mod tests {
    use super::includes;

    #[test]
    fn a_revision_includes_earlier_ones() {
        for (current, wanted, expected) in [
            ("42-aaaa", "42-aaaa", true),
            ("43-bbbb", "42-aaaa", true),
            ("42-bbbb", "42-aaaa", false),
            ("41-bbbb", "42-aaaa", false),
            ("100-b", "42-a", true),
            ("abc", "abc", true),
            ("abc", "abd", false),
            ("42-a", "nonsense", false),
        ] {
            assert_eq!(includes(current, wanted), expected, "{current} {wanted}");
        }
    }
}
