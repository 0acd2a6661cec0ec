//! What the service says at its start: the model, the address, a request to paste, and what it was started
//! with.

use std::path::PathBuf;

use lexiform_engine::Stats;

use crate::cli::output::Output;
use crate::grammars::tool_format::ToolFormat;
use crate::model::served::ServedModel;
use crate::request::told;
use crate::routes::state::AppState;

/// The address to which clients send requests.
pub(super) struct Address {
    pub(super) url: String,
    /// The socket file on which the service listens in place of an address.
    pub(super) socket: Option<PathBuf>,
}

impl Address {
    /// Returns the address in a few words.
    pub(super) fn shown(&self) -> String {
        match &self.socket {
            None => format!("Serving at {}", self.url),
            Some(socket) => format!("Serving at {}", socket.display()),
        }
    }

    /// Returns the command that sends a request.
    fn command(&self) -> String {
        match &self.socket {
            None => "curl -s".to_owned(),
            Some(socket) => format!("curl -s --unix-socket '{}'", socket.display()),
        }
    }
}

/// Says all of it.
pub(super) fn greet(app: &AppState, address: &Address, output: &Output) {
    output
        .told
        .line(&greeting(app.models.name(app.models.first()), address));
    match &address.socket {
        Some(socket) => output.told.line(&format!("Socket: {}", socket.display())),
        None if app.settings.offered.pages => {
            let url = &address.url;
            output.told.line(&format!("Playground: {url}/\nAPI: {url}/docs/"));
        }
        None => {}
    }
    let is_one = app.models.places().count() == 1;
    for place in app.models.places() {
        let name = app.models.name(place);
        let label = if is_one {
            String::new()
        } else {
            format!("{name}: ")
        };
        match app.models.ready(place) {
            Some(served) => about(&served, &label, output),
            None => output
                .told
                .line(&format!("Model {name}: loaded when it is first used")),
        }
    }
}

/// Says what a model was started with; `label` begins each line.
fn about(served: &ServedModel, label: &str, output: &Output) {
    let engine = served.engine();
    output.told.line(&format!("{label}{}", cache(&engine.stats())));
    output
        .told
        .line(&format!("{label}{}", tools(served.tool_format())));
    if let Some(format) = served.rounded() {
        output.told.line(&format!(
            "{label}Weights: {format}, rounded when the model was loaded (--weights)"
        ));
    }
    for notice in engine.notices() {
        output.notice(&format!("{label}{notice}"));
    }
    for notice in served.text().template.iter().flat_map(told::notices) {
        output.notice(&format!("{label}{notice}"));
    }
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
fn greeting(model: &str, address: &Address) -> String {
    let (url, command) = (&address.url, address.command());
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"city":{"type":"string"}},"required":["name","age","city"],"additionalProperties":false}"#;
    format!(
        "lexiform {version} serves the model '{model}' at {url}/v1\n\n\
         Try it:\n  {command} {url}/v1/chat/completions -H 'content-type: application/json' -d '\n  \
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
        let url = "http://127.0.0.1:8000".to_owned();
        let greeting = greeting("demo", &Address { url, socket: None });
        let (_, body) = greeting.split_once("-d '").expect("a body");
        let body = body.trim_end().strip_suffix('\'').expect("a closing quote");
        let request = crate::wire::chat::read(body.as_bytes()).expect("a request");
        assert_eq!(request.generation.model, "demo");
        assert!(request.generation.constraint.is_some());
    }
}
