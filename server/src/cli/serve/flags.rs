//! The flags of limits, access and logs.

use std::path::PathBuf;

use crate::cli::output::Format;
use crate::model::limits::PREPARING;
use crate::operate::clients::Proxy;
use crate::operate::otlp::Endpoint;
use crate::request::body::BodyLimits;
use crate::routes::state::{BODY_LIMIT, CONNECTIONS};

/// Where the service listens.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Address")]
pub(super) struct Place {
    /// The address to listen on; 0.0.0.0 for all
    #[arg(long, env = "LEXIFORM_HOST", default_value = "127.0.0.1")]
    pub(super) host: String,
    /// The port to listen on; 0 takes a free one
    #[arg(long, env = "LEXIFORM_PORT", default_value_t = 8000)]
    pub(super) port: u16,
    /// A socket file to listen on in place of a host and a port, for a proxy on the same machine. A file that
    /// a killed service has left is replaced
    #[arg(
        long,
        alias = "uds",
        env = "LEXIFORM_UNIX_SOCKET",
        value_name = "FILE",
        conflicts_with = "tls_cert"
    )]
    pub(super) unix_socket: Option<PathBuf>,
    /// The permissions of the socket file, in octal digits
    #[arg(
        long,
        env = "LEXIFORM_UNIX_SOCKET_MODE",
        default_value = "660",
        value_name = "MODE",
        value_parser = permissions
    )]
    pub(super) unix_socket_mode: u32,
}

/// Reads permissions as chmod does.
fn permissions(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "permissions are three octal digits, such as 660".to_owned())
}

/// The limits of a request's size and time.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct Limits {
    /// The largest request body, in bytes
    #[arg(long, env = "LEXIFORM_BODY_LIMIT", default_value_t = BODY_LIMIT, value_name = "BYTES")]
    pub(super) body_limit: usize,
    /// Seconds within which a request body must arrive; a body slower than 1 KiB per second on average is
    /// given up after 5 seconds
    #[arg(long, env = "LEXIFORM_BODY_SECONDS", default_value_t = BodyLimits::default().time.as_secs(), value_name = "N")]
    pub(super) body_seconds: u64,
    /// Memory for all request bodies that are arriving or being read, in MiB; more are refused with status
    /// 503
    #[arg(
        long,
        env = "LEXIFORM_BODY_MEMORY",
        default_value_t = BodyLimits::default().total_bytes >> 20,
        value_name = "MIB"
    )]
    pub(super) body_memory: usize,
    /// Request bodies that may be unfinished at a time, at most half of the connections; above that the
    /// oldest is refused with status 503
    #[arg(
        long,
        env = "LEXIFORM_UNFINISHED_BODIES",
        default_value_t = BodyLimits::default().unfinished,
        value_name = "N"
    )]
    pub(super) unfinished_bodies: usize,
    /// Connections at a time, as far as the process may open files; further ones wait until one is closed
    #[arg(long, env = "LEXIFORM_CONNECTIONS", default_value_t = CONNECTIONS, value_name = "N")]
    pub(super) connections: usize,
    /// Refuse schemas that have more than a provider takes (openai-strict, anthropic, gemini, llama.cpp,
    /// xgrammar, outlines, or a file with a profile), as this provider would: to test clients and gateways
    #[arg(long, env = "LEXIFORM_ACCEPT_PROFILE", value_name = "NAME|FILE")]
    pub(super) accept_profile: Option<String>,
    /// Tokens of prompts that may be queued together; more are refused with status 429
    #[arg(long, env = "LEXIFORM_QUEUE_TOKENS", default_value_t = 1 << 20, value_name = "N")]
    pub(super) queue_tokens: usize,
    /// Seconds that reading a request and compiling its constraint may take
    #[arg(
        long,
        env = "LEXIFORM_COMPILE_SECONDS",
        default_value_t = 20,
        value_name = "N"
    )]
    pub(super) compile_seconds: u64,
    /// Requests that may be read and compiled, or wait for it, at a time; more are refused with status 429
    #[arg(long, env = "LEXIFORM_COMPILE_QUEUE", default_value_t = PREPARING, value_name = "N")]
    pub(super) compile_queue: usize,
    /// Seconds that a request may wait until the model begins it
    #[arg(long, env = "LEXIFORM_QUEUE_SECONDS", default_value_t = 30, value_name = "N")]
    pub(super) queue_seconds: u64,
    /// Seconds that a request may take
    #[arg(
        long,
        env = "LEXIFORM_ANSWER_SECONDS",
        default_value_t = 600,
        value_name = "N"
    )]
    pub(super) answer_seconds: u64,
    /// Seconds that a resumable stream is kept without readers; 0 keeps none
    #[arg(long, env = "LEXIFORM_RESUME_SECONDS", default_value_t = 60, value_name = "N")]
    pub(super) resume_seconds: u64,
    /// Seconds after which an idle connection is closed; longer than a proxy in front of the service keeps
    /// it, or requests meet a connection that is being closed
    #[arg(
        long,
        env = "LEXIFORM_KEEP_ALIVE_SECONDS",
        default_value_t = 75,
        value_name = "N"
    )]
    pub(super) keep_alive_seconds: u64,
    /// Seconds that running requests have to end after a stop signal
    #[arg(long, env = "LEXIFORM_DRAIN_SECONDS", default_value_t = 30, value_name = "N")]
    pub(super) drain_seconds: u64,
}

