//! Models in GGUF: they equal their folders, and broken files are refused with a clear message.
//!
//! The files were written by llama.cpp's own package (`tests/fixtures/make_gguf.py`), from the checkpoints
//! whose logits `transformers` computed.

use crate::families::rows;
use crate::torch::{Expected, TOLERANCE};
use lexiform::vocab::Tokenizer;
use lexiform_engine::{Device, LoadOptions, ModelFiles, WeightFormat, describe, load};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const FAMILIES: [&str; 13] = [
    "llama2",
    "llama3",
    "llama_bias_yarn",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3",
    "phi3",
    "phi4",
    "olmo2",
    "gpt2",
];

fn fixture(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/gguf");
    Path::new(folder).join(name)
}

/// A file of this test alone.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("gguf-{}-{name}.gguf", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Scratch(path)
    }

    /// What is said of the file.
    fn refusal(&self) -> String {
        let opened = ModelFiles::open(&self.0).and_then(|files| load(&files, &LoadOptions::default()));
        opened.err().map(|error| error.to_string()).unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

fn options(fused: bool) -> LoadOptions {
    LoadOptions {
        device: Device::Cpu,
        threads: 1,
        fused,
        weights: WeightFormat::Stored,
        ..LoadOptions::default()
    }
}

#[test]
fn every_family_computes_what_its_folder_does() {
    for family in FAMILIES {
        let expected = Expected::read(family);
        for fused in [false, true] {
            let files = ModelFiles::open(fixture(&format!("{family}.gguf"))).unwrap();
            let loaded = load(&files, &options(fused)).unwrap();
            assert_eq!(loaded.eos, [2], "{family}");
            assert_eq!(loaded.config, describe(&files).unwrap());
            let off = expected.off(0, &rows(loaded.model, &expected.tokens));
            assert!(off < TOLERANCE, "{family}: logits are off by {off}");
        }
    }
}

#[test]
fn a_model_in_several_files_is_one() {
    let first = fixture("split-00001-of-00003.gguf");
    let loaded = load(&ModelFiles::open(&first).unwrap(), &options(true)).unwrap();
    let expected = Expected::read("llama2");
    let off = expected.off(0, &rows(loaded.model, &expected.tokens));
    assert!(off < TOLERANCE, "logits are off by {off}");
    let second = ModelFiles::open(fixture("split-00002-of-00003.gguf")).err();
    let message = second.map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("split"), "{message}");
    let alone = Scratch::new("alone", &std::fs::read(first).unwrap());
    assert!(
        alone.refusal().contains("-00001-of-00003.gguf"),
        "{}",
        alone.refusal()
    );
}

/// Guards against a file that somebody cut: nothing of it is believed before it is compared with what is
/// there.
#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let whole = std::fs::read(fixture("llama2.gguf")).unwrap();
    let header = 6_000.min(whole.len());
    let lengths = (0..header)
        .step_by(7)
        .chain((header..whole.len() - 64).step_by(4_099));
    for length in lengths {
        let cut = Scratch::new("cut", &whole[..length]);
        let message = cut.refusal();
        assert!(
            message.contains("it ends") || message.contains("the file ends") || message.contains("at most"),
            "cut at {length}: {message:?}"
        );
    }
}

/// Where the file says this text, this many bytes behind its end.
fn behind(bytes: &[u8], text: &str, offset: usize) -> usize {
    let at = bytes.windows(text.len()).position(|part| part == text.as_bytes());
    at.unwrap() + text.len() + offset
}

