//! Errors of PEM files, and the provider of cryptography for all of TLS.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::VerifierBuilderError;

/// The reasons why TLS cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or not PEM.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: String,
        /// The error of the parser.
        error: rustls::pki_types::pem::Error,
    },
    /// A file of client authorities names none.
    #[error("{file}: {error}")]
    NoAuthority {
        /// The file.
        file: String,
        /// The error of the verifier.
        error: VerifierBuilderError,
    },
    /// The certificate does not match the key, or cannot be used.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// Returns the cryptography provider: ring.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns a function that reports a missing or broken PEM file.
pub(super) fn broken(path: &Path) -> impl FnOnce(rustls::pki_types::pem::Error) -> TlsError {
    let file = path.display().to_string();
    move |error| TlsError::File { file, error }
}
