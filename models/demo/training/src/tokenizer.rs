//! Makes and reads the files of the tokenizer: `tokenizer.json`, `tokenizer_config.json` and the chat
//! template in it.

mod bpe;

use crate::error::{self, Error};
use crate::text::Words;
use crate::writer::Writer;
use bpe::Merges;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{
    OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, SplitDelimiterBehavior, Tokenizer,
};

/// The size of the vocabulary, special tokens included.
pub(crate) const VOCABULARY: usize = 2052;
/// The size of the vocabulary before the model learned to call tools. The tokens for that have later ids, so
/// that weights of that time can be gone on from.
const FIRST: usize = 2048;
/// Fills rows of a batch.
pub(crate) const PAD: i64 = 0;
/// Ends an answer.
pub(crate) const END: i64 = 1;
/// The tokens that no text contains; a token's position is its id.
pub(crate) const SPECIAL: [&str; 6] = [
    "<|pad|>",
    "<|end|>",
    "<|user|>",
    "<|schema|>",
    "<|assistant|>",
    "<|system|>",
];
/// More of them, with ids from [`FIRST`] on.
const LATER: [&str; 4] = ["<|tools|>", "<|tool|>", "<tool_call>", "</tool_call>"];

/// How a conversation becomes a prompt, as [`Prompt::render`](crate::prompt::Prompt::render) writes it.
/// `schema` is the sketch of the schema that constrains the answer.
const TEMPLATE: &str = include_str!("tokenizer/chat_template.jinja");

/// Whether a token begins a part of a prompt.
pub(crate) fn begins_part(id: i64) -> bool {
    (2..SPECIAL.len() as i64).contains(&id) || (FIRST as i64..FIRST as i64 + 2).contains(&id)
}

/// Reads the tokenizer of the model in `folder`.
pub(crate) fn open(folder: &Path) -> Result<Tokenizer, Error> {
    let path = folder.join("tokenizer.json");
    Tokenizer::from_bytes(error::read(&path)?).map_err(|reason| Error::content(&path, reason))
}

/// The ids of `text`, in which special tokens may stand.
pub(crate) fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<i64>, Error> {
    Ok(tokenizer
        .encode(text, false)?
        .get_ids()
        .iter()
        .map(|&id| i64::from(id))
        .collect())
}

/// Learns a vocabulary from `samples` samples that follow from `seed`, and writes its files into `folder`.
/// The merges of a tokenizer that is there already are kept and come first. `positions` is the length of the
/// longest text that the model reads.
pub(crate) fn make(folder: &Path, samples: usize, seed: u64, positions: usize) -> Result<(), Error> {
    let path = folder.join("tokenizer.json");
    let known = match path.is_file() {
        true => merges(&path)?,
        false => Merges::default(),
    };
    let count = VOCABULARY - SPECIAL.len() - LATER.len() - 256;
    let merges = bpe::learn(&pieces(samples, seed)?, known, count);
    let tokenizer = serde_json::to_string_pretty(&document(&merges))?;
    error::write(&path, tokenizer.as_bytes())?;
    let settings = serde_json::to_string_pretty(&settings(positions))?;
    error::write(&folder.join("tokenizer_config.json"), settings.as_bytes())
}

/// The merges of a file.
fn merges(path: &Path) -> Result<Merges, Error> {
    let file: Value = serde_json::from_slice(&error::read(path)?)?;
    let letters = bpe::byte_letters();
    let bytes = |text: &Value| -> Option<Vec<u8>> {
        let place = |letter| letters.iter().position(|&other| other == letter);
        text.as_str()?
            .chars()
            .map(|letter| Some(place(letter)? as u8))
            .collect()
    };
    let pair = |pair: &Value| Some((bytes(&pair[0])?, bytes(&pair[1])?));
    let pairs = file["model"]["merges"]
        .as_array()
        .and_then(|pairs| pairs.iter().map(pair).collect());
    let pairs = pairs.ok_or_else(|| Error::content(path, "no merges of two byte-level pieces"))?;
    Ok(Merges { pairs })
}

