//! OpenTelemetry's protocol: where traces and metrics are sent, as flags and the variables `OTEL_*` say.
//!
//! ```text
//!   a request ends ─► trace ─► queue, bounded ─► thread ─┐
//!                                                        ├─► collector, OTLP over HTTP or HTTPS
//!   every minute ───► what /metrics has ──────► thread ─┘
//! ```
//!
//! Messages are those of `opentelemetry-proto`, and samplers those of `opentelemetry_sdk`. The exporters of
//! `opentelemetry-otlp` are not used: they ignore a variable that they do not understand where this service
//! refuses to start, they do not count what they drop, and no metric of ours passes through them
//! (`wire/otlp/metrics.rs`). The HTTP client is the one of callbacks.

mod collector;
mod environment;
pub mod periodic;
mod sampling;
pub mod worker;

use std::time::Duration;

pub use collector::{Collector, Endpoint};
pub use environment::{Environment, OtlpError, Signal};
pub use sampling::Sampling;

use crate::wire::otlp::Service;

/// The default time between two messages with metrics.
const EVERY: Duration = Duration::from_secs(60);

/// Where traces and metrics are sent.
#[derive(Debug, Default)]
pub struct Export {
    /// The collector of traces, and which traces it gets.
    pub traces: Option<(Collector, Sampling)>,
    /// The collector of metrics, and the time between two messages.
    pub metrics: Option<(Collector, Duration)>,
    /// What this service says of itself.
    pub service: Service,
}

/// The flags about collectors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags<'a> {
    /// The collector of traces and metrics. It wins over the variables.
    pub endpoint: Option<&'a Endpoint>,
    /// `true` if metrics are sent, too.
    pub metrics: bool,
}

impl Export {
    /// Reads the flags and the environment.
    ///
    /// # Errors
    /// Fails if a variable is invalid, or if a certificate cannot be read.
    pub fn read(flags: Flags<'_>, environment: &Environment) -> Result<Self, OtlpError> {
        let service = Service::new(environment.service()?);
        if environment.flag("OTEL_SDK_DISABLED")? {
            return Ok(Self {
                service,
                ..Self::default()
            });
        }
        let wants = |signal: Signal, asked: bool| -> Result<bool, OtlpError> {
            let exporter = environment.exporter(signal)?;
            Ok(exporter.unwrap_or(asked || environment.has_own_endpoint(signal)))
        };
        let mut export = Self {
            service,
            ..Self::default()
        };
        let somewhere = flags.endpoint.is_some() || environment.has_endpoint();
        if wants(Signal::Traces, somewhere)? {
            let collector = Collector::of(environment, Signal::Traces, flags.endpoint)?;
            export.traces = Some((collector, Sampling::of(environment)?));
        }
        if wants(Signal::Metrics, flags.metrics)? {
            let collector = Collector::of(environment, Signal::Metrics, flags.endpoint)?;
            let every = environment.milliseconds("OTEL_METRIC_EXPORT_INTERVAL")?;
            export.metrics = Some((collector, every.unwrap_or(EVERY)));
        }
        Ok(export)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(endpoint: Option<&str>, variables: &[(&str, &str)]) -> Result<Export, String> {
        let endpoint = endpoint.map(|url| url.parse::<Endpoint>().expect("a URL"));
        let flags = Flags {
            endpoint: endpoint.as_ref(),
            metrics: false,
        };
        Export::read(flags, &Environment::of(variables)).map_err(|error| error.to_string())
    }

    /// The URLs of traces and of metrics.
    fn urls(endpoint: Option<&str>, variables: &[(&str, &str)]) -> (String, String) {
        let export = read(endpoint, variables).expect("valid settings");
        let traces = export.traces.map(|(collector, _)| collector.url().to_owned());
        let metrics = export.metrics.map(|(collector, _)| collector.url().to_owned());
        (traces.unwrap_or_default(), metrics.unwrap_or_default())
    }

    #[test]
    fn flags_and_variables_say_what_is_sent_where() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/a/");
        let metrics = ("OTEL_METRICS_EXPORTER", "otlp");
        let (a, b) = ("http://c:4318/a/v1/traces", "http://c:4318/a/v1/metrics");
        let told = |traces: &str, metrics: &str| (traces.to_owned(), metrics.to_owned());
        assert_eq!(urls(None, &[]), told("", ""));
        assert_eq!(urls(Some("http://c:4318/a"), &[]), told(a, ""));
        assert_eq!(urls(None, &[base]), told(a, ""));
        assert_eq!(urls(None, &[base, metrics]), told(a, b));
        assert_eq!(urls(Some("http://d"), &[base]).0, "http://d/v1/traces");
        assert_eq!(
            urls(None, &[("OTEL_TRACES_EXPORTER", "otlp")]).0,
            "http://localhost:4318/v1/traces"
        );
        assert_eq!(
            urls(None, &[base, ("OTEL_TRACES_EXPORTER", "none")]),
            told("", "")
        );
        assert_eq!(
            urls(None, &[base, metrics, ("OTEL_SDK_DISABLED", "TRUE")]),
            told("", "")
        );
        // The URL of one signal is taken as it is.
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/x");
        assert_eq!(urls(None, &[base, own]).0, "http://t:1/x");
        let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:1/x");
        assert_eq!(urls(None, &[own]), told("", "http://m:1/x"));
        // An empty variable is one that is not set.
        assert_eq!(urls(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), told("", ""));
    }

    #[test]
    fn a_variable_that_means_nothing_is_named() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://c"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%0"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=%0d%0ab: c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "content-length=1"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/no/such/file"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=b,=c"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
            ("OTEL_TRACES_SAMPLER_ARG", "1"),
            ("OTEL_SDK_DISABLED", "maybe"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_METRICS_EXPORTER", "prometheus,otlp"),
        ] {
            let variables = [base, (name, value)];
            let error = read(None, &variables).err().unwrap_or_default();
            assert!(error.starts_with(&format!("{name}: ")), "{name}={value}: {error}");
        }
        let ratio = [
            base,
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ];
        let error = read(None, &ratio).err().unwrap_or_default();
        assert!(error.starts_with("OTEL_TRACES_SAMPLER_ARG: "), "{error}");
    }
}
