//! The connection to the upstream: pooled, with time-outs and bounded answers, without redirects and proxies.
//!
//! hyper is asynchronous, so that a stream needs no thread, and a request ends when nobody waits for it:
//! dropping its future, or its answer, closes the connection.

use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::time::{Instant, timeout_at};

use crate::operate::tls::TlsError;
use crate::wire::error::ApiError;

/// The time for which a connection without a request is kept.
const IDLE: Duration = Duration::from_secs(60);
/// The maximum length of a key.
const KEY_BYTES: usize = 4096;
/// The headers of clients that are sent on: who asks, and for whom.
const SENT_ON: [&str; 3] = ["authorization", "openai-organization", "openai-project"];

/// The bounds on the answers of an upstream.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The time in which a connection must be made.
    pub connect: Duration,
    /// The time in which an answer must begin, and in which each further piece of it must come.
    pub silence: Duration,
    /// The maximum size in bytes of an answer, and of the texts of a streamed one.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(300),
            bytes: 8 << 20,
        }
    }
}

/// An upstream, as `https://api.example.com/v1`.
#[derive(Clone, Debug)]
pub struct Upstream {
    url: String,
    /// The key that is sent in place of the client's.
    key: Option<HeaderValue>,
    bounds: Bounds,
    tls: Arc<rustls::ClientConfig>,
}

/// The reasons why an upstream cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Its address is no address of HTTP.
    #[error(
        "expected http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH], such as https://api.example.com/v1"
    )]
    Address,
    /// Its key cannot be sent in a header.
    #[error("a key has 1 to {KEY_BYTES} visible ASCII characters")]
    Key,
    /// No authorities can be read.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Upstream {
    /// Creates an upstream with an address, a key that is sent in place of those of clients, and a file of
    /// certificates of authorities in place of those that the system trusts.
    ///
    /// # Errors
    /// Fails if the address or the key is not one, or if the file cannot be read.
    pub fn new(
        url: &str,
        key: Option<&str>,
        authorities: Option<&Path>,
        bounds: Bounds,
    ) -> Result<Self, UpstreamError> {
        let parsed: Uri = url.parse().map_err(|_| UpstreamError::Address)?;
        let is_http = matches!(parsed.scheme_str(), Some("http" | "https"));
        let host = parsed
            .authority()
            .filter(|authority| !authority.as_str().contains('@'));
        if !is_http || host.is_none_or(|host| host.host().is_empty()) || url.contains(['?', '#']) {
            return Err(UpstreamError::Address);
        }
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            key: key.map(bearer).transpose()?,
            bounds,
            tls: Arc::new(tls(authorities)?),
        })
    }

    /// Returns the address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns `true` if a key of the gateway is sent in place of those of clients.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    pub(super) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Creates a client with a pool of connections of its own, for one thread.
    pub(super) fn client(&self) -> HttpClient {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(self.bounds.connect));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(rustls::ClientConfig::clone(&self.tls))
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector)
    }

    /// Returns the headers of a client's request that are sent on.
    pub(super) fn headers(&self, of_client: &actix_web::http::header::HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in SENT_ON {
            let value = of_client
                .get(name)
                .map(|value| HeaderValue::from_bytes(value.as_bytes()));
            if let Some(Ok(value)) = value {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        if let Some(key) = &self.key {
            headers.insert(header::AUTHORIZATION, key.clone());
        }
        headers
    }

    /// Sends a request, and returns the head of the answer.
    ///
    /// # Errors
    /// Fails if the upstream cannot be reached, or is silent for too long.
    pub(super) async fn send(
        &self,
        client: &HttpClient,
        (method, path): (Method, &str),
        mut headers: HeaderMap,
        (body, deadline): (String, Deadline),
    ) -> Result<Reply, ApiError> {
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("lexiform/", env!("CARGO_PKG_VERSION"))),
        );
        if method == Method::POST {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .body(body);
        if let Ok(request) = &mut request {
            *request.headers_mut() = headers;
        }
        let request = request.map_err(ApiError::upstream_failed)?;
        let sent = deadline
            .within(self.bounds.silence, client.request(request))
            .await?;
        let response = sent.map_err(|error| ApiError::upstream_failed(root_cause(&error)))?;
        let (head, body) = response.into_parts();
        let encoding = head.headers.get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(ApiError::upstream_answer(
                "its content encoding was not asked for",
            ));
        }
        Ok(Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            bounds: self.bounds,
            deadline,
        })
    }
}

