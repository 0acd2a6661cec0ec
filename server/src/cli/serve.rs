//! `lexiform serve`: the service.

use std::net::{TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lexiform_engine::Stats;
use rustls::ServerConfig;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::answer::resume::ResumeLimits;
use crate::cli::callbacks::CallbackArgs;
use crate::cli::model::ModelArgs;
use crate::grammars::tool_format::{ToolFormat, ToolFormatChoice};
use crate::model::limits::{PREPARING, RequestLimits};
use crate::operate::audit::Audit;
use crate::operate::clients::{Network, Proxies};
use crate::operate::cors::Cors;
use crate::operate::keys::Keys;
use crate::operate::process;
use crate::operate::tls::{Certificate, ClientAuthority, TlsError};
use crate::operate::traces::{Endpoint, Traces};
use crate::request::body::BodyLimits;
use crate::request::told;
use crate::routes::server::{self, Listening};
use crate::routes::state::Offered;
use crate::routes::state::{AppState, BODY_LIMIT, CONNECTIONS, Settings};
use lexiform_cli::failure::{Code, EXIT_CODES, Failure, Outcome, reason};

/// Serve a model over HTTP, speaking the OpenAI API.
///
/// Every flag can also be set by an environment variable, LEXIFORM_ and the flag's name in capitals, and in a
/// TOML file that --config names: `max-batch = 16`. A flag wins over the environment, and the environment
/// over the file.
///
/// Examples:
///   lexiform serve                                      the fetched model, or demo, on 127.0.0.1:8000
///   lexiform serve --model Qwen3-0.6B-Q8_0.gguf --host 0.0.0.0 --api-keys keys.toml
///   lexiform serve --model ollama:qwen3:0.6b
///   lexiform serve --config lexiform.toml --log-format json --audit-log audit.jsonl
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = EXIT_CODES)]
pub struct Args {
    /// The address to listen on; 0.0.0.0 for all
    #[arg(
        help_heading = "Address",
        long,
        env = "LEXIFORM_HOST",
        default_value = "127.0.0.1"
    )]
    host: String,
    /// The port to listen on; 0 takes a free one
    #[arg(help_heading = "Address", long, env = "LEXIFORM_PORT", default_value_t = 8000)]
    port: u16,
    /// The name of the model in requests; by default the name of its file or folder, or for a model of a
    /// store the value of --model
    #[arg(
        help_heading = "Address",
        long,
        env = "LEXIFORM_SERVED_MODEL_NAME",
        value_name = "NAME"
    )]
    served_model_name: Option<String>,
    /// A TOML file with values for these flags
    #[arg(long, env = "LEXIFORM_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The format in which the model writes calls of tools: one of the formats of models that the
    /// documentation lists, any for all forms that the service knows, or auto for the format that the chat
    /// template shows, or else any
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_TOOL_FORMAT",
        default_value = "auto",
        value_name = "FORMAT"
    )]
    tool_format: ToolFormatChoice,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    callbacks: CallbackArgs,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    logs: Logs,
}

/// The limits of a request's size and time.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct Limits {
    /// The largest request body, in bytes
    #[arg(long, env = "LEXIFORM_BODY_LIMIT", default_value_t = BODY_LIMIT, value_name = "BYTES")]
    body_limit: usize,
    /// Seconds within which a request body must arrive; a body slower than 1 KiB per second on average is
    /// given up after 5 seconds
    #[arg(long, env = "LEXIFORM_BODY_SECONDS", default_value_t = BodyLimits::default().time.as_secs(), value_name = "N")]
    body_seconds: u64,
    /// Memory for all request bodies that are arriving or being read, in MiB; more are refused with status
    /// 503
    #[arg(
        long,
        env = "LEXIFORM_BODY_MEMORY",
        default_value_t = BodyLimits::default().total_bytes >> 20,
        value_name = "MIB"
    )]
    body_memory: usize,
    /// Request bodies that may be unfinished at a time, at most half of the connections; above that the
    /// oldest is refused with status 503
    #[arg(
        long,
        env = "LEXIFORM_UNFINISHED_BODIES",
        default_value_t = BodyLimits::default().unfinished,
        value_name = "N"
    )]
    unfinished_bodies: usize,
    /// Connections at a time, as far as the process may open files; further ones wait until one is closed
    #[arg(long, env = "LEXIFORM_CONNECTIONS", default_value_t = CONNECTIONS, value_name = "N")]
    connections: usize,
    /// Tokens of prompts that may be queued together; more are refused with status 429
    #[arg(long, env = "LEXIFORM_QUEUE_TOKENS", default_value_t = 1 << 20, value_name = "N")]
    queue_tokens: usize,
    /// Seconds that reading a request and compiling its constraint may take
    #[arg(
        long,
        env = "LEXIFORM_COMPILE_SECONDS",
        default_value_t = 20,
        value_name = "N"
    )]
    compile_seconds: u64,
    /// Requests that may be read and compiled, or wait for it, at a time; more are refused with status 429
    #[arg(long, env = "LEXIFORM_COMPILE_QUEUE", default_value_t = PREPARING, value_name = "N")]
    compile_queue: usize,
    /// Seconds that a request may wait until the model begins it
    #[arg(long, env = "LEXIFORM_QUEUE_SECONDS", default_value_t = 30, value_name = "N")]
    queue_seconds: u64,
    /// Seconds that a request may take
    #[arg(
        long,
        env = "LEXIFORM_ANSWER_SECONDS",
        default_value_t = 600,
        value_name = "N"
    )]
    answer_seconds: u64,
    /// Seconds that a resumable stream is kept without readers; 0 keeps none
    #[arg(long, env = "LEXIFORM_RESUME_SECONDS", default_value_t = 60, value_name = "N")]
    resume_seconds: u64,
    /// Seconds that running requests have to end after a stop signal
    #[arg(long, env = "LEXIFORM_DRAIN_SECONDS", default_value_t = 30, value_name = "N")]
    drain_seconds: u64,
}

