//! A load balancer without affinity: each request goes to the next replica, over a connection of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::client;

/// A running balancer. Ends when it is dropped.
pub(crate) struct Balancer {
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    _serving: AbortOnDropHandle<()>,
}

struct Replicas {
    urls: Vec<String>,
    next: AtomicUsize,
    client: reqwest::Client,
}

impl Balancer {
    /// Starts a balancer in front of replicas, such as `http://127.0.0.1:7300`.
    pub(crate) async fn start(urls: Vec<String>) -> Self {
        let client = client().pool_max_idle_per_host(0).build().unwrap();
        let replicas = Arc::new(Replicas { urls, next: AtomicUsize::new(0), client });
        let router = Router::new().fallback(pass).with_state(replicas);
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = async move { axum::serve(listener, router).await.unwrap() };
        let serving = AbortOnDropHandle::new(TaskTracker::new().spawn(serving));
        Self { url, _serving: serving }
    }
}

async fn pass(State(replicas): State<Arc<Replicas>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let next = replicas.next.fetch_add(1, Ordering::Relaxed);
    let replica = &replicas.urls[next % replicas.urls.len()];
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let target = parts.uri.path_and_query().unwrap();
    let request = replicas.client.request(parts.method, format!("{replica}{target}"));
    let Ok(response) = request.headers(parts.headers).body(body).send().await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let mut passed = Response::new(Body::empty());
    *passed.status_mut() = response.status();
    *passed.headers_mut() = response.headers().clone();
    for header in [CONNECTION, TRANSFER_ENCODING] {
        passed.headers_mut().remove(header);
    }
    *passed.body_mut() = Body::from_stream(response.bytes_stream());
    passed
}
