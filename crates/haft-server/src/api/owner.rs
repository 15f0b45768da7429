//! Requests about an item of another replica: calls, questions and runs belong to the replica that their id names.

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use haft::ReplicaNumber;

use crate::serve::{
    BODY_COPIES, PeerRequest, Peers, Problem, RequestMemory, ResponseBody, is_forwarded, read_bytes,
};

/// Where an item is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// At its owner. It lives in that process.
    Owner,
    /// Here, and at its owner if it is not here. The owner may not have shipped it yet.
    HereFirst,
}

/// In front of every endpoint of a replica. If the owner is gone, the endpoint here answers as for an item that no longer
/// exists.
pub(super) async fn forward(
    State(peers): State<Peers>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let owned = match item(request.uri().path()) {
        Some((rule, id)) if !is_forwarded(request.headers()) => {
            peers.other_owner(id).map(|owner| (rule, owner))
        }
        Some(_) | None => None,
    };
    match owned {
        None => Ok(next.run(request).await),
        Some((Rule::HereFirst, owner)) => {
            let forwarded = PeerRequest::of(&request);
            let response = next.run(request).await;
            if response.status() != StatusCode::NOT_FOUND {
                return Ok(response);
            }
            Ok(sent(&peers, owner, &forwarded).await.unwrap_or(response))
        }
        Some((Rule::Owner, owner)) => {
            let (parts, body) = request.into_parts();
            let body = whole(&parts, body).await?;
            let Parts { method, uri, headers, .. } = &parts;
            let forwarded = PeerRequest::new(method.clone(), uri, headers, body.clone());
            match sent(&peers, owner, &forwarded).await {
                Some(response) => Ok(response),
                None => Ok(next.run(Request::from_parts(parts, Body::from(body))).await),
            }
        }
    }
}

async fn sent(peers: &Peers, owner: ReplicaNumber, request: &PeerRequest) -> Option<Response> {
    let response = peers.forward(owner, request).await.ok()?;
    Some(response.map(ResponseBody::into_routed))
}

async fn whole(parts: &Parts, body: Body) -> Result<Bytes, Problem> {
    let memory = parts.extensions.get::<RequestMemory>();
    read_bytes(&parts.headers, body, memory, BODY_COPIES).await
}

/// The item that a path names. Other paths have no owner.
fn item(path: &str) -> Option<(Rule, &str)> {
    let parts: Vec<&str> = path.strip_prefix("/api/v1/")?.split('/').collect();
    match parts[..] {
        ["calls" | "inbox" | "runs", id] | ["runs", id, "events"] => Some((Rule::Owner, id)),
        ["log", id] | ["log", id, "why"] => Some((Rule::HereFirst, id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_their_items() {
        for (path, expected) in [
            ("/api/v1/calls/a", Some((Rule::Owner, "a"))),
            ("/api/v1/inbox/a", Some((Rule::Owner, "a"))),
            ("/api/v1/runs/a/events", Some((Rule::Owner, "a"))),
            ("/api/v1/log/a/why", Some((Rule::HereFirst, "a"))),
            ("/api/v1/calls", None),
            ("/api/v1/tools/a", None),
            ("/api/v1/runs/a/b/c", None),
            ("/calls/a", None),
        ] {
            assert_eq!(item(path), expected, "{path}");
        }
    }
}
