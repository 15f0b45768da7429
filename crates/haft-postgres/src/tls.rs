//! TLS of connections to the database: rustls, certificates always verified.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::error::DatabaseError;

/// Connects with TLS.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// TLS with the certificates of `ca`, or those of the platform.
    pub(crate) fn new(ca: Option<&Path>) -> Result<Self, DatabaseError> {
        let config = match ca {
            Some(path) => with_ca(path)?,
            None => haft_mcp::tls_client_config().ok_or_else(|| DatabaseError::Settings {
                problem: "the TLS of this system cannot be set up".to_owned(),
                remedy: "name a file of certificates in `shared.ca`".to_owned(),
            })?,
        };
        Ok(Self(Arc::new(config)))
    }
}

fn with_ca(path: &Path) -> Result<ClientConfig, DatabaseError> {
    let unusable = |cause: String| DatabaseError::Settings {
        problem: format!("`shared.ca` `{}` cannot be used: {cause}", path.display()),
        remedy: "give a PEM file with the certificates that sign the database's".to_owned(),
    };
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("it holds no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Connect> {
        Ok(Connect { config: Arc::clone(&self.0), domain: domain.to_owned() })
    }
}

/// One connection about to be made.
pub(crate) struct Connect {
    config: Arc<ClientConfig>,
    domain: String,
}

impl TlsConnect<Socket> for Connect {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            // A Unix socket has no name, and no TLS.
            let name = ServerName::try_from(self.domain).map_err(io::Error::other)?;
            TlsConnector::from(self.config).connect(name, socket).await.map(Stream)
        })
    }
}

/// A stream with TLS.
pub(crate) struct Stream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