/// A client with a pool of connections.
pub(super) type HttpClient = Client<HttpsConnector<HttpConnector>, String>;

/// The time at which a request must have ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    end: Instant,
    whole: Duration,
}

impl Deadline {
    /// Returns the deadline of a request that begins now.
    pub(super) fn after(whole: Duration) -> Self {
        Self {
            end: Instant::now() + whole,
            whole,
        }
    }

    /// Waits for a piece of an answer, at most for this long and until the deadline.
    async fn within<T>(&self, silence: Duration, piece: impl Future<Output = T>) -> Result<T, ApiError> {
        let silent = Instant::now() + silence;
        timeout_at(silent.min(self.end), piece)
            .await
            .map_err(|_| match silent < self.end {
                true => ApiError::upstream_late("sent nothing", silence.as_secs_f64()),
                false => ApiError::upstream_late("did not end", self.whole.as_secs_f64()),
            })
    }
}

/// The head of an answer of the upstream, and its body, which is still coming.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: Incoming,
    bounds: Bounds,
    deadline: Deadline,
}

impl Reply {
    /// Returns the next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// Fails if the connection is cut or the upstream is silent for too long.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            let body = &mut self.body;
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            match self.deadline.within(self.bounds.silence, frame).await? {
                None => return Ok(None),
                Some(Err(_)) => return Err(ApiError::upstream_failed("it cut its answer off")),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_) => continue,
                },
            }
        }
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// Fails like [`piece`](Self::piece), and if the body is larger than the limit.
    pub(super) async fn whole(mut self) -> Result<Vec<u8>, ApiError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.piece().await? {
            if whole.len() + bytes.len() > self.bounds.bytes {
                return Err(too_large(self.bounds.bytes));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.bounds.bytes
    }
}

/// Returns the error about an answer that is larger than the limit.
pub(super) fn too_large(limit: usize) -> ApiError {
    ApiError::upstream_answer(format!("it is larger than the limit of {limit} bytes"))
}

fn bearer(key: &str) -> Result<HeaderValue, UpstreamError> {
    let is_visible = key.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_visible || !(1..=KEY_BYTES).contains(&key.len()) {
        return Err(UpstreamError::Key);
    }
    let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| UpstreamError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns what an error comes from: the outer ones say only that sending failed.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    // The numbers of errors differ between systems.
    let text = cause.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

fn tls(authorities: Option<&Path>) -> Result<rustls::ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(file) => {
            let broken = |error| TlsError::File {
                file: file.display().to_string(),
                error,
            };
            let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            roots.add_parsable_certificates(found.map_err(broken)?);
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_an_api() {
        let upstream = |url: &str| Upstream::new(url, None, None, Bounds::default());
        for (url, kept) in [
            ("https://api.example.com/v1", "https://api.example.com/v1"),
            ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
            ("http://[::1]:1", "http://[::1]:1"),
        ] {
            assert_eq!(upstream(url).expect(url).url(), kept);
        }
        for url in [
            "",
            "api.example.com",
            "ftp://a",
            "http://",
            "http://u@a/v1",
            "http://a/v1?x=1",
            "http://a/#b",
            "/v1",
        ] {
            assert!(matches!(upstream(url), Err(UpstreamError::Address)), "{url}");
        }
    }

    #[test]
    fn a_key_of_the_gateway_wins_over_that_of_a_client_and_is_never_shown() {
        let upstream = |key| Upstream::new("http://a", key, None, Bounds::default());
        let mut sent = actix_web::http::header::HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer c"),
            ("openai-project", "p"),
            ("cookie", "x"),
        ] {
            let value = actix_web::http::header::HeaderValue::from_static(value);
            sent.insert(actix_web::http::header::HeaderName::from_static(name), value);
        }
        let headers = upstream(None).expect("an upstream").headers(&sent);
        assert_eq!(
            (headers.len(), &headers["authorization"]),
            (2, &HeaderValue::from_static("Bearer c"))
        );
        let own = upstream(Some("k-4711")).expect("an upstream");
        assert_eq!(own.headers(&sent)["authorization"], "Bearer k-4711");
        assert!(!format!("{own:?}").contains("4711"));
        for key in ["", "a b", "a\nb", "ü"] {
            assert!(matches!(upstream(Some(key)), Err(UpstreamError::Key)), "{key}");
        }
    }
}
