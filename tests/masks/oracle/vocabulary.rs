//! Small vocabularies that have everything that real ones have.

use std::sync::Arc;

use lexiform::vocab::{TokenKind, Vocabulary};
use proptest::prelude::*;

/// The name of the special token that grammars may ask for.
pub(crate) const NAMED: &str = "<|tool|>";

/// How judges write that token: as a character that no text of the tests has.
pub(crate) const NAMED_MARK: &str = "\u{1}";

/// Random vocabularies over these bytes: a token for each byte, longer tokens, several tokens of the same
/// bytes, a special token whose name is text of the language, an unused row, and two tokens that end a
/// sequence.
pub(crate) fn vocabularies(bytes: &'static [u8]) -> impl Strategy<Value = Arc<Vocabulary>> {
    let byte = prop::sample::select(bytes.to_vec()).prop_map(|byte| vec![byte]);
    with_longer(bytes, byte.boxed())
}

/// The same with longer tokens that are joined from these pieces.
pub(crate) fn vocabularies_of(
    bytes: &'static [u8],
    pieces: &'static [&'static str],
) -> impl Strategy<Value = Arc<Vocabulary>> {
    let piece = prop::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec());
    with_longer(bytes, piece.boxed())
}

/// The same vocabulary with a token for every byte, and so many more that completions are not searched among
/// all texts.
pub(crate) fn padded(vocabulary: &Vocabulary) -> Arc<Vocabulary> {
    padded_without(vocabulary, &[])
}

/// The same with no more tokens for these bytes alone.
pub(crate) fn padded_without(vocabulary: &Vocabulary, missing: &[u8]) -> Arc<Vocabulary> {
    let tokens = 0..vocabulary.len() as u32;
    let tokens = tokens.map(|token| (vocabulary.kind(token), vocabulary.bytes(token).to_vec()));
    let bytes = (0..=u8::MAX).filter(|byte| !missing.contains(byte));
    let bytes = bytes.map(|byte| vec![byte]);
    let more = bytes.chain((0x80..=0xff).flat_map(|first| (0..8).map(move |second| vec![first, second])));
    let all: Vec<_> = tokens.chain(more.map(|bytes| (TokenKind::Text, bytes))).collect();
    Arc::new(Vocabulary::new(&all, vocabulary.eos()).expect("a vocabulary"))
}

fn with_longer(
    bytes: &'static [u8],
    piece: BoxedStrategy<Vec<u8>>,
) -> impl Strategy<Value = Arc<Vocabulary>> {
    let longer = prop::collection::vec(prop::collection::vec(piece, 1..=3), 0..10);
    let all = longer.prop_map(move |longer| {
        let mut tokens: Vec<(TokenKind, Vec<u8>)> =
            bytes.iter().map(|&byte| (TokenKind::Text, vec![byte])).collect();
        tokens.extend(
            longer
                .into_iter()
                .map(|pieces| (TokenKind::Text, pieces.concat())),
        );
        tokens.push((TokenKind::Text, bytes[..1].to_vec()));
        tokens.push((TokenKind::Special, bytes[..1].to_vec()));
        tokens.push((TokenKind::Special, NAMED.as_bytes().to_vec()));
        tokens.push((TokenKind::Mark, bytes[..1].to_vec()));
        tokens.push((TokenKind::Unused, Vec::new()));
        tokens.push((TokenKind::Special, b"<end>".to_vec()));
        tokens.push((TokenKind::Special, b"<end of turn>".to_vec()));
        tokens
    });
    all.prop_shuffle().prop_map(|tokens| {
        let named = |name: &[u8]| {
            tokens
                .iter()
                .position(|(_, bytes)| bytes == name)
                .expect("it was put in") as u32
        };
        let eos = [named(b"<end>"), named(b"<end of turn>")];
        Arc::new(Vocabulary::new(&tokens, &eos).expect("a vocabulary"))
    })
}
