//! TLS by certificate files.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use haft_server::keys::{KeyFile, Keyring};
use haft_server::serve::{Ended, Listener, ListenerSettings, TlsFiles};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use testkit::Workspace;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::faults::until;
use crate::{Service, setup, status};

fn pem(label: &str, der: &[u8]) -> String {
    let base64 = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
}

/// Writes a new certificate and its key.
pub(crate) fn certificate(workspace: &Workspace) -> (TlsFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = workspace.write("key.pem", pem("PRIVATE KEY", &made.signing_key.serialize_der()));
    let certificate = workspace.write("cert.pem", pem("CERTIFICATE", made.cert.der()));
    (TlsFiles { certificate, key }, made.cert.der().clone())
}

/// Connects over TLS, trusting one certificate.
pub(crate) async fn connect(
    service: &Service,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(service.address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Asks over TLS, trusting one certificate.
async fn ask(service: &Service, trusted: &CertificateDer<'static>) -> std::io::Result<String> {
    let mut stream = connect(service, trusted).await?;
    let request = "GET /tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Answers over TLS, and takes over a new certificate without a restart. A half renewal, when the files
/// do not belong together, changes nothing.
#[tokio::test]
async fn certificates_are_served_and_renewed() {
    let workspace = Workspace::new();
    let (files, first) = certificate(&workspace);
    let mut setup = setup();
    setup.listener.tls = Some(files);
    let service = setup.start(&workspace).await;
    assert_eq!(status(&ask(&service, &first).await.unwrap()), 200);
    let (_, second) = certificate(&workspace);
    let answer = until("the second certificate", async || ask(&service, &second).await.ok()).await;
    assert_eq!(status(&answer), 200);
    // The key of a third certificate comes first; until the rest is there, the second one stays.
    let third = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    workspace.write("key.pem", pem("PRIVATE KEY", &third.signing_key.serialize_der()));
    assert_eq!(status(&ask(&service, &second).await.unwrap()), 200);
    workspace.write("cert.pem", pem("CERTIFICATE", third.cert.der()));
    until("the third certificate", async || ask(&service, third.cert.der()).await.ok()).await;
    assert_eq!(service.stopped().await, Ended::Clean);
}

/// A client that speaks no TLS, or nothing at all, is closed and delays no other client.
#[tokio::test]
async fn a_failed_handshake_affects_no_other_client() {
    let workspace = Workspace::new();
    let (files, trusted) = certificate(&workspace);
    let mut setup = setup();
    setup.listener.tls = Some(files);
    setup.listener.handshake_timeout = Duration::from_millis(200);
    let service = setup.start(&workspace).await;
    let _silent = TcpStream::connect(service.address).await.unwrap();
    assert_eq!(status(&ask(&service, &trusted).await.unwrap()), 200);
    assert_eq!(status(&service.raw("GET / HTTP/1.1\r\n\r\n").await), 0);
    // Returns only because the server closes the connection.
    assert_eq!(service.raw("").await, "");
}

/// Files that cannot be used end the start with a remedy.
#[tokio::test]
async fn unusable_files_are_refused() {
    let workspace = Workspace::new();
    let ring = Keyring::open(KeyFile::new(workspace.path().join("keys.json"))).unwrap();
    let (files, _) = certificate(&workspace);
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other =
        workspace.write("other.pem", pem("PRIVATE KEY", &other.signing_key.serialize_der()));
    let missing = workspace.path().join("missing.pem");
    let mut text = String::new();
    for tls in [
        TlsFiles { certificate: missing, ..files.clone() },
        TlsFiles { certificate: files.key.clone(), ..files.clone() },
        TlsFiles { key: files.certificate.clone(), ..files.clone() },
        TlsFiles { key: other, ..files },
    ] {
        let mut settings = ListenerSettings::new("127.0.0.1:0".parse().unwrap());
        settings.tls = Some(tls);
        let error = Listener::bind(settings, &ring).await.unwrap_err();
        text = format!("{text}{error}\n  help: {}\n", error.remedy());
    }
    insta::assert_snapshot!(workspace.stable(&text));
}
