//! The program itself: started with a tiny model of random weights in a folder, asked, and stopped.

#[path = "http/tokenizer.rs"]
mod tokenizer;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tokenizer::{IM_END, TEMPLATE, TOKENS, tokenizer_json_with};

const HIDDEN: usize = 16;
const INNER: usize = 32;

/// Writes a model folder and gives its path.
fn model_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder for the model");
    let config = json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": TOKENS, "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 8, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": true, "hidden_act": "silu", "eos_token_id": IM_END, "torch_dtype": "float32"
    });
    let write =
        |file: &str, bytes: &[u8]| std::fs::write(folder.join(file), bytes).expect("a file of the model");
    write("config.json", config.to_string().as_bytes());
    write("tokenizer.json", tokenizer_json_with(&[]).as_bytes());
    write(
        "tokenizer_config.json",
        json!({"chat_template": TEMPLATE}).to_string().as_bytes(),
    );
    write(
        "generation_config.json",
        json!({"do_sample": false}).to_string().as_bytes(),
    );
    write("model.safetensors", &weights());
    folder
}

/// Weights in the safetensors format, all from one fixed sequence of numbers.
fn weights() -> Vec<u8> {
    let layer = "model.layers.0";
    let tensors = [
        ("model.embed_tokens.weight".to_owned(), vec![TOKENS, HIDDEN]),
        (format!("{layer}.self_attn.q_proj.weight"), vec![16, HIDDEN]),
        (format!("{layer}.self_attn.k_proj.weight"), vec![8, HIDDEN]),
        (format!("{layer}.self_attn.v_proj.weight"), vec![8, HIDDEN]),
        (format!("{layer}.self_attn.o_proj.weight"), vec![HIDDEN, 16]),
        (format!("{layer}.mlp.gate_proj.weight"), vec![INNER, HIDDEN]),
        (format!("{layer}.mlp.up_proj.weight"), vec![INNER, HIDDEN]),
        (format!("{layer}.mlp.down_proj.weight"), vec![HIDDEN, INNER]),
        (format!("{layer}.input_layernorm.weight"), vec![HIDDEN]),
        (format!("{layer}.post_attention_layernorm.weight"), vec![HIDDEN]),
        ("model.norm.weight".to_owned(), vec![HIDDEN]),
    ];
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    let mut state = 7_u32;
    for (name, shape) in tensors {
        let begin = data.len();
        for _ in 0..shape.iter().product::<usize>() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = f64::from(state) / f64::from(u32::MAX) - 0.5;
            data.extend_from_slice(&(number as f32).to_le_bytes());
        }
        header.insert(
            name,
            json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]}),
        );
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend(data);
    file
}

fn lexiform() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lexiform"));
    command.stdin(Stdio::null());
    command
}

