//! `lexiform serve`: the service.

mod flags;
mod greeting;
mod models;
mod reload;
mod table;

use std::net::{TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lexiform_cli::failure::{Code, EXIT_CODES, Failure, Outcome, reason};
use lexiform_cli::project::profile;
use tokio::signal::unix::{SignalKind, signal};

use crate::answer::resume::ResumeLimits;
use crate::cli::callbacks::CallbackArgs;
use crate::cli::output::Output;
use crate::model::limits::RequestLimits;
use crate::model::served;
use crate::operate::audit::Audit;
use crate::operate::clients::Clients;
use crate::operate::cors::Cors;
use crate::operate::keys::Keys;
use crate::operate::otlp::{self, Environment, Export};
use crate::operate::process;
use crate::operate::socket::SocketFile;
use crate::operate::supervisor::Supervisor;
use crate::operate::traces::Traces;
use crate::request::body::BodyLimits;
use crate::routes::operations::exposition;
use crate::routes::server::{self, Listener, Listening};
use crate::routes::state::{AppState, Offered, Settings};
use flags::{Access, Limits, Logs, Place};
use greeting::Address;
use models::ModelsArgs;
use reload::{Reload, Tls};

/// Serve models over HTTP, speaking the OpenAI API.
///
/// Every flag can also be set by an environment variable, LEXIFORM_ and the flag's name in capitals, and in a
/// TOML file that --config names: `max-batch = 16`. A flag wins over the environment, and the environment
/// over the file.
///
/// Examples:
///   lexiform serve                                      the fetched model, or demo, on 127.0.0.1:8000
///   lexiform serve --model Qwen3-0.6B-Q8_0.gguf --host 0.0.0.0 --api-keys keys.toml
///   lexiform serve --model ollama:qwen3:0.6b
///   lexiform serve --model Qwen3-0.6B-Q8_0.gguf --model demo --models-loaded 1
///   lexiform serve --config lexiform.toml --log-format json --audit-log audit.jsonl
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// The name of the model in requests, if there is one model; by default the name of its file or folder,
    /// or for a model of a store the value of --model
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
    #[command(flatten)]
    models: ModelsArgs,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    callbacks: CallbackArgs,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    logs: Logs,
}

/// Runs `lexiform serve` until a signal ends it.
///
/// # Errors
/// Fails if the address is taken, a file cannot be read, or the model cannot be loaded.
pub fn run(args: Args) -> Outcome {
    let output = Arc::new(Output::open(args.logs.log, args.logs.log_format)?);
    // The address first: a model may take a long time to load, which cannot change the error for a taken
    // port.
    let (listener, socket) = listen(&args.place)?;
    let metrics = args.access.metrics_address.as_deref();
    let metrics = metrics.map(|address| bind(address, address)).transpose()?;
    let export = export(&args.logs)?;
    let traces = export
        .traces
        .map(|traces| Traces::to(traces, export.service.clone()));
    let traces = traces.transpose().map_err(no_thread("traces"))?;
    let settings = settings(&args, &output, traces.unwrap_or_default())?;
    let tls = Tls::read(&args.access).map_err(|error| Failure::message(format!("TLS: {error}")))?;
    let callbacks = Arc::new(args.callbacks.read()?);
    let listening = Listening {
        workers: 2,
        drain_seconds: args.limits.drain_seconds,
        keep_alive: Duration::from_secs(args.limits.keep_alive_seconds),
        tls: tls.config.clone(),
    };
    let shelf = served::grammar_shelf();
    shelf.share(args.access.share_grammars);
    let name = args.served_model_name.as_deref();
    let models = args
        .models
        .open(name, &callbacks, patience(&args.limits)?, shelf)?;
    let app = AppState::new(Arc::new(models), settings);
    let app = Arc::new(app.map_err(no_thread("the preparation of requests"))?);
    let told = app.clone();
    let metrics_sent = export
        .metrics
        .map(|metrics| otlp::periodic::Metrics::start(metrics, export.service, move || exposition(&told)));
    let metrics_sent = metrics_sent.transpose().map_err(no_thread("metrics"))?;
    let state = app.clone();
    let address = address(&listener, socket.as_ref(), listening.tls.is_some())?;
    let serving = serve(
        app,
        (listener, metrics),
        listening,
        (address, tls, output.clone()),
    );
    let ended = actix_web::rt::System::new().block_on(serving);
    // Answers that did not end in time may still be running.
    state.models.stop();
    if let Some(sent) = metrics_sent {
        sent.close();
    }
    state.settings.audit.flush();
    ended.map_err(|error| Failure::Unable(format!("the server failed: {error}")))?;
    Ok(Code::Fine)
}

