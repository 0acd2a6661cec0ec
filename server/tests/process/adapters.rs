//! A model beside itself with an adapter.

use serde_json::{Value, json};

use crate::program::{Service, adapter_folder, get, lexiform, model_folder, shown};

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
        let answer = service.post_to("/v1/completions", "", &body);
        let json = answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body)
            .unwrap_or_default();
        let json = &json[json.find('{').expect("an object")..=json.rfind('}').expect("an object")];
        let answer: Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(answer["model"], model, "{answer}");
        answer["choices"][0]["text"].clone()
    };
    assert_ne!(text("tiny"), text("other"));
    assert_eq!(text("other"), text("other"));
}

#[test]
fn what_is_no_adapter_is_said_at_the_start() {
    let model = model_folder("without-adapter");
    let start = |adapter: &str| {
        let mut command = lexiform();
        command
            .args(["serve", "--port", "0", "--adapter", adapter, "--model"])
            .arg(&model);
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output.stderr));
        shown(&output.stderr)
    };
    assert!(start("other=/nowhere").contains("adapter_config.json"));
    assert!(start("/nowhere").contains("the folder of an adapter"));
    let adapter = adapter_folder("adapter-spoiled");
    std::fs::write(adapter.join("adapter_model.safetensors"), b"no tensors").expect("a broken file");
    assert!(start(&format!("other={}", adapter.display())).contains("adapter_model.safetensors"));
}