fn generate(arguments: &[&str]) -> Output {
    let folder = model_folder("generated");
    let output = lexiform()
        .arg("generate")
        .arg("--model")
        .arg(folder)
        .args(arguments)
        .output();
    output.expect("the program runs")
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running service.
struct Service {
    child: Child,
    address: String,
    output: BufReader<std::process::ChildStdout>,
}

impl Service {
    fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    fn start_with(folder: &Path, more: &[&str]) -> Self {
        let mut command = lexiform();
        command
            .args(["serve", "--port", "0", "--served-model-name", "tiny", "--model"])
            .arg(folder)
            .args(more);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a first line");
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address = address
            .unwrap_or_else(|| panic!("no address in {line:?}"))
            .to_owned();
        Self {
            child,
            address,
            output,
        }
    }

    fn post(&self, body: &Value) -> String {
        self.post_as("nobody", body)
    }

    fn post_as(&self, key: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("the service listens");
        let body = body.to_string();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\nconnection: close";
        write!(
            stream,
            "{head}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_constrained_text_is_generated_by_random_weights() {
    for seed in ["1", "2", "3"] {
        let output = generate(&[
            "hello",
            "--regex",
            "[a-c]{3}(x|yz)",
            "--seed",
            seed,
            "--temperature",
            "1",
        ]);
        assert!(output.status.success(), "{}", shown(&output.stderr));
        let text = shown(&output.stdout);
        let (letters, end) = text.trim_end().split_at(3);
        assert!(
            letters.chars().all(|c| ('a'..='c').contains(&c)) && ["x", "yz"].contains(&end),
            "{text}"
        );
    }
}

#[test]
fn the_whole_answer_tells_its_law() {
    let output = generate(&[
        "hello",
        "--regex",
        "yes|no",
        "--law",
        "global",
        "--temperature",
        "1",
        "--json",
        "-n",
        "2",
    ]);
    assert!(output.status.success(), "{}", shown(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for choice in answer["choices"].as_array().expect("choices") {
        assert_eq!(choice["lexiform"]["law"], "global-exact");
        assert!(["yes", "no"].contains(&choice["message"]["content"].as_str().unwrap_or_default()));
    }
}

#[test]
fn what_is_wrong_is_said_and_the_status_tells() {
    let output = generate(&["hello", "--regex", "("]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        shown(&output.stderr).contains("guided_regex"),
        "{}",
        shown(&output.stderr)
    );
    let output = generate(&["hello", "--schema", "no-such-file.json"]);
    assert!(
        shown(&output.stderr).contains("no-such-file.json"),
        "{}",
        shown(&output.stderr)
    );
}

#[test]
fn a_broken_model_folder_is_named_with_what_was_expected() {
    let folder = model_folder("broken");
    let start = || {
        let mut command = lexiform();
        command.args(["serve", "--port", "0", "--model"]).arg(&folder);
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2));
        shown(&output.stderr)
    };
    std::fs::write(folder.join("model.safetensors"), b"not weights").expect("a broken file");
    assert!(start().contains("model.safetensors"));
    std::fs::write(folder.join("tokenizer_config.json"), b"{").expect("a broken file");
    assert!(start().contains("tokenizer_config.json"));
    std::fs::remove_file(folder.join("tokenizer.json")).expect("a missing file");
    assert!(start().contains("tokenizer.json"));
}

#[test]
fn the_service_starts_answers_and_stops_when_told() {
    let mut service = Service::start(&model_folder("served"));
    let answer = service.post(&json!({
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "structured_outputs": {"choice": ["yes", "no"]}
    }));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("\"content\":\"yes\"") || answer.contains("\"content\":\"no\""),
        "{answer}"
    );
    let told = Command::new("kill")
        .args(["-TERM", &service.child.id().to_string()])
        .status();
    assert!(told.is_ok_and(|status| status.success()), "the signal was sent");
    let status = service.child.wait().expect("the service ends");
    assert!(status.success(), "{status}");
    let mut rest = String::new();
    service
        .output
        .read_to_string(&mut rest)
        .expect("the rest of the greeting");
    assert!(rest.contains("curl -s http://"), "{rest}");
}

/// Guards against keys that work in tests and not in the program, and against secrets in what it writes.
#[test]
fn a_file_configures_the_service_and_a_made_key_opens_it() {
    let folder = model_folder("guarded");
    let made = lexiform()
        .args(["key", "shop"])
        .output()
        .expect("the program runs");
    let told = shown(&made.stderr);
    let key = told.split_whitespace().last().expect("a key").to_owned();
    assert!(key.starts_with("lx-") && !shown(&made.stdout).contains(&key));
    let path = |name: &str| folder.join(name).display().to_string();
    std::fs::write(path("keys.toml"), &made.stdout).expect("a file of keys");
    let audit = path("audit.jsonl");
    let _ = std::fs::remove_file(&audit);
    let config = format!(
        "api-keys = {:?}\naudit-log = {audit:?}\nmax-batch = 2\n",
        path("keys.toml")
    );
    std::fs::write(path("lexiform.toml"), config).expect("a configuration");
    let mut service = Service::start_with(&folder, &["--config", &path("lexiform.toml")]);
    let body =
        json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "guided_regex": "[ab]"});
    assert!(service.post(&body).starts_with("HTTP/1.1 401"));
    let answer = service.post_as(&key, &body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let told = Command::new("kill")
        .args(["-TERM", &service.child.id().to_string()])
        .status();
    assert!(told.is_ok_and(|status| status.success()), "the signal was sent");
    assert!(service.child.wait().is_ok_and(|status| status.success()));
    let audit = std::fs::read_to_string(&audit).expect("the audit log");
    assert!(
        audit.contains("\"key\":\"shop\"") && !audit.contains(&key),
        "{audit}"
    );
}