/// The pieces that samples are cut into, and how often each occurs.
fn pieces(samples: usize, seed: u64) -> Result<HashMap<Vec<u8>, usize>, Error> {
    let split = Split::new(
        SplitPattern::Regex(bpe::expression()),
        SplitDelimiterBehavior::Isolated,
        false,
    )?;
    let mut pieces: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut writer = Writer::new(seed, Words::Seen);
    for _ in 0..samples {
        let sample = writer.sample(0);
        for part in parted(&(sample.prompt.render() + &sample.answer)) {
            let mut cut = PreTokenizedString::from(part);
            split.pre_tokenize(&mut cut)?;
            for (piece, _, _) in cut.get_splits(OffsetReferential::Original, OffsetType::Byte) {
                *pieces.entry(piece.as_bytes().to_vec()).or_default() += 1;
            }
        }
    }
    Ok(pieces)
}

/// The texts between special tokens.
fn parted(text: &str) -> Vec<String> {
    let mut parts = vec![text.to_owned()];
    for mark in SPECIAL.iter().chain(&LATER) {
        parts = parts
            .iter()
            .flat_map(|part| part.split(mark).map(str::to_owned))
            .collect();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// `tokenizer.json` as Hugging Face's `tokenizers` reads it.
fn document(merges: &Merges) -> Value {
    let letters = bpe::byte_letters();
    let spell = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|&byte| letters[byte as usize])
            .collect::<String>()
    };
    let mut vocabulary = Map::new();
    let mut add = |name: String| {
        let id = vocabulary.len();
        vocabulary.insert(name, Value::from(id));
    };
    SPECIAL.iter().for_each(|name| add((*name).to_owned()));
    letters.iter().for_each(|letter| add(letter.to_string()));
    merges
        .pairs
        .iter()
        .for_each(|(left, right)| add(spell(left) + &spell(right)));
    LATER.iter().for_each(|name| add((*name).to_owned()));
    let pairs: Vec<Value> = merges
        .pairs
        .iter()
        .map(|(left, right)| json!([spell(left), spell(right)]))
        .collect();
    let byte_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let split = json!({
        "type": "Split", "pattern": {"Regex": bpe::expression()}, "behavior": "Isolated", "invert": false,
    });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": special().map(|(id, name)| added(id, name)).collect::<Vec<_>>(),
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": null,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocabulary, "merges": pairs,
        },
    })
}

/// All special tokens with their ids.
fn special() -> impl Iterator<Item = (usize, &'static str)> {
    let later = LATER
        .iter()
        .enumerate()
        .map(|(number, name)| (FIRST + number, *name));
    SPECIAL.iter().copied().enumerate().chain(later)
}

fn added(id: usize, name: &str) -> Value {
    json!({
        "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": true,
    })
}

/// `tokenizer_config.json` as Hugging Face's `transformers` reads it, for a model that reads as many tokens.
fn settings(positions: usize) -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": positions,
        "bos_token": null,
        "eos_token": SPECIAL[END as usize],
        "pad_token": SPECIAL[PAD as usize],
        "unk_token": null,
        "clean_up_tokenization_spaces": false,
        "chat_template": TEMPLATE,
    })
}

#[cfg(test)]
mod tests {
    use super::{TEMPLATE, VOCABULARY, encode, open};
    use crate::prompt::Prompt;
    use crate::text::Words;
    use crate::writer::Writer;
    use serde_json::{Value, json};
    use std::path::Path;
    use tokenizers::Tokenizer;

    fn shipped() -> Tokenizer {
        open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("the demo model is in the repository")
    }

    #[test]
    fn texts_come_back_unchanged() {
        let tokenizer = shipped();
        assert_eq!(tokenizer.get_vocab_size(true), VOCABULARY);
        for text in [
            "Ada Lovelace, 36.",
            " two  spaces\n\tand a tab ",
            "Zoë Müller 東京 🦀",
            r#"{"a_b":[1,-2.5e10,null]}"#,
            "",
        ] {
            let ids: Vec<u32> = encode(&tokenizer, text)
                .expect("any text")
                .iter()
                .map(|&id| id as u32)
                .collect();
            assert_eq!(tokenizer.decode(&ids, false).expect("known ids"), text);
        }
    }

