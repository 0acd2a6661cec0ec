//! Errors of PEM files, and the provider of cryptography for all of TLS.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::VerifierBuilderError;

/// Why TLS cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or not PEM.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: String,
        /// What is wrong.
        error: rustls::pki_types::pem::Error,
    },
    /// A file of authorities for clients names none.
    #[error("{file}: {error}")]
    NoAuthority {
        /// The file.
        file: String,
        /// What is wrong.
        error: VerifierBuilderError,
    },
    /// Certificate and key do not fit, or cannot be used.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// The cryptography: ring.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The error that a PEM file is missing or broken.
pub(super) fn broken(path: &Path) -> impl FnOnce(rustls::pki_types::pem::Error) -> TlsError {
    let file = path.display().to_string();
    move |error| TlsError::File { file, error }
}
