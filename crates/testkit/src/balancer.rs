//! A load balancer without affinity: each request goes to the next replica, over a connection of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, TRANSFER_ENCODING};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A running balancer. Ends when it is dropped.
#[derive(Debug)]
pub struct Balancer {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    _serving: AbortOnDropHandle<()>,
}

struct Replicas {
    urls: Vec<String>,
    next: AtomicUsize,
    client: reqwest::Client,
    authorization: Option<HeaderValue>,
}

impl Balancer {
    /// Starts a balancer in front of replicas, such as `http://127.0.0.1:7300`.
    pub async fn start(urls: Vec<String>) -> Self {
        Self::serve(urls, None).await
    }

    /// Starts a balancer that sends a key with each request, for clients that have none.
    pub async fn with_key(urls: Vec<String>, key: &str) -> Self {
        let authorization = HeaderValue::try_from(format!("Bearer {key}")).expect("a key");
        Self::serve(urls, Some(authorization)).await
    }

    async fn serve(urls: Vec<String>, authorization: Option<HeaderValue>) -> Self {
        // No request uses TLS, but the client requires a provider. Fails if one is installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build();
        let client = client.expect("a client");
        let next = AtomicUsize::new(0);
        let replicas = Arc::new(Replicas { urls, next, client, authorization });
        let router = Router::new().fallback(pass).with_state(replicas);
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await;
        let listener = listener.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let serving = async move { axum::serve(listener, router).await.expect("no end") };
        let serving = AbortOnDropHandle::new(TaskTracker::new().spawn(serving));
        Self { url, _serving: serving }
    }
}

async fn pass(State(replicas): State<Arc<Replicas>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let next = replicas.next.fetch_add(1, Ordering::Relaxed);
    let replica = &replicas.urls[next % replicas.urls.len()];
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let request = replicas.client.request(parts.method, format!("{replica}{target}"));
    if let Some(authorization) = &replicas.authorization {
        parts.headers.insert(AUTHORIZATION, authorization.clone());
    }
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