/// Who may send requests, and from where.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Access")]
struct Access {
    /// A TOML file of API keys (`lexiform key` makes entries); without it, requests need no key. SIGHUP
    /// reloads it
    #[arg(long, env = "LEXIFORM_API_KEYS", value_name = "FILE")]
    api_keys: Option<PathBuf>,
    /// A certificate chain in PEM, to serve HTTPS; SIGHUP reloads it and its key
    #[arg(long, env = "LEXIFORM_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate in PEM
    #[arg(long, env = "LEXIFORM_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Certificates of authorities in PEM: only clients that present a certificate of one of them may
    /// connect, also for /live and /ready (see --metrics-address). SIGHUP reloads them
    #[arg(
        long,
        env = "LEXIFORM_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    tls_client_ca: Option<PathBuf>,
    /// Another address for /metrics, /live and /ready, as 127.0.0.1:9090, over plain HTTP and without keys;
    /// /metrics is then not served with the API
    #[arg(long, env = "LEXIFORM_METRICS_ADDRESS", value_name = "HOST:PORT")]
    metrics_address: Option<String>,
    /// The address of a proxy, as 10.0.0.7, or a network of proxies, as 10.0.0.0/8, whose X-Forwarded-For
    /// tells the addresses of clients; may be given several times. Without keys, clients at different
    /// addresses share the machine equally
    #[arg(
        long,
        env = "LEXIFORM_TRUSTED_PROXY",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    trusted_proxy: Vec<Network>,
    /// Let all API keys use the grammars that any of them has had compiled. The time that a constraint takes
    /// then reveals whether another key has sent it
    #[arg(long, env = "LEXIFORM_SHARE_GRAMMARS")]
    share_grammars: bool,
    /// Origins whose pages may send requests, as https://example.org; may be given several times
    #[arg(
        long,
        env = "LEXIFORM_CORS_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    cors_origin: Vec<String>,
    /// Serve neither the playground nor the documentation
    #[arg(long, env = "LEXIFORM_NO_PAGES")]
    no_pages: bool,
}

/// The logs that are written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logs")]
struct Logs {
    /// The log level: error, warn, info or debug; info has a line for each request, with its id and the trace
    /// that its traceparent names
    #[arg(long, env = "LEXIFORM_LOG", default_value = "warn", value_name = "LEVEL")]
    log: tracing::Level,
    /// The format of the log
    #[arg(
        long,
        env = "LEXIFORM_LOG_FORMAT",
        default_value = "text",
        value_name = "FORMAT"
    )]
    log_format: Format,
    /// A file to which a record of every request is appended as a line of JSON, without prompts and answers
    #[arg(long, env = "LEXIFORM_AUDIT_LOG", value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// A collector of traces, as http://127.0.0.1:4318: OTLP over plain HTTP, in JSON. The trace of a request
    /// has the times of preparation, compilation, queueing, prefill and decoding; it continues the trace of
    /// its traceparent, unless that is not sampled
    #[arg(long, env = "LEXIFORM_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<Endpoint>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// A human-readable log.
    Text,
    /// A log in JSON.
    Json,
}

