//! Makes and reads the files of the tokenizer: `tokenizer.json`, `tokenizer_config.json` and the chat template in it.

use crate::bpe::{self, Merges};
use crate::error::{self, Error};
use crate::text::{Sample, Words, Writer};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{
    OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, SplitDelimiterBehavior, Tokenizer,
};

/// The size of the vocabulary, special tokens included.
pub(crate) const VOCABULARY: usize = 2048;
/// Fills rows of a batch.
pub(crate) const PAD: i64 = 0;
/// Ends an answer.
pub(crate) const END: i64 = 1;
/// The tokens that no text contains; a token's position is its id.
const SPECIAL: [&str; 6] = [
    "<|pad|>",
    "<|end|>",
    "<|user|>",
    "<|schema|>",
    "<|assistant|>",
    "<|system|>",
];

/// How a conversation becomes a prompt. System messages say how to behave, which so small a model cannot learn: they
/// are left out. `schema` is the sketch of the schema that constrains the answer.
const TEMPLATE: &str = "{%- for message in messages -%}\
{%- if message['role'] == 'user' -%}{{ '<|user|>' + message['content'] }}\
{%- elif message['role'] == 'assistant' -%}{{ '<|assistant|>' + message['content'] + '<|end|>' }}\
{%- endif -%}{%- endfor -%}\
{%- if schema is defined and schema -%}{{ '<|schema|>' + schema }}{%- endif -%}\
{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}";

/// The prompt for a text and a sketch, as the chat template writes it.
pub(crate) fn prompt(text: &str, sketch: Option<&str>) -> String {
    match sketch {
        Some(sketch) => format!("<|user|>{text}<|schema|>{sketch}<|assistant|>"),
        None => format!("<|user|>{text}<|assistant|>"),
    }
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

/// Learns a vocabulary from `samples` samples that follow from `seed`, and writes its files into `folder`. `positions` is the
/// length of the longest text that the model reads.
pub(crate) fn make(folder: &Path, samples: usize, seed: u64, positions: usize) -> Result<(), Error> {
    let merges = bpe::learn(&pieces(samples, seed)?, VOCABULARY - SPECIAL.len() - 256);
    let tokenizer = serde_json::to_string_pretty(&document(&merges))?;
    error::write(&folder.join("tokenizer.json"), tokenizer.as_bytes())?;
    let settings = serde_json::to_string_pretty(&settings(positions))?;
    error::write(&folder.join("tokenizer_config.json"), settings.as_bytes())
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
        let Sample {
            text, sketch, answer, ..
        } = writer.sample(0);
        for part in [text, sketch.unwrap_or_default(), answer] {
            let mut cut = PreTokenizedString::from(part);
            split.pre_tokenize(&mut cut)?;
            for (piece, _, _) in cut.get_splits(OffsetReferential::Original, OffsetType::Byte) {
                *pieces.entry(piece.as_bytes().to_vec()).or_default() += 1;
            }
        }
    }
    Ok(pieces)
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
        "added_tokens": SPECIAL.iter().enumerate().map(|(id, name)| added(id, name)).collect::<Vec<_>>(),
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
    use super::{TEMPLATE, VOCABULARY, encode, open, prompt};
    use serde_json::json;
    use std::path::Path;
    use tokenizers::Tokenizer;

    fn shipped() -> Tokenizer {
        open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/demo"))
            .expect("the demo model is in the repository")
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

    #[test]
    fn the_chat_template_writes_the_prompt_of_training() {
        let mut environment = minijinja::Environment::new();
        environment
            .add_template("chat", TEMPLATE)
            .expect("the template is well formed");
        let render = |context: serde_json::Value| {
            let template = environment.get_template("chat").expect("it was added");
            template.render(context).expect("the template renders")
        };
        let user = json!({"role": "user", "content": "Hello"});
        let system = json!({"role": "system", "content": "Be brief."});
        assert_eq!(
            render(json!({"messages": [user], "add_generation_prompt": true})),
            prompt("Hello", None)
        );
        let context =
            json!({"messages": [system, user], "schema": "{a:date}", "add_generation_prompt": true});
        assert_eq!(render(context), prompt("Hello", Some("{a:date}")));
    }
}
