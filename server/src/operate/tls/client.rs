//! The settings of the clients that ask programs of the operator over HTTP: callbacks and collectors.
//!
//! They trust only the given authorities, follow no redirects, use no proxies, and bound the head of an
//! answer.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, ClientCert, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;

/// The most bytes of the head of an answer.
const MOST_HEAD: usize = 16 << 10;

/// Returns the settings of a client that trusts these authorities, and that shows this certificate if it is
/// asked for one.
pub fn settings(
    authorities: Vec<Certificate<'static>>,
    client: Option<ClientCert>,
) -> ConfigBuilder<AgentScope> {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(authorities)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .client_cert(client)
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .max_response_header_size(MOST_HEAD)
        .user_agent(concat!("lexiform/", env!("CARGO_PKG_VERSION")))
}

/// Returns certificates as the client takes them.
pub fn owned(certificates: &[CertificateDer<'_>]) -> Vec<Certificate<'static>> {
    let owned = |certificate: &CertificateDer<'_>| Certificate::from_der(certificate).to_owned();
    certificates.iter().map(owned).collect()
}