#[test]
fn what_a_file_claims_is_compared_with_it() {
    let whole = std::fs::read(fixture("llama2.gguf")).unwrap();
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        let file = Scratch::new("changed", &changed);
        file.refusal()
    };
    let most = u64::MAX.to_le_bytes();
    let tensor = |name: &str, offset| behind(&whole, name, offset);
    // A name, the number of dimensions, two of them, the type and the offset.
    let cases = [
        (0, b"GGML".to_vec(), "does not begin with \"GGUF\""),
        (
            4,
            vec![4, 0, 0, 0],
            "it is of version 4; versions 2 and 3 are read",
        ),
        (8, most.to_vec(), "claims 18446744073709551615 tensors"),
        (16, most.to_vec(), "claims 18446744073709551615 keys"),
        (24, most.to_vec(), "a key of 18446744073709551615 bytes"),
        (
            tensor("blk.0.attn_q.weight", 0),
            vec![9, 0, 0, 0],
            "has 9 dimensions",
        ),
        (
            tensor("blk.0.attn_q.weight", 4),
            vec![255; 8],
            "a dimension without a size",
        ),
        (
            tensor("blk.0.attn_q.weight", 4),
            vec![31],
            "has shape [32, 31], but config.json implies [32, 32]",
        ),
        (
            tensor("blk.0.attn_q.weight", 20),
            vec![39],
            "the format MXFP4 is not read",
        ),
        (
            tensor("blk.0.attn_q.weight", 20),
            vec![12],
            "no whole blocks of Q4_K",
        ),
        (
            tensor("blk.0.attn_q.weight", 24),
            vec![1],
            "no multiple of the alignment",
        ),
        (
            tensor("blk.0.attn_q.weight", 24),
            vec![0, 0, 0, 255],
            "the file ends after",
        ),
        (tensor("blk.0.attn_k.weight", 24), vec![0; 8], "overlap"),
        (tensor("general.architecture", 12), b"Llama".to_vec(), "Llama"),
        (
            tensor("tokenizer.ggml.eos_token_id", 4),
            vec![200],
            "there are 96 tokens",
        ),
        (tensor("llama.block_count", 4), vec![3], "model.layers.2"),
        (
            tensor("llama.attention.head_count", 4),
            vec![5],
            "num_key_value_heads",
        ),
    ];
    for (at, bytes, says) in cases {
        let message = changed(at, &bytes);
        assert!(message.contains(says), "{message:?} does not say {says:?}");
    }
}