/// Reads where traces and metrics are sent.
fn export(logs: &Logs) -> Result<Export, Failure> {
    let flags = otlp::Flags {
        endpoint: logs.otlp_endpoint.as_ref(),
        metrics: logs.otlp_metrics,
    };
    Export::read(flags, &Environment::of_process()).map_err(|error| Failure::message(error.to_string()))
}

/// Returns a function that reports that the operating system has no thread for this.
fn no_thread(purpose: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::Unable(format!("no thread for {purpose}: {}", reason(&error)))
}

/// Listens on the address, or on the socket file, which lasts as long as the second value.
fn listen(place: &Place) -> Result<(Listener, Option<SocketFile>), Failure> {
    let Some(path) = &place.unix_socket else {
        let (host, port) = (place.host.as_str(), place.port);
        let listener = bind((host, port), &format!("{host}:{port}"))?;
        return Ok((listener.into(), None));
    };
    let listening = SocketFile::listen(path, place.unix_socket_mode);
    let (listener, file) = listening.map_err(|error| Failure::Unable(error.to_string()))?;
    Ok((listener.into(), Some(file)))
}

/// Returns the address to which clients send requests.
fn address(listener: &Listener, socket: Option<&SocketFile>, is_secure: bool) -> Result<Address, Failure> {
    let scheme = if is_secure { "https" } else { "http" };
    let url = match listener {
        Listener::Unix(_) => "http://localhost".to_owned(),
        Listener::Tcp(listener) => {
            let address = listener.local_addr();
            let address = address.map_err(|error| Failure::Unable(reason(&error)))?;
            format!("{scheme}://{address}")
        }
    };
    let socket = socket.map(|socket| socket.path().to_owned());
    Ok(Address { url, socket })
}

fn bind(address: impl ToSocketAddrs, shown: &str) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address);
    bound.map_err(|error| Failure::Unable(format!("cannot listen on {shown}: {}", reason(&error))))
}

fn patience(limits: &Limits) -> Result<RequestLimits, Failure> {
    let accepted = limits.accept_profile.as_deref().map(profile).transpose()?;
    let patience = RequestLimits::new(
        Duration::from_secs(limits.queue_seconds),
        Duration::from_secs(limits.answer_seconds),
        limits.queue_tokens,
    )
    .compiling(Duration::from_secs(limits.compile_seconds))
    .preparing(limits.compile_queue)
    .accepting(accepted);
    Ok(patience)
}

fn settings(args: &Args, output: &Output, traces: Traces) -> Result<Settings, Failure> {
    let keys = args.access.api_keys.as_deref().map(Keys::read).transpose();
    let keys = keys.map_err(|error| Failure::message(error.to_string()))?;
    let audit = match &args.logs.audit_log {
        None => Audit::default(),
        Some(path) => Audit::open(path).map_err(|source| Failure::Write {
            path: path.clone(),
            source,
        })?,
    };
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
        cors: Cors::new(args.access.cors_origin.clone()),
        clients: Clients::behind(args.access.trusted_proxy.clone()),
        audit: Arc::new(audit),
        log: Some(output.log.clone()),
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

async fn serve(
    app: Arc<AppState>,
    (listener, metrics): (Listener, Option<TcpListener>),
    listening: Listening,
    (address, tls, output): (Address, Tls, Arc<Output>),
) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let hang_up = signal(SignalKind::hangup())?;
    let supervisor = Arc::new(Supervisor::of_environment());
    let metrics = metrics.map(|listener| server::metrics_server(app.clone(), listener));
    let metrics = metrics.transpose()?;
    let seconds = listening.drain_seconds;
    let server = server::server(app.clone(), listener, listening)?;
    let handle = server.handle();
    greeting::greet(&app, &address, &output);
    if let Some((server, address)) = metrics {
        output.told.line(&format!("Metrics: http://{address}/metrics"));
        // The server ends with the program: until then a client may ask how far the draining is.
        actix_web::rt::spawn(server);
    }
    supervisor.ready(&address.shown());
    let reload = Reload {
        app: app.clone(),
        tls,
        output: output.clone(),
        supervisor: supervisor.clone(),
        status: address.shown(),
    };
    actix_web::rt::spawn(reload.at_each(hang_up));
    let stopping = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        supervisor.stopping();
        output.notice(&format!("stopping; running requests have {seconds} s to end"));
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