/// Who may send requests, and from where.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Access")]
pub(super) struct Access {
    /// A TOML file of API keys (`lexiform key` makes entries); without it, requests need no key. SIGHUP
    /// reloads it
    #[arg(long, env = "LEXIFORM_API_KEYS", value_name = "FILE")]
    pub(super) api_keys: Option<PathBuf>,
    /// A certificate chain in PEM, to serve HTTPS; SIGHUP reloads it and its key
    #[arg(long, env = "LEXIFORM_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// The key of the certificate in PEM
    #[arg(long, env = "LEXIFORM_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// Certificates of authorities in PEM: only clients that present a certificate of one of them may
    /// connect, also for /live and /ready (see --metrics-address). SIGHUP reloads them
    #[arg(
        long,
        env = "LEXIFORM_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub(super) tls_client_ca: Option<PathBuf>,
    /// Another address for /metrics, /live and /ready, as 127.0.0.1:9090, over plain HTTP and without keys;
    /// /metrics is then not served with the API
    #[arg(long, env = "LEXIFORM_METRICS_ADDRESS", value_name = "HOST:PORT")]
    pub(super) metrics_address: Option<String>,
    /// Origins whose pages may send requests, as https://example.org; may be given several times
    #[arg(
        long,
        env = "LEXIFORM_CORS_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    pub(super) cors_origin: Vec<String>,
    /// Addresses or networks of proxies that are believed when they name the client in X-Forwarded-For, as
    /// 10.0.0.0/8, or unix for those that use --unix-socket; may be given several times. The log and the
    /// audit log have the address of the client; without keys, clients at different addresses share the
    /// machine equally
    #[arg(
        long,
        env = "LEXIFORM_TRUSTED_PROXY",
        value_name = "NETWORK",
        value_delimiter = ','
    )]
    pub(super) trusted_proxy: Vec<Proxy>,
    /// Let all API keys use the grammars that any of them has had compiled. The time that a constraint takes
    /// then reveals whether another key has sent it
    #[arg(long, env = "LEXIFORM_SHARE_GRAMMARS")]
    pub(super) share_grammars: bool,
    /// Serve neither the playground nor the documentation
    #[arg(long, env = "LEXIFORM_NO_PAGES")]
    pub(super) no_pages: bool,
}

/// The logs that are written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logs")]
pub(super) struct Logs {
    /// The log level: error, warn, info or debug; info has a line for each request, with its id, its client,
    /// the name of its key and the trace that its traceparent names
    #[arg(long, env = "LEXIFORM_LOG", default_value = "warn", value_name = "LEVEL")]
    pub(super) log: tracing::Level,
    /// The format of the log
    #[arg(
        long,
        env = "LEXIFORM_LOG_FORMAT",
        default_value = "text",
        value_name = "FORMAT"
    )]
    pub(super) log_format: Format,
    /// A file to which a record of every request is appended as a line of JSON, without prompts and answers.
    /// SIGHUP opens it again
    #[arg(long, env = "LEXIFORM_AUDIT_LOG", value_name = "FILE")]
    pub(super) audit_log: Option<PathBuf>,
    /// A collector of traces, as http://127.0.0.1:4318 or https://collector:4318: OTLP over HTTP. The trace
    /// of a request has the times of preparation, compilation, queueing, prefill and decoding; it continues
    /// the trace of its traceparent, unless that is not sampled. OpenTelemetry's variables (OTEL_*) set the
    /// rest, such as headers and certificates
    #[arg(long, env = "LEXIFORM_OTLP_ENDPOINT", value_name = "URL")]
    pub(super) otlp_endpoint: Option<Endpoint>,
    /// Send the metrics to the collector, too, once a minute
    #[arg(long, env = "LEXIFORM_OTLP_METRICS")]
    pub(super) otlp_metrics: bool,
}
