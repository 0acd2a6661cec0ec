//! `lexiform gateway`: forwards chats to an upstream, and checks its answers.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lexiform_cli::failure::{Code, EXIT_CODES, Failure, Outcome, read_text, reason};
use lexiform_cli::project::profile;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::output::{Format, Output};
use crate::gateway::server::{self, Listening};
use crate::gateway::upstream::{Bounds, Upstream};
use crate::gateway::{Gateway, Limits};
use crate::operate::process;

/// Forward chats to a provider that takes less of JSON Schema, and check its answers.
///
/// Clients speak the OpenAI API with the gateway and send the schemas that they have. The gateway rewrites
/// them into what the provider takes, and takes the answers back: what a client receives obeys its own
/// schema, or is an error. Nothing under a schema is passed on unchecked.
///
/// Examples:
///   lexiform gateway --upstream https://api.openai.com/v1
///   lexiform gateway --upstream http://127.0.0.1:8080/v1 --profile llama.cpp --port 9000
///   lexiform gateway --upstream https://api.example.com/v1 --upstream-key-env EXAMPLE_API_KEY
#[allow(rustdoc::bare_urls, reason = "the terminal shows them as they are")]
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    upstream: UpstreamArgs,
    /// The address to listen on; 0.0.0.0 for all
    #[arg(help_heading = "Address", long, default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on; 0 takes a free one
    #[arg(help_heading = "Address", long, default_value_t = 8100)]
    port: u16,
    #[command(flatten)]
    limits: LimitArgs,
    /// The log level: error, warn, info or debug; info has a line for each request, for what is lost of its
    /// schemas, and for each answer that was asked for again
    #[arg(help_heading = "Logs", long, default_value = "warn", value_name = "LEVEL")]
    log: tracing::Level,
    /// The format of the log
    #[arg(help_heading = "Logs", long, default_value = "text", value_name = "FORMAT")]
    log_format: Format,
}

/// The provider, and what it takes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Upstream")]
struct UpstreamArgs {
    /// The address of the provider's API, as https://api.example.com/v1
    #[arg(long, value_name = "URL")]
    upstream: String,
    /// What the provider takes: openai-strict, anthropic, gemini, llama.cpp, xgrammar, outlines, or a file
    /// with a profile
    #[arg(long, default_value = "openai-strict", value_name = "NAME|FILE")]
    profile: String,
    /// A variable of the environment with the key for the provider; without it and --upstream-key-file, the
    /// keys of clients are sent on. Whoever reaches the gateway uses this key
    #[arg(long, value_name = "NAME", conflicts_with = "upstream_key_file")]
    upstream_key_env: Option<String>,
    /// A file with the key for the provider
    #[arg(long, value_name = "FILE")]
    upstream_key_file: Option<PathBuf>,
    /// Certificates of authorities in PEM, in place of those that the system trusts
    #[arg(long, value_name = "FILE")]
    upstream_ca: Option<PathBuf>,
    /// How often the provider is asked again if its answer does not fit the schema
    #[arg(long, default_value_t = Limits::default().retries, value_name = "N", value_parser = at_most_ten)]
    retries: usize,
}

/// The limits of requests and answers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Requests at a time; more are refused with status 503
    #[arg(long, default_value_t = Limits::default().requests, value_name = "N")]
    requests: usize,
    /// Connections at a time, as far as the process may open files; further ones wait until one is closed
    #[arg(long, default_value_t = 2048, value_name = "N")]
    connections: usize,
    /// The largest request body, in bytes
    #[arg(long, default_value_t = Limits::default().body_bytes, value_name = "BYTES")]
    body_limit: usize,
    /// The largest answer of the provider, in bytes; of a stream, its texts
    #[arg(long, default_value_t = Bounds::default().bytes, value_name = "BYTES")]
    answer_limit: usize,
    /// Seconds that reading a request and rewriting its schemas may take
    #[arg(long, default_value_t = Limits::default().compile.as_secs(), value_name = "N")]
    compile_seconds: u64,
    /// Seconds in which the provider must accept a connection
    #[arg(long, default_value_t = Bounds::default().connect.as_secs(), value_name = "N")]
    connect_seconds: u64,
    /// Seconds for which the provider may be silent, before its answer and within it
    #[arg(long, default_value_t = Bounds::default().silence.as_secs(), value_name = "N")]
    silence_seconds: u64,
    /// Seconds that a request may take, with all answers that it needs
    #[arg(long, default_value_t = Limits::default().answer.as_secs(), value_name = "N")]
    answer_seconds: u64,
    /// Seconds that running requests have to end after a stop signal
    #[arg(long, default_value_t = 30, value_name = "N")]
    drain_seconds: u64,
}

