//! The files that are read or opened again while the service runs: keys, certificates, the audit log.

use std::sync::Arc;

use rustls::ServerConfig;
use tokio::signal::unix::Signal;

use super::flags::Access;
use crate::cli::output::Output;
use crate::operate::supervisor::Supervisor;
use crate::operate::tls::{Certificate, ClientAuthority, TlsError};
use crate::routes::state::AppState;

/// The TLS certificates, and the server configuration that uses them.
#[derive(Default)]
pub(super) struct Tls {
    certificate: Option<Arc<Certificate>>,
    clients: Option<Arc<ClientAuthority>>,
    pub(super) config: Option<ServerConfig>,
}

impl Tls {
    pub(super) fn read(access: &Access) -> Result<Self, TlsError> {
        let (Some(chain), Some(key)) = (&access.tls_cert, &access.tls_key) else {
            return Ok(Self::default());
        };
        let certificate = Certificate::read(chain, key)?;
        let clients = access.tls_client_ca.as_deref().map(ClientAuthority::read);
        let clients = clients.transpose()?;
        let config = match &clients {
            Some(clients) => certificate.config_for(clients.clone())?,
            None => certificate.config()?,
        };
        Ok(Self {
            certificate: Some(certificate),
            clients,
            config: Some(config),
        })
    }
}

/// What it takes to take up the files anew.
pub(super) struct Reload {
    pub(super) app: Arc<AppState>,
    pub(super) tls: Tls,
    pub(super) output: Arc<Output>,
    pub(super) supervisor: Arc<Supervisor>,
    /// What the service manager is told afterwards.
    pub(super) status: String,
}

impl Reload {
    /// Takes up the files anew at each SIGHUP, each independently. The signal is handled even without such
    /// files: its default action ends the program, which is not intended by a script that renews
    /// certificates.
    pub(super) async fn at_each(self, mut hang_up: Signal) {
        while hang_up.recv().await.is_some() {
            self.supervisor.reloading();
            let renewed = renewed(&self.app, &self.tls);
            if renewed.iter().all(|(_, renewed)| renewed.is_none()) {
                let notice =
                    "there is neither a certificate, a file of keys nor an audit log to take up anew";
                self.output.notice(notice);
            }
            for (what, renewed) in renewed {
                match renewed {
                    None => {}
                    Some(Ok(())) => self.output.notice(&format!("taken up anew: {what}")),
                    Some(Err(error)) => self.output.notice(&format!("as before: {what}: {error}")),
                }
            }
            self.supervisor.ready(&self.status);
        }
    }
}

/// A file by its name, and what came of it; `None` if the service has no such file.
type Renewed = (&'static str, Option<Result<(), String>>);

fn renewed(app: &AppState, tls: &Tls) -> [Renewed; 4] {
    let certificate = tls.certificate.as_ref().map(|it| it.read_again());
    let clients = tls.clients.as_ref().map(|it| it.read_again());
    [
        ("certificate", certificate.map(told)),
        ("authorities of clients", clients.map(told)),
        ("API keys", if_any(app.settings.keys.read_again())),
        ("audit log", if_any(app.settings.audit.open_again())),
    ]
}

fn told<E: ToString>(result: Result<(), E>) -> Result<(), String> {
    result.map_err(|error| error.to_string())
}

fn if_any<E: ToString>(result: Result<bool, E>) -> Option<Result<(), String>> {
    match result {
        Ok(false) => None,
        Ok(true) => Some(Ok(())),
        Err(error) => Some(Err(error.to_string())),
    }
}