/// Runs `lexiform serve` until a signal ends it.
///
/// # Errors
/// Fails if the address is taken, a file cannot be read, or the model cannot be loaded.
pub fn run(args: Args) -> Outcome {
    start_log(&args.logs);
    // The address first: a model may take a long time to load, which cannot change the error for a taken
    // port.
    let listener = bind(
        (args.host.as_str(), args.port),
        &format!("{}:{}", args.host, args.port),
    )?;
    let metrics = args.access.metrics_address.as_deref();
    let metrics = metrics.map(|address| bind(address, address)).transpose()?;
    let settings = settings(&args)?;
    let tls = Tls::read(&args.access).map_err(|error| Failure::message(format!("TLS: {error}")))?;
    let callbacks = args.callbacks.read()?;
    let listening = Listening {
        workers: 2,
        drain_seconds: args.limits.drain_seconds,
        tls: tls.config.clone(),
    };
    let served = args
        .model
        .open(args.served_model_name.clone())
        .map_err(|error| Failure::message(error.to_string()))?
        .with_limits(patience(&args.limits))
        .with_callbacks(callbacks)
        .with_tool_format(args.tool_format)
        .sharing_grammars(args.access.share_grammars);
    let app = Arc::new(AppState::new(Arc::new(served), settings));
    let served = app.clone();
    let ended = actix_web::rt::System::new().block_on(serve(app, (listener, metrics), listening, tls));
    // Answers that did not end in time may still be running.
    served.served.engine().stop();
    ended.map_err(|error| Failure::Unable(format!("the server failed: {error}")))?;
    Ok(Code::Fine)
}

fn bind(address: impl ToSocketAddrs, shown: &str) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address);
    bound.map_err(|error| Failure::Unable(format!("cannot listen on {shown}: {}", reason(&error))))
}

fn patience(limits: &Limits) -> RequestLimits {
    RequestLimits::new(
        Duration::from_secs(limits.queue_seconds),
        Duration::from_secs(limits.answer_seconds),
        limits.queue_tokens,
    )
    .compiling(Duration::from_secs(limits.compile_seconds))
    .preparing(limits.compile_queue)
}

fn start_log(logs: &Logs) {
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(logs.log);
    let started = match logs.log_format {
        Format::Text => log.with_ansi(false).try_init(),
        Format::Json => log.json().flatten_event(true).try_init(),
    };
    // A subscriber can exist only if another program calls this function; its subscriber is kept.
    drop(started);
}

fn settings(args: &Args) -> Result<Settings, Failure> {
    let keys = args.access.api_keys.as_deref().map(Keys::read).transpose();
    let keys = keys.map_err(|error| Failure::message(error.to_string()))?;
    let audit = match &args.logs.audit_log {
        None => Audit::default(),
        Some(path) => Audit::open(path).map_err(|source| Failure::Write {
            path: path.clone(),
            source,
        })?,
    };
    let traces = args.logs.otlp_endpoint.clone().map(Traces::to).transpose();
    let traces = traces.map_err(|error| Failure::message(format!("no thread for traces: {error}")))?;
    let traces = traces.unwrap_or_default();
    let connections = process::connections(args.limits.connections, process::open_files());
    Ok(Settings {
        body_limit: args.limits.body_limit,
        bodies: BodyLimits {
            time: Duration::from_secs(args.limits.body_seconds),
            total_bytes: args.limits.body_memory << 20,
            unfinished: args.limits.unfinished_bodies.min(connections / 2),
        },
        connections,
        keys: keys.unwrap_or_default(),
        proxies: Proxies::new(args.access.trusted_proxy.clone()),
        cors: Cors::new(args.access.cors_origin.clone()),
        audit: Arc::new(audit),
        traces: Arc::new(traces),
        offered: Offered {
            pages: !args.access.no_pages,
            metrics: args.access.metrics_address.is_none(),
        },
        keeping: ResumeLimits {
            time: Duration::from_secs(args.limits.resume_seconds),
            ..ResumeLimits::default()
        },
    })
}

/// The TLS certificates, and the server configuration that uses them.
#[derive(Default)]
struct Tls {
    certificate: Option<Arc<Certificate>>,
    clients: Option<Arc<ClientAuthority>>,
    config: Option<ServerConfig>,
}