/// Any byte of the header may be any other: an error or a model, and never a panic.
#[test]
fn no_byte_of_a_header_makes_it_panic() {
    let whole = std::fs::read(fixture("qwen2.gguf")).unwrap();
    let mut state = 1_u64;
    for _ in 0..400 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut changed = whole.clone();
        changed[(state >> 33) as usize % 4_000] ^= (state >> 20) as u8 | 1;
        let file = Scratch::new("byte", &changed);
        drop(file.refusal());
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A key with the number of the type of its value.
fn key(name: &str, kind: u32) -> Vec<u8> {
    [text(name), kind.to_le_bytes().to_vec()].concat()
}

/// A key whose value is a list of items of this type.
fn list(name: &str, kind: u32, items: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let items: Vec<Vec<u8>> = items.collect();
    let count = (items.len() as u64).to_le_bytes();
    [
        key(name, 9),
        kind.to_le_bytes().to_vec(),
        count.to_vec(),
        items.concat(),
    ]
    .concat()
}

/// The tokens of a tokenizer.json in the order of their numbers, with the types that a GGUF file has for
/// them.
fn tokens(tokenizer: &Value, model: &str) -> Vec<(u64, String, i32)> {
    let mut tokens: Vec<(u64, String, i32)> = Vec::new();
    for (token, number) in tokenizer["model"]["vocab"].as_object().unwrap() {
        let is_byte = model == "llama" && token.len() == 6 && token.starts_with("<0x");
        tokens.push((
            number.as_u64().unwrap(),
            token.clone(),
            if is_byte { 6 } else { 1 },
        ));
    }
    for added in tokenizer["added_tokens"].as_array().unwrap() {
        let number = added["id"].as_u64().unwrap();
        let content = added["content"].as_str().unwrap().to_owned();
        tokens.retain(|(other, ..)| *other != number);
        tokens.push((number, content, if added["special"] == true { 3 } else { 4 }));
    }
    tokens.sort();
    tokens
}

/// A GGUF file with keys and no tensors, as much of one as its tokenizer needs.
fn with_tokenizer(model: &str, pre: Option<&str>, tokenizer: &Value, flags: &[(&str, bool)]) -> Vec<u8> {
    let tokens = tokens(tokenizer, model);
    let merge = |merge: &Value| match merge {
        Value::Array(pair) => format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
        merge => merge.as_str().unwrap().to_owned(),
    };
    let merges: Vec<String> = tokenizer["model"]["merges"]
        .as_array()
        .unwrap()
        .iter()
        .map(merge)
        .collect();
    // Two pieces become one in the order of the scores of what they become, which is that of merges.
    let mut scores = HashMap::new();
    for (rank, merge) in merges.iter().enumerate() {
        scores.entry(merge.replace(' ', "")).or_insert(-(rank as f32));
    }
    let score = |token: &String| {
        scores
            .get(token)
            .copied()
            .unwrap_or(-1e6_f32)
            .to_le_bytes()
            .to_vec()
    };
    let mut keys = vec![
        [key("general.architecture", 8), text("llama")].concat(),
        [key("tokenizer.ggml.model", 8), text(model)].concat(),
        list(
            "tokenizer.ggml.tokens",
            8,
            tokens.iter().map(|(_, token, _)| text(token)),
        ),
        list(
            "tokenizer.ggml.token_type",
            5,
            tokens.iter().map(|(.., kind)| kind.to_le_bytes().to_vec()),
        ),
    ];
    keys.push(match model {
        "llama" => list(
            "tokenizer.ggml.scores",
            6,
            tokens.iter().map(|(_, token, _)| score(token)),
        ),
        _ => list("tokenizer.ggml.merges", 8, merges.iter().map(|merge| text(merge))),
    });
    keys.extend(pre.map(|pre| [key("tokenizer.ggml.pre", 8), text(pre)].concat()));
    let flag = |(name, value): &(&str, bool)| [key(name, 7), vec![u8::from(*value)]].concat();
    keys.extend(flags.iter().map(flag));
    let count = (keys.len() as u64).to_le_bytes();
    [
        b"GGUF".to_vec(),
        vec![3, 0, 0, 0],
        vec![0; 8],
        count.to_vec(),
        keys.concat(),
        vec![0; 64],
    ]
    .concat()
}

const TEXTS: [&str; 9] = [
    "fn main() {\n    println!(\"{:?}\", vec![1, 22, 333, 4444]);\n}\n",
    "  leading blanks,\ttabs\t\tand   many    blanks \n\n\n  and lines",
    "I'm sure they'll say it's WE'VE 'Re 's",
    "價格是 1234567 元，謝謝。日本語のテキスト 한국어 العربية हिन्दी",
    "🙂👩‍👩‍👧‍👦🇦🇹 e\u{301} ﬁ ½ x² …—",
    "12345678901234567890 3.14159e-10 0xFFFF",
    "https://example.org/a?b=c&d=%20#e <b>html</b> &amp; [link](to) `code` **bold**",
    "",
    " ",
];

/// The tokens of texts are those of the original tokenizer, for the tokenizers of four families.
#[test]
fn tokenizers_write_the_tokens_of_their_folders() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.data/tokenizers");
    let cases = [
        ("gpt2", "gpt2", Some("gpt-2"), &[][..]),
        ("llama3_1", "gpt2", Some("llama-bpe"), &[]),
        ("qwen3", "gpt2", Some("qwen2"), &[]),
        ("gpt_oss", "gpt2", Some("gpt-4o"), &[]),
        (
            "mistral_v01",
            "llama",
            None,
            &[("tokenizer.ggml.add_bos_token", false)],
        ),
    ];
    for (name, model, pre, flags) in cases {
        let path = folder.join(name).join("tokenizer.json");
        let Ok(text) = std::fs::read_to_string(&path) else {
            let test = "gguf::tokenizers_write_the_tokens_of_their_folders";
            println!("skipped: {test}: {} is not there", path.display());
            return;
        };
        let json: Value = serde_json::from_str(&text).unwrap();
        let file = Scratch::new(name, &with_tokenizer(model, pre, &json, flags));
        let files = ModelFiles::open(&file.0).unwrap();
        let own = Tokenizer::from_bytes(files.text("tokenizer.json").unwrap().as_bytes()).unwrap();
        let original = Tokenizer::from_bytes(text.as_bytes()).unwrap();
        let long = include_str!("gguf.rs");
        for text in TEXTS.into_iter().chain([long]) {
            assert_eq!(
                own.encode(text).unwrap(),
                original.encode(text).unwrap(),
                "{name}: {:?}",
                &text[..text.len().min(60)]
            );
        }
    }
}

#[test]
fn a_tokenizer_that_nobody_knows_is_refused_by_its_name() {
    let json: Value =
        serde_json::json!({"model": {"vocab": {"a": 0, "b": 1}, "merges": []}, "added_tokens": []});
    for (model, pre, says) in [
        ("gpt2", Some("klingon"), "tokenizer.ggml.pre"),
        ("gpt2", None, "tokenizer.ggml.pre"),
        ("rwkv", None, "tokenizer.ggml.model"),
    ] {
        let file = Scratch::new("unknown", &with_tokenizer(model, pre, &json, &[]));
        let files = ModelFiles::open(&file.0).unwrap();
        let message = files.text("tokenizer.json").unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
        assert!(
            message.contains(pre.unwrap_or(if model == "rwkv" { "rwkv" } else { "\"\"" })),
            "{message}"
        );
    }
}
