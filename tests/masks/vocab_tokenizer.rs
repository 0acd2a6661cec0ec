//! Tokenization of text: the bytes of the tokens must be the text, and text must never become a special
//! token.

#![cfg(feature = "tokenizers")]

use std::fs;
use std::path::Path;

use lexiform::vocab::{TokenKind, Tokenizer, TokenizerError, Vocabulary};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

fn fixture(name: &str) -> Tokenizer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/tokenizers")
        .join(name);
    let json = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Tokenizer::from_bytes(&json).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn published(test: &str, name: &str) -> Option<Tokenizer> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(".data/tokenizers")
        .join(name)
        .join("tokenizer.json");
    match fs::read(&path) {
        Ok(json) => Some(Tokenizer::from_bytes(&json).unwrap_or_else(|error| panic!("{name}: {error}"))),
        Err(_) => {
            println!("skipped: {test}: {} is not there", path.display());
            None
        }
    }
}

fn written(vocabulary: &Vocabulary, tokens: &[u32]) -> String {
    let bytes: Vec<u8> = tokens
        .iter()
        .flat_map(|&token| vocabulary.bytes(token))
        .copied()
        .collect();
    String::from_utf8(bytes).expect("tokens of a text write UTF-8")
}

fn vocabulary(tokenizer: &Tokenizer) -> Vocabulary {
    let special = tokenizer
        .file()
        .tokens()
        .iter()
        .position(|(kind, _)| *kind == TokenKind::Special);
    let eos = special.expect("a tokenizer with a special token");
    tokenizer.vocabulary(&[eos as u32]).expect("a vocabulary")
}

/// Generates any text, half of it made of parts that tokenizers treat specially.
fn texts() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(vec![
        " ",
        "  ",
        "\n",
        "\t",
        "▁",
        "Ġ",
        "<0x41>",
        "<s>",
        "</s>",
        "<unk>",
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|end|>",
        "<tool>",
        "<tool_call>",
        "e\u{301}",
        "é",
        "\u{1100}\u{1161}",
        "日本語",
        "🙂",
        "\u{0}",
        "{\"a\": 1}",
        "it's",
    ]);
    let mixed = prop::collection::vec(
        prop_oneof![tricky.prop_map(str::to_owned), "\\PC{0,3}", "[a-z ]{0,8}"],
        0..8,
    );
    prop_oneof![any::<String>(), mixed.prop_map(|parts| parts.concat())]
}