/// The most that an answer may be asked for again.
const RETRIES: usize = 10;

fn at_most_ten(text: &str) -> Result<usize, String> {
    let retries = text.parse().ok().filter(|retries| *retries <= RETRIES);
    retries.ok_or_else(|| format!("expected 0 to {RETRIES}"))
}

/// Runs `lexiform gateway` until a signal ends it.
///
/// # Errors
/// Fails if the address is taken, a file cannot be read, or the upstream is no address.
pub fn run(args: &Args) -> Outcome {
    let output = Output::open(args.log, args.log_format)?;
    let upstream = args.upstream.read(&args.limits)?;
    let profile = profile(&args.upstream.profile)?;
    let (host, port) = (args.host.as_str(), args.port);
    let listener = TcpListener::bind((host, port));
    let unable = |error: std::io::Error| {
        Failure::Unable(format!("cannot listen on {host}:{port}: {}", reason(&error)))
    };
    let listener = listener.map_err(unable)?;
    let address = listener.local_addr().map_err(unable)?;
    greet(&output, &format!("http://{address}/v1"), &upstream, &profile.name);
    let gateway = Gateway::new(upstream, profile, args.limits.read(args.upstream.retries));
    let connections = process::connections(args.limits.connections, process::open_files());
    let listening = Listening {
        workers: 2,
        connections,
        drain_seconds: args.limits.drain_seconds,
        keep_alive: Duration::from_secs(75),
    };
    let serving = serve(Arc::new(gateway), listener, listening, &output);
    let ended = actix_web::rt::System::new().block_on(serving);
    ended.map_err(|error| Failure::Unable(format!("the gateway failed: {error}")))?;
    Ok(Code::Fine)
}

fn greet(output: &Output, address: &str, upstream: &Upstream, profile: &str) {
    let url = upstream.url();
    output.told.line(&format!(
        "lexiform {} forwards chats from {address} to {url}, with schemas as {profile} has them",
        env!("CARGO_PKG_VERSION"),
    ));
    if upstream.has_key() {
        output.notice("whoever reaches this address uses the key of the upstream");
    }
}

async fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    listening: Listening,
    output: &Output,
) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let server = server::server(gateway, listener, listening)?;
    let handle = server.handle();
    let stopping = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        let seconds = listening.drain_seconds;
        output.notice(&format!("stopping; running requests have {seconds} s to end"));
        handle.stop(true).await;
    };
    let (ended, ()) = tokio::select! {
        ended = server => (ended, ()),
        () = stopping => (Ok(()), ()),
    };
    ended
}

impl UpstreamArgs {
    fn read(&self, limits: &LimitArgs) -> Result<Upstream, Failure> {
        let key = match (&self.upstream_key_env, &self.upstream_key_file) {
            (Some(name), _) => Some(std::env::var(name).map_err(|_| {
                Failure::message(format!(
                    "--upstream-key-env: the environment has no text in {name}"
                ))
            })?),
            (None, Some(file)) => Some(read_text(Path::new(file))?),
            (None, None) => None,
        };
        let bounds = Bounds {
            connect: Duration::from_secs(limits.connect_seconds),
            silence: Duration::from_secs(limits.silence_seconds),
            bytes: limits.answer_limit,
        };
        let key = key.as_deref().map(str::trim);
        let upstream = Upstream::new(&self.upstream, key, self.upstream_ca.as_deref(), bounds);
        upstream.map_err(|error| Failure::message(format!("--upstream {}: {error}", self.upstream)))
    }
}

impl LimitArgs {
    fn read(&self, retries: usize) -> Limits {
        Limits {
            retries,
            requests: self.requests,
            body_bytes: self.body_limit,
            compile: Duration::from_secs(self.compile_seconds),
            answer: Duration::from_secs(self.answer_seconds),
        }
    }
}