    #[test]
    fn a_value_is_cut_alike_in_text_and_in_json() {
        let tokenizer = shipped();
        let cut = |text: &str| encode(&tokenizer, text).expect("any text");
        for value in [
            "Ada Lovelace",
            "36",
            "brown desk lamp",
            "AB-4071",
            "ada.l@example.com",
            "2024-03-05",
            "O'Neill",
        ] {
            let ids = cut(value);
            let inside = |text: String| cut(&text).windows(ids.len()).any(|window| window == ids);
            assert!(inside(format!("It says {value}, I think.")), "{value} in text");
            assert!(
                inside(json!({"key": value, "n": 1}).to_string()),
                "{value} in JSON"
            );
        }
    }

    /// A value for a template. Numbers keep all their digits in this program, which a template would see as
    /// an object.
    fn jinja(value: &Value) -> minijinja::Value {
        match value {
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => whole.into(),
                (None, float) => float.expect("a number").into(),
            },
            Value::Array(items) => items.iter().map(jinja).collect(),
            Value::Object(map) => map.iter().map(|(key, item)| (key.clone(), jinja(item))).collect(),
            other => minijinja::Value::from_serialize(other),
        }
    }

    /// A prompt by the chat template, as the service calls it.
    fn by_template(prompt: &Prompt) -> String {
        let mut environment = minijinja::Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Lenient);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", |value: minijinja::Value| {
            let value = serde_json::to_value(&value).expect("template values are JSON");
            crate::prompt::python(&value)
        });
        environment
            .add_template("chat", TEMPLATE)
            .expect("the template is well formed");
        let template = environment.get_template("chat").expect("it was added");
        let mut context = json!({"messages": prompt.messages(), "add_generation_prompt": true});
        // The service gives arguments as values.
        for message in context["messages"].as_array_mut().into_iter().flatten() {
            for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
                let arguments = &mut call["function"]["arguments"];
                *arguments = serde_json::from_str(arguments.as_str().expect("JSON as text")).expect("JSON");
            }
        }
        if !prompt.tools.is_empty() {
            context["tools"] = json!(prompt.tools);
        }
        if let Some(sketch) = &prompt.sketch {
            context["schema"] = json!(sketch);
        }
        template.render(jinja(&context)).expect("the template renders")
    }

    #[test]
    fn the_chat_template_writes_the_prompts_of_training() {
        for words in [Words::Seen, Words::Unseen] {
            let mut writer = Writer::new(12, words);
            for _ in 0..600 {
                let prompt = writer.sample(0).prompt;
                assert_eq!(by_template(&prompt), prompt.render());
            }
        }
    }

    #[test]
    fn the_chat_template_writes_the_sketch_of_any_tool() {
        let tree = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#/properties/left"}}});
        let odd = json!({
            "type": "object", "required": ["a b", "items"],
            "$defs": {"Item": {"type": "object", "properties": {"sku": {"const": 7}}, "required": ["sku"]}},
            "properties": {
                "a b": {"type": ["integer", "null"]}, "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                "keys": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date"}]}, "any": true,
                "all": {"allOf": [{"$ref": "#/$defs/Item"}]}, "pair": {"prefixItems": [{"type": "number"}, {}]},
                "map": {"type": "object", "additionalProperties": {"enum": ["x", 2, null]}}, "list": {"type": "array"},
                "none": {"type": "object"}, "lost": {"$ref": "#/$defs/Nothing"}, "far": {"$ref": "other.json"},
                "é": {"type": "boolean"}, "uri": {"type": "string", "format": "uri"}, "void": {"enum": []},
            },
        });
        for parameters in [odd, tree, json!({"type": "object", "properties": {}}), json!({})] {
            let function = json!({"name": "f", "description": "Do it.\nAnd more.", "parameters": parameters});
            let prompt = Prompt {
                tools: vec![json!({"type": "function", "function": function})],
                ..Prompt::of("x", None)
            };
            assert_eq!(by_template(&prompt), prompt.render());
        }
    }
}
