//! A collector, and how a message is sent to it.
//!
//! A collector may hang, send what it likes, or be somebody else: each message has its time, from the look-up
//! of the name to the end of the answer; no redirect is followed; of an answer only the status counts.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue, Uri};
use ureq::tls::{Certificate, ClientCert, PrivateKey};

use super::environment::{Environment, OtlpError, Signal, Variable, milliseconds};
use crate::operate::tls::client as http_client;
use crate::operate::tls::{self, TlsError};
use crate::wire::otlp::{Encoding, Outgoing};

/// Where a collector listens if nobody says so.
const DEFAULT: &str = "http://localhost:4318";
/// The default timeout for a message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of the body of an answer.
const MOST_BODY: u64 = 64 << 10;
/// The headers that every message has, and that no variable may set.
const OURS: [&str; 6] = [
    "content-encoding",
    "content-length",
    "content-type",
    "connection",
    "host",
    "transfer-encoding",
];

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(String);

impl std::str::FromStr for Endpoint {
    type Err = String;

    /// Parses `http://HOST:PORT` or `https://HOST:PORT`, with or without a port and a path.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected http://HOST:PORT or https://HOST:PORT".to_owned();
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let authority = match uri.port_u16() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        // Neither a user nor a port that is no number.
        let is_plain = uri.authority().is_some_and(|given| given.as_str() == authority);
        if !is_http || !is_plain || uri.query().is_some() {
            return Err(wrong());
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

/// A collector of one signal.
#[derive(Debug)]
pub struct Collector {
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    agent: Agent,
    timeout: Duration,
    encoding: Encoding,
    is_compressed: bool,
}

/// A message was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There was no answer, or none in time.
    #[error(transparent)]
    NoAnswer(#[from] ureq::Error),
    /// The collector refused it.
    #[error("it answered with status {0}")]
    Refused(u16),
    /// The program ends.
    #[error("there was no time left")]
    TooLate,
    /// The message cannot be written.
    #[error("the message cannot be written: {0}")]
    Unwritten(String),
}

impl Collector {
    /// Finds the collector of a signal: a flag wins over the environment.
    ///
    /// # Errors
    /// Fails if a variable is invalid, or if a certificate cannot be read.
    pub fn of(environment: &Environment, signal: Signal, flag: Option<&Endpoint>) -> Result<Self, OtlpError> {
        let url = url(environment, signal, flag)?;
        let timeout = environment.of_signal(signal, "TIMEOUT");
        let timeout = timeout.map(|variable| milliseconds(&variable)).transpose()?;
        Ok(Self {
            headers: headers(environment.of_signal(signal, "HEADERS"))?,
            agent: agent(environment, signal, &url)?,
            timeout: timeout.unwrap_or(TIMEOUT),
            encoding: encoding(environment.of_signal(signal, "PROTOCOL"))?,
            is_compressed: is_compressed(environment.of_signal(signal, "COMPRESSION"))?,
            url,
        })
    }

    /// Returns the address, for messages.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns how long a message may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a message within this time.
    ///
    /// # Errors
    /// Fails if the collector does not take it.
    pub fn send(&self, message: &impl Outgoing, within: Duration) -> Result<(), SendError> {
        if within.is_zero() {
            return Err(SendError::TooLate);
        }
        let unwritten = |error: &dyn std::fmt::Display| SendError::Unwritten(error.to_string());
        let body = self.encoding.encode(message).map_err(|error| unwritten(&error))?;
        let request = self.agent.post(&self.url).config();
        let mut request = request.timeout_global(Some(within)).build();
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request = request.content_type(self.encoding.media_type());
        let mut answer = if self.is_compressed {
            let body = compressed(&body).map_err(|error| unwritten(&error))?;
            request.header("content-encoding", "gzip").send(&body[..])?
        } else {
            request.send(&body[..])?
        };
        let status = answer.status();
        // A connection serves the next message only if the answer was read.
        let rest = answer.body_mut().with_config().limit(MOST_BODY).read_to_vec();
        drop(rest);
        match status.is_success() {
            true => Ok(()),
            false => Err(SendError::Refused(status.as_u16())),
        }
    }
}

fn compressed(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

/// Returns the whole address. That of one signal is taken as it is; all others get the path of the signal.
fn url(environment: &Environment, signal: Signal, flag: Option<&Endpoint>) -> Result<String, OtlpError> {
    let read = |variable: &Variable<'_>| {
        let endpoint = variable.value.parse::<Endpoint>();
        endpoint.map_err(|problem| variable.wrong(problem))
    };
    if let Some(Endpoint(base)) = flag {
        return Ok(format!("{base}{}", signal.path()));
    }
    if let Some(own) = environment.own(signal, "ENDPOINT") {
        return Ok(read(&own)?.0);
    }
    let base = environment.of_signal(signal, "ENDPOINT");
    let base = base.map(|variable| read(&variable)).transpose()?;
    let base = base.map_or(DEFAULT.to_owned(), |Endpoint(base)| base);
    Ok(format!("{base}{}", signal.path()))
}

fn headers(variable: Option<Variable<'_>>) -> Result<Vec<(HeaderName, HeaderValue)>, OtlpError> {
    let Some(variable) = variable else {
        return Ok(Vec::new());
    };
    let read = |(name, value): (String, String)| {
        let header = name
            .parse::<HeaderName>()
            .ok()
            .zip(value.parse::<HeaderValue>().ok());
        let header = header.filter(|(name, _)| !OURS.contains(&name.as_str()));
        header.ok_or_else(|| variable.wrong(format!("the header '{name}' cannot be sent")))
    };
    variable.pairs()?.into_iter().map(read).collect()
}

fn encoding(variable: Option<Variable<'_>>) -> Result<Encoding, OtlpError> {
    match variable {
        None => Ok(Encoding::Protobuf),
        Some(variable) => match variable.value {
            "http/protobuf" => Ok(Encoding::Protobuf),
            "http/json" => Ok(Encoding::Json),
            _ => Err(variable
                .wrong("expected http/protobuf or http/json; collectors listen for both on port 4318")),
        },
    }
}

fn is_compressed(variable: Option<Variable<'_>>) -> Result<bool, OtlpError> {
    match variable {
        None => Ok(false),
        Some(variable) => match variable.value {
            "gzip" => Ok(true),
            "none" => Ok(false),
            _ => Err(variable.wrong("expected gzip or none")),
        },
    }
}

/// Returns a client that trusts whom the environment says, and has the certificate that it names.
fn agent(environment: &Environment, signal: Signal, url: &str) -> Result<Agent, OtlpError> {
    let authorities = environment.of_signal(signal, "CERTIFICATE");
    let roots = match authorities {
        Some(file) => certificates(&file)?,
        None if url.starts_with("https:") => system_authorities(url)?,
        None => Vec::new(),
    };
    let certificate = environment.of_signal(signal, "CLIENT_CERTIFICATE");
    let key = environment.of_signal(signal, "CLIENT_KEY");
    let client = match (certificate, key) {
        (None, None) => None,
        (Some(alone), None) => return Err(alone.wrong("it needs OTEL_EXPORTER_OTLP_CLIENT_KEY")),
        (None, Some(alone)) => return Err(alone.wrong("it needs OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE")),
        (Some(chain), Some(key)) => Some(ClientCert::new_with_certs(
            &certificates(&chain)?,
            private_key(&chain, &key)?,
        )),
    };
    Ok(http_client::settings(roots, client).build().into())
}

fn certificates(variable: &Variable<'_>) -> Result<Vec<Certificate<'static>>, OtlpError> {
    let found = CertificateDer::pem_file_iter(variable.value);
    let found = found.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| broken(variable, error))?;
    if found.is_empty() {
        return Err(variable.wrong("the file has no certificate"));
    }
    let mut roots = RootCertStore::empty();
    for certificate in &found {
        roots
            .add(certificate.clone())
            .map_err(|error| unusable(variable, error.into()))?;
    }
    Ok(http_client::owned(&found))
}

/// Returns the key of this client, which belongs to the certificate.
fn private_key(chain: &Variable<'_>, key: &Variable<'_>) -> Result<PrivateKey<'static>, OtlpError> {
    // The HTTP client would panic if they did not belong together.
    tls::Certificate::read(Path::new(chain.value), Path::new(key.value))
        .map_err(|error| unusable(key, error))?;
    let pem = std::fs::read(key.value).map_err(|error| key.wrong(error.to_string()))?;
    PrivateKey::from_pem(&pem).map_err(|error| key.wrong(error.to_string()))
}

fn unusable(variable: &Variable<'_>, error: TlsError) -> OtlpError {
    OtlpError::File {
        name: variable.name.clone(),
        error,
    }
}

fn broken(variable: &Variable<'_>, error: rustls::pki_types::pem::Error) -> OtlpError {
    let file = variable.value.to_owned();
    unusable(variable, TlsError::File { file, error })
}

/// Returns the authorities that the system trusts.
fn system_authorities(url: &str) -> Result<Vec<Certificate<'static>>, OtlpError> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return Err(OtlpError::NoAuthorities { url: url.to_owned() });
    }
    Ok(http_client::owned(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_scheme_and_a_host() {
        let read = |text: &str| text.parse::<Endpoint>().ok().map(|Endpoint(url)| url);
        for (text, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
            ("https://c", "https://c"),
            ("http://c:1/otlp/", "http://c:1/otlp"),
            ("http://[::1]:4318", "http://[::1]:4318"),
        ] {
            assert_eq!(read(text).as_deref(), Some(url));
        }
        for wrong in [
            "",
            "c:1",
            "ftp://c:1",
            "http://",
            "http://:1",
            "http://c:x",
            "http://user:secret@c",
            "http://c/?x=y",
            "http://c:1/\r\nx: y",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
