//! Questions over HTTP, by the crate `ureq`: pooled connections, a deadline for everything including names,
//! bounded answers, no redirects and no proxies.

use std::path::Path;
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::tls::Certificate;
use ureq::{Agent, Error};

use super::address::Address;
use crate::operate::tls::TlsError;
use crate::operate::tls::client as http_client;

/// The most idle connections that are kept for a callback.
const MOST_IDLE: usize = 8;
/// The most bytes of the body of an answer.
const MOST_BODY: u64 = 8 << 20;

/// Creates a client that trusts the authorities in a file. Without a file it trusts nobody over HTTPS.
///
/// # Errors
/// Fails if the file cannot be read or has no certificate.
pub(super) fn client(authorities: Option<&Path>) -> Result<Agent, TlsError> {
    let roots = authorities.map(certificates).transpose()?.unwrap_or_default();
    let settings = http_client::settings(roots, None).max_idle_connections_per_host(MOST_IDLE);
    Ok(settings.accept("application/json").build().into())
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, TlsError> {
    let broken = |error| TlsError::File {
        file: file.display().to_string(),
        error,
    };
    let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    Ok(http_client::owned(&found.map_err(broken)?))
}

/// How often a question is sent over a connection that turns out to be closed.
const TRIES: usize = 3;

/// Sends a body, and returns the body of the answer.
///
/// A host may close a connection at the moment at which the next question is sent over it. Then the question
/// is sent again: it asks for a judgement, and changes nothing.
///
/// # Errors
/// Fails if there is no answer with status 200 within the time.
pub(super) fn post(client: &Agent, address: &Address, body: &str, time: Duration) -> Result<Vec<u8>, Failed> {
    let begun = Instant::now();
    let send = || {
        let request = client
            .post(&address.url)
            .config()
            .timeout_global(Some(time.saturating_sub(begun.elapsed())))
            .build();
        request.content_type("application/json").send(body)
    };
    let mut answer = send();
    for _ in 1..TRIES {
        if !answer.as_ref().is_err_and(is_closed) || begun.elapsed() >= time {
            break;
        }
        answer = send();
    }
    let mut answer = answer.map_err(|error| Failed::before(&error))?;
    if answer.status() != 200 {
        let status = answer.status().as_u16();
        return Err(Failed(format!("it answered with status {status}")));
    }
    let body = answer.body_mut().with_config().limit(MOST_BODY);
    body.read_to_vec().map_err(|error| Failed::within(&error))
}

/// Returns `true` if the other side has closed the connection.
fn is_closed(error: &Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let closed = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
    matches!(error, Error::Io(error) if closed.contains(&error.kind()))
}

/// Why there is no answer, without the address of the host, for clients.
#[derive(Debug)]
pub(super) struct Failed(pub(super) String);

impl Failed {
    /// The error came before the head of the answer was there.
    fn before(error: &Error) -> Self {
        Failed(match error {
            Error::HostNotFound | Error::ConnectionFailed | Error::Tls(_) | Error::Rustls(_) => {
                format!("it cannot be reached: {error}")
            }
            Error::Io(error) => match error.kind() {
                std::io::ErrorKind::ConnectionRefused => {
                    "it cannot be reached: connection refused".to_owned()
                }
                _ => format!("it closed the connection before its answer: {error}"),
            },
            error => Failed::within(error).0,
        })
    }

    /// The error came within the answer.
    fn within(error: &Error) -> Self {
        Failed(match error {
            Error::Timeout(_) => "its time is over".to_owned(),
            Error::BodyExceedsLimit(limit) => format!("its answer has more than {limit} bytes"),
            Error::LargeResponseHeader(..) => "the head of its answer is too long".to_owned(),
            Error::Protocol(error) => format!("its answer is not HTTP: {error}"),
            Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                "it closed the connection inside its answer".to_owned()
            }
            error => format!("its answer cannot be read: {error}"),
        })
    }
}
