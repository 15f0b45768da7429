//! TLS for every outgoing HTTP connection: rustls with ring, and the platform's certificates.
//!
//! The provider goes into each client instead of being installed for the whole process, so that a
//! program which embeds Haft keeps its own choice.

use std::sync::{Arc, OnceLock};

use reqwest::{ClientBuilder, redirect};
use rustls::{ClientConfig, RootCertStore, crypto::CryptoProvider};
use rustls_platform_verifier::Verifier;

/// A client builder with TLS set up, without Nagle's delay and without automatic redirects.
///
/// A redirect could carry a token to another origin, so following one is the caller's decision.
pub fn http_client_builder() -> ClientBuilder {
    let builder = reqwest::Client::builder().tcp_nodelay(true).redirect(redirect::Policy::none());
    // Another crate of the program may have built it in. Packed, a small answer can be a huge one.
    let builder = builder.no_gzip();
    match config() {
        Some(config) => builder.tls_backend_preconfigured(config),
        // Not a TLS configuration, so `build` reports an error instead of panicking.
        None => builder.tls_backend_preconfigured(()),
    }
}

/// The TLS of outgoing connections, for protocols other than HTTP. `None` if this system cannot be set up.
pub fn tls_client_config() -> Option<ClientConfig> {
    config()
}

/// Reading the platform's certificates takes milliseconds, so it is done once.
pub(crate) fn config() -> Option<ClientConfig> {
    static CONFIG: OnceLock<Option<ClientConfig>> = OnceLock::new();
    CONFIG.get_or_init(build).clone()
}

fn build() -> Option<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    match Verifier::new(Arc::clone(&provider)) {
        Ok(verifier) => Some(
            versions(provider)?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth(),
        ),
        // A container without a certificate bundle still reaches the servers of the public web.
        Err(error) => {
            tracing::debug!(%error, "the platform has no certificates; using the built-in ones");
            let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
            Some(versions(provider)?.with_root_certificates(roots).with_no_client_auth())
        }
    }
}

fn versions(
    provider: Arc<CryptoProvider>,
) -> Option<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>> {
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()
}

#[cfg(test)]
mod tests {
    use super::http_client_builder;

    #[test]
    fn a_client_builds_without_a_provider_installed_for_the_process() {
        assert!(rustls::crypto::CryptoProvider::get_default().is_none());
        http_client_builder().build().unwrap();
    }
}
