//! Reads a Hugging Face `tokenizer.json`.
//!
//! ```text
//!   model.vocab ──── pieces with ids ──┐
//!   decoder, … ───── the spelling ─────┼──►  bytes by id
//!   added_tokens ─── literal text ─────┘     (special ones apart)
//! ```
//!
//! Merges and scores decide how text is *split* into tokens, not what the tokens write: they are skipped, so
//! that reading takes about as much memory as its result.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::spelling::{Clues, Spelling, parts};
use super::tokenizer_file::TokenTable;
use super::{ReadLimits, TokenKind, TokenizerFile, VocabularyError};

/// Reads the text of a `tokenizer.json`: BPE and Unigram models, byte-level or SentencePiece style.
///
/// - The kind of a *special* added token is [`TokenKind::Special`], and its bytes are its name.
/// - Any other added token writes its content literally. If the content is in angle or square brackets, as in
///   `<think>`, the token is a [`TokenKind::Mark`]; otherwise it is text, such as a run of spaces.
/// - The unknown token has no fixed text and counts as special.
/// - Ids that the file does not name are holes. A piece that writes no bytes is treated as a hole.
///
/// WordPiece and WordLevel models are rejected: the text of their tokens depends on the neighbouring tokens.
pub fn from_tokenizer_json(text: &str, limits: &ReadLimits) -> Result<TokenizerFile, VocabularyError> {
    let file: JsonFile = serde_json::from_str(text).map_err(|error| not_the_form(&error))?;
    check_model(&file.model)?;
    let clues = Clues {
        normalizer: file.normalizer.as_ref(),
        pre_tokenizer: file.pre_tokenizer.as_ref(),
        decoder: file.decoder.as_ref(),
        byte_fallback: file.model.byte_fallback.unwrap_or(false),
    };
    let spelling = Spelling::read(&clues)?;
    let dummy_space = puts_dummy_space(&clues)?;
    let mut table = TokenTable::new(limits);
    insert_pieces(&file.model, &spelling, &mut table)?;
    insert_added(&file, &spelling, &mut table)?;
    let unknown = unknown(&file);
    Ok(TokenizerFile::new(table, spelling.scheme())
        .with_dummy_space(dummy_space)
        .with_unknown(unknown))
}

#[derive(Deserialize)]
struct JsonFile {
    #[serde(default)]
    added_tokens: Vec<Added>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    decoder: Option<Value>,
    model: Model,
}

#[derive(Deserialize)]
struct Added {
    id: u64,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: Pieces,
    merges: Option<IgnoredAny>,
    byte_fallback: Option<bool>,
    unk_token: Option<String>,
    unk_id: Option<u64>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
}

impl Model {
    fn is_unknown(&self, id: u64, piece: &str) -> bool {
        self.unk_id == Some(id) || self.unk_token.as_deref() == Some(piece)
    }
}

/// The pieces of a model with their ids: an object of ids by piece (BPE), or a list of pieces with scores
/// (Unigram).
struct Pieces {
    pieces: Vec<(String, u64)>,
    listed: bool,
}

impl<'de> Deserialize<'de> for Pieces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PiecesVisitor)
    }
}

struct PiecesVisitor;

