//! `lexiform serve`: the service.

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use super::{Failure, Outcome};
use crate::app::{self, App, BODY_LIMIT, Listening};
use crate::config::ModelArgs;

/// Serve a model over HTTP, speaking the OpenAI API.
///
/// Every flag can also be set by an environment variable, LEXIFORM_ and the flag's name in capitals.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The address to listen on; 0.0.0.0 for all
    #[arg(long, env = "LEXIFORM_HOST", default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on; 0 takes a free one
    #[arg(long, env = "LEXIFORM_PORT", default_value_t = 8000)]
    port: u16,
    /// The name of the model in requests; by default the name of its folder
    #[arg(long, env = "LEXIFORM_SERVED_MODEL_NAME", value_name = "NAME")]
    served_model_name: Option<String>,
    /// The largest request body, in bytes
    #[arg(long, env = "LEXIFORM_BODY_LIMIT", default_value_t = BODY_LIMIT, value_name = "BYTES")]
    body_limit: usize,
    /// Seconds that running requests have to end after a signal to stop
    #[arg(long, env = "LEXIFORM_DRAIN_SECONDS", default_value_t = 30, value_name = "N")]
    drain_seconds: u64,
}

/// Runs `lexiform serve` until a signal ends it.
///
/// # Errors
/// The address is taken, or the model cannot be loaded.
pub fn run(args: Args) -> Outcome {
    // The address first: a model may take long to load, and the answer to a taken port is always the same.
    let listener = TcpListener::bind((args.host.as_str(), args.port)).map_err(|error| {
        Failure::message(format!("cannot listen on {}:{}: {error}", args.host, args.port))
    })?;
    let served = args
        .model
        .open(args.served_model_name.clone())
        .map_err(|error| Failure::message(error.to_string()))?;
    let app = Arc::new(App::new(Arc::new(served), args.body_limit));
    let listening = Listening {
        workers: 2,
        drain_seconds: args.drain_seconds,
    };
    actix_web::rt::System::new()
        .block_on(serve(app, listener, listening))
        .map_err(|error| Failure::message(format!("the server failed: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(app: Arc<App>, listener: TcpListener, listening: Listening) -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let (server, address) = app::server(app.clone(), listener, listening)?;
    let handle = server.handle();
    println!("{}", greeting(app.served.name(), &address.to_string()));
    let stopping = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        eprintln!(
            "lexiform: stopping; running requests have {} s to end",
            listening.drain_seconds
        );
        app.close();
        handle.stop(true).await;
    };
    // The server ends by itself only when it fails; otherwise it ends because it was stopped.
    let (ended, ()) = tokio::select! {
        ended = server => (ended, ()),
        () = stopping => (Ok(()), ()),
    };
    ended
}

/// What a newcomer reads: which model, where, and a request to paste.
fn greeting(model: &str, address: &str) -> String {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"city":{"type":"string"}},"required":["name","age","city"],"additionalProperties":false}"#;
    format!(
        "lexiform {version} serves the model '{model}' at http://{address}/v1\n\n\
         Try it:\n  curl -s http://{address}/v1/chat/completions -H 'content-type: application/json' -d '\n  \
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
        let greeting = greeting("demo", "127.0.0.1:8000");
        let (_, body) = greeting.split_once("-d '").expect("a body");
        let body = body.trim_end().strip_suffix('\'').expect("a closing quote");
        let request = crate::wire::chat::read(body.as_bytes()).expect("a request");
        assert_eq!(request.generation.model, "demo");
        assert!(request.generation.constraint.is_some());
    }
}
