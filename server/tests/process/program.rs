//! The program itself: a tiny model of random weights in a folder, and a service that is started with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::tokenizer::{IM_END, TEMPLATE, TOKENS, tokenizer_json_with};

const HIDDEN: usize = 16;
const INNER: usize = 32;

/// Writes a model folder and gives its path.
pub(crate) fn model_folder(name: &str) -> PathBuf {
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

/// The weights of the model.
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
    safetensors(&tensors, 7)
}

/// Writes the folder of an adapter for such a model, and gives its path.
pub(crate) fn adapter_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder for the adapter");
    let config =
        json!({"peft_type": "LORA", "r": 2, "lora_alpha": 16, "target_modules": ["o_proj", "down_proj"]});
    let module = |of: &str, end: &str| format!("base_model.model.model.layers.0.{of}.{end}.weight");
    let tensors = [
        (module("self_attn.o_proj", "lora_A"), vec![2, 16]),
        (module("self_attn.o_proj", "lora_B"), vec![HIDDEN, 2]),
        (module("mlp.down_proj", "lora_A"), vec![2, INNER]),
        (module("mlp.down_proj", "lora_B"), vec![HIDDEN, 2]),
    ];
    let write =
        |file: &str, bytes: &[u8]| std::fs::write(folder.join(file), bytes).expect("a file of the adapter");
    write("adapter_config.json", config.to_string().as_bytes());
    write("adapter_model.safetensors", &safetensors(&tensors, 8));
    folder
}

/// Tensors in the safetensors format, all from one fixed sequence of numbers.
fn safetensors(tensors: &[(String, Vec<usize>)], seed: u32) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    let mut state = seed;
    for (name, shape) in tensors {
        let begin = data.len();
        for _ in 0..shape.iter().product::<usize>() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = f64::from(state) / f64::from(u32::MAX) - 0.5;
            data.extend_from_slice(&(number as f32).to_le_bytes());
        }
        header.insert(
            name.clone(),
            json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]}),
        );
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend(data);
    file
}

pub(crate) fn lexiform() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lexiform"));
    command.stdin(Stdio::null());
    command
}

/// The command that serves the model of a folder on this port.
pub(crate) fn serving(port: u16, folder: &Path, more: &[&str]) -> Command {
    let mut command = lexiform();
    command
        .args(["serve", "--served-model-name", "tiny", "--threads", "1"])
        .args(["--port", &port.to_string(), "--model"])
        .arg(folder)
        .args(more)
        // However busy the machine is: what is to end in time is told so by a flag.
        .envs(["QUEUE", "COMPILE", "DRAIN"].map(|name| (format!("LEXIFORM_{name}_SECONDS"), "600")));
    command
}

pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a server at this address answers.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n"
    )
    .expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// A running service.
pub(crate) struct Service {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) output: BufReader<std::process::ChildStdout>,
}

impl Service {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    pub(crate) fn start_with(folder: &Path, more: &[&str]) -> Self {
        Self::start_on(0, folder, more)
    }

    /// On this port.
    pub(crate) fn start_on(port: u16, folder: &Path, more: &[&str]) -> Self {
        Self::spawned(&mut serving(port, folder, more))
    }

    /// Starts a command that serves on a port of 127.0.0.1, and reads the port from its greeting.
    pub(crate) fn spawned(command: &mut Command) -> Self {
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

    /// The port it listens on.
    pub(crate) fn port(&self) -> u16 {
        let port = self.address.rsplit(':').next().and_then(|port| port.parse().ok());
        port.expect("an address with a port")
    }

    /// Reads on to a line that begins so; what stands behind it there.
    pub(crate) fn told(&mut self, beginning: &str) -> String {
        let mut lines = (&mut self.output).lines().map_while(Result::ok);
        let found = lines.find_map(|line| line.strip_prefix(beginning).map(str::to_owned));
        found.unwrap_or_else(|| panic!("it did not tell {beginning:?}"))
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let told = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(told.is_ok_and(|status| status.success()), "the signal was sent");
    }

    /// Waits until it has ended by itself; whether it says that all is well.
    pub(crate) fn ended_well(&mut self) -> bool {
        self.child.wait().is_ok_and(|status| status.success())
    }

    pub(crate) fn post(&self, body: &Value) -> String {
        self.post_as("nobody", body)
    }

    pub(crate) fn post_as(&self, key: &str, body: &Value) -> String {
        self.post_to("/v1/chat/completions", key, body)
    }

    pub(crate) fn post_to(&self, path: &str, key: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("the service listens");
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close");
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