impl<'de> Visitor<'de> for PiecesVisitor {
    type Value = Pieces;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of ids by piece, or a list of [piece, score]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pieces, A::Error> {
        let mut pieces = Vec::new();
        while let Some(entry) = map.next_entry()? {
            pieces.push(entry);
        }
        Ok(Pieces {
            pieces,
            listed: false,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pieces, A::Error> {
        let mut pieces = Vec::new();
        while let Some((piece, _score)) = list.next_element::<(String, f64)>()? {
            pieces.push((piece, pieces.len() as u64));
        }
        Ok(Pieces { pieces, listed: true })
    }
}

fn not_the_form(error: &serde_json::Error) -> VocabularyError {
    let place = format!("line {} column {}", error.line(), error.column());
    let message = error.to_string();
    let message = message
        .strip_suffix(&format!(" at {place}"))
        .unwrap_or(&message)
        .to_owned();
    VocabularyError::Malformed { place, message }
}

fn check_model(model: &Model) -> Result<(), VocabularyError> {
    // Old files do not name the type, so it is inferred from the contents.
    let guessed = match (model.vocab.listed, model.merges.is_some()) {
        (true, _) => "Unigram",
        (false, true) => "BPE",
        (false, false) => "unnamed",
    };
    let kind = model.kind.as_deref().unwrap_or(guessed);
    if kind != "BPE" && kind != "Unigram" {
        let message = format!("a {kind} model does not spell exact bytes; BPE and Unigram models do");
        return Err(VocabularyError::Unsupported {
            place: "/model/type".to_owned(),
            message,
        });
    }
    if model.vocab.listed != (kind == "Unigram") {
        let message = format!("the pieces of this {kind} model have the form of another type");
        return Err(VocabularyError::Malformed {
            place: "/model/vocab".to_owned(),
            message,
        });
    }
    let marks = [
        (
            "/model/continuing_subword_prefix",
            &model.continuing_subword_prefix,
        ),
        ("/model/end_of_word_suffix", &model.end_of_word_suffix),
    ];
    for (place, mark) in marks {
        if mark.as_ref().is_some_and(|mark| !mark.is_empty()) {
            let message = "pieces that mark the place in a word do not spell exact bytes".to_owned();
            return Err(VocabularyError::Unsupported {
                place: place.to_owned(),
                message,
            });
        }
    }
    Ok(())
}

fn insert_pieces(model: &Model, spelling: &Spelling, table: &mut TokenTable) -> Result<(), VocabularyError> {
    for (piece, id) in &model.vocab.pieces {
        let token = if model.is_unknown(*id, piece) {
            (TokenKind::Special, piece.clone().into_bytes())
        } else {
            text(spelling.bytes(piece))
        };
        table.insert(*id, token, &format!("/model/vocab/{}", escape(piece)))?;
    }
    Ok(())
}

fn insert_added(file: &JsonFile, spelling: &Spelling, table: &mut TokenTable) -> Result<(), VocabularyError> {
    let pieces: FxHashMap<&str, u64> = file
        .model
        .vocab
        .pieces
        .iter()
        .map(|(piece, id)| (piece.as_str(), *id))
        .collect();
    let mut seen: FxHashMap<u64, &str> = FxHashMap::default();
    for (at, added) in file.added_tokens.iter().enumerate() {
        let place = format!("/added_tokens/{at}");
        if seen
            .insert(added.id, &added.content)
            .is_some_and(|other| other != added.content)
        {
            let message = format!("the id {} is already taken by another added token", added.id);
            return Err(VocabularyError::Malformed { place, message });
        }
        let token = match added.special || file.model.is_unknown(added.id, &added.content) {
            true => (TokenKind::Special, added.content.clone().into_bytes()),
            // Some files list ordinary pieces again as added tokens, such as runs of "▁", so that they are
            // matched in the text first. Those keep their spelling; content that is only an added token is
            // literal.
            false if pieces.get(added.content.as_str()) == Some(&added.id) => {
                text(spelling.bytes(&added.content))
            }
            false if is_mark(&added.content) => (TokenKind::Mark, added.content.clone().into_bytes()),
            false => text(added.content.clone().into_bytes()),
        };
        // An added token replaces a piece with the same id, as it does when the `tokenizers` library decodes.
        table.replace(added.id, token, &place)?;
    }
    Ok(())
}

/// Returns `true` if an added token marks something instead of being text. Models learn to give such tokens a
/// meaning, whatever the file calls them; an answer that is to contain these characters spells them out.
fn is_mark(content: &str) -> bool {
    let within = |open, close| content.starts_with(open) && content.ends_with(close);
    (within('<', '>') || within('[', ']')) && content.len() > 2 && !content.contains(char::is_whitespace)
}

fn unknown(file: &JsonFile) -> Option<u32> {
    let pieces = file.model.vocab.pieces.iter().map(|(piece, id)| (*id, piece));
    let added = file.added_tokens.iter().map(|added| (added.id, &added.content));
    let found = pieces
        .chain(added)
        .find(|(id, piece)| file.model.is_unknown(*id, piece));
    found.and_then(|(id, _)| u32::try_from(id).ok())
}

fn text(bytes: Vec<u8>) -> (TokenKind, Vec<u8>) {
    let kind = if bytes.is_empty() {
        TokenKind::Unused
    } else {
        TokenKind::Text
    };
    (kind, bytes)
}

fn puts_dummy_space(clues: &Clues<'_>) -> Result<bool, VocabularyError> {
    if let Some(normalizer) = clues.normalizer {
        for (_, part) in parts(normalizer, "normalizers", "/normalizer")? {
            if part.get("type").and_then(Value::as_str) == Some("Prepend") {
                return Ok(true);
            }
        }
    }
    let Some(pre_tokenizer) = clues.pre_tokenizer else {
        return Ok(false);
    };
    let all = parts(pre_tokenizer, "pretokenizers", "/pre_tokenizer")?;
    Ok(all.iter().any(|(_, part)| {
        let prefix = part
            .get("add_prefix_space")
            .and_then(Value::as_bool)
            .unwrap_or(true);
        match part.get("type").and_then(Value::as_str) {
            Some("ByteLevel") => prefix,
            Some("Metaspace") => part
                .get("prepend_scheme")
                .and_then(Value::as_str)
                .map_or(prefix, |it| it != "never"),
            _ => false,
        }
    }))
}

/// Escapes a key for a JSON pointer.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
