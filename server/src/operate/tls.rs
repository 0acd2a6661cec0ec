//! TLS: a certificate chain and a key in PEM files.
//!
//! Certificates are valid for weeks and servers run for months, so the files can be read again while the
//! server runs. New connections use the new certificate, existing ones continue.

mod authority;
pub mod client;
mod pem;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

pub use authority::ClientAuthority;
pub use pem::TlsError;
use pem::{broken, provider};

/// A certificate chain with its key, in files that may be replaced while the server runs.
#[derive(Debug)]
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// Fails if a file is missing or broken, or if they do not belong together.
    pub fn read(chain: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self {
            chain: chain.to_owned(),
            key: key.to_owned(),
            current: RwLock::new(Arc::new(certified(chain, key)?)),
        }))
    }

    /// Reads the files again, for new connections.
    ///
    /// # Errors
    /// Fails like [`read`](Self::read); the previous certificate is kept.
    pub fn read_again(&self) -> Result<(), TlsError> {
        let fresh = Arc::new(certified(&self.chain, &self.key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// Returns the configuration of a server that presents this certificate to all clients.
    ///
    /// # Errors
    /// Fails if the cryptography provider does not support what TLS needs.
    pub fn config(self: &Arc<Self>) -> Result<ServerConfig, TlsError> {
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        Ok(config)
    }

    /// Returns the configuration of a server that accepts only clients with a certificate of these
    /// authorities.
    ///
    /// # Errors
    /// Fails like [`config`](Self::config).
    pub fn config_for(self: &Arc<Self>, clients: Arc<ClientAuthority>) -> Result<ServerConfig, TlsError> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(self.clone());
        // A resumed session does not present its certificate again, even if the authorities have changed
        // meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(current.clone())
    }
}

fn certified(chain: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(broken(chain))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(broken(key))?;
    Ok(CertifiedKey::from_der(certificates, key, &provider())?)
}
