//! TLS for the listener: certificate and key from files, and from newer files without a restart.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// Largest age of the server's copy of the files when a client connects.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Largest size of each file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Where the certificate and its key lie, both as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those between it and the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Errors of the certificate files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("`{}` cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds no certificate or no key.
    #[error("`{}` holds no {what}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The expected content.
        what: &'static str,
    },
    /// The two do not work together.
    #[error("`{}` and `{}` cannot be used: {source}", files.certificate.display(), files.key.display())]
    Unusable {
        /// The files.
        files: TlsFiles,
        /// Why.
        source: rustls::Error,
    },
}

impl TlsError {
    /// The next step for the caller.
    pub fn remedy(&self) -> String {
        match self {
            Self::Read { path, .. } => format!("make `{}` readable for Haft", path.display()),
            Self::Missing { what, .. } => format!("give a PEM file with a {what}"),
            Self::Unusable { .. } => "give a certificate and the key that belongs to it".to_owned(),
        }
    }
}

/// TLS, ready for connections.
#[derive(Debug)]
pub(super) struct Tls {
    files: TlsFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    looked: Instant,
    /// Of what both files held at the last look. The key itself is not kept a second time.
    digest: [u8; 32],
    config: Arc<ServerConfig>,
}

impl Tls {
    pub(super) fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let (certificate, key) = read(&files)?;
        let config = config(&files, &certificate, &key)?;
        let digest = digest(&certificate, &key);
        let state = State { looked: Instant::now(), digest, config };
        Ok(Self { files, state: Mutex::new(state) })
    }

    /// For the next handshake. Takes over newer files; where they cannot be used, perhaps because only one
    /// of them is there yet, what was good stays.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut state = self.state.lock();
        if state.looked.elapsed() >= LOOK_EVERY {
            state.looked = Instant::now();
            self.refresh(&mut state);
        }
        TlsAcceptor::from(Arc::clone(&state.config))
    }

    fn refresh(&self, state: &mut State) {
        let found = read(&self.files);
        // A file that is missing briefly is being replaced.
        let Ok((certificate, key)) = found else { return };
        let digest = digest(&certificate, &key);
        if digest == state.digest {
            return;
        }
        state.digest = digest;
        match config(&self.files, &certificate, &key) {
            Ok(config) => {
                state.config = config;
                tracing::info!("took over a new certificate");
            }
            Err(error) => tracing::error!("the certificate is the one from before: {error}"),
        }
    }
}

fn read(files: &TlsFiles) -> Result<(Vec<u8>, Vec<u8>), TlsError> {
    Ok((read_file(&files.certificate)?, read_file(&files.key)?))
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|source| TlsError::Read { path: path.to_owned(), source })?;
    Ok(bytes)
}

fn digest(certificate: &[u8], key: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(certificate).chain_update([0]).chain_update(key).finalize().into()
}

fn config(files: &TlsFiles, certificate: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let missing = |path: &Path, what| TlsError::Missing { path: path.to_owned(), what };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| missing(&files.certificate, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| missing(&files.key, "private key"))?;
    let unusable = |source| TlsError::Unusable { files: files.clone(), source };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
