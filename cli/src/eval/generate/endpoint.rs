//! An OpenAI-compatible endpoint, asked over HTTP.

use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::http::{HeaderValue, Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

use super::fault::{Fault, Kind};
use super::record::Answer;
use super::stream;
use crate::failure::Failure;

/// An endpoint.
pub(super) struct Endpoint {
    agent: Agent,
    /// The address of chat completions.
    url: String,
    authorization: Option<HeaderValue>,
}

/// The most bytes of an error that are read.
const ERROR_BYTES: u64 = 64 << 10;

impl Endpoint {
    /// Creates an endpoint from its address, the name of the environment variable of its key, and the longest
    /// time of an answer. Asks nothing.
    ///
    /// # Errors
    /// The address is no HTTP address, the variable is not set, or there are no certificates.
    pub(super) fn new(address: &str, key_variable: Option<&str>, timeout: Duration) -> Result<Self, Failure> {
        let url = completions(address)?;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(timeout))
            .user_agent(concat!("lexiform/", env!("CARGO_PKG_VERSION")));
        if url.starts_with("https:") {
            config = config.tls_config(tls()?);
        }
        Ok(Self {
            agent: config.build().new_agent(),
            url,
            authorization: key_variable.map(authorization).transpose()?,
        })
    }

    /// Sends a request, and reads the whole answer.
    ///
    /// # Errors
    /// There is no complete answer.
    pub(super) fn ask(&self, body: &str) -> Result<Answer, Fault> {
        let mut request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization.clone());
        }
        let sent = Instant::now();
        let response = request.send(body)?;
        let clock = || sent.elapsed();
        let media = header(&response, "content-type")
            .unwrap_or_default()
            .to_lowercase();
        let status = response.status();
        if !status.is_success() {
            return Err(refusal(response));
        }
        let reader = BufReader::new(response.into_body().into_reader());
        match media.starts_with("application/json") {
            true => stream::read_whole(reader, &clock),
            false => stream::read(reader, &clock),
        }
    }
}

/// Returns the address of chat completions under the address of an endpoint.
fn completions(address: &str) -> Result<String, Failure> {
    let address = address.trim_end_matches('/');
    let uri: Option<Uri> = address.parse().ok();
    let is_http = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|it| !it.is_empty())
    });
    if !is_http {
        let example = "http://127.0.0.1:8000/v1";
        return Err(Failure::message(format!(
            "--endpoint {address:?} is not the address of an endpoint, as {example}"
        )));
    }
    Ok(match address.ends_with("/chat/completions") {
        true => address.to_owned(),
        false => format!("{address}/chat/completions"),
    })
}

fn authorization(variable: &str) -> Result<HeaderValue, Failure> {
    let key = std::env::var(variable).map_err(|_| {
        Failure::message(format!(
            "--api-key-env: the environment variable {variable} is not set"
        ))
    })?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim())).map_err(|_| {
        Failure::message(format!(
            "--api-key-env: {variable} has characters that a header cannot have"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls() -> Result<TlsConfig, Failure> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let message = "the system has no certificates; set SSL_CERT_FILE to a file of those that you trust";
        return Err(Failure::message(message));
    }
    let certificates: Vec<Certificate<'static>> = found
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

fn refusal(response: Response<Body>) -> Fault {
    let status = response.status().as_u16();
    let retry_after = header(&response, "retry-after").and_then(|text| text.trim().parse().ok());
    let target = header(&response, "location").map(str::to_owned);
    if let (300..=399, Some(target)) = (status, target) {
        let reason = format!("status {status}: redirected to {target}");
        return Fault {
            status: Some(status),
            ..Fault::new(Kind::NotTheApi, reason)
        };
    }
    let mut body = response.into_body();
    let text = body
        .with_config()
        .limit(ERROR_BYTES)
        .lossy_utf8(true)
        .read_to_string();
    Fault::of_status(
        status,
        &text.unwrap_or_default(),
        retry_after.map(Duration::from_secs),
    )
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_the_api_or_of_its_completions() {
        let expected = "http://127.0.0.1:8000/v1/chat/completions";
        for address in ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/", expected] {
            assert_eq!(completions(address).ok().as_deref(), Some(expected));
        }
        for wrong in [
            "127.0.0.1:8000/v1",
            "ftp://host/v1",
            "http://",
            "",
            "/v1",
            "http:// /",
        ] {
            assert!(completions(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_key_that_is_not_set_is_named() {
        let failure = authorization("LEXIFORM_NO_SUCH_KEY").expect_err("not set");
        assert!(failure.to_string().contains("LEXIFORM_NO_SUCH_KEY"), "{failure}");
    }

    /// Connections are only encrypted by the provider that is linked in; a missing one is a panic of rustls.
    #[test]
    fn addresses_with_tls_have_a_provider() {
        let made = Endpoint::new("https://127.0.0.1:1/v1", None, Duration::from_secs(5));
        if let Ok(endpoint) = made {
            let fault = endpoint.ask("{}").expect_err("nobody listens");
            assert_eq!(fault.kind, Kind::Unreachable, "{fault:?}");
        }
    }
}
