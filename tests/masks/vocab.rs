//! The readers of tokenizer files, against expected tables and against hostile input.
//!
//! `tests/data/tokenizers/NAME.json` is a small tokenizer of our own, and `NAME.tsv` lists its tokens (`id,
//! kind, bytes in hex`). The tokenizers of published models are read from `.data` if it is there.

use std::fs;
use std::path::{Path, PathBuf};

use lexiform::vocab::{
    ReadLimits, TokenKind, TokenizerFile, VocabularyError, from_tiktoken, from_tokenizer_json,
};
use lexiform_automata::vocab::Scheme;
use serde_json::{Value, json};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/tokenizers")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(text: &str) -> Result<TokenizerFile, VocabularyError> {
    from_tokenizer_json(text, &ReadLimits::default())
}

/// Reads the tokens of a table; the kinds `normal` and `byte` of the published tables are text, `added` is a
/// mark.
fn table(text: &str) -> Vec<(TokenKind, Vec<u8>)> {
    let mut tokens = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields[0], at.to_string(), "tables list every id in order");
        let kind = match fields[1] {
            "special" => TokenKind::Special,
            "text" | "normal" | "byte" => TokenKind::Text,
            "mark" | "added" => TokenKind::Mark,
            other => panic!("unknown kind {other}"),
        };
        tokens.push((kind, unhex(fields[2])));
    }
    tokens
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
        .collect()
}

fn assert_equal_tables(read: &[(TokenKind, Vec<u8>)], expected: &[(TokenKind, Vec<u8>)]) {
    assert_eq!(read.len(), expected.len());
    for (id, (read, expected)) in read.iter().zip(expected).enumerate() {
        assert_eq!(read, expected, "token {id}");
    }
}

