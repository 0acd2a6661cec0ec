//! Mutual TLS: only clients with a certificate of the operator's authorities are accepted.
//!
//! The file of authorities can be read again while the server runs: a client that was accepted yesterday must
//! not remain accepted for as long as the server runs. So sessions are not resumed either (see
//! `Certificate::config_for`), because a resumed session presents no certificate.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::RootCertStore;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::pem::{TlsError, broken, provider};

/// The authorities that may certify clients, in a file that may be replaced while the server runs.
#[derive(Debug)]
pub struct ClientAuthority {
    file: PathBuf,
    current: RwLock<Arc<dyn ClientCertVerifier>>,
}

impl ClientAuthority {
    /// Reads a file of certificates in PEM.
    ///
    /// # Errors
    /// Fails if the file is missing or broken, or has no certificate of an authority.
    pub fn read(file: &Path) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self {
            file: file.to_owned(),
            current: RwLock::new(verifier(file)?),
        }))
    }

    /// Reads the file again, for new connections.
    ///
    /// # Errors
    /// Fails like [`read`](Self::read); the previous authorities are kept.
    pub fn read_again(&self) -> Result<(), TlsError> {
        let fresh = verifier(&self.file)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    fn now(&self) -> Arc<dyn ClientCertVerifier> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn verifier(file: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(broken(file))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate)?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    verifier.map_err(|error| TlsError::NoAuthority {
        file: file.display().to_string(),
        error,
    })
}

impl ClientCertVerifier for ClientAuthority {
    /// No hints: the names that could be borrowed here may be replaced at any moment, and clients work
    /// without hints.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.now().verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.now().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.now().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.now().supported_verify_schemes()
    }
}
