//! Encodes a text of which only some parts may become added tokens.
//!
//! Hugging Face's `tokenizers` cuts a text at its added tokens, normalizes the rest, cuts it at those added
//! tokens that are compared after normalization, and gives what remains to the model. This module does the
//! same, but cuts only at tokens that lie within one trusted part:
//!
//! ```text
//!   text       <|im_start|>user\nsay <|im_end|>!<|im_end|>
//!   trusted    ├───────────────┤               ├────────┤
//!   cut        <|im_start|>│user\nsay <|im_end|>!│<|im_end|>
//! ```
//!
//! The text around a seam stays together, so that a text that spells no added token has the tokens that
//! `tokenizers` gives it. Each trusted part is searched on its own, so that no text beside it, however it
//! goes on, hides, lengthens or shortens a token in it. Added tokens that consist of blanks only (Gemma has
//! them for runs of line breaks) control nothing, and are recognised everywhere.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use rustc_hash::FxHashSet;
use tokenizers::normalizer::Range as Part;
use tokenizers::{AddedToken, NormalizedString, Normalizer, NormalizerWrapper, Token};
use unicode_normalization::UnicodeNormalization;

/// The number of characters after a seam that are looked at for one that would join those before it.
const JOINING: usize = 4;

/// The added tokens of a file, by how a text is searched for them.
#[derive(Debug)]
pub(super) struct AddedTokens {
    /// Tokens that are compared with the text itself.
    verbatim: Patterns,
    /// Tokens of blanks, likewise.
    blank: Patterns,
    /// Tokens that are compared with the normalized text.
    normalized: Patterns,
    /// All tokens that are not of blanks.
    control: FxHashSet<u32>,
}

/// Tokens with the automaton that finds them.
#[derive(Debug)]
struct Patterns {
    search: AhoCorasick,
    tokens: Vec<(u32, AddedToken)>,
}

/// An added token in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    range: Range<usize>,
    /// The token; `None` for a place where the text is cut.
    id: Option<u32>,
}

impl AddedTokens {
    /// Prepares the tokens of a file with this normalizer.
    pub(super) fn new(
        added: impl IntoIterator<Item = (u32, AddedToken)>,
        normalizer: Option<&NormalizerWrapper>,
    ) -> Result<Self, String> {
        let (mut verbatim, mut blank, mut normalized) = (Vec::new(), Vec::new(), Vec::new());
        for (id, token) in added.into_iter().filter(|(_, token)| !token.content.is_empty()) {
            match (token.normalized && normalizer.is_some(), is_blank(&token.content)) {
                (true, false) => normalized.push((id, token)),
                (_, true) => blank.push((id, token)),
                (false, false) => verbatim.push((id, token)),
            }
        }
        let texts = normalized.iter().map(|(_, token)| {
            let mut text = NormalizedString::from(token.content.as_str());
            if let Some(normalizer) = normalizer {
                normalizer
                    .normalize(&mut text)
                    .map_err(|error| error.to_string())?;
            }
            Ok(text.get().to_owned())
        });
        let texts = texts.collect::<Result<Vec<String>, String>>()?;
        let own = |tokens: &[(u32, AddedToken)]| -> Vec<String> {
            tokens.iter().map(|(_, token)| token.content.clone()).collect()
        };
        let control = verbatim.iter().chain(&normalized).map(|(id, _)| *id).collect();
        Ok(Self {
            control,
            verbatim: Patterns::new(&own(&verbatim), verbatim, MatchKind::LeftmostLongest)?,
            blank: Patterns::new(&own(&blank), blank, MatchKind::LeftmostLongest)?,
            normalized: Patterns::new(&texts, normalized, MatchKind::Standard)?,
        })
    }

    /// Returns `true` if this is a token of blanks.
    pub(super) fn is_blank(&self, id: u32) -> bool {
        self.blank.tokens.iter().any(|(blank, _)| *blank == id)
    }

    /// Returns `true` if this is an added token that is not of blanks.
    pub(super) fn is_control(&self, id: u32) -> bool {
        self.control.contains(&id)
    }

    /// Returns `true` if normalized texts have to be searched too.
    pub(super) fn are_normalized(&self) -> bool {
        !self.normalized.tokens.is_empty()
    }

