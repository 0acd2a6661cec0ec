//! `lexiform models`, and what `--model` says of what is not there, over stores that are made up in a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{program, run};

/// The family of the demo model.
const FAMILY: &str = "llama";

/// A folder with stores, removed with this value.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lexiform-cli-models-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Disk(folder)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }

    /// The files of the demo model, as links, which is how the cache of Hugging Face has them.
    fn link_demo(&self, folder: &str) {
        let (demo, folder) = (
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/demo"),
            self.0.join(folder),
        );
        std::fs::create_dir_all(&folder).expect("a folder");
        for file in [
            "config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "model.safetensors",
        ] {
            std::os::unix::fs::symlink(demo.join(file), folder.join(file)).expect("a link");
        }
    }

    fn program(&self) -> Command {
        let mut command = program();
        command
            .env_remove("HF_HUB_CACHE")
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .env("HF_HOME", self.0.join("hf"))
            .env("OLLAMA_MODELS", self.0.join("ollama"));
        command
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A cache with a model that runs, one of a family that the engine does not know, and one that was not pulled
/// to its end.
fn stocked(name: &str) -> Disk {
    let disk = Disk::new(name);
    disk.link_demo("hf/hub/models--o--small/snapshots/1");
    disk.link_demo("hf/hub/models--o--strange/snapshots/1");
    std::fs::remove_file(disk.0.join("hf/hub/models--o--strange/snapshots/1/config.json")).expect("a link");
    disk.write(
        "hf/hub/models--o--strange/snapshots/1/config.json",
        br#"{"model_type": "mamba"}"#,
    );
    disk.write("ollama/manifests/registry.ollama.ai/library/gone/1b", b"{");
    disk
}

#[test]
fn models_are_listed_with_what_to_type_and_whether_they_run() {
    let disk = stocked("listed");
    let listed = run(disk.program().arg("models"));
    assert_eq!((listed.code, listed.err.as_str()), (0, ""));
    let (table, problems) = listed.out.split_once("\n\n").expect("a table and problems");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(
        rows[0],
        ["--model", "size", "format", "architecture", "context", "where"]
    );
    assert_eq!(
        rows[1],
        ["demo", "9 MB", "safetensors", "llama", "4096", "built in"]
    );
    assert_eq!(
        rows[2],
        ["o/small", "9 MB", "safetensors", FAMILY, "4096", "Hugging Face"]
    );
    assert_eq!(rows.len(), 3, "{table}");
    let problems: Vec<&str> = problems.lines().collect();
    assert_eq!(problems[0], "These cannot be run:");
    assert!(
        problems[1].starts_with("  o/strange  ") && problems[1].contains("mamba"),
        "{problems:?}"
    );
    assert!(
        problems[2].starts_with("  ollama:gone:1b  ") && problems[2].contains("is not JSON"),
        "{problems:?}"
    );
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!(
        run(disk.program().args(["models", "--quiet"])).out,
        "demo\no/small\n"
    );
}

#[test]
fn programs_read_the_list_as_json() {
    let disk = stocked("json");
    let listed = run(disk.program().args(["models", "--json"]));
    let listed: Value = serde_json::from_str(&listed.out).expect("one object");
    assert_eq!(
        (&listed["ok"], &listed["exit"], &listed["cut"]),
        (&json!(true), &json!(0), &json!([]))
    );
    let models = listed["models"].as_array().expect("a list");
    assert_eq!(models.len(), 4);
    let small = json!({
        "model": "o/small", "store": "Hugging Face", "bytes": models[0]["bytes"], "format": "safetensors", "runs": true,
        "architecture": FAMILY, "vocabulary": models[0]["vocabulary"], "context": 4096
    });
    assert_eq!(models[1], small);
    assert_eq!(
        (&models[2]["model"], &models[2]["runs"]),
        (&json!("o/strange"), &json!(false))
    );
    assert_eq!(
        (&models[3]["bytes"], &models[3]["format"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn a_model_that_is_not_there_is_a_wrong_call() {
    let disk = Disk::new("absent");
    let said = |model: &str| {
        let run = run(disk.program().args(["serve", "--port", "0", "--model", model]));
        assert_eq!(run.code, 2, "{}", run.err);
        run.err
    };
    std::fs::create_dir_all(disk.0.join("empty")).expect("a folder");
    for (model, part) in [
        ("gpt-4o", "`lexiform models` lists those on this disk"),
        ("Qwen/Qwen3-0.6B", "`hf download Qwen/Qwen3-0.6B` brings it"),
        ("ollama:qwen3:0.6b", "`ollama pull qwen3:0.6b` brings it"),
        (&path(&disk.0.join("empty")), " is empty; expected a GGUF file"),
    ] {
        let said = said(model);
        assert!(said.starts_with("error: ") && said.contains(part), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let drafts = run(disk
        .program()
        .args(["generate", "x", "--model", "demo", "--draft-model", "gpt-4o"]));
    assert!(
        drafts.code == 2 && drafts.err.contains("there is no model 'gpt-4o'"),
        "{}",
        drafts.err
    );
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn the_version_names_the_model_that_serves_where_none_is_named() {
    let disk = Disk::new("usual");
    let told = |disk: &Disk| run(disk.program().arg("version")).out;
    assert!(told(&disk).contains("\nmodel    demo\n"));
    disk.write(
        "cache/lexiform/models/smollm2-135m-instruct/SmolLM2.gguf",
        b"GGUF",
    );
    let told = told(&disk);
    assert!(told.contains("\nmodel    smollm2-135m-instruct\n"), "{told}");
    let devices = told
        .lines()
        .find_map(|line| line.strip_prefix("devices  cpu ("))
        .expect("devices");
    assert!(devices.len() < 60 && !told.contains('+'), "{told}");
    let verbose = run(disk.program().args(["version", "-v"])).out;
    assert!(verbose.len() > told.len(), "{verbose}");
}

/// A head is known by its files, and read for the model beside it: one of another model is refused with both
/// sizes, and weights that are not read are named with the way to convert them.
#[test]
fn a_head_that_is_not_for_the_model_is_refused_at_start() {
    let disk = Disk::new("heads");
    let refused = |head: &Path, part: &str| {
        let head = path(head);
        let said = run(disk
            .program()
            .args(["generate", "x", "--model", "demo", "--draft-model", &head]));
        assert!(said.code != 0 && said.err.contains(part), "{}", said.err);
    };
    let heads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/fixtures/heads");
    refused(
        &heads.join("eagle"),
        "hidden_size is 16, and that of the model 256: the head was trained for another model",
    );
    refused(
        &heads.join("medusa"),
        "tensor \"0.0.linear.weight\" has shape [16, 16]",
    );
    disk.write("pickled/config.json", b"{}");
    disk.write("pickled/pytorch_model.bin", b"");
    refused(&disk.0.join("pickled"), "convert the file with `python -c");
}
