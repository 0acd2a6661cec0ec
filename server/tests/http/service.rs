//! Starts the service in this process and speaks HTTP to it, down to the bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use lexiform_engine::{Assistant, Drafting, EngineConfig, Model, ScriptedModel};
use lexiform_server::grammars::store::Shelf;
use lexiform_server::grammars::tool_format::ToolFormatChoice;
use lexiform_server::model::limits::RequestLimits;
use lexiform_server::model::registry::Registry;
use lexiform_server::model::served::ServedModel;
use lexiform_server::model::text::{Defaults, ModelText};
use lexiform_server::operate::callbacks::Callbacks;
use lexiform_server::routes::server::{Listening, server};
use lexiform_server::routes::state::{AppState, Settings};
use serde_json::{Value, json};

use crate::tokenizer::{IM_END, IM_START, TEMPLATE, TOKENS, tokenizer_json_with};

/// How long a test waits for something that should happen at once, before it fails: a machine that is busy is
/// no failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A running service; it ends with this value.
pub(crate) struct Service {
    pub(crate) app: Arc<AppState>,
    pub(crate) address: SocketAddr,
    handle: ServerHandle,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Service {
    /// With the usual sizes.
    pub(crate) fn start() -> Self {
        Self::with(roomy(), 1 << 20)
    }

    pub(crate) fn with(config: EngineConfig, body_limit: usize) -> Self {
        Self::of_model(config, body_limit, TEMPLATE, &[])
    }

    /// With a chat template and more tokens.
    pub(crate) fn of_model(config: EngineConfig, body_limit: usize, template: &str, more: &[&str]) -> Self {
        let settings = Settings {
            body_limit,
            ..Settings::default()
        };
        Self::run(config, (template, more), settings, unhurried())
    }

    /// With settings of an operator.
    pub(crate) fn operated(config: EngineConfig, settings: Settings, limits: RequestLimits) -> Self {
        Self::run(config, (TEMPLATE, &[]), settings, limits)
    }

    /// With a certificate, to be asked over TLS.
    pub(crate) fn over_tls(tls: rustls::ServerConfig) -> Self {
        Self::secured(tls, Settings::default(), PATIENCE)
    }

    /// The same with settings of an operator, and the time that a connection without a request is kept.
    pub(crate) fn secured(tls: rustls::ServerConfig, settings: Settings, keep_alive: Duration) -> Self {
        let served = served(roomy(), (TEMPLATE, &[])).with_limits(unhurried());
        Self::listening(served, settings, (Some(tls), keep_alive))
    }

    /// Held to write calls of tools in this format, with more tokens.
    pub(crate) fn held_to(format: &str, more: &[&str]) -> Self {
        let format: ToolFormatChoice = format.parse().expect("a format");
        let served = served(roomy(), (TEMPLATE, more)).with_limits(unhurried());
        Self::of_served(served.with_tool_format(format), Settings::default())
    }

    /// Whose requests may name these callbacks.
    pub(crate) fn calling(callbacks: Callbacks) -> Self {
        Self::calling_of(callbacks, &[])
    }

    /// The same, with more tokens.
    pub(crate) fn calling_of(callbacks: Callbacks, more: &[&str]) -> Self {
        let served = served(roomy(), (TEMPLATE, more)).with_limits(unhurried());
        Self::of_served(served.with_callbacks(callbacks), Settings::default())
    }

    /// With a draft model that follows the script of the model.
    pub(crate) fn with_draft_model() -> Self {
        let served = served_with(roomy(), (TEMPLATE, &[]), Defaults::default(), true);
        Self::of_served(served.with_limits(unhurried()), Settings::default())
    }

    /// Of a model that recommends these settings.
    pub(crate) fn recommending(defaults: Defaults) -> Self {
        let served = served_by(roomy(), (TEMPLATE, &[]), defaults).with_limits(unhurried());
        Self::of_served(served, Settings::default())
    }

    fn run(config: EngineConfig, model: (&str, &[&str]), settings: Settings, limits: RequestLimits) -> Self {
        Self::of_served(served(config, model).with_limits(limits), settings)
    }

    /// Of a model that was started.
    pub(crate) fn of_served(served: ServedModel, settings: Settings) -> Self {
        Self::listening(served, settings, (None, PATIENCE))
    }

    fn listening(
        served: ServedModel,
        settings: Settings,
        (tls, keep_alive): (Option<rustls::ServerConfig>, Duration),
    ) -> Self {
        Self::of_models(Registry::of(served), settings, (tls, keep_alive))
    }

    /// Of the models of a registry.
    pub(crate) fn of_models(
        models: Registry,
        settings: Settings,
        (tls, keep_alive): (Option<rustls::ServerConfig>, Duration),
    ) -> Self {
        let app = Arc::new(AppState::new(Arc::new(models), settings).expect("threads"));
        let (sender, receiver) = std::sync::mpsc::channel();
        let shared = app.clone();
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
                let address = listener.local_addr().expect("an address");
                let listening = Listening {
                    workers: 2,
                    drain_seconds: 1,
                    keep_alive,
                    tls,
                };
                let server = server(shared, listener, listening).expect("a server");
                sender.send((server.handle(), address)).expect("the test waits");
                server.await.expect("the server ends well");
            });
        });
        let (handle, address) = receiver.recv().expect("the server starts");
        Self {
            app,
            address,
            handle,
            thread: Some(thread),
        }
    }

    /// The first model, which has to be loaded.
    pub(crate) fn served(&self) -> Arc<ServedModel> {
        let models = &self.app.models;
        models.ready(models.first()).expect("it is loaded")
    }

    /// One exchange on a connection of its own.
    pub(crate) fn exchange(&self, head: &str, body: &[u8]) -> Answer {
        let mut stream = self.connect();
        write!(
            stream,
            "{head}\r\nhost: test\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .expect("the head is sent");
        // A server that refuses a body by its head may close before it has read the body.
        let _ = stream.write_all(body);
        Answer::read(stream)
    }

    /// Sends these bytes and reads the answer.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("the request is sent");
        Answer::read(stream)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.exchange(&format!("GET {path} HTTP/1.1"), b"")
    }

    /// What a metric without labels of its own says.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let metrics = self.get("/metrics");
        let lines = metrics.text().lines();
        let mut values =
            lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.rsplit(' ').next());
        let value = values.next().and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("{name} is missing"))
    }

    /// Waits until a metric says this.
    pub(crate) fn until_metric(&self, name: &str, wanted: u64) {
        let begun = Instant::now();
        while self.metric(name) != wanted {
            assert!(begun.elapsed() < PATIENCE, "{name} is {}", self.metric(name));
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits a moment for a metric that may be zero again by the time that somebody looks.
    pub(crate) fn until_any_metric(&self, name: &str) {
        for _ in 0..1000 {
            if self.metric(name) > 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.exchange(
            &format!("POST {path} HTTP/1.1\r\ncontent-type: application/json"),
            body.as_bytes(),
        )
    }

    /// A chat that says this, with more fields.
    pub(crate) fn chat(&self, content: &str, more: Value) -> Answer {
        self.post("/v1/chat/completions", &chat(content, more).to_string())
    }

    /// Sends a request and leaves the answer on the connection.
    pub(crate) fn begin(&self, path: &str, body: &Value) -> TcpStream {
        self.begin_as("x-test: none", path, body)
    }

    /// The same, with a header that names the client.
    pub(crate) fn begin_as(&self, client: &str, path: &str, body: &Value) -> TcpStream {
        let mut stream = self.connect();
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\n{client}\r\ncontent-length: {}",
            body.len()
        );
        write!(stream, "{head}\r\ncontent-type: application/json\r\n\r\n{body}")
            .expect("the request is sent");
        stream
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream
    }

    /// Waits until the engine's state satisfies a condition.
    pub(crate) fn until(&self, what: &str, condition: impl Fn(&lexiform_engine::Stats) -> bool) {
        let begun = Instant::now();
        loop {
            let stats = self.served().engine().stats();
            if condition(&stats) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} did not happen: {stats:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The model that follows the script, with a chat template and more tokens. It is greedy unless a request
/// says otherwise.
pub(crate) fn served(config: EngineConfig, model: (&str, &[&str])) -> ServedModel {
    let defaults = Defaults {
        temperature: 0.0,
        ..Defaults::default()
    };
    served_by(config, model, defaults)
}

fn served_by(config: EngineConfig, model: (&str, &[&str]), defaults: Defaults) -> ServedModel {
    served_with(config, model, defaults, false)
}

fn served_with(
    config: EngineConfig,
    (template, more): (&str, &[&str]),
    defaults: Defaults,
    has_draft_model: bool,
) -> ServedModel {
    let marks: Vec<String> = more
        .iter()
        .map(|mark| mark.trim_start_matches('!').to_owned())
        .collect();
    let scripted = || {
        let marks = marks.clone();
        let script = move |prefix: &[u32]| answer(prefix, &marks);
        Box::new(ScriptedModel::new(TOKENS + more.len(), 1 << 20, script)) as Box<dyn Model>
    };
    let draft = has_draft_model.then(|| Assistant::from(scripted()));
    let tokenizer_config = json!({"chat_template": template, "eos_token": "<|im_end|>"});
    let tokenizer = tokenizer_json_with(more);
    let text = ModelText::new(tokenizer.as_bytes(), &tokenizer_config, None, defaults);
    let text = text.expect("the tokenizer of the test is valid");
    let served = ServedModel::start("m".to_owned(), scripted(), draft, text, &[IM_END], config);
    served.expect("the engine starts")
}

/// The model that follows the script under another name, with its grammars on a shelf.
pub(crate) fn served_as(shelf: &Arc<Shelf>, name: &str) -> ServedModel {
    let model = ScriptedModel::new(TOKENS, 1 << 20, |prefix| answer(prefix, &[]));
    let tokenizer_config = json!({"chat_template": TEMPLATE, "eos_token": "<|im_end|>"});
    let defaults = Defaults {
        temperature: 0.0,
        ..Defaults::default()
    };
    let text = ModelText::new(
        tokenizer_json_with(&[]).as_bytes(),
        &tokenizer_config,
        None,
        defaults,
    );
    let text = text.expect("the tokenizer of the test is valid");
    let model: (Box<dyn Model>, _) = (Box::new(model), None);
    let served = ServedModel::start_beside(shelf, name.to_owned(), model, text, &[IM_END], roomy());
    served.expect("the engine starts")
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the server's thread panicked"
            );
        }
    }
}

/// Times that no request takes, however busy the machine is, and the usual room for those that wait.
pub(crate) fn unhurried() -> RequestLimits {
    RequestLimits::new(PATIENCE, PATIENCE, 1 << 20).compiling(PATIENCE)
}

/// Room for a text that no test waits for the end of. All drafts are fed, whatever passes cost, so that they
/// can be counted.
pub(crate) fn roomy() -> EngineConfig {
    EngineConfig {
        blocks: 1 << 16,
        drafting: Drafting::Always,
        ..EngineConfig::default()
    }
}

/// A chat request that says this, with more fields.
pub(crate) fn chat(content: &str, more: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader);
        let mut answer = Self {
            status,
            headers,
            body: Vec::new(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = read_chunk(&mut reader) {
                answer.body.extend(chunk);
            }
        } else if let Some(length) = answer.header("content-length") {
            // The connection stays open for further requests.
            let length = length.parse().expect("a length");
            let _ = reader.take(length).read_to_end(&mut answer.body);
        } else {
            let _ = reader.read_to_end(&mut answer.body);
        }
        answer
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("answers are UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The JSON of each event of a stream; the last is `[DONE]`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let frames = self
            .text()
            .split_terminator("\n\n")
            .filter(|frame| !frame.starts_with(':'));
        let read = |frame: &str| {
            let data = frame
                .strip_prefix("data: ")
                .unwrap_or_else(|| panic!("not an event: {frame:?}"));
            if data == "[DONE]" {
                json!("[DONE]")
            } else {
                serde_json::from_str(data).expect("events hold JSON")
            }
        };
        frames.map(read).collect()
    }

    /// The names and the JSON of the events of a response, with their numbers checked.
    pub(crate) fn named_events(&self) -> Vec<(String, Value)> {
        let frames = self
            .text()
            .split_terminator("\n\n")
            .filter(|frame| !frame.starts_with(':'));
        let read = |(number, frame): (usize, &str)| {
            let lines = frame
                .strip_prefix("event: ")
                .and_then(|rest| rest.split_once("\ndata: "));
            let (name, data) = lines.unwrap_or_else(|| panic!("not an event: {frame:?}"));
            let data: Value = serde_json::from_str(data).expect("events hold JSON");
            assert_eq!(
                (&data["type"], &data["sequence_number"]),
                (&json!(name), &json!(number))
            );
            (name.to_owned(), data)
        };
        frames.enumerate().map(read).collect()
    }

    /// Checks that this is an error as all clients can read it, and gives its code.
    pub(crate) fn error_code(&self) -> String {
        let body = self.json();
        let error = body.get("error").unwrap_or_else(|| panic!("no envelope: {body}"));
        for key in ["message", "type", "code"] {
            assert!(
                error[key].as_str().is_some_and(|text| !text.is_empty()),
                "{key} is missing: {body}"
            );
        }
        assert!(
            error
                .get("param")
                .is_some_and(|param| param.is_null() || param.is_string()),
            "{body}"
        );
        error["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Reads the status and the headers of an answer.
pub(crate) fn read_head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).expect("an answer");
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("not an answer: {line:?}"));
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).expect("headers");
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            None => return (status, headers),
        }
    }
}

