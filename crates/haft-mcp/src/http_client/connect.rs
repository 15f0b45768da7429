//! Opens connections: directly or through a proxy, with or without TLS.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tower::Service;

use super::HttpError;
use super::error::{BoxError, ConnectTimedOut};
use super::gate::{GatedIo, Io};
use super::resolve::Resolver;
use crate::tls;

/// TCP keep-alive finds a peer that is gone while a stream of events is silent.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 3;
/// Longest time that sent bytes may stay unacknowledged.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Connects to the host of a URI, within the time limit.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector<Resolver>,
    tls: TlsConnector,
    proxies: Arc<Matcher>,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(
        timeout: Duration,
        resolver: Resolver,
        proxies: Arc<Matcher>,
    ) -> Result<Self, HttpError> {
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
        // Split among the addresses of a name, so that a dead one does not use up the time of the others.
        tcp.set_connect_timeout(Some(timeout));
        let tls = tls::config().ok_or(HttpError::Tls)?;
        Ok(Self { tcp, tls: TlsConnector::from(Arc::new(tls)), proxies, timeout })
    }

    async fn connect(self, uri: Uri) -> Result<GatedIo, BoxError> {
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let proxy = self.proxies.intercept(&uri);
        let is_proxied = proxy.is_some() && !is_https;
        let io = match proxy {
            None => self.direct(uri).await?,
            Some(proxy) => {
                check(&proxy)?;
                if is_https {
                    self.through(&proxy, uri).await?
                } else {
                    self.direct(proxy.uri().clone()).await?
                }
            }
        };
        Ok(GatedIo::new(io, is_proxied))
    }

    /// A connection to the host itself, with TLS for https.
    async fn direct(mut self, uri: Uri) -> Result<Box<dyn Io>, BoxError> {
        let io = self.tcp.call(uri.clone()).await?.into_inner();
        if uri.scheme() == Some(&Scheme::HTTPS) {
            self.secured(&uri, io).await
        } else {
            Ok(Box::new(io))
        }
    }

    /// A TLS connection to the host through a tunnel of the proxy.
    async fn through(self, proxy: &Intercept, uri: Uri) -> Result<Box<dyn Io>, BoxError> {
        let mut tunnel = Tunnel::new(proxy.uri().clone(), ToProxy(self.clone()));
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let io = tunnel.call(uri.clone()).await?.into_inner();
        self.secured(&uri, io).await
    }

    async fn secured(&self, uri: &Uri, io: impl Io + 'static) -> Result<Box<dyn Io>, BoxError> {
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Box::new(self.tls.connect(name, io).await?))
    }
}

/// Without this check, a SOCKS proxy would be spoken to in HTTP.
fn check(proxy: &Intercept) -> Result<(), BoxError> {
    match proxy.uri().scheme_str() {
        Some("http" | "https") => Ok(()),
        scheme => {
            Err(format!("proxies of the kind `{}` are not supported", scheme.unwrap_or("")).into())
        }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<GatedIo>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connector, timeout) = (self.clone(), self.timeout);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connector.connect(uri)).await {
                Ok(connected) => Ok(TokioIo::new(connected?)),
                Err(_) => Err(ConnectTimedOut(timeout).into()),
            }
        })
    }
}

/// The connection to a proxy, for [`Tunnel`].
#[derive(Clone)]
struct ToProxy(Connector);

impl Service<Uri> for ToProxy {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.0.clone();
        Box::pin(async move { Ok(TokioIo::new(connector.direct(uri).await?)) })
    }
}
