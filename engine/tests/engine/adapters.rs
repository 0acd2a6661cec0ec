//! Adapters of low rank that are merged when a model is loaded, against what PEFT computes.

use crate::bad_models::Folder;
use crate::families::rows;
use crate::torch::{Expected, TOLERANCE};
use lexiform_engine::{LoadError, LoadOptions, LoadedModel, ModelFiles, load};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const ADAPTERS: [&str; 4] = [
    "llama2-attention",
    "qwen3-all-rslora",
    "phi3-fused",
    "qwen3_bf16-all",
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn family(adapter: &str) -> &str {
    adapter.split('-').next().unwrap()
}

fn load_with(family: &str, adapter: Option<&Path>, fused: bool) -> Result<LoadedModel, LoadError> {
    let options = LoadOptions {
        adapter: adapter.map(ModelFiles::folder),
        fused,
        ..LoadOptions::default()
    };
    load(&ModelFiles::folder(fixture(family)), &options)
}

fn off(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // NaN is no number's neighbour.
    off.fold(0.0, |most, off| if off <= most { most } else { off })
}

#[test]
fn a_model_with_an_adapter_is_that_of_peft() {
    for name in ADAPTERS {
        let folder = fixture("adapters").join(name);
        let bytes = std::fs::read(folder.join("logits.f32")).unwrap();
        let (numbers, _) = bytes.as_chunks::<4>();
        let expected: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
        let tokens = Expected::read(family(name)).tokens;
        for fused in [false, true] {
            let adapted = load_with(family(name), Some(&folder), fused).unwrap();
            let off = off(&rows(adapted.model, &tokens), &expected);
            assert!(off < TOLERANCE, "{name}, fused {fused}: off by {off}");
        }
        let plain = load_with(family(name), None, true).unwrap();
        let off = off(&rows(plain.model, &tokens), &expected);
        assert!(off > 100.0 * TOLERANCE, "{name} changes no more than {off}");
    }
}

/// A copy of an adapter, to be spoiled.
fn copy(test: &str) -> Folder {
    Folder::copy_of("adapters/llama2-attention", test)
}

fn complains(adapter: &Folder, model: &str, says: &[&str]) {
    let error = load_with(model, Some(&adapter.0), true).err();
    let message = error.expect("the adapter does not fit").to_string();
    for part in says {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
}

#[test]
fn settings_that_are_not_understood_are_named() {
    let adapter = copy("adapter-settings");
    let file = adapter.0.join("adapter_config.json");
    let whole: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    for (name, value) in [
        ("peft_type", json!("IA3")),
        ("use_dora", json!(true)),
        ("fan_in_fan_out", json!(true)),
        ("bias", json!("all")),
        ("rank_pattern", json!({"q_proj": 2})),
        ("alpha_pattern", json!({"q_proj": 2})),
        ("modules_to_save", json!(["lm_head"])),
        ("layer_replication", json!([[0, 1]])),
        ("init_lora_weights", json!("pissa")),
        ("a_field_of_tomorrow", json!(1)),
    ] {
        let mut config = whole.clone();
        config[name] = value;
        adapter.write("adapter_config.json", config.to_string().as_bytes());
        complains(&adapter, "llama2", &["adapter_config.json", name]);
    }
    for (name, value, says) in [
        ("r", json!(0), "rank"),
        ("r", json!("3"), "rank"),
        ("lora_alpha", Value::Null, "lora_alpha"),
    ] {
        let mut config = whole.clone();
        config[name] = value;
        adapter.write("adapter_config.json", config.to_string().as_bytes());
        complains(&adapter, "llama2", &["adapter_config.json", says]);
    }
    for text in ["{", "[]"] {
        adapter.write("adapter_config.json", text.as_bytes());
        complains(&adapter, "llama2", &["adapter_config.json"]);
    }
}

#[test]
fn matrices_that_do_not_fit_are_named() {
    // The names of tensors, of the same length so that the file stays well formed.
    for (from, to, says) in [
        ("lora_B.weight", "lora_C.weight", "lora_C"),
        (
            "layers.1.self_attn.q_proj",
            "layers.9.self_attn.q_proj",
            "layers.9.self_attn.q_proj",
        ),
        (
            "layers.1.self_attn.v_proj",
            "layers.1.self_attn.x_proj",
            "layers.1.self_attn.x_proj",
        ),
        ("v_proj.lora_A.weight", "w_proj.lora_A.weight", "lora_A"),
    ] {
        let adapter = copy("adapter-names");
        let path = adapter.0.join("adapter_model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let names = String::from_utf8(bytes[8..header].to_vec()).unwrap();
        assert!(names.contains(from) && from.len() == to.len());
        let spoiled = [&bytes[..8], names.replace(from, to).as_bytes(), &bytes[header..]].concat();
        adapter.write("adapter_model.safetensors", &spoiled);
        complains(&adapter, "llama2", &["adapter_model.safetensors", says]);
    }
    let adapter = copy("adapter-shape");
    let config = std::fs::read_to_string(adapter.0.join("adapter_config.json")).unwrap();
    adapter.write(
        "adapter_config.json",
        config.replace("\"r\": 3", "\"r\": 4").as_bytes(),
    );
    complains(
        &adapter,
        "llama2",
        &["adapter_model.safetensors", "lora_A", "[4, 32]"],
    );
}

#[test]
fn models_that_are_stored_otherwise_take_no_adapter() {
    complains(&copy("adapter-gpt2"), "gpt2", &["model of an adapter", "gpt2"]);
    let missing = Path::new("/nowhere");
    let error = load_with("llama2", Some(missing), true).err().expect("no folder");
    assert!(error.to_string().contains("adapter_config.json"), "{error}");
}
