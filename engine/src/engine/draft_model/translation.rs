//! The translation between the tokens of two models, by the bytes that they write.
//!
//! ```text
//!   the model     The| cat| s|at      text   The cat sat      the draft model   T|he ca|t sat
//!   <|im_start|>  a control token is the one of the same name, or nothing
//! ```
//!
//! A text grows at its end, so the translation is kept: only the last few tokens of the draft model are
//! tokenised again, together with the new text, because they may be longer in running text.

use crate::error::EngineError;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::draft::Tokenise;
use std::sync::Arc;

/// The tokens of a draft model that differ from those of the main model.
#[derive(Clone)]
pub struct OwnTokens {
    /// The vocabulary of the draft model.
    pub vocabulary: Arc<Vocabulary>,
    /// The tokenizer of the draft model.
    pub tokeniser: Arc<dyn Tokenise + Sync>,
}

/// The number of last tokens of the text that drafted text is tokenised with, so that the result is the same
/// as in running text.
pub(super) const CONTEXT_TOKENS: usize = 2;

/// The number of the draft model's last tokens that are tokenised again when a text grows.
const TAIL_TOKENS: usize = 4;

/// The placeholder byte of a control token in a text; it does not identify the token.
const CONTROL: u8 = 0xff;

/// The translation in both directions between the tokens of a model and those of its draft model.
pub(super) struct Translation {
    vocabulary: Arc<Vocabulary>,
    tokeniser: Arc<dyn Tokenise + Sync>,
    own: OwnTokens,
}

/// The first tokens of a text together with those that are drafted after it.
#[derive(Clone, Copy)]
pub(super) struct Joined<'a> {
    pub(super) text: &'a [u32],
    pub(super) behind: &'a [u32],
    /// The number of tokens of both.
    pub(super) len: usize,
}

impl Joined<'_> {
    /// Returns the tokens from a position on, without visiting those before it.
    fn from(&self, place: usize) -> impl Iterator<Item = u32> {
        let text = self.text.get(place..).unwrap_or_default();
        let behind = self.behind.iter().skip(place.saturating_sub(self.text.len()));
        let all = text.iter().chain(behind).copied();
        all.take(self.len.saturating_sub(place))
    }
}

/// A text of the model, translated for its draft model.
#[derive(Default)]
pub(super) struct Translated {
    /// The bytes of the text, with one byte for each control token.
    bytes: Vec<u8>,
    /// The end of each token of the text, in bytes.
    ends: Vec<usize>,
    /// The draft model's tokens.
    pub(super) tokens: Arc<Vec<u32>>,
    /// The end of each of these tokens, in bytes.
    own_ends: Vec<usize>,
    /// The number of the draft model's tokens that have not changed since
    /// [`take_unchanged`](Self::take_unchanged).
    unchanged: usize,
}

impl Translated {
    /// Returns the number of tokens of the text that are translated.
    pub(super) fn read(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of the draft model's tokens that have not changed since the last call.
    pub(super) fn take_unchanged(&mut self) -> usize {
        std::mem::replace(&mut self.unchanged, usize::MAX).min(self.tokens.len())
    }
}

impl Translation {
    /// # Errors
    /// Fails if the draft model has no tokens that write some token of the model, so that it cannot read what
    /// the model writes.
    pub(super) fn new(
        vocabulary: Arc<Vocabulary>,
        tokeniser: Arc<dyn Tokenise + Sync>,
        own: OwnTokens,
    ) -> Result<Self, EngineError> {
        let tokens = 0..u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
        // A token may be part of a character, which the draft model can write as a whole.
        let mut texts = tokens.filter(|&token| {
            vocabulary.kind(token) == TokenKind::Text && std::str::from_utf8(vocabulary.bytes(token)).is_ok()
        });
        let is_written = |bytes| own.vocabulary.tokenisations(bytes).count() > 0;
        if let Some(token) = texts.find(|&token| !is_written(vocabulary.bytes(token))) {
            return Err(EngineError::DraftTokens {
                token,
                text: vocabulary.bytes(token).escape_ascii().to_string(),
            });
        }
        Ok(Translation {
            vocabulary,
            tokeniser,
            own,
        })
    }

