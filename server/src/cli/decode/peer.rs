//! The program measured for comparison: `transformers`, in a separate process, on the same weights and
//! prompts.
//!
//! A small script, which is part of this program, loads the model once and is then asked for one run after
//! another, so that it takes its turn in each round like an arm.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lexiform_cli::failure::{Failure, reason};
use lexiform_engine::{Device, Dtype, ModelFiles, PassReads};
use serde_json::{Value, json};

use super::args::Args;
use super::machine::Machine;
use super::run::{Decoding, Run};
use crate::cli::model::Chosen;
use crate::model::source::Place;

const SCRIPT: &str = include_str!("transformers.py");
/// The files of a model that the script needs.
const FILES: [&str; 3] = ["config.json", "generation_config.json", "model.safetensors"];

/// The running peer process, which ends when this value is dropped.
pub(super) struct Peer {
    child: RefCell<Process>,
    /// The temporary folder that was created for the process.
    folder: Option<PathBuf>,
}

struct Process {
    child: Child,
    asked: Option<ChildStdin>,
    said: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the process on the model of these files.
    ///
    /// # Errors
    /// Fails if there is no such Python interpreter, or if it cannot load `transformers` or the model.
    pub(super) fn start(args: &Args, chosen: &Chosen, machine: &Machine) -> Result<Self, Failure> {
        let (folder, made) = match (&chosen.located.place, args.shape) {
            (Place::Disk(path), None) if path.is_dir() => (path.clone(), None),
            (Place::Disk(_), None) => return Err(unable("it reads Hugging Face folders, and no GGUF files")),
            _ => {
                let made = written(&chosen.files, args.shape.is_none())?;
                (made.clone(), Some(made))
            }
        };
        let spawned = Command::new(&args.python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = spawned.map_err(|error| {
            unable(&format!(
                "{} cannot be started: {}",
                args.python.display(),
                reason(&error)
            ))
        })?;
        let (asked, said) = (child.stdin.take(), child.stdout.take());
        let said = said.ok_or_else(|| unable("it has no output"))?;
        let peer = Peer {
            child: RefCell::new(Process {
                child,
                asked,
                said: BufReader::new(said),
            }),
            folder: made,
        };
        peer.ask(&json!({
            "folder": folder,
            "random": args.shape.is_some(),
            "device": args.model.run.device.to_string(),
            "dtype": dtype(args, &folder)?,
            "threads": machine.threads,
        }))?;
        Ok(peer)
    }

    /// Generates this many tokens after each of these prompts.
    ///
    /// # Errors
    /// Returns the error that the process reports.
    pub(super) fn run(
        &self,
        prompts: &[Vec<u32>],
        tokens: usize,
        temperature: f64,
        reads: &PassReads,
    ) -> Result<Run, Failure> {
        let said = self.ask(&json!({"prompts": prompts, "tokens": tokens, "temperature": temperature}))?;
        let number = |name: &str| said[name].as_f64().unwrap_or(0.0);
        let passes = tokens.saturating_sub(1) as f64;
        let fed = prompts.len() as f64;
        let cache = prompts
            .iter()
            .flat_map(|prompt| (1..tokens).map(|index| prompt.len() + index));
        let bytes = passes * reads.weights(fed) + cache.map(|positions| reads.cache(positions)).sum::<f64>();
        Ok(Run {
            tokens: number("tokens") as usize,
            seconds: number("seconds"),
            firsts: vec![number("first"); prompts.len()],
            attempts: prompts.len(),
            drafted: 0,
            decoding: (passes > 0.0).then(|| Decoding {
                seconds: number("seconds") - number("first"),
                passes,
                model_seconds: None,
                bytes,
            }),
        })
    }

    /// Sends a line and reads one.
    fn ask(&self, question: &Value) -> Result<Value, Failure> {
        let mut process = self.child.borrow_mut();
        let sent = process.asked.as_mut().map(|asked| writeln!(asked, "{question}"));
        let mut line = String::new();
        let read = process.said.read_line(&mut line);
        if let Some(Err(error)) = sent {
            return Err(unable(&format!("it cannot be asked: {}", reason(&error))));
        }
        let said = read.ok().and_then(|_| serde_json::from_str::<Value>(&line).ok());
        let said = said.ok_or_else(|| unable("it has ended without an answer"))?;
        match said["error"].as_str() {
            Some(error) => Err(unable(error)),
            None => Ok(said),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let process = self.child.get_mut();
        // The process ends when its input is closed.
        process.asked = None;
        let _ = process.child.wait();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn unable(message: &str) -> Failure {
    Failure::message(format!(
        "--peer transformers: {message}. It needs a Python with torch and transformers (pip install transformers), which --python FILE \
         names"
    ))
}

/// Returns the torch name of the number format of the model.
fn dtype(args: &Args, folder: &Path) -> Result<&'static str, Failure> {
    Ok(match (args.model.run.dtype, args.model.run.device) {
        (Dtype::F32, _) | (Dtype::Auto, Device::Cpu) => "float32",
        (Dtype::Bf16, _) => "bfloat16",
        (Dtype::F16, _) => "float16",
        // The number format of the checkpoint.
        (Dtype::Auto, Device::Cuda(_)) => {
            let text = lexiform_cli::failure::read_text(&folder.join("config.json"))?;
            let config: Value = serde_json::from_str(&text).unwrap_or_default();
            match config["torch_dtype"].as_str().or(config["dtype"].as_str()) {
                Some("float32") => "float32",
                Some("float16") => "float16",
                _ => "bfloat16",
            }
        }
    })
}

/// Writes the files of a model that is not in a folder to a new folder, which the caller removes.
fn written(files: &ModelFiles, has_weights: bool) -> Result<PathBuf, Failure> {
    let folder = std::env::temp_dir().join(format!("lexiform-bench-{}", std::process::id()));
    let failed = |path: &Path, source| Failure::Write {
        path: path.to_owned(),
        source,
    };
    // Fails if the folder exists: the writes below must not follow links placed there by another user.
    std::fs::create_dir(&folder).map_err(|error| failed(&folder, error))?;
    for name in FILES {
        if !files.has(name) || (name == "model.safetensors" && !has_weights) {
            continue;
        }
        let path = folder.join(name);
        let bytes = files
            .bytes(name)
            .map_err(|error| Failure::message(error.to_string()))?;
        std::fs::write(&path, bytes).map_err(|error| failed(&path, error))?;
    }
    Ok(folder)
}