impl Tls {
    fn read(access: &Access) -> Result<Self, TlsError> {
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

/// Reloads keys and certificates at each SIGHUP, each file independently. The signal is handled even without
/// such files: its default action ends the program, which is not intended by a script that renews
/// certificates.
async fn renew(mut hang_up: Signal, app: Arc<AppState>, tls: Tls) {
    while hang_up.recv().await.is_some() {
        let certificate = tls
            .certificate
            .as_ref()
            .map(|certificate| certificate.read_again());
        let clients = tls.clients.as_ref().map(|clients| clients.read_again());
        let keys = app.settings.keys.read_again().map_err(|error| error.to_string());
        let told = [
            (
                "certificate",
                certificate.map(|read| read.map_err(|error| error.to_string())),
            ),
            (
                "authorities of clients",
                clients.map(|read| read.map_err(|error| error.to_string())),
            ),
            ("API keys", keys.map(|read| read.then_some(())).transpose()),
        ];
        if told.iter().all(|(_, read)| read.is_none()) {
            eprintln!("lexiform: there is neither a certificate nor a file of keys to read again");
        }
        for (what, read) in told {
            match read {
                None => {}
                Some(Ok(())) => eprintln!("lexiform: read again: {what}"),
                Some(Err(error)) => eprintln!("lexiform: as before: {what}: {error}"),
            }
        }
    }
}

async fn serve(
    app: Arc<AppState>,
    (listener, metrics): (TcpListener, Option<TcpListener>),
    listening: Listening,
    tls: Tls,
) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    actix_web::rt::spawn(renew(signal(SignalKind::hangup())?, app.clone(), tls));
    let metrics = metrics.map(|listener| server::metrics_server(app.clone(), listener));
    let metrics = metrics.transpose()?;
    let seconds = listening.drain_seconds;
    let scheme = if listening.tls.is_some() { "https" } else { "http" };
    let (server, address) = server::server(app.clone(), listener, listening)?;
    let handle = server.handle();
    println!(
        "{}",
        greeting(app.served.name(), &format!("{scheme}://{address}"))
    );
    if app.settings.offered.pages {
        println!("Playground: {scheme}://{address}/\nAPI: {scheme}://{address}/docs/");
    }
    println!("{}", cache(&app.served.engine().stats()));
    println!("{}", tools(app.served.tool_format()));
    if let Some(format) = app.served.rounded() {
        println!("Weights: {format}, rounded when the model was loaded (--weights)");
    }
    for notice in app.served.engine().notices() {
        eprintln!("lexiform: {notice}");
    }
    for notice in app.served.text().template.iter().flat_map(told::notices) {
        eprintln!("lexiform: {notice}");
    }
    if let Some((server, address)) = metrics {
        println!("Metrics: http://{address}/metrics");
        // The server ends with the program: until then a client may ask how far the draining is.
        actix_web::rt::spawn(server);
    }
    let stopping = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        eprintln!("lexiform: stopping; running requests have {seconds} s to end");
        app.drain(Duration::from_secs(seconds)).await;
        handle.stop(true).await;
        app.settings.traces.close();
    };
    // The server ends by itself only when it fails; otherwise it ends because it was stopped.
    let (ended, ()) = tokio::select! {
        ended = server => (ended, ()),
        () = stopping => (Ok(()), ()),
    };
    ended
}

/// Describes the size of the cache, which depends on the memory of the machine unless a flag sets it.
fn cache(stats: &Stats) -> String {
    let tokens = stats.blocks_total * stats.block_size;
    format!("Cache: {tokens} tokens of prompts and answers (--cache-memory)")
}

/// Describes the format of calls of tools.
fn tools(format: ToolFormat) -> String {
    let written = match format {
        ToolFormat::Any => "calls in any form that the service knows".to_owned(),
        ToolFormat::Of(name) => format!("calls in the format {name}"),
    };
    format!("Tools: {written} (--tool-format)")
}

/// Returns the greeting at startup: the model, the address, and a request to paste.
fn greeting(model: &str, address: &str) -> String {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"city":{"type":"string"}},"required":["name","age","city"],"additionalProperties":false}"#;
    format!(
        "lexiform {version} serves the model '{model}' at {address}/v1\n\n\
         Try it:\n  curl -s {address}/v1/chat/completions -H 'content-type: application/json' -d '\n  \
         {{\"model\":\"{model}\",\"temperature\":0,\"messages\":[{{\"role\":\"user\",\"content\":\"Maria Keller is 34 years old and lives in Vienna.\"}}],\n   \
         \"response_format\":{{\"type\":\"json_schema\",\"json_schema\":{{\"name\":\"person\",\"schema\":\n    {schema}}}}}}}'\n",
        version = env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_to_paste_is_a_valid_one() {
        let greeting = greeting("demo", "http://127.0.0.1:8000");
        let (_, body) = greeting.split_once("-d '").expect("a body");
        let body = body.trim_end().strip_suffix('\'').expect("a closing quote");
        let request = crate::wire::chat::read(body.as_bytes()).expect("a request");
        assert_eq!(request.generation.model, "demo");
        assert!(request.generation.constraint.is_some());
    }
}
