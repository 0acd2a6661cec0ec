//! Small vocabularies with the control tokens of a family: one over bytes, and one in the manner of
//! SentencePiece.

use lexiform_automata::vocab::Tokenizer;
use serde_json::{Map, Value, json};

use super::families::Family;

/// Pairs that are merged, so that a text has other tokens if it is cut elsewhere.
const MERGES: [(&str, &str); 24] = [
    ("t", "h"),
    ("th", "e"),
    (" ", "the"),
    ("\n", "\n"),
    (" ", " "),
    ("<", "|"),
    ("|", ">"),
    ("i", "m"),
    ("im", "_"),
    (">", "\n"),
    ("e", "n"),
    ("en", "d"),
    ("s", "t"),
    ("a", "r"),
    ("x", "x"),
    ("\"", ":"),
    (":", " "),
    ("\n", "a"),
    (" ", "i"),
    ("s", ">"),
    ("u", "s"),
    ("us", "er"),
    ("e", "r"),
    ("c", "a"),
];

/// A tokenizer of this project and the same of `tokenizers`.
pub(crate) struct Vocabulary {
    pub(crate) tokenizer: Tokenizer,
    peer: tokenizers::Tokenizer,
    added: Vec<u32>,
    /// `true` if `tokenizers` recognises some control tokens behind a blank only, whoever wrote it, so that
    /// contents change them there.
    pub(crate) depends_on_blanks: bool,
}

impl Vocabulary {
    fn new(json: &Value, depends_on_blanks: bool) -> Self {
        let text = json.to_string();
        let added = json["added_tokens"].as_array().into_iter().flatten();
        let added = added.filter_map(|token| u32::try_from(token["id"].as_u64()?).ok());
        Self {
            tokenizer: Tokenizer::from_bytes(text.as_bytes()).expect("a tokenizer"),
            peer: tokenizers::Tokenizer::from_bytes(text.as_bytes()).expect("a tokenizer"),
            added: added.collect(),
            depends_on_blanks,
        }
    }

    /// Returns those of the tokens that are control tokens.
    pub(crate) fn control_tokens(&self, tokens: &[u32]) -> Vec<u32> {
        tokens
            .iter()
            .copied()
            .filter(|token| self.added.contains(token))
            .collect()
    }

    /// Returns the tokens that `tokenizers` gives a text in which all control tokens are recognised.
    pub(crate) fn peer_tokens(&self, text: &str) -> Vec<u32> {
        self.peer
            .encode_fast(text, false)
            .expect("tokens")
            .get_ids()
            .to_vec()
    }
}

/// Returns the vocabularies of a family.
pub(crate) fn of(family: &Family) -> [Vocabulary; 3] {
    let mut verbatim = of_pieces(&family.control);
    for token in verbatim["added_tokens"].as_array_mut().into_iter().flatten() {
        token["normalized"] = false.into();
    }
    [
        Vocabulary::new(&of_bytes(&family.control), false),
        Vocabulary::new(&verbatim, false),
        Vocabulary::new(&of_pieces(&family.control), true),
    ]
}

/// Returns an entry for each control token: every second is special, every third is compared after
/// normalization, some absorb blanks.
fn added(control: &[String], first: usize, id: impl Fn(&str) -> Option<u64>) -> Vec<Value> {
    let tokens = control.iter().enumerate();
    tokens
        .map(|(at, text)| {
            json!({"id": id(text).unwrap_or((first + at) as u64), "content": text, "single_word": false,
                   "lstrip": at % 5 == 4, "rstrip": at % 5 == 3, "normalized": at % 3 == 2, "special": at % 2 == 0})
        })
        .collect()
}

fn letter_of(byte: u8) -> char {
    let is_shown = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match is_shown(byte) {
        true => char::from(byte),
        false => {
            let before = (0..byte).filter(|byte| !is_shown(*byte)).count();
            char::from_u32(256 + before as u32).expect("a character")
        }
    }
}

fn of_bytes(control: &[String]) -> Value {
    let written = |text: &str| -> String { text.bytes().map(letter_of).collect() };
    let mut vocab: Map<String, Value> = Map::new();
    for byte in 0..=255u8 {
        vocab.insert(letter_of(byte).to_string(), byte.into());
    }
    let merges = merged(&mut vocab, written);
    // The model knows them too, and takes a word that it knows as it is: `sop` of ChatGLM is one.
    for text in control {
        let next = vocab.len();
        vocab.entry(text.clone()).or_insert(next.into());
    }
    let id = |text: &str| vocab.get(text).and_then(Value::as_u64);
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added(control, 0, id),
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "'s|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
             "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
                  "vocab": vocab, "merges": merges}
    })
}

fn of_pieces(control: &[String]) -> Value {
    let written = |text: &str| text.replace(' ', "\u{2581}");
    let mut vocab: Map<String, Value> = Map::new();
    vocab.insert("<unk>".to_owned(), 0.into());
    for byte in 0..=255u32 {
        vocab.insert(format!("<0x{byte:02X}>"), (byte + 1).into());
    }
    for text in control.iter().filter(|text| *text != "<unk>") {
        vocab.insert(text.clone(), vocab.len().into());
    }
    for c in ('!'..='~').chain(['\u{2581}', '\n', 'é']) {
        vocab.insert(c.to_string(), vocab.len().into());
    }
    let merges = merged(&mut vocab, written);
    let id = |text: &str| vocab.get(text).and_then(Value::as_u64);
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added(control, 0, id),
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u{2581}"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"}]},
        "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
                  "vocab": vocab, "merges": merges}
    })
}

/// Adds the merged texts to a vocabulary, and returns the merges whose parts it has.
fn merged(vocab: &mut Map<String, Value>, written: impl Fn(&str) -> String) -> Vec<Value> {
    let mut merges = Vec::new();
    for (one, two) in MERGES {
        let (one, two) = (written(one), written(two));
        if vocab.contains_key(&one) && vocab.contains_key(&two) {
            let next = vocab.len();
            vocab.entry(format!("{one}{two}")).or_insert(next.into());
            merges.push(json!([one, two]));
        }
    }
    merges
}