/// Reads one chunk of a streamed body, or `None` at its end.
pub(crate) fn read_chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let length = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut chunk = vec![0; length + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(length);
    (length > 0).then_some(chunk)
}

/// The script. What the model says depends on the last thing it was told:
///
/// * `echo TEXT`: that text, byte by byte;
/// * `forever`: the letter `a` without an end;
/// * `panic`: the model breaks.
fn answer(prefix: &[u32], marks: &[String]) -> Vec<f32> {
    let assistant = prefix.iter().rposition(|&token| token == IM_START).unwrap_or(0);
    let marker = "assistant\n".len() + 1;
    let told = told(&prefix[..assistant]);
    let written = prefix.len().saturating_sub(assistant + marker);
    let next = match told.split_once(' ').map_or((told.as_str(), ""), |parts| parts) {
        ("echo", text) => tokens(text, marks).get(written).copied().unwrap_or(IM_END),
        ("panic", _) => panic!("the script says so"),
        _ => u32::from(b'a'),
    };
    // The wanted token is likely; so are the ends of JSON texts, so that a constrained model can come to an
    // end.
    let mut logits = vec![0.0; TOKENS + marks.len()];
    for byte in *b"\"}]" {
        logits[usize::from(byte)] = 2.0;
    }
    logits[IM_END as usize] = 1.0;
    logits[next as usize] = 20.0;
    logits
}

/// A text byte by byte, with the marks in it as their tokens.
fn tokens(text: &str, marks: &[String]) -> Vec<u32> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some(&byte) = rest.first() {
        let mark = marks.iter().position(|mark| rest.starts_with(mark.as_bytes()));
        let length = mark.map_or(1, |mark| marks[mark].len());
        tokens.push(mark.map_or(u32::from(byte), |mark| (TOKENS + mark) as u32));
        rest = &rest[length..];
    }
    tokens
}

/// The content of the last message of a user.
fn told(prefix: &[u32]) -> String {
    let bytes = |tokens: &[u32]| {
        tokens
            .iter()
            .map(|&token| token.min(255) as u8)
            .collect::<Vec<u8>>()
    };
    let mut messages = prefix.split(|&token| token == IM_START).map(bytes);
    let user = messages
        .rfind(|message| message.starts_with(b"user\n"))
        .unwrap_or_default();
    let content = user.strip_prefix(b"user\n").unwrap_or_default();
    let content = content.strip_suffix(b"\xff\n").unwrap_or(content);
    String::from_utf8_lossy(content).into_owned()
}