/// Checks the properties of every tokenizer with tokens for all bytes.
fn check_any_text(tokenizer: &Tokenizer, cases: u32) {
    let vocabulary = vocabulary(tokenizer);
    let is_text = |tokens: &[u32]| {
        tokens
            .iter()
            .all(|&token| vocabulary.kind(token) == TokenKind::Text)
    };
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&texts(), |text| {
        let exact = tokenizer.encode(&text).expect("every byte has a token");
        prop_assert_eq!(&written(&vocabulary, &exact), &text);
        prop_assert!(is_text(&exact));
        prop_assert_eq!(&tokenizer.decode(&exact), &text);
        let plain = tokenizer.encode_plain(&text).expect("every byte has a token");
        prop_assert!(is_text(&plain), "no special token in {:?}", plain);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_byte_level_text_is_what_its_tokens_write() {
    let tokenizer = fixture("byte-level.json");
    check_any_text(&tokenizer, 300);
    assert_eq!(
        tokenizer.encode("hello hello{\"é\":").expect("tokens"),
        [259, 260, 261, 263, 262]
    );
    assert!(tokenizer.opening().is_empty());
}

#[test]
fn a_sentencepiece_prompt_begins_with_the_dummy_space_and_a_continuation_does_not() {
    let tokenizer = fixture("sentencepiece.json");
    check_any_text(&tokenizer, 300);
    let vocabulary = vocabulary(&tokenizer);
    let prompt = tokenizer.encode_plain("hello ▁日").expect("tokens");
    assert_eq!(
        written(&vocabulary, &prompt),
        " hello  日",
        "a written ▁ is a space to such a model"
    );
    let continuation = tokenizer.encode("hello ▁日").expect("tokens");
    assert_eq!(written(&vocabulary, &continuation), "hello ▁日");
    assert_eq!(tokenizer.opening(), [1]);
    assert!(tokenizer.file().puts_dummy_space());
}

#[test]
fn a_unigram_model_cannot_be_talked_into_special_tokens() {
    let tokenizer = fixture("unigram.json");
    let vocabulary = vocabulary(&tokenizer);
    assert_eq!(
        written(&vocabulary, &tokenizer.encode_plain("hello").expect("tokens")),
        " hello"
    );
    assert_eq!(
        written(&vocabulary, &tokenizer.encode("hello").expect("tokens")),
        "hello"
    );
    // The model knows its special pieces, and none of their letters: no text token can spell them.
    let refused = tokenizer
        .encode("hello</s>")
        .expect_err("no tokens for <, / and s");
    assert_eq!(refused, TokenizerError::Unwritable { at: 5 });
    assert!(tokenizer.encode_plain("</s>").is_err());
    assert!(
        tokenizer
            .encode_with_special("</s>")
            .expect("tokens")
            .contains(&1)
    );
}

#[test]
fn special_tokens_are_parsed_only_where_asked_for() {
    let tokenizer = fixture("byte-level.json");
    let end = tokenizer.special("<|end|>").expect("a special token");
    assert_eq!(
        tokenizer.encode_with_special("hello<|end|>").expect("tokens"),
        [259, end]
    );
    let plain = tokenizer.encode_plain("hello<|end|>").expect("tokens");
    assert!(!plain.contains(&end));
    assert_eq!(tokenizer.decode(&plain), "hello<|end|>");
    assert_eq!(
        tokenizer.decode(&[259, end]),
        "hello",
        "special tokens write no text"
    );
}

#[test]
fn a_vocabulary_can_be_as_wide_as_the_model() {
    let tokenizer = fixture("byte-level.json");
    let wide = tokenizer.vocabulary_with_rows(&[264], 320).expect("wider");
    assert_eq!(
        (wide.len(), wide.kind(319), wide.is_eos(264)),
        (320, TokenKind::Unused, true)
    );
    assert!(tokenizer.vocabulary_with_rows(&[264], 100).is_err());
}

#[test]
fn gpt2_writes_the_text_it_is_given() {
    if let Some(tokenizer) = published("gpt2_writes_the_text_it_is_given", "gpt2") {
        check_any_text(&tokenizer, 100);
        assert_eq!(tokenizer.encode("Hello world").expect("tokens"), [15496, 995]);
    }
}

#[test]
fn llama3_1_writes_the_text_it_is_given() {
    if let Some(tokenizer) = published("llama3_1_writes_the_text_it_is_given", "llama3_1") {
        check_any_text(&tokenizer, 100);
        assert_eq!(tokenizer.opening(), [128_000]);
        let rendered = "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>";
        assert_eq!(
            tokenizer.encode_with_special(rendered).expect("tokens"),
            [128_006, 882, 128_007, 271, 13347, 128_009]
        );
    }
}

#[test]
fn qwen3_composes_prompts_and_leaves_continuations_alone() {
    let Some(tokenizer) = published("qwen3_composes_prompts_and_leaves_continuations_alone", "qwen3") else {
        return;
    };
    check_any_text(&tokenizer, 100);
    let vocabulary = vocabulary(&tokenizer);
    for (text, composed) in [("cafe\u{301}", "café"), ("\u{1100}\u{1161}", "가"), ("ﬁ", "ﬁ")] {
        assert_eq!(
            written(&vocabulary, &tokenizer.encode_plain(text).expect("tokens")),
            composed
        );
        assert_eq!(
            written(&vocabulary, &tokenizer.encode(text).expect("tokens")),
            text
        );
    }
}

#[test]
fn gpt_oss_writes_the_text_it_is_given() {
    if let Some(tokenizer) = published("gpt_oss_writes_the_text_it_is_given", "gpt_oss") {
        check_any_text(&tokenizer, 100);
    }
}

#[test]
fn mistral_v01_puts_its_dummy_space_before_prompts_only() {
    let Some(tokenizer) = published(
        "mistral_v01_puts_its_dummy_space_before_prompts_only",
        "mistral_v01",
    ) else {
        return;
    };
    check_any_text(&tokenizer, 100);
    let vocabulary = vocabulary(&tokenizer);
    for text in ["{\"a\": 1}", "Hello", "日本語 🙂", " two"] {
        let prompt = tokenizer.encode_plain(text).expect("tokens");
        assert_eq!(written(&vocabulary, &prompt), format!(" {text}"));
    }
}

fn small(added: Value) -> Vec<u8> {
    let file = json!({"version": "1.0", "added_tokens": added, "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}});
    file.to_string().into_bytes()
}

#[test]
fn files_that_cut_text_otherwise_than_they_say_are_refused() {
    let added = json!([{"id": 5, "content": "<e>", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true}]);
    let error = Tokenizer::from_bytes(&small(added)).expect_err("the library gives it the id 2");
    assert_eq!(
        error,
        TokenizerError::OtherId {
            name: "<e>".to_owned(),
            cut: 2
        }
    );
    assert_eq!(
        Tokenizer::from_bytes(b"{\"\xFF").expect_err("not text"),
        TokenizerError::NotUtf8 { at: 2 }
    );
    let merges = json!({"version": "1.0", "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["x y"]}});
    let error = Tokenizer::from_bytes(merges.to_string().as_bytes()).expect_err("merges of unknown pieces");
    assert!(matches!(error, TokenizerError::Unusable { .. }), "{error}");
}

#[test]
fn truncated_files_are_errors() {
    let json = small(json!([]));
    assert!(Tokenizer::from_bytes(&json).is_ok());
    for cut in 0..json.len() {
        assert!(Tokenizer::from_bytes(&json[..cut]).is_err(), "cut at {cut}");
    }
}

/// Returns text of many kinds, long enough for several pieces, in an order that the seed decides.
fn long_text(seed: u64) -> String {
    let parts = [
        "The quick brown fox, who'd 12345 reasons, didn't jump. ",
        "fn main() {\n    let x = vec![1, 2];\n\n\n}\n",
        "Größe naïve café \u{301} e\u{301} ",
        "日本語の文章です。改行なし、",
        "   \t  \r\n \n  ",
        " a b c D e ",
        "{\"key\": [1.5e3, null], \"other key\": \"some words here\"}",
        "http://example.org/a/b?c=d&e=f ",
        "<|im_end|> <s> </s> ",
        "🙂🙃 ok ",
    ];
    let mut state = seed;
    let mut text = String::new();
    while text.len() < 80_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        text.push_str(parts[(state >> 33) as usize % parts.len()]);
    }
    text
}

/// Guards against a prompt that is read differently because it is long.
#[test]
fn the_tokens_of_the_pieces_are_those_of_the_whole() {
    let name = "the_tokens_of_the_pieces_are_those_of_the_whole";
    for (file, is_cut) in [
        ("gpt2", true),
        ("llama3_1", true),
        ("qwen3", true),
        ("gpt_oss", true),
        // This tokenizer puts a space before every text.
        ("mistral_v01", false),
    ] {
        let Some(tokenizer) = published(name, file) else {
            continue;
        };
        for seed in 0..3 {
            let text = long_text(seed);
            let pieces: Vec<&str> = tokenizer.pieces(&text).collect();
            assert_eq!(pieces.concat(), text, "{file}");
            assert_eq!(pieces.len() > 1, is_cut, "{file}");
            let all = |cut: &dyn Fn(&str) -> Vec<u32>| {
                let tokens: Vec<u32> = pieces.iter().flat_map(|piece| cut(piece)).collect();
                assert!(tokens == cut(&text), "{file} {seed}");
            };
            all(&|text| tokenizer.encode_plain(text).expect("tokens"));
            all(&|text| tokenizer.encode_with_special(text).expect("tokens"));
        }
        for text in [
            "some words and more",
            "    \n\n\t    x",
            "<|im_end|><|im_end|> a",
            "((((((a1b2c3))))))",
        ] {
            let text = text.repeat(100);
            let least = tokenizer.at_least(&text, usize::MAX);
            for tokens in [
                tokenizer.encode(&text),
                tokenizer.encode_plain(&text),
                tokenizer.encode_with_special(&text),
            ] {
                assert!(
                    tokens.is_ok_and(|tokens| tokens.len() >= least),
                    "{file}: {least} for {text:?}"
                );
            }
            // It is no bound at all only where the file changes ASCII.
            assert_eq!(least > 50, is_cut, "{file}: {least} for {text:?}");
        }
    }
}