    /// Returns the vocabulary of the draft model.
    pub(super) fn own(&self) -> &Arc<Vocabulary> {
        &self.own.vocabulary
    }

    /// Updates the translation to a text whose first `unchanged` tokens are the same as the last time.
    pub(super) fn follow(&self, translated: &mut Translated, text: Joined<'_>, unchanged: usize) {
        let kept = unchanged.min(translated.ends.len()).min(text.len);
        if kept == text.len && kept == translated.ends.len() {
            return;
        }
        translated.ends.truncate(kept);
        let place = translated.ends.last().copied().unwrap_or(0);
        translated.bytes.truncate(place);
        // The last ones may be longer together with the new text.
        let whole = translated.own_ends.partition_point(|&end| end <= place);
        let kept = whole.saturating_sub(TAIL_TOKENS);
        translated.own_ends.truncate(kept);
        let tokens = Arc::make_mut(&mut translated.tokens);
        let last = tokens.get(kept..whole).unwrap_or_default().to_vec();
        tokens.truncate(kept);
        let from = translated.own_ends.last().copied().unwrap_or(0);
        for token in text.from(translated.ends.len()) {
            match self.vocabulary.kind(token) {
                TokenKind::Text => translated.bytes.extend(self.vocabulary.bytes(token)),
                _ => translated.bytes.push(CONTROL),
            }
            translated.ends.push(translated.bytes.len());
        }
        self.cut(translated, text, from);
        let pairs = translated.tokens[kept..].iter().zip(&last);
        let again = pairs.take_while(|(one, other)| one == other).count();
        translated.unchanged = translated.unchanged.min(kept + again);
    }

    /// Tokenises the text from a byte position on, at which one of the draft model's tokens ends.
    fn cut(&self, translated: &mut Translated, text: Joined<'_>, from: usize) {
        let first = translated.ends.partition_point(|&end| end <= from);
        let (mut run, mut at) = (from, from);
        for (number, token) in (first..).zip(text.from(first)) {
            let end = translated.ends[number];
            if self.vocabulary.kind(token) != TokenKind::Text {
                let own = self.own_special(token);
                let bytes = translated.bytes[run..at].to_vec();
                translated.add(self.own_tokens(&bytes), &self.own.vocabulary, run);
                if let Some(own) = own {
                    Arc::make_mut(&mut translated.tokens).push(own);
                    translated.own_ends.push(end);
                }
                run = end;
            }
            at = end;
        }
        let bytes = translated.bytes[run..].to_vec();
        translated.add(self.own_tokens(&bytes), &self.own.vocabulary, run);
    }

    /// Returns the draft model's token with the same name as a control token.
    fn own_special(&self, token: u32) -> Option<u32> {
        let name = std::str::from_utf8(self.vocabulary.bytes(token)).ok()?;
        self.own.vocabulary.special(name).filter(|_| !name.is_empty())
    }

    /// Returns a text in the draft model's tokens: those of its tokenizer if they write exactly the text, and
    /// the longest ones otherwise.
    fn own_tokens(&self, bytes: &[u8]) -> Vec<u32> {
        let cut = self.own.tokeniser.tokens(bytes).unwrap_or_default();
        match writes(&self.own.vocabulary, &cut, bytes) {
            true => cut,
            false => spelled(&self.own.vocabulary, bytes).unwrap_or_default(),
        }
    }

    /// Returns the text that the draft model continues a text with, in the model's tokens. If the text may
    /// continue (`is_open`), the last token is omitted if there are others: the model may write a longer one.
    pub(super) fn drafted(&self, text: &[u32], bytes: &[u8], is_open: bool) -> Vec<u32> {
        let whole = match std::str::from_utf8(bytes) {
            Ok(_) => bytes,
            Err(error) => &bytes[..error.valid_up_to()],
        };
        let recent = &text[text.len().saturating_sub(CONTEXT_TOKENS)..];
        let texts = recent.rsplit(|&token| self.vocabulary.kind(token) != TokenKind::Text);
        let before: Vec<u8> = texts
            .take(1)
            .flatten()
            .flat_map(|&token| self.vocabulary.bytes(token))
            .copied()
            .collect();
        let running = self.tokeniser.tokens(&[&before, whole].concat());
        let behind = running.and_then(|tokens| self.behind(&tokens, before.len()));
        let mut tokens = behind
            .or_else(|| self.tokeniser.tokens(whole))
            .unwrap_or_default();
        if (is_open || whole.len() < bytes.len()) && tokens.len() > 1 {
            tokens.pop();
        }
        tokens
    }

