//! Several models: with adapters, with settings of their own, and with a bound on their memory.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Service, adapter_folder, get, lexiform, model_folder, shown};
use crate::tokenizer::TOKENS;

/// Reads the object in the body of an answer.
fn object(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let body = &body[body.find('{').expect("an object")..=body.rfind('}').expect("an object")];
    serde_json::from_str(body).expect("JSON")
}

/// Starts the program with a model and these flags, which it refuses with a message.
fn refused(model: &Path, flags: &[&str]) -> String {
    let mut command = lexiform();
    command
        .args(["serve", "--port", "0"])
        .args(flags)
        .arg("--model")
        .arg(model);
    let output = command.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output.stderr));
    shown(&output.stderr)
}

#[test]
fn an_adapter_makes_a_further_model() {
    let adapter = adapter_folder("adapter");
    let flag = format!("other={}", adapter.display());
    let service = Service::start_with(&model_folder("adapted"), &["--adapter", &flag]);
    let models = get(&service.address, "/v1/models");
    let (tiny, other) = (models.find(r#""id":"tiny""#), models.find(r#""id":"other""#));
    assert!(tiny.is_some() && tiny < other, "{models}");
    let text = |model: &str| {
        let body = json!({"model": model, "temperature": 0, "max_tokens": 24, "prompt": "hello"});
        let answer = object(&service.post_to("/v1/completions", "", &body));
        assert_eq!(answer["model"], model, "{answer}");
        answer["choices"][0]["text"].clone()
    };
    assert_ne!(text("tiny"), text("other"));
    assert_eq!(text("other"), text("other"));
}

#[test]
fn what_is_no_adapter_is_said_at_the_start() {
    let model = model_folder("without-adapter");
    let start = |adapter: &str| refused(&model, &["--adapter", adapter]);
    assert!(start("other=/nowhere").contains("adapter_config.json"));
    assert!(start("/nowhere").contains("the folder of an adapter"));
    let adapter = adapter_folder("adapter-spoiled");
    std::fs::write(adapter.join("adapter_model.safetensors"), b"no tensors").expect("a broken file");
    assert!(start(&format!("other={}", adapter.display())).contains("adapter_model.safetensors"));
}

#[test]
fn a_model_has_a_chat_template_and_a_context_of_its_own() {
    let model = model_folder("own-settings");
    let (template, table) = (model.join("own.jinja"), model.join("models.toml"));
    std::fs::write(
        &template,
        "{% for message in messages %}[{{ message.content }}]{% endfor %}",
    )
    .expect("a file");
    let path = |path: &Path| json!(path.display().to_string()).to_string();
    let own = format!("chat-template = {}\nmax-model-len = 64\n", path(&template));
    let tables =
        ["plain", "own"].map(|name| format!("[[models]]\nmodel = {}\nname = \"{name}\"\n", path(&model)));
    std::fs::write(&table, tables.concat() + &own).expect("a file");
    let mut command = lexiform();
    command
        .args(["serve", "--port", "0", "--threads", "1", "--config"])
        .arg(&table);
    let service = Service::spawned(&mut command);
    let read = |model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hello"}]});
        let told = object(&service.post_to("/tokenize", "", &body));
        (
            told["prompt"].as_str().unwrap_or_default().to_owned(),
            told["max_model_len"].clone(),
        )
    };
    let (prompt, most) = read("plain");
    assert!(prompt.contains("<|im_start|>") && most == 512, "{prompt} {most}");
    assert_eq!(read("own"), ("[hello]".to_owned(), json!(64)));
    let long = json!({"model": "own", "prompt": "hello", "max_tokens": 100});
    let answer = object(&service.post_to("/v1/completions", "", &long));
    assert_eq!(answer["usage"]["total_tokens"], 64, "{answer}");
}

#[test]
fn a_template_or_a_context_that_cannot_be_is_said_at_the_start() {
    let model = model_folder("without-template");
    let broken = model.join("broken.jinja");
    std::fs::write(&broken, "{% for message in %}").expect("a file");
    let long = model.join("long.jinja");
    std::fs::write(&long, "a".repeat((1 << 20) + 1)).expect("a file");
    for (flag, value, words) in [
        (
            "--chat-template",
            "/nowhere.jinja".to_owned(),
            ["/nowhere.jinja", "no such file"],
        ),
        (
            "--chat-template",
            broken.display().to_string(),
            ["broken.jinja", "not valid"],
        ),
        (
            "--chat-template",
            long.display().to_string(),
            ["long.jinja", "1048576 bytes"],
        ),
        ("--max-model-len", "513".to_owned(), ["513", "512"]),
        ("--max-model-len", "0".to_owned(), ["--max-model-len", "0"]),
    ] {
        // A model that is loaded later is known to fail, too, except for the positions, which only its
        // files tell.
        let more = if flag == "--chat-template" { "use" } else { "start" };
        let message = refused(&model, &["--load-models", more, flag, &value]);
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
}

#[test]
fn weights_are_known_and_bounded() {
    let model = model_folder("weighed");
    let (mib, demo) = (["--models-memory", "1"], Path::new("demo"));
    let message = refused(demo, &mib);
    assert!(
        message.contains("'demo'") && message.contains("1048576 bytes"),
        "{message}"
    );
    let service = Service::start_with(&model, &mib);
    let card = object(&get(&service.address, "/v1/models/tiny"));
    // The matrices of the folder, and its embedding, which is also the output layer.
    let numbers = 16 * (TOKENS + 16 + 8 + 8 + 16 + 3 * 32);
    assert_eq!(card["weight_bytes"], 4 * numbers, "{card}");
    let metric = format!(
        "lexiform_weight_bytes{{model_name=\"tiny\",engine=\"0\"}} {}",
        4 * numbers
    );
    assert!(get(&service.address, "/metrics").contains(&metric));
    let rounded = Service::start_with(&model, &["--weights", "int8"]);
    let card = object(&get(&rounded.address, "/v1/models/tiny"));
    assert_eq!(card["weight_bytes"], numbers + 4 * 16 * TOKENS, "{card}");
}
