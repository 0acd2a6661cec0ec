//! The plugins for inference engines: `cargo xtask plugins` runs the examples for engines in Rust
//! (`bindings/examples`), installs vLLM and SGLang for the CPU into `.venv/plugins` and runs the tests in
//! `bindings/python/tests/plugins` with each of them.
//!
//! `bindings/python/tests/plugins/install.py` lists what is fetched: 1.3 GB, which is too much for `cargo
//! xtask test`. An engine that is missing is reported as skipped.

use super::python::{environment, wheel_for_tests};
use crate::process::{Failure, cargo, each_line, line, root};
use crate::tally::{LibtestReader, Tally, of_pytest};
use std::path::Path;
use std::process::{Command, Stdio};

/// The engines: the folder into which `install.py` installs each, and its tests, each in a separate process,
/// because vLLM starts only one engine for each process.
const ENGINES: [(&str, &[&str]); 3] = [
    (
        "vllm-0.32.0",
        &[
            "test_vllm.py",
            "test_vllm_parsers.py",
            "test_vllm_engine.py",
            "test_vllm_drafts.py",
            "test_vllm_thoughts.py",
            "test_vllm_server.py",
        ],
    ),
    ("vllm-0.33.0", &["test_vllm.py", "test_vllm_parsers.py"]),
    ("sglang-0.5.23", &["test_sglang.py", "test_sglang_parsers.py"]),
];

/// The examples for engines in Rust, which are separate packages.
const EXAMPLES: [&str; 2] = ["candle", "mistralrs"];

/// The settings with which an engine runs on a few cores without a network.
const SETTINGS: [(&str, &str); 6] = [
    ("HF_HUB_OFFLINE", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("VLLM_CPU_KVCACHE_SPACE", "1"),
    ("VLLM_CPU_OMP_THREADS_BIND", "nobind"),
    ("VLLM_ENABLE_V1_MULTIPROCESSING", "0"),
    ("VLLM_NO_USAGE_STATS", "1"),
];

/// Installs the engines and runs the tests, or reports why they are skipped.
pub(crate) fn test() -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    for example in EXAMPLES {
        tally += example_test(example)?;
    }
    tally += engines()?;
    Ok(tally)
}

fn example_test(name: &str) -> Result<Tally, Failure> {
    let manifest = format!("bindings/examples/{name}/Cargo.toml");
    let mut command = cargo(["test", "--locked", "--manifest-path", &manifest]);
    let mut reader = LibtestReader::default();
    let finished_well = each_line(&mut command, |line| reader.read(line))?;
    Ok(reader.finish(finished_well))
}

fn engines() -> Result<Tally, Failure> {
    let environment = match environment() {
        Ok(environment) => environment,
        Err(why) => return Ok(skipped("all", &why)),
    };
    let wheel = wheel_for_tests(&environment)?;
    let engines = root().join(".venv/plugins");
    if let Err(why) = install(&engines, &wheel) {
        return Ok(skipped("all", &why));
    }
    let mut tally = Tally::default();
    for (name, tests) in ENGINES {
        let engine = engines.join(name);
        if !engine.is_dir() {
            tally += skipped(name, "it is not installed");
            continue;
        }
        for test in tests {
            tally += pytest(&engines, &engine, test)?;
        }
    }
    Ok(tally)
}

fn skipped(name: &str, why: &str) -> Tally {
    println!("skipped: plugin tests: {name}: {why}");
    Tally::SKIPPED
}

/// Installs vLLM, SGLang and this wheel into a folder, unless they are there.
pub(crate) fn install(engines: &Path, wheel: &Path) -> Result<(), String> {
    let mut install = Command::new("python3");
    install.arg(root().join("bindings/python/tests/plugins/install.py"));
    install.arg(engines).arg(wheel);
    eprintln!("$ {}", line(&install));
    let output = install
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn pytest(environment: &Path, engine: &Path, test: &str) -> Result<Tally, Failure> {
    let mut pytest = Command::new(environment.join("bin/python"));
    pytest.args(["-m", "pytest", "-rs", "--color=no", "--disable-warnings"]);
    pytest.arg(root().join("bindings/python/tests/plugins").join(test));
    pytest
        .envs(SETTINGS)
        .env("PYTHONPATH", engine)
        .current_dir(root());
    let mut output = String::new();
    let finished_well = each_line(&mut pytest, |line| {
        output.push_str(line);
        output.push('\n');
    })?;
    Ok(of_pytest(&output, finished_well))
}
