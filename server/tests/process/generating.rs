//! `lexiform generate`, and what the program says when its model cannot be read.

use std::path::PathBuf;
use std::process::Output;
use std::sync::LazyLock;

use serde_json::Value;

use crate::program::{lexiform, model_folder, shown};

fn generate(arguments: &[&str]) -> Output {
    // Written once: a test beside this one may be reading it.
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| model_folder("generated"));
    let output = lexiform()
        .arg("generate")
        .arg("--model")
        .arg(&*FOLDER)
        .args(arguments)
        .output();
    output.expect("the program runs")
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
fn a_search_is_named_or_given_with_its_parameters() {
    for (search, law) in [
        ("k_best", "k-best"),
        (
            r#"{"kind": "dynamic_beam", "must_contain": ["o"]}"#,
            "dynamic-beam",
        ),
    ] {
        let output = generate(&["hello", "--regex", "yes|no", "--search", search, "--json"]);
        assert!(output.status.success(), "{}", shown(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let choice = &answer["choices"][0];
        assert_eq!(choice["lexiform"]["law"], law);
        if law == "dynamic-beam" {
            assert_eq!(choice["message"]["content"], "no");
        }
    }
}

#[test]
fn what_is_wrong_is_said_and_the_status_tells() {
    let output = generate(&["hello", "--regex", "("]);
    assert_eq!(output.status.code(), Some(3));
    let said = shown(&output.stderr);
    assert!(
        said.contains("the regex does not compile") && !said.contains("guided"),
        "{said}"
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
