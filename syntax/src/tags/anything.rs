//! The language of everything that a model can write.

use super::lower::free_text;
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId, Regular};
use lexiform_automata::limits::Limits;
use lexiform_automata::vocab::{TokenKind, Vocabulary};

/// Returns the grammar of any bytes with any special tokens and marks of the vocabulary between them, except
/// those that end a sequence. Of several tokens with one name it includes the first, as all grammars do.
///
/// Its masks allow every token, so it is not a constraint by itself; [`Cfg::with_prefix`] turns it into one.
pub fn anything(vocabulary: &Vocabulary) -> Cfg {
    // Without a text to leave out, no expression is parsed.
    anything_without(vocabulary, None, &Limits::default())
}

/// Returns the same grammar without one text, in which the names of special tokens denote those tokens: no
/// run of bytes contains it, and no special token comes with which it begins.
pub fn anything_without(vocabulary: &Vocabulary, text: Option<&str>, limits: &Limits) -> Cfg {
    let mut builder = CfgBuilder::new();
    // A regular language without parts contains all byte strings. The text is a short mark, so it parses.
    let parts = text.map(|text| free_text([text].into_iter(), limits).unwrap_or_default());
    let bytes = builder.add_regular(Regular::of(parts.unwrap_or_default()));
    let bytes = builder.regular(bytes);
    let names = (0..vocabulary.len() as u32).filter_map(|token| special_name(vocabulary, token));
    let names = names.filter(|name| text.is_none_or(|text| !text.starts_with(name)));
    let specials: Vec<ExprId> = names.map(|name| builder.special(name)).collect();
    let special = builder.choice(specials);
    let more = builder.seq([special, bytes]);
    let more = builder.repeat(more, 0, None);
    let body = builder.seq([bytes, more]);
    let start = builder.declare("");
    builder.define(start, body);
    builder.finish(start)
}

/// Returns the name by which a grammar can refer to this token, if it has one and the text can continue
/// after it.
fn special_name(vocabulary: &Vocabulary, token: u32) -> Option<&str> {
    if !matches!(vocabulary.kind(token), TokenKind::Special | TokenKind::Mark) || vocabulary.is_eos(token) {
        return None;
    }
    let name = str::from_utf8(vocabulary.bytes(token)).ok()?;
    (vocabulary.special(name) == Some(token)).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lexiform::{Options, Source, compile};

    use super::*;

    fn vocabulary() -> Arc<Vocabulary> {
        use TokenKind::{Mark, Special, Text, Unused};
        let tokens: [(TokenKind, &[u8]); 9] = [
            (Text, b"a"),
            (Text, b"\xff\x80"),
            (Special, b"<end>"),
            (Special, b"<s>"),
            (Special, b"<s>"),
            (Mark, b"<think>"),
            (Unused, b""),
            (Text, b"ab"),
            (Text, b"ba"),
        ];
        Arc::new(Vocabulary::new(&tokens, &[2]).expect("a vocabulary"))
    }

    #[test]
    fn every_token_may_come_anywhere() {
        let (grammar, _) = compile(Source::Any, &vocabulary(), &Options::default()).expect("it compiles");
        let all = [0, 1, 2, 3, 5, 7, 8];
        let mut state = grammar.start();
        for token in [0, 3, 1, 5, 3, 0] {
            assert_eq!(grammar.mask(state).iter().collect::<Vec<_>>(), all);
            state = grammar.step(state, token).expect("it is allowed");
        }
        assert!(grammar.is_accepting(state));
    }

    #[test]
    fn with_a_prefix_it_begins_with_that() {
        let options = Options {
            prefix: b"ab".to_vec(),
            ..Options::default()
        };
        let (grammar, _) = compile(Source::Any, &vocabulary(), &options).expect("it compiles");
        let start = grammar.start();
        assert_eq!(grammar.forced(start), b"ab");
        assert_eq!(grammar.mask(start).iter().collect::<Vec<_>>(), [0, 7]);
        let inside = grammar.step(start, 0).expect("it begins the prefix");
        assert_eq!(
            grammar.mask(inside).iter().collect::<Vec<_>>(),
            [8],
            "\"ba\" spans its end"
        );
        let after = grammar.step(inside, 8).expect("it spans the end");
        assert_eq!(grammar.mask(after).count(), 7);
    }
}