    /// Returns the tokens after the first `bytes` bytes, if one of them begins there.
    fn behind(&self, tokens: &[u32], bytes: usize) -> Option<Vec<u32>> {
        let mut end = 0;
        let first = tokens.iter().position(|&token| {
            let begins = end == bytes;
            end += self.vocabulary.bytes(token).len();
            begins
        });
        first.map(|first| tokens[first..].to_vec())
    }
}

impl Translated {
    /// Appends tokens that write the text from a position on.
    fn add(&mut self, tokens: Vec<u32>, own: &Vocabulary, from: usize) {
        let mut end = from;
        for token in tokens {
            end += own.bytes(token).len();
            self.own_ends.push(end);
            Arc::make_mut(&mut self.tokens).push(token);
        }
    }
}

/// Returns `true` if tokens write exactly these bytes.
fn writes(vocabulary: &Vocabulary, tokens: &[u32], bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let is_next = |&token: &u32| {
        let written = vocabulary.bytes(token);
        let is_text = vocabulary.kind(token) == TokenKind::Text && !written.is_empty();
        let next = rest.strip_prefix(written).filter(|_| is_text);
        rest = next.unwrap_or(rest);
        next.is_some()
    };
    tokens.iter().all(is_next) && rest.is_empty()
}

/// Returns the tokens of a text by the longest match at each position, or by single bytes if that fails;
/// `None` if the vocabulary cannot write it either way.
fn spelled(vocabulary: &Arc<Vocabulary>, bytes: &[u8]) -> Option<Vec<u32>> {
    let longest = || lexiform_law::draft::LongestMatch(vocabulary.clone()).tokens(bytes);
    let by_bytes = || {
        bytes
            .iter()
            .map(|&byte| vocabulary.token_of_byte(byte))
            .collect::<Option<Vec<u32>>>()
    };
    longest().or_else(by_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform_law::draft::LongestMatch;

    fn vocabulary(texts: &[&str], specials: &[&str]) -> Arc<Vocabulary> {
        let texts = texts.iter().map(|text| (TokenKind::Text, *text));
        let specials = specials.iter().map(|name| (TokenKind::Special, *name));
        let tokens: Vec<(TokenKind, &str)> = texts.chain(specials).collect();
        let end = tokens.len() as u32 - 1;
        Arc::new(Vocabulary::new(&tokens, &[end]).expect("some tokens"))
    }

    fn own(vocabulary: &Arc<Vocabulary>) -> OwnTokens {
        OwnTokens {
            vocabulary: vocabulary.clone(),
            tokeniser: Arc::new(LongestMatch(vocabulary.clone())),
        }
    }

    /// Returns a translation whose model has the tokens 0 to 6 and the control tokens 7 to 9, of which the
    /// draft model has two.
    fn translation() -> Translation {
        let model = vocabulary(&["a", "b", "c", "ab", "bc", "ä", "cab"], &["<s>", "<x>", "<end>"]);
        let other = vocabulary(&["c", "a", "abc", "b", "ä", "ca"], &["<end>", "<s>", "<other>"]);
        Translation::new(model.clone(), Arc::new(LongestMatch(model)), own(&other)).expect("same letters")
    }

    /// Returns a text whose tokens from a position on are drafted.
    fn joined(text: &[u32], place: usize) -> Joined<'_> {
        let (text, behind) = text.split_at(place);
        let len = text.len() + behind.len();
        Joined { text, behind, len }
    }

    /// Returns the bytes that tokens write, with control tokens by their names.
    fn written(vocabulary: &Vocabulary, tokens: &[u32], skipped: Option<u32>) -> Vec<u8> {
        let kept = tokens.iter().filter(|token| Some(**token) != skipped);
        kept.flat_map(|&token| vocabulary.bytes(token)).copied().collect()
    }

    /// Guards against texts that are mistranslated where they grow, are cut back or have control tokens, and
    /// against a draft model that treats changed tokens as read.
    #[test]
    fn a_translated_text_writes_the_text_and_says_what_has_changed() {
        let translation = translation();
        let (mut state, mut text, mut before) = (7_u64, Vec::new(), Vec::new());
        let mut translated = Translated::default();
        let (mut same, mut all, mut known) = (0, 0, 0);
        for _ in 0..2000 {
            let mut number = |below: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let kept = match number(4) {
                0 => text.len() - number(text.len() as u64 + 1) as usize,
                _ => text.len(),
            };
            let kept = if number(50) == 0 { 0 } else { kept };
            text.truncate(kept);
            known = known.min(kept);
            let more = number(5);
            text.extend((0..more).map(|_| number(10) as u32));
            let half = number(text.len() as u64 + 1) as usize;
            translation.follow(&mut translated, joined(&text, half), known);
            known = text.len();
            // The draft model has no token named <x>.
            assert_eq!(
                written(&translation.own.vocabulary, &translated.tokens, None),
                written(&translation.vocabulary, &text, Some(8)),
                "{text:?}"
            );
            let unchanged = translated.take_unchanged();
            assert_eq!(translated.tokens[..unchanged], before[..unchanged]);
            (same, all) = (same + unchanged, all + before.len().min(translated.tokens.len()));
            before = translated.tokens.to_vec();
        }
        assert!(3 * same > 2 * all, "{same} of {all}");
    }

    #[test]
    fn a_text_that_grows_is_cut_as_the_whole_text() {
        let translation = translation();
        let (mut translated, text) = (Translated::default(), [3, 2, 3, 2, 0]);
        for end in 1..=text.len() {
            translation.follow(&mut translated, joined(&text[..end], end), end - 1);
        }
        // ab|c|ab|c|a is abc|abc|a: a token is tokenised again together with what comes after it.
        assert_eq!(translated.tokens[..], [2, 2, 1]);
    }

    #[test]
    fn drafted_text_is_cut_as_in_running_text_and_its_last_token_is_left_open() {
        let translation = translation();
        for (text, bytes, is_open, expected) in [
            (&[0][..], &b"bcab"[..], false, &[4, 3][..]),
            (&[0], b"bcab", true, &[4]),
            (&[0], b"bc", true, &[4]),
            // After `b` the tokenizer begins with `bc`, which does not end where the text does.
            (&[1], b"cab", false, &[6]),
            (&[1, 9], b"cab", false, &[6]),
            (&[], b"c\xc3\xa4a\xc3", true, &[2, 5]),
            (&[], b"\xc3", true, &[]),
            (&[0], b"xyz", true, &[]),
        ] {
            assert_eq!(
                translation.drafted(text, bytes, is_open),
                expected,
                "{text:?} {}",
                bytes.escape_ascii()
            );
        }
    }

    #[test]
    fn a_draft_model_that_cannot_read_the_text_is_refused_by_what_it_cannot_read() {
        let model = vocabulary(&["a", "b", "ab", "ä"], &["<end>"]);
        let new = |texts| {
            let own = own(&vocabulary(texts, &["<end>"]));
            Translation::new(model.clone(), Arc::new(LongestMatch(model.clone())), own).err()
        };
        assert_eq!(new(&["b", "a", "ä"]), None);
        let error = new(&["aa", "b", "ä"]).expect("no `a`");
        assert_eq!(
            error,
            EngineError::DraftTokens {
                token: 0,
                text: "a".to_owned()
            }
        );
        let error = new(&["a", "b"]).expect("no `ä`");
        assert!(
            error.to_string().contains("\"\\xc3\\xa4\", which is token 3"),
            "{error}"
        );
    }
}
