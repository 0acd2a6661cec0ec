//! The variables `OTEL_*`, as [OpenTelemetry specifies
//! them](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). It asks for a
//! warning where a value means nothing; here that is an error, which names the variable.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::operate::tls::TlsError;

/// The reasons why nothing can be sent to a collector.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// A variable has a value that means nothing.
    #[error("{name}: {problem}")]
    Variable {
        /// The name of the variable, or of the flag.
        name: String,
        /// The problem with its value.
        problem: String,
    },
    /// A variable names a file that cannot be used.
    #[error("{name}: {error}")]
    File {
        /// The name of the variable.
        name: String,
        /// The problem with the file.
        error: TlsError,
    },
    /// The system has no certificates of authorities.
    #[error(
        "the system has no certificates of authorities that could vouch for {url}; name a file of them in \
         OTEL_EXPORTER_OTLP_CERTIFICATE"
    )]
    NoAuthorities {
        /// The address of the collector.
        url: String,
    },
}

impl OtlpError {
    pub(super) fn variable(name: impl Into<String>, problem: impl Into<String>) -> Self {
        OtlpError::Variable {
            name: name.into(),
            problem: problem.into(),
        }
    }
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Traces of requests.
    Traces,
    /// Metrics.
    Metrics,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Signal::Traces => "TRACES",
            Signal::Metrics => "METRICS",
        }
    }

    /// Returns the path behind the address of a collector.
    pub(super) fn path(self) -> &'static str {
        match self {
            Signal::Traces => "/v1/traces",
            Signal::Metrics => "/v1/metrics",
        }
    }
}

/// A variable that is set.
#[derive(Clone, Debug)]
pub(super) struct Variable<'a> {
    pub(super) name: String,
    pub(super) value: &'a str,
}

impl Variable<'_> {
    pub(super) fn wrong(&self, problem: impl Into<String>) -> OtlpError {
        OtlpError::variable(self.name.clone(), problem)
    }

    /// Reads a list of `key=value` with values in which `%XX` stands for a byte.
    pub(super) fn pairs(&self) -> Result<Vec<(String, String)>, OtlpError> {
        let pairs = self.value.split(',').filter(|pair| !pair.trim().is_empty());
        let read = |pair: &str| {
            let (key, value) = pair.split_once('=')?;
            let (key, value) = (decoded(key.trim())?, decoded(value.trim())?);
            (!key.is_empty()).then_some((key, value))
        };
        let pairs: Option<Vec<(String, String)>> = pairs.map(read).collect();
        pairs.ok_or_else(|| self.wrong("expected key=value, several with commas, and %XX for a byte"))
    }
}

/// Returns a text with its bytes in place of `%XX`.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// The variables of the process that begin with `OTEL_`.
#[derive(Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Reads the environment of the process. Bytes that are not UTF-8 become replacement characters, which no
    /// variable may have.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("OTEL_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        Self(variables.collect())
    }

    /// Creates an environment of these variables.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self(variables.iter().map(owned).collect())
    }

    /// Returns a variable, unless it is not set or empty.
    pub(super) fn get(&self, name: &str) -> Option<Variable<'_>> {
        let value = self.0.get(name)?.trim();
        (!value.is_empty()).then(|| Variable {
            name: name.to_owned(),
            value,
        })
    }

    /// Returns a variable about collectors: that of the signal, or else that of all signals.
    pub(super) fn of_signal(&self, signal: Signal, name: &str) -> Option<Variable<'_>> {
        self.own(signal, name)
            .or_else(|| self.get(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    /// Returns a variable about collectors for this signal alone.
    pub(super) fn own(&self, signal: Signal, name: &str) -> Option<Variable<'_>> {
        self.get(&format!("OTEL_EXPORTER_OTLP_{}_{name}", signal.name()))
    }

    pub(super) fn has_own_endpoint(&self, signal: Signal) -> bool {
        self.own(signal, "ENDPOINT").is_some()
    }

    pub(super) fn has_endpoint(&self) -> bool {
        self.get("OTEL_EXPORTER_OTLP_ENDPOINT").is_some()
    }

    /// Returns whether a signal is sent, if the environment says so.
    pub(super) fn exporter(&self, signal: Signal) -> Result<Option<bool>, OtlpError> {
        let Some(variable) = self.get(&format!("OTEL_{}_EXPORTER", signal.name())) else {
            return Ok(None);
        };
        match variable.value {
            "otlp" => Ok(Some(true)),
            "none" => Ok(Some(false)),
            _ => Err(variable.wrong("expected otlp or none; /metrics serves Prometheus in any case")),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, OtlpError> {
        match self.get(name) {
            None => Ok(false),
            Some(variable) if variable.value.eq_ignore_ascii_case("true") => Ok(true),
            Some(variable) if variable.value.eq_ignore_ascii_case("false") => Ok(false),
            Some(variable) => Err(variable.wrong("expected true or false")),
        }
    }

    pub(super) fn milliseconds(&self, name: &str) -> Result<Option<Duration>, OtlpError> {
        self.get(name).map(|variable| milliseconds(&variable)).transpose()
    }

    /// Returns what the service says of itself.
    pub(super) fn service(&self) -> Result<Vec<(String, String)>, OtlpError> {
        let mut attributes = BTreeMap::from([
            ("service.name".to_owned(), "lexiform".to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ]);
        if let Some(variable) = self.get("OTEL_RESOURCE_ATTRIBUTES") {
            attributes.extend(variable.pairs()?);
        }
        if let Some(variable) = self.get("OTEL_SERVICE_NAME") {
            attributes.insert("service.name".to_owned(), variable.value.to_owned());
        }
        Ok(attributes.into_iter().collect())
    }
}

pub(super) fn milliseconds(variable: &Variable<'_>) -> Result<Duration, OtlpError> {
    match variable.value.parse() {
        Ok(count @ 1..=86_400_000) => Ok(Duration::from_millis(count)),
        _ => Err(variable.wrong("expected milliseconds, from 1 to 86400000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_called_as_the_environment_says() {
        let attributes = (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=a,place=Linz%2C%20Graz, ",
        );
        let read = |variables: &[_]| Environment::of(variables).service().expect("valid variables");
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert!(read(&[]).contains(&pair("service.name", "lexiform")));
        let told = read(&[attributes]);
        assert!(told.contains(&pair("service.name", "a")) && told.contains(&pair("place", "Linz, Graz")));
        let told = read(&[attributes, ("OTEL_SERVICE_NAME", "b")]);
        assert!(
            told.contains(&pair("service.name", "b")) && told.len() == 3,
            "{told:?}"
        );
    }

    #[test]
    fn bytes_are_decoded_and_half_ones_refused() {
        assert_eq!(decoded("a%20b%C3%A9"), Some("a bé".to_owned()));
        for wrong in ["%", "%2", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
