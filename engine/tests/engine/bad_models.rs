//! Invalid model folders: each is an error that names the file and the expected content.

use lexiform_engine::{LoadError, LoadOptions, ModelFiles, load};
use std::path::{Path, PathBuf};

/// A copy of a good folder, to be spoiled; removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn copy_of(family: &str, test: &str) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(family);
        let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bad-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        Folder(to)
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.0.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    pub(crate) fn write(&self, file: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(file), bytes).unwrap();
    }

    fn load(&self) -> LoadError {
        load(&ModelFiles::folder(&self.0), &LoadOptions::default())
            .err()
            .expect("the folder is spoiled")
    }

    /// The message names this file and says all of these.
    fn complains(&self, file: &str, says: &[&str]) {
        let message = self.load().to_string();
        for part in [file].iter().chain(says) {
            assert!(message.contains(part), "{message:?} does not say {part:?}");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn missing_files_are_named() {
    let folder = Folder::copy_of("llama2", "missing");
    std::fs::remove_file(folder.0.join("model.safetensors")).unwrap();
    folder.complains("model.safetensors", &["No such file"]);
    std::fs::remove_file(folder.0.join("config.json")).unwrap();
    folder.complains("config.json", &["No such file"]);
    let shards = Folder::copy_of("llama3", "missing-shard");
    std::fs::remove_file(shards.0.join("model-00002-of-00004.safetensors")).unwrap();
    shards.complains("model-00002-of-00004.safetensors", &["No such file"]);
}

#[test]
fn broken_json_is_placed() {
    let folder = Folder::copy_of("llama2", "json");
    folder.edit("config.json", "\"hidden_size\": 32,", "\"hidden_size\": 32;");
    folder.complains("config.json", &["not JSON", "line", "column"]);
    folder.write("config.json", "[".repeat(100_000).as_bytes());
    folder.complains("config.json", &["recursion limit"]);
    folder.write("config.json", b"[]");
    folder.complains("config.json", &["expected a JSON object"]);
    folder.write("config.json", b"\xff\xfe");
    folder.complains("config.json", &["UTF-8"]);
}

#[test]
fn impossible_values_are_named_with_what_is_possible() {
    for (from, to, says) in [
        (
            "\"hidden_size\": 32",
            "\"hidden_size\": -1",
            ["hidden_size is -1", "integer from 1"],
        ),
        (
            "\"hidden_size\": 32",
            "\"hidden\": 32",
            ["hidden_size is missing", "integer from 1"],
        ),
        (
            "\"num_hidden_layers\": 2",
            "\"num_hidden_layers\": 1e99",
            ["num_hidden_layers", "integer from 1"],
        ),
        (
            "\"num_key_value_heads\": 4",
            "\"num_key_value_heads\": 3",
            ["num_key_value_heads is 3", "a divisor"],
        ),
        ("\"head_dim\": 8", "\"head_dim\": 7", ["head_dim is 7", "even"]),
        (
            "\"model_type\": \"llama\"",
            "\"model_type\": \"mamba\"",
            ["\"mamba\"", "olmo2, phi3, qwen2, qwen3"],
        ),
        (
            "\"hidden_act\": \"silu\"",
            "\"hidden_act\": \"mish\"",
            ["hidden_act is \"mish\"", "silu"],
        ),
        (
            "\"rope_type\": \"default\"",
            "\"rope_type\": \"proportional\"",
            ["\"proportional\"", "yarn"],
        ),
        (
            "\"rope_type\": \"default\"",
            "\"rope_type\": \"linear\"",
            ["factor is missing", "a positive number"],
        ),
        (
            "\"rope_theta\": 10000.0",
            "\"rope_theta\": \"big\"",
            ["rope_theta is \"big\"", "a number"],
        ),
        (
            "\"eos_token_id\": 2",
            "\"eos_token_id\": \"end\"",
            ["eos_token_id is \"end\"", "a list of tokens"],
        ),
        (
            "\"mlp_bias\": false",
            "\"mlp_bias\": 1",
            ["mlp_bias is 1", "true or false"],
        ),
    ] {
        let folder = Folder::copy_of("llama2", "values");
        folder.edit("config.json", from, to);
        folder.complains("config.json", &says);
    }
}

/// A folder, what is replaced in its config.json, by what, and what the error says.
const REFUSED: [(&str, &str, &str, [&str; 2]); 18] = [
    (
        "gemma3",
        "\"attn_logit_softcapping\": null",
        "\"attn_logit_softcapping\": 30.0",
        ["attn_logit_softcapping is 30", "null, or absent"],
    ),
    (
        "gemma3",
        "\"use_bidirectional_attention\": false",
        "\"use_bidirectional_attention\": true",
        ["use_bidirectional_attention is true", "false, or absent"],
    ),
    (
        "gemma3",
        "\"sliding_window\": 12",
        "\"sliding_window\": null",
        ["sliding_window is null", "an integer"],
    ),
    (
        "gemma3",
        "\"rope_type\": \"linear\"",
        "\"rope_type\": \"spiral\"",
        ["\"spiral\"", "longrope"],
    ),
    (
        "gemma3_images",
        "\"text_config\"",
        "\"text\"",
        ["text_config is missing", "an object"],
    ),
    (
        "gemma3_images",
        "\"hidden_size\": 32",
        "\"hidden_size\": 0",
        ["text_config: hidden_size is 0", "integer from 1"],
    ),
    (
        "gemma2",
        "\"sliding_attention\"",
        "\"chunked_attention\"",
        ["chunked_attention", "full_attention, sliding_attention"],
    ),
    (
        "gemma2",
        "\"final_logit_softcapping\": 6.0",
        "\"final_logit_softcapping\": -1",
        ["final_logit_softcapping is -1", "a positive number"],
    ),
    (
        "gpt2",
        "\"scale_attn_by_inverse_layer_idx\": false",
        "\"scale_attn_by_inverse_layer_idx\": true",
        ["scale_attn_by_inverse_layer_idx is true", "false, or absent"],
    ),
    (
        "gpt2",
        "\"gelu_new\"",
        "\"quick_gelu\"",
        ["activation_function is \"quick_gelu\"", "gelu_new"],
    ),
    (
        "gpt2",
        "\"n_layer\": 2",
        "\"n_layer\": 70000",
        ["n_layer is 70000", "from 1 to 65536"],
    ),
    (
        "gpt2",
        "\"n_head\": 4",
        "\"n_head\": 100",
        ["head_dim is missing", "an even number"],
    ),
    (
        "mixtral",
        "\"num_experts_per_tok\": 2",
        "\"num_experts_per_tok\": 5",
        ["num_experts_per_tok is 5", "at most as many as there are experts"],
    ),
    (
        "qwen3_moe",
        "\"mlp_only_layers\": [",
        "\"mlp_only_layers\": [-1,",
        ["mlp_only_layers", "a list of layers"],
    ),
    (
        "smollm3",
        "\"no_rope_layers\": [",
        "\"no_rope_layers\": [7,",
        ["no_rope_layers", "a list of 0 and 1"],
    ),
    (
        "phi4",
        "\"partial_rotary_factor\": 0.5",
        "\"partial_rotary_factor\": 0.75",
        ["short_factor", "a list of 3 positive numbers"],
    ),
    (
        "phi4",
        "\"partial_rotary_factor\": 0.5",
        "\"partial_rotary_factor\": 0.4",
        ["partial_rotary_factor is 0.4", "even"],
    ),
    (
        "llama2",
        "\"rope_type\": \"default\"",
        "\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5",
        ["partial_rotary_factor is 0.5", "1, or absent"],
    ),
];

#[test]
fn what_a_family_cannot_be_is_refused() {
    for (number, (family, from, to, says)) in REFUSED.into_iter().enumerate() {
        let folder = Folder::copy_of(family, &format!("family-{number}"));
        folder.edit("config.json", from, to);
        folder.complains("config.json", &says);
    }
}

/// The same for configurations that the folder's weights do not fit.
const MISFITS: [(&str, &str, &str, [&str; 2]); 9] = [
    (
        "mixtral",
        "\"num_local_experts\": 4",
        "\"num_local_experts\": 5",
        ["model.layers.0.block_sparse_moe.gate.weight", "[5, 32]"],
    ),
    (
        "qwen3_moe",
        "\"moe_intermediate_size\": 16",
        "\"moe_intermediate_size\": 20",
        ["model.layers.1.mlp.experts.0.gate_proj.weight", "[20, 32]"],
    ),
    (
        "qwen3_moe",
        "\"mlp_only_layers\": [",
        "\"mlp_only_layers\": [1,",
        ["no tensor", "model.layers.1.mlp.gate_proj.weight"],
    ),
    (
        "phi3",
        "\"intermediate_size\": 48",
        "\"intermediate_size\": 50",
        ["model.layers.0.mlp.gate_up_proj.weight", "[100, 32]"],
    ),
    (
        "phi3",
        "\"num_key_value_heads\": 2",
        "\"num_key_value_heads\": 1",
        ["model.layers.0.self_attn.qkv_proj.weight", "[48, 32]"],
    ),
    (
        "gpt2",
        "\"n_positions\": 256",
        "\"n_positions\": 300",
        ["transformer.wpe.weight", "[300, 32]"],
    ),
    (
        "gpt2",
        "\"n_layer\": 2",
        "\"n_layer\": 3",
        ["no tensor", "transformer.h.2.ln_1.weight"],
    ),
    (
        "gpt2",
        "\"tie_word_embeddings\": true",
        "\"tie_word_embeddings\": false",
        ["no tensor", "lm_head.weight"],
    ),
    (
        "olmo2",
        "\"attention_bias\": false",
        "\"attention_bias\": true",
        ["no tensor", "model.layers.0.self_attn.q_proj.bias"],
    ),
];

#[test]
fn weights_of_every_kind_are_named() {
    for (number, (family, from, to, says)) in MISFITS.into_iter().enumerate() {
        let folder = Folder::copy_of(family, &format!("tensor-{number}"));
        folder.edit("config.json", from, to);
        folder.complains("model.safetensors", &says);
    }
}

#[test]
fn weights_that_do_not_fit_the_configuration_are_named() {
    let folder = Folder::copy_of("llama2", "shape");
    folder.edit(
        "config.json",
        "\"intermediate_size\": 48",
        "\"intermediate_size\": 50",
    );
    folder.complains(
        "model.safetensors",
        &["model.layers.0.mlp.gate_proj.weight", "[48, 32]", "[50, 32]"],
    );
    let folder = Folder::copy_of("llama2", "layers");
    folder.edit(
        "config.json",
        "\"num_hidden_layers\": 2",
        "\"num_hidden_layers\": 3",
    );
    folder.complains(
        "model.safetensors",
        &["no tensor", "model.layers.2.input_layernorm.weight", "[32]"],
    );
    let folder = Folder::copy_of("llama3", "layers-sharded");
    folder.edit(
        "config.json",
        "\"num_hidden_layers\": 2",
        "\"num_hidden_layers\": 3",
    );
    folder.complains(
        "model.safetensors.index.json",
        &["model.layers.2.input_layernorm.weight"],
    );
}

fn with_header(header: &str, data: usize) -> Vec<u8> {
    [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &vec![0; data],
    ]
    .concat()
}

#[test]
fn broken_weight_files_are_errors() {
    let folder = Folder::copy_of("llama2", "weights");
    let whole = std::fs::read(folder.0.join("model.safetensors")).unwrap();
    let name = "model.safetensors";
    folder.write(name, &whole[..whole.len() / 2]);
    folder.complains(name, &["but the file holds"]);
    folder.write(name, &whole[..5]);
    folder.complains(name, &["5 bytes are too few"]);
    folder.write(name, &u64::MAX.to_le_bytes());
    folder.complains(name, &["the header claims 18446744073709551615 bytes"]);
    folder.write(name, &with_header("{", 0));
    folder.complains(name, &["the header is not JSON"]);
    for (header, says) in [
        ("[]", "not a JSON object"),
        (r#"{"x": {"shape": [1], "data_offsets": [0, 4]}}"#, "\"dtype\""),
        (
            r#"{"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}"#,
            "\"shape\"",
        ),
        (
            r#"{"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}"#,
            "4 bytes do not hold F32 of shape [2]",
        ),
        (
            r#"{"x": {"dtype": "F32", "shape": [9223372036854775807, 9], "data_offsets": [0, 4]}}"#,
            "do not hold",
        ),
        (
            r#"{"x": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}"#,
            "4..0",
        ),
        (
            r#"{"x": {"dtype": "F32", "shape": [1], "data_offsets": [4]}}"#,
            "two \"data_offsets\"",
        ),
    ] {
        folder.write(name, &with_header(header, 4));
        folder.complains(name, &[says]);
    }
}

#[test]
fn weights_of_an_unknown_type_are_refused() {
    let folder = Folder::copy_of("llama2", "type");
    let bytes = std::fs::read(folder.0.join("model.safetensors")).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(bytes[8..header].to_vec())
        .unwrap()
        .replace("\"F32\"", "\"I32\"");
    folder.write(
        "model.safetensors",
        &[&bytes[..8], text.as_bytes(), &bytes[header..]].concat(),
    );
    folder.complains("model.safetensors", &["I32 of model.embed_tokens.weight", "BF16"]);
}

#[test]
fn an_index_cannot_lead_out_of_the_folder() {
    let folder = Folder::copy_of("llama3", "index");
    folder.edit(
        "model.safetensors.index.json",
        "model-00001-of-00004.safetensors",
        "../model.safetensors",
    );
    folder.complains(
        "model.safetensors.index.json",
        &["../model.safetensors", "beside the index"],
    );
    folder.write("model.safetensors.index.json", b"{}");
    folder.complains("model.safetensors.index.json", &["weight_map"]);
}
