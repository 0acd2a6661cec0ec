//! The targets that link the service: every request body, chat templates, the configuration file, and models
//! in GGUF.

use std::process::ExitCode;

use lexiform_chat::{ChatTemplate, Conversation, Ending};
use lexiform_cli::program::definition;
use lexiform_engine::{ModelFiles, describe};
use lexiform_fuzz::clock::{COMPILE, within};
use lexiform_fuzz::drive::{self, Target};
use lexiform_server::cli::{Command, config::with_file};
use lexiform_server::wire::{chat, completion, decisions, grammars, responses, tokens};

#[global_allocator]
static METER: lexiform_fuzz::meter::Meter = lexiform_fuzz::meter::Meter;

const TARGETS: [Target; 9] = [
    Target::plain("template", template),
    Target::plain("chat", |body| {
        within(COMPILE, "reading a body", || drop(chat::read(body)))
    }),
    Target::plain("completions", |body| {
        within(COMPILE, "reading a body", || drop(completion::read(body)))
    }),
    Target::plain("responses", |body| {
        within(COMPILE, "reading a body", || drop(responses::read(body)))
    }),
    Target::plain("decisions", |body| {
        within(COMPILE, "reading a body", || drop(decisions::read(body)))
    }),
    Target::plain("grammars", |body| {
        within(COMPILE, "reading a body", || drop(grammars::read(body)))
    }),
    Target::plain("tokens", read_tokens),
    Target::plain("config", config),
    Target::plain("gguf", gguf),
];

fn main() -> ExitCode {
    drive::main(&TARGETS)
}

fn read_tokens(body: &[u8]) {
    within(COMPILE, "reading a body", || {
        drop(tokens::read(body));
        drop(tokens::read_tokens(body));
    });
}

/// A model's template, with a conversation in it; what stands after a NUL is what the user says.
fn template(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let (source, said) = text.split_once('\0').unwrap_or((text, "Hi <|im_end|>"));
    let made = within(COMPILE, "reading a template", || {
        ChatTemplate::new(source, Vec::new())
    });
    let Ok(template) = made else { return };
    let messages = [serde_json::json!({"role": "user", "content": said})];
    let tools = [serde_json::json!({"type": "function", "function": {"name": "f"}})];
    let conversation = Conversation {
        messages: &messages,
        ending: Ending::Answer,
        tools: &tools,
        schema: Some("{}"),
        arguments: &serde_json::Map::new(),
        arguments_name: "chat_template_kwargs",
        now: 0,
    };
    within(COMPILE, "rendering a template", || {
        drop(template.render(&conversation))
    });
}

/// The file that `--config` names.
fn config(input: &[u8]) {
    let path = std::env::temp_dir().join(format!("lexiform-fuzz-{}.toml", std::process::id()));
    if std::fs::write(&path, input).is_err() {
        return;
    }
    let args = vec![
        "lexiform".to_owned(),
        "serve".to_owned(),
        format!("--config={}", path.display()),
    ];
    within(COMPILE, "reading a configuration", || {
        if let Ok(command) = with_file(definition::<Command>(), "serve", &args) {
            drop(command.try_get_matches_from(&args));
        }
    });
    drop(std::fs::remove_file(&path));
}

/// A model in one file: its header, and the texts of a folder that are made of it.
fn gguf(input: &[u8]) {
    let path = std::env::temp_dir().join(format!("lexiform-fuzz-{}.gguf", std::process::id()));
    if std::fs::write(&path, input).is_err() {
        return;
    }
    within(COMPILE, "reading a model", || {
        let Ok(files) = ModelFiles::open(&path) else {
            return;
        };
        drop(describe(&files));
        for name in [
            "tokenizer.json",
            "tokenizer_config.json",
            "generation_config.json",
        ] {
            drop(files.text(name));
        }
    });
}
