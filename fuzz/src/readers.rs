//! What each reader of the library is asked with bytes from a stranger. Whatever the bytes are, a reader
//! returns.
//!
//! Tests read the found cases with the same functions: a case is a file in the folder of its reader.

use std::sync::{Arc, OnceLock};

use lexiform::grammar::{Notation, convert};
use lexiform::limits::Limits;
use lexiform::regex::Dialect;
use lexiform::vocab::{ReadLimits, TokenKind, Tokenizer, Vocabulary, from_tiktoken, from_tokenizer_json};
use lexiform::{Compiler, Options, Source};

use super::clock::{COMPILE, within};
use super::walk::{Choices, walk};

/// Tokens beside the single bytes: pieces of JSON, words across their borders, and long runs, which cost
/// most.
const PIECES: [&str; 24] = [
    "{\"",
    "\":",
    "\",\"",
    "\"}",
    "[[",
    "]]",
    "},{",
    "null",
    "true",
    "0,1",
    "1e9",
    "12345678",
    "aa",
    "ab",
    "ba",
    "abab",
    "xx",
    "zx",
    " \n",
    "aaaaaaaaaaaaaaaa",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "        ",
    "é",
    "\\u00",
];

/// Compiles for a small vocabulary that has a token for each byte.
fn compiler() -> Compiler {
    static PRIMED: OnceLock<Compiler> = OnceLock::new();
    let primed = PRIMED.get_or_init(|| {
        let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
        tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
        tokens.extend(PIECES.map(|piece| (TokenKind::Text, piece.as_bytes().to_vec())));
        let vocabulary = Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed");
        let compiler = Compiler::new(Arc::new(vocabulary));
        compiler.primed(&Options::default()).expect("the primers compile")
    });
    primed.fresh()
}

/// Compiles a source, and walks its grammar.
fn compile_and_walk(source: Source<'_>) {
    compile_and_walk_with(source, &Options::default());
}

fn compile_and_walk_with(source: Source<'_>, options: &Options) {
    let compiled = within(COMPILE, "a compile", || compiler().compile(source, options));
    if let Ok((grammar, _)) = compiled {
        walk(
            &grammar,
            &mut Choices::of(source.texts().next().unwrap_or_default()),
        );
        within(COMPILE, "dropping a grammar", || drop(grammar));
    }
}

/// A JSON Schema: compiled, walked, printed in its normal form, and sketched for a prompt.
pub fn schema(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    compile_and_walk(Source::JsonSchema(text));
    let options = Options::default();
    within(COMPILE, "a normal form", || {
        drop(lexiform_syntax::schema::normal_form(
            text,
            &options.schema,
            &options.limits,
        ));
    });
    within(COMPILE, "a report", || {
        drop(lexiform::schema::report(text, &options.schema, &options.limits))
    });
    if let Ok(value) = serde_json::from_str(text) {
        within(COMPILE, "a sketch", || {
            drop(lexiform_syntax::schema::sketch::sketch(&value))
        });
    }
}

/// A regular expression in the dialect of Rust, and in Python's.
pub fn regex(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input) {
        within(COMPILE, "reading a pattern of Python", || {
            drop(lexiform_syntax::regex::whole(
                text,
                Dialect::Python,
                &Limits::default(),
            ))
        });
        compile_and_walk(Source::Regex(text));
    }
}

/// A regular expression in the dialect of ECMA-262, alone and as the `pattern` of a schema.
pub fn ecma(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    within(COMPILE, "reading a pattern", || {
        drop(lexiform_syntax::regex::ecma(text, &Limits::default()))
    });
    let schema = serde_json::json!({"type": "string", "pattern": text}).to_string();
    compile_and_walk(Source::JsonSchema(&schema));
}

/// A grammar in EBNF.
pub fn ebnf(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input) {
        compile_and_walk(Source::Ebnf(text));
    }
}

/// A grammar in the notation whose number is the first byte, and in the one that is recognised. It is also
/// printed in another notation.
pub fn notations(input: &[u8]) {
    let Some((&first, text)) = input.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(text) else { return };
    let all: Vec<Notation> = Notation::all().collect();
    let mut options = Options::default();
    let recognised = within(COMPILE, "recognising a notation", || {
        compiler().compile(Source::Grammar(text), &options)
    });
    drop(recognised);
    options.grammar.notation = Some(all[usize::from(first) % all.len()]);
    let to = all[usize::from(first) / all.len() % all.len()];
    within(COMPILE, "printing a grammar in another notation", || {
        drop(convert(
            text,
            to,
            &options.grammar,
            &options.schema,
            &options.limits,
        ))
    });
    compile_and_walk_with(Source::Grammar(text), &options);
}

/// A structural tag.
pub fn tags(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input) {
        compile_and_walk(Source::StructuralTag(text));
    }
}

/// The texts that a tokenizer that was read has to cut.
const TEXTS: [&str; 4] = [
    "",
    "a b  c\n\n12,345 été 你好 👍",
    "<|endoftext|><s>\u{0}\u{FFFD}",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// A `tokenizer.json`: its tokens, and the tokenizer with both ways.
pub fn tokenizer(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input) {
        let file = within(COMPILE, "reading a tokenizer", || {
            from_tokenizer_json(text, &ReadLimits::default())
        });
        if let Ok(file) = file {
            drop(within(COMPILE, "making a vocabulary", || file.vocabulary(&[0])));
        }
    }
    let tokenizer = within(COMPILE, "loading a tokenizer", || Tokenizer::from_bytes(input));
    let Ok(tokenizer) = tokenizer else { return };
    for text in TEXTS {
        within(COMPILE, "encoding", || cut(&tokenizer, text));
    }
}

/// Cuts a text in all ways. What [`Tokenizer::encode`] says is exact: its tokens write the text.
fn cut(tokenizer: &Tokenizer, text: &str) {
    drop(tokenizer.encode_plain(text));
    drop(tokenizer.encode_with_special(text));
    if let Ok(tokens) = tokenizer.encode(text) {
        let written = tokenizer.decode(&tokens);
        assert_eq!(written, text, "finding: tokens of a text write another one");
    }
}

/// The ranks of tiktoken, with special tokens at two places.
pub fn tiktoken(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let special = [("<|endoftext|>", 7), ("<|fim|>", 300)];
    let file = within(COMPILE, "reading ranks", || {
        from_tiktoken(text, &special, &ReadLimits::default())
    });
    if let Ok(file) = file {
        drop(within(COMPILE, "making a vocabulary", || file.vocabulary(&[7])));
    }
}