#[test]
fn small_tokenizers_are_read_byte_for_byte() {
    let cases = [
        ("byte-level", Scheme::ByteLevel, false),
        ("sentencepiece", Scheme::SentencePiece, true),
        ("unigram", Scheme::SentencePiece, true),
    ];
    for (name, scheme, dummy_space) in cases {
        let file = read(&fixture(&format!("{name}.json"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_equal_tables(file.tokens(), &table(&fixture(&format!("{name}.tsv"))));
        assert_eq!(
            (file.scheme(), file.puts_dummy_space()),
            (scheme, dummy_space),
            "{name}"
        );
    }
}

#[test]
fn a_rank_file_gives_the_same_bytes_as_the_json() {
    let json = read(&fixture("byte-level.json")).expect("a fixture");
    let ranks = json
        .tokens()
        .iter()
        .take_while(|(kind, _)| *kind == TokenKind::Text)
        .count();
    let special = [("<|end|>", ranks as u32)];
    let file =
        from_tiktoken(&fixture("byte-level.tiktoken"), &special, &ReadLimits::default()).expect("a fixture");
    assert_equal_tables(file.tokens(), &json.tokens()[..=ranks]);
}

fn published(test: &str, name: &str) -> Option<(String, String)> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(".data/tokenizers")
        .join(name);
    let (json, table) = (folder.join("tokenizer.json"), folder.join("vocab.tsv"));
    match (fs::read_to_string(&json), fs::read_to_string(&table)) {
        (Ok(json), Ok(table)) => Some((json, table)),
        _ => {
            println!("skipped: {test}: {} is not there", json.display());
            None
        }
    }
}

fn check_published(test: &str, name: &str, len: usize, scheme: Scheme) {
    let Some((json, expected)) = published(test, name) else {
        return;
    };
    let file = read(&json).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!((file.tokens().len(), file.scheme()), (len, scheme));
    assert_equal_tables(file.tokens(), &table(&expected));
    let vocabulary = file.vocabulary(&[len as u32 - 1]).expect("a vocabulary");
    assert_eq!(vocabulary.len(), len);
}

#[test]
fn gpt2_is_read_byte_for_byte() {
    check_published("gpt2_is_read_byte_for_byte", "gpt2", 50_257, Scheme::ByteLevel);
}

#[test]
fn llama3_1_is_read_byte_for_byte() {
    check_published(
        "llama3_1_is_read_byte_for_byte",
        "llama3_1",
        128_256,
        Scheme::ByteLevel,
    );
}

#[test]
fn qwen3_is_read_byte_for_byte() {
    check_published("qwen3_is_read_byte_for_byte", "qwen3", 151_669, Scheme::ByteLevel);
}

#[test]
fn gpt_oss_is_read_byte_for_byte() {
    check_published(
        "gpt_oss_is_read_byte_for_byte",
        "gpt_oss",
        200_019,
        Scheme::ByteLevel,
    );
}

#[test]
fn mistral_v01_is_read_byte_for_byte() {
    check_published(
        "mistral_v01_is_read_byte_for_byte",
        "mistral_v01",
        32_000,
        Scheme::SentencePiece,
    );
}

/// Creates a byte-level BPE tokenizer with these pieces and added tokens.
fn bpe(vocab: Value, added: Value) -> Value {
    json!({"added_tokens": added, "decoder": {"type": "ByteLevel"},
           "model": {"type": "BPE", "vocab": vocab, "merges": []}})
}

#[test]
fn holes_are_unused_and_the_numbering_can_be_widened() {
    let text = bpe(
        json!({"a": 0, "b": 3}),
        json!([{"id": 5, "content": "<e>", "special": true}]),
    )
    .to_string();
    let file = read(&text).expect("holes are fine");
    let kinds: Vec<TokenKind> = file.tokens().iter().map(|(kind, _)| *kind).collect();
    use TokenKind::{Special, Text, Unused};
    assert_eq!(kinds, [Text, Unused, Unused, Text, Unused, Special]);
    let narrow = file.clone().with_vocab_size(5).expect_err("six tokens");
    assert_eq!(narrow, VocabularyError::TooNarrow { rows: 5, len: 6 });
    let vocabulary = file
        .with_vocab_size(64)
        .expect("wider")
        .vocabulary(&[5])
        .expect("a vocabulary");
    assert_eq!(
        (vocabulary.len(), vocabulary.kind(63), vocabulary.bytes(63)),
        (64, Unused, &b""[..])
    );
    assert_eq!(vocabulary.special("<e>"), Some(5));
}

#[test]
fn a_tokenizer_with_more_tokens_than_the_model_has_rows_is_cut_to_them() {
    let added = json!([{"id": 4, "content": "<e>", "special": true}, {"id": 6, "content": "<extra>", "special": true}]);
    let text = bpe(json!({"a": 0, "b": 3, "ab": 5}), added).to_string();
    let cut = read(&text).expect("a tokenizer").fitted_to(5);
    let kinds: Vec<TokenKind> = cut.tokens().iter().map(|(kind, _)| *kind).collect();
    use TokenKind::{Special, Text, Unused};
    assert_eq!(kinds, [Text, Unused, Unused, Text, Special]);
    let vocabulary = cut.vocabulary(&[4]).expect("the end is among the rows");
    assert_eq!((vocabulary.len(), vocabulary.token_of(b"ab")), (5, None));
    let cut_away = cut.vocabulary(&[6]).expect_err("the model cannot write this end");
    assert_eq!(cut_away, VocabularyError::NoSuchEos { token: 6, len: 5 });
    let wider = read(&text).expect("a tokenizer").fitted_to(64);
    assert_eq!((wider.tokens().len(), wider.tokens()[63].0), (64, Unused));
    assert_eq!(
        read(&text)
            .expect("a tokenizer")
            .fitted_to(0)
            .vocabulary(&[])
            .expect_err("no rows"),
        VocabularyError::Empty
    );
}

#[test]
fn an_added_token_that_is_also_a_piece_keeps_its_spelling() {
    let text = json!({"added_tokens": [{"id": 0, "content": "▁▁"}, {"id": 2, "content": "▁literal"}],
        "decoder": {"type": "Sequence", "decoders": [{"type": "Metaspace"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "vocab": {"▁▁": 0, "a": 1}, "merges": []}});
    let file = read(&text.to_string()).expect("a tokenizer");
    assert_eq!(file.tokens()[0].1, b"  ");
    assert_eq!(file.tokens()[2].1, "▁literal".as_bytes());
}

#[test]
fn the_unknown_token_writes_nothing() {
    let text = json!({"decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "": 1, "a": 2}, "merges": []}});
    let file = read(&text.to_string()).expect("a tokenizer");
    let kinds: Vec<TokenKind> = file.tokens().iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [TokenKind::Special, TokenKind::Unused, TokenKind::Text]);
}

/// Returns the place of the error; panics if there is none.
fn place(text: &str) -> String {
    match read(text).expect_err(text) {
        VocabularyError::Malformed { place, .. }
        | VocabularyError::Unsupported { place, .. }
        | VocabularyError::IdTooLarge { place, .. } => place,
        other => panic!("{other} has no place"),
    }
}

#[test]
fn broken_files_are_refused_with_their_place() {
    let duplicate = bpe(json!({"a": 0, "b/~": 0}), json!([])).to_string();
    assert_eq!(place(&duplicate), "/model/vocab/b~1~0");
    let added = json!([{"id": 7, "content": "x"}, {"id": 7, "content": "y"}]);
    assert_eq!(place(&bpe(json!({"a": 0}), added).to_string()), "/added_tokens/1");
    let word_piece =
        json!({"decoder": {"type": "WordPiece"}, "model": {"type": "WordPiece", "vocab": {"a": 0}}});
    assert_eq!(place(&word_piece.to_string()), "/model/type");
    let suffix = json!({"decoder": {"type": "BPEDecoder", "suffix": "</w>"},
        "model": {"type": "BPE", "end_of_word_suffix": "</w>", "vocab": {"a</w>": 0}, "merges": []}});
    assert_eq!(place(&suffix.to_string()), "/model/end_of_word_suffix");
    let form = json!({"decoder": {"type": "Fuse"}, "model": {"type": "Unigram", "vocab": {"a": 0}}});
    assert_eq!(place(&form.to_string()), "/model/vocab");
    let unspelt = json!({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}});
    assert_eq!(place(&unspelt.to_string()), "/decoder");
    assert_eq!(place("{\n \"model\": {\"vocab\": 5}}"), "line 2 column 21");
    assert_eq!(place("{}"), "line 1 column 2");
    assert_eq!(place(""), "line 1 column 0");
}

#[test]
fn ids_beyond_the_limit_cost_no_memory() {
    for id in [4_194_304u64, 4_000_000_000, u64::MAX] {
        assert_eq!(
            place(&bpe(json!({"a": id}), json!([])).to_string()),
            "/model/vocab/a"
        );
        let added = json!([{"id": id, "content": "x"}]);
        assert_eq!(place(&bpe(json!({}), added).to_string()), "/added_tokens/0");
        let error = from_tiktoken(&format!("IQ== {id}"), &[], &ReadLimits::default()).expect_err("beyond");
        assert_eq!(
            error,
            VocabularyError::IdTooLarge {
                place: "line 1".to_owned(),
                id,
                limit: 4_194_304
            }
        );
    }
    let tight = ReadLimits { tokens: 2 };
    assert!(from_tokenizer_json(&bpe(json!({"a": 0, "b": 1}), json!([])).to_string(), &tight).is_ok());
    assert!(from_tokenizer_json(&bpe(json!({"a": 0, "b": 2}), json!([])).to_string(), &tight).is_err());
}

#[test]
fn an_empty_file_of_tokens_makes_no_vocabulary() {
    let file = read(&bpe(json!({}), json!([])).to_string()).expect("a file without tokens");
    assert_eq!(file.vocabulary(&[]).expect_err("empty"), VocabularyError::Empty);
}

#[test]
fn broken_rank_files_are_refused_with_their_line() {
    let cases = [
        "IQ==",
        "IQ== x",
        "IQ== 0 1",
        "I 0",
        "=== 0",
        "IQ== -1",
        "IQ== 99999999999999999999",
    ];
    for case in cases {
        let text = format!("Ig== 1\n\n{case}\n");
        let error = from_tiktoken(&text, &[], &ReadLimits::default()).expect_err(case);
        assert!(
            matches!(error, VocabularyError::Malformed { place, .. } if place == "line 3"),
            "{case}"
        );
    }
    let twice = from_tiktoken("IQ== 0", &[("<e>", 0)], &ReadLimits::default()).expect_err("taken");
    assert_eq!(
        twice.to_string(),
        "special token \"<e>\": the id 0 is already taken"
    );
}

/// Every prefix of a valid file is an error with a place, never a panic.
#[test]
fn truncated_files_are_errors() {
    for name in ["byte-level.json", "sentencepiece.json", "unigram.json"] {
        let text = fixture(name);
        let text = text.trim_end();
        for cut in (0..text.len()).filter(|&cut| text.is_char_boundary(cut)) {
            assert!(place(&text[..cut]).starts_with("line "), "{name} cut at {cut}");
        }
    }
}

/// Every value of a valid file, replaced by one of another type, gives a table or a typed error, never a
/// panic.
#[test]
fn files_with_one_wrong_value_do_not_panic() {
    let strange = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!("x"),
        json!([]),
        json!({}),
        json!([[["deep"]]]),
    ];
    for name in ["byte-level.json", "unigram.json", "sentencepiece.json"] {
        let file: Value = serde_json::from_str(&fixture(name)).expect("JSON");
        let (mut refused, mut all) = (0, 0);
        for pointer in pointers(&file) {
            for value in &strange {
                let mut broken = file.clone();
                *broken.pointer_mut(&pointer).expect("a place of the file") = value.clone();
                refused += usize::from(read(&broken.to_string()).is_err());
                all += 1;
            }
        }
        assert!(refused > 0 && refused < all, "{name}: {refused} of {all} refused");
    }
}

/// Returns the pointers of all values, except in long lists, where only the first and the last entries are
/// taken.
fn pointers(value: &Value) -> Vec<String> {
    let mut all = vec![String::new()];
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (at, (key, value)) in inner.iter().enumerate() {
        if at < 12 || at + 2 > inner.len() {
            all.extend(pointers(value).into_iter().map(|rest| format!("/{key}{rest}")));
        }
    }
    all
}

#[test]
fn deep_nesting_is_an_error_not_an_overflow() {
    let deep = format!("{{\"decoder\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(place(&deep).starts_with("line 1"));
    let mut decoder = String::from("{\"type\":\"Fuse\"}");
    for _ in 0..40 {
        decoder = format!("{{\"type\":\"Sequence\",\"decoders\":[{decoder}]}}");
    }
    let text = format!(
        "{{\"decoder\":{decoder},\"model\":{{\"type\":\"BPE\",\"vocab\":{{\"a\":0}},\"merges\":[]}}}}"
    );
    assert_eq!(read(&text).expect("nested sequences").tokens()[0].1, b"a");
}