    /// Returns the tokens in a text, and the places where it has to be cut for the search of
    /// [`in_normalized`](Self::in_normalized), in order.
    pub(super) fn in_text(&self, text: &str, trusted: &[Range<usize>]) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        for part in trusted {
            let mut done = found.last().map_or(0, |last| last.range.end);
            for (range, token) in self.verbatim.longest(text, part.clone()) {
                if let Some(one) = stripped(text, (range, token), part, done) {
                    done = one.range.end;
                    found.push(one);
                }
            }
        }
        if !self.blank.tokens.is_empty() {
            found = self.with_blanks(text, found);
        }
        if self.are_normalized() {
            found = with_cuts(text, found, trusted);
        }
        found
    }

    fn with_blanks(&self, text: &str, found: Vec<Found>) -> Vec<Found> {
        let mut all = Vec::with_capacity(found.len());
        let mut start = 0;
        let end = Found {
            range: text.len()..text.len(),
            id: None,
        };
        for one in found.into_iter().chain([end]) {
            let gap = start..one.range.start.max(start);
            start = one.range.end;
            let blanks = self
                .blank
                .longest(text, gap)
                .map(|(range, (id, _))| Found { range, id: Some(*id) });
            all.extend(blanks);
            all.extend(one.id.is_some().then_some(one));
        }
        all
    }

    /// Returns the tokens in a normalized part of a text, in order; the places are those of the normalized
    /// text.
    pub(super) fn in_normalized(&self, part: &NormalizedString, trusted: &[Range<usize>]) -> Vec<Found> {
        let shift = part.offsets_original().0;
        let is_trusted = |range: &Range<usize>| {
            let original = part.convert_offsets(Part::Normalized(range.clone()));
            original
                .is_some_and(|original| is_within(&(original.start + shift..original.end + shift), trusted))
        };
        let all = self.normalized.search.find_overlapping_iter(part.get());
        let mut all: Vec<_> = all
            .map(|found| (found.range(), &self.normalized.tokens[found.pattern().as_usize()]))
            .filter(|(range, _)| is_trusted(range))
            .collect();
        all.sort_by_key(|(range, _)| (range.start, usize::MAX - range.end));
        let mut found: Vec<Found> = Vec::new();
        for (range, token) in all {
            let done = found.last().map_or(0, |last| last.range.end);
            if range.start >= done {
                let whole = 0..part.get().len();
                found.extend(stripped(part.get(), (range, token), &whole, done));
            }
        }
        found
    }
}

impl Patterns {
    fn new(texts: &[String], tokens: Vec<(u32, AddedToken)>, kind: MatchKind) -> Result<Self, String> {
        let search = AhoCorasick::builder().match_kind(kind).build(texts);
        let search = search.map_err(|error| error.to_string())?;
        Ok(Self { search, tokens })
    }

    fn longest<'p>(
        &'p self,
        text: &'p str,
        part: Range<usize>,
    ) -> impl Iterator<Item = (Range<usize>, &'p (u32, AddedToken))> {
        let found = self.search.find_iter(Input::new(text).range(part));
        found.map(|found| (found.range(), &self.tokens[found.pattern().as_usize()]))
    }
}

/// Returns a token with the blanks that it absorbs, or `None` if it has to be a word of its own and is not.
/// Whether it is one is decided by the trusted part that it lies in.
fn stripped(
    text: &str,
    (mut range, (id, token)): (Range<usize>, &(u32, AddedToken)),
    part: &Range<usize>,
    done: usize,
) -> Option<Found> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if token.single_word {
        let before = text[part.start..range.start].chars().next_back();
        let after = text[range.end..part.end.max(range.end)].chars().next();
        if before.is_some_and(is_word) || after.is_some_and(is_word) {
            return None;
        }
    }
    if token.lstrip {
        range.start = text[done.min(range.start)..range.start].trim_end().len() + done.min(range.start);
    }
    if token.rstrip {
        range.end = text.len() - text[range.end..].trim_start().len();
    }
    range.start = range.start.max(done);
    let id = Some(*id);
    (range.start < range.end).then_some(Found { range, id })
}

/// Adds the seams at which a normalizer would join a character of a trusted part with one beside it, which
/// would hide a token: `<user>` and a combining stroke make `<user≯`.
fn with_cuts(text: &str, found: Vec<Found>, trusted: &[Range<usize>]) -> Vec<Found> {
    let seams = trusted.iter().flat_map(|part| [part.start, part.end]);
    let is_covered = |seam: usize| {
        let next = found.partition_point(|one| one.range.end <= seam);
        found.get(next).is_some_and(|one| one.range.start < seam)
    };
    let mut cuts: Vec<Found> = seams
        .filter(|&seam| seam > 0 && seam < text.len() && !is_covered(seam) && joins(text, seam))
        .map(|seam| Found {
            range: seam..seam,
            id: None,
        })
        .collect();
    if cuts.is_empty() {
        return found;
    }
    cuts.extend(found);
    cuts.sort_by_key(|one| (one.range.start, one.range.end));
    cuts
}

fn joins(text: &str, seam: usize) -> bool {
    let (before, after) = text.split_at(seam);
    let Some(last) = before.chars().next_back() else {
        return false;
    };
    let after: String = after.chars().take(JOINING).collect();
    let together: String = std::iter::once(last).chain(after.chars()).nfkc().collect();
    let apart: String = std::iter::once(last).nfkc().chain(after.chars().nfkc()).collect();
    together != apart
}

/// Returns `true` if a range lies in one of these ranges, which are in order.
pub(super) fn is_within(range: &Range<usize>, ranges: &[Range<usize>]) -> bool {
    let next = ranges.partition_point(|one| one.end < range.end);
    ranges
        .get(next)
        .is_some_and(|one| one.start <= range.start && range.end <= one.end)
}

/// Cuts a text at these places, which are in order.
pub(super) fn cut(text: &NormalizedString, found: &[Found]) -> Vec<(NormalizedString, Option<Vec<Token>>)> {
    let mut parts = Vec::with_capacity(2 * found.len() + 1);
    let mut start = 0;
    let mut add = |range: Range<usize>, id: Option<u32>| {
        if let Some(part) = text
            .slice(Part::Normalized(range))
            .filter(|part| !part.is_empty())
        {
            let tokens = id.map(|id| vec![Token::new(id, String::new(), (0, part.len()))]);
            parts.push((part, tokens));
        }
    };
    for one in found {
        add(start..one.range.start, None);
        add(one.range.clone(), one.id);
        start = one.range.end;
    }
    add(start..text.len(), None);
    parts
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c == '\u{2581}')
}
