//! TLS: a certificate chain and a key in PEM files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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
    /// Certificate and key do not fit, or cannot be used.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// Reads a certificate chain and its key.
///
/// # Errors
/// A file is missing or broken, or they do not belong together.
pub fn config(certificates: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let broken = |path: &Path| {
        let file = path.display().to_string();
        move |error| TlsError::File { file, error }
    };
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(broken(certificates))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(broken(key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(config)
}
