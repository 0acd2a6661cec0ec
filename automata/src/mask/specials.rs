//! The tokens that a grammar names, as ids of its vocabulary.

use crate::error::{CompileError, Place, Problem, ProblemKind};
use crate::grammar::{TokenSet, TokenSymbol};
use crate::vocab::{TokenKind, Vocabulary};

/// The tokens of each symbol of a machine that is not a byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specials {
    /// The tokens of each symbol, as sorted ranges that include both ends.
    symbols: Vec<Box<[(u32, u32)]>>,
    /// The special tokens and marks among them, except for those of complements.
    named: Vec<u32>,
    /// `true` if some symbol has a token that is also text.
    has_text: bool,
}

impl Specials {
    /// Finds the tokens of all symbols.
    ///
    /// # Errors
    /// Returns an error for every name and id that the vocabulary lacks.
    pub(crate) fn find(symbols: &[TokenSymbol], vocabulary: &Vocabulary) -> Result<Specials, CompileError> {
        let (mut found, mut problems) = (Specials::default(), Vec::new());
        let is_text = |token: u32| vocabulary.kind(token) == TokenKind::Text;
        let is_named = |token: &u32| matches!(vocabulary.kind(*token), TokenKind::Special | TokenKind::Mark);
        // Listed once: sets may be as large as the vocabulary, and there may be many of them.
        let special: Vec<u32> = match symbols.is_empty() {
            true => Vec::new(),
            false => (0..vocabulary.len() as u32).filter(is_named).collect(),
        };
        let left_out = match symbols.iter().any(|symbol| matches!(symbol, TokenSymbol::Set(_))) {
            true => never_in_sets(vocabulary),
            false => Vec::new(),
        };
        for symbol in symbols {
            let ranges = match symbol {
                TokenSymbol::Name(name) => {
                    let token = named(name, vocabulary, &mut problems);
                    token.into_iter().map(|token| (token, token)).collect()
                }
                TokenSymbol::Set(set) => ranges_of(set, vocabulary, &left_out, &mut problems),
            };
            let is_listed = !matches!(symbol, TokenSymbol::Set(set) if set.is_complement);
            if is_listed {
                let listed = special.iter().filter(|token| holds(&ranges, **token));
                found.named.extend(listed);
            }
            let mut tokens = ranges.iter().flat_map(|&(first, last)| first..=last);
            found.has_text = found.has_text || tokens.any(is_text);
            found.symbols.push(ranges.into());
        }
        match problems.is_empty() {
            true => Ok(found),
            false => Err(CompileError { problems }),
        }
    }

    /// Returns the number of symbols.
    pub(crate) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Returns the special tokens and marks that are named.
    pub(crate) fn named(&self) -> &[u32] {
        &self.named
    }

    /// Returns `true` if a token that is text may be one of the symbols.
    pub(crate) fn may_be_text(&self) -> bool {
        self.has_text
    }

    /// Returns the symbols that a token is one of.
    pub(crate) fn of(&self, token: u32) -> impl Iterator<Item = u32> {
        let symbols = self.symbols.iter().zip(0u32..);
        symbols.filter_map(move |(ranges, symbol)| holds(ranges, token).then_some(symbol))
    }

    /// Returns the tokens of a symbol.
    pub(crate) fn tokens(&self, symbol: u32) -> impl Iterator<Item = u32> {
        let ranges = self.symbols[symbol as usize].iter();
        ranges.flat_map(|&(first, last)| first..=last)
    }

    /// Returns each symbol that has tokens, with the first of them.
    pub(crate) fn first_tokens(&self) -> impl Iterator<Item = (u32, u32)> {
        let symbols = self.symbols.iter().zip(0u32..);
        symbols.filter_map(|(ranges, symbol)| Some((symbol, ranges.first()?.0)))
    }
}

/// Returns `true` if sorted ranges hold a number.
fn holds(ranges: &[(u32, u32)], token: u32) -> bool {
    let at = ranges.partition_point(|&(_, last)| last < token);
    ranges.get(at).is_some_and(|&(first, _)| first <= token)
}

fn named(name: &str, vocabulary: &Vocabulary, problems: &mut Vec<Problem>) -> Option<u32> {
    let token = vocabulary.special(name);
    if token.is_none() {
        let message = format!("the vocabulary has no special token `{name}`");
        problems.push(Problem::new(ProblemKind::Reference, Place::Whole, message));
    }
    token
}

/// Returns the tokens that no set has, as sorted ranges: those that end a text, and those that are never
/// written.
fn never_in_sets(vocabulary: &Vocabulary) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for token in 0..vocabulary.len() as u32 {
        if vocabulary.kind(token) == TokenKind::Unused || vocabulary.is_eos(token) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == token => *last = token,
                _ => ranges.push((token, token)),
            }
        }
    }
    ranges
}

/// Returns the tokens of a set as sorted ranges that do not touch, without those of `left_out`.
fn ranges_of(
    set: &TokenSet,
    vocabulary: &Vocabulary,
    left_out: &[(u32, u32)],
    problems: &mut Vec<Problem>,
) -> Vec<(u32, u32)> {
    let known = problems.len();
    let size = vocabulary.len() as u32;
    let mut ranges = Vec::new();
    for name in &set.names {
        let token = named(name, vocabulary, problems);
        ranges.extend(token.map(|token| (token, token)));
    }
    for &(first, last) in &set.ids {
        match first <= last && last < size {
            true => ranges.push((first, last)),
            false => {
                let message = format!("the vocabulary has no token {last}; it has {size} tokens");
                problems.push(Problem::new(ProblemKind::Reference, Place::Whole, message));
            }
        }
    }
    ranges.sort_unstable();
    let mut left_out = left_out.to_vec();
    let rest = match set.is_complement {
        true => {
            left_out.extend(ranges);
            without(vec![(0, size.saturating_sub(1))], left_out)
        }
        false => without(ranges, left_out),
    };
    if rest.is_empty() && problems.len() == known {
        let message = format!("the set `{set}` has no token that a text can have");
        problems.push(Problem::new(ProblemKind::Unsatisfiable, Place::Whole, message));
    }
    rest
}

/// Returns the numbers of `ranges` that are not in `left_out`.
fn without(ranges: Vec<(u32, u32)>, mut left_out: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    left_out.sort_unstable();
    let mut rest: Vec<(u32, u32)> = Vec::new();
    for (first, last) in ranges {
        // Ranges may overlap: what is there already is not added again.
        let mut at = rest.last().map_or(first, |&(_, end)| first.max(end + 1));
        for &(hole, end) in &left_out {
            if at < hole && hole <= last {
                rest.push((at, hole - 1));
            }
            if hole <= last {
                at = at.max(end.saturating_add(1));
            }
        }
        if at <= last {
            rest.push((at, last));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        use TokenKind::{Special, Text, Unused};
        let tokens = [
            (Special, "<end>"),
            (Text, "a"),
            (Text, "b"),
            (Special, "<s>"),
            (Text, "ab"),
            (Unused, ""),
        ];
        Vocabulary::new(&tokens, &[0]).expect("a vocabulary")
    }

    fn tokens_of(set: TokenSet) -> Result<Vec<u32>, CompileError> {
        let found = Specials::find(&[TokenSymbol::Set(set)], &vocabulary())?;
        Ok(found.tokens(0).collect())
    }

    #[test]
    fn a_set_is_what_it_lists_or_all_else_but_the_end() {
        let listed = TokenSet {
            ids: vec![(2, 4), (0, 2)],
            names: vec!["<s>".into()],
            is_complement: false,
        };
        assert_eq!(tokens_of(listed.clone()).expect("known tokens"), [1, 2, 3, 4]);
        let other = TokenSet {
            ids: vec![(2, 2)],
            names: vec!["<s>".into()],
            is_complement: true,
        };
        assert_eq!(tokens_of(other).expect("known tokens"), [1, 4]);
        assert_eq!(tokens_of(TokenSet::any()).expect("known tokens"), [1, 2, 3, 4]);
        let found = Specials::find(&[TokenSymbol::Set(listed)], &vocabulary()).expect("known tokens");
        assert_eq!(found.of(3).count() + found.of(4).count(), 2);
        assert_eq!(found.of(0).count(), 0);
    }

    #[test]
    fn a_set_without_tokens_is_refused() {
        for ids in [vec![(0, 0)], vec![(5, 5)], vec![(0, 0), (5, 5)]] {
            let set = TokenSet {
                ids,
                ..TokenSet::default()
            };
            let error = tokens_of(set).expect_err("no token");
            assert_eq!(error.problems[0].kind, ProblemKind::Unsatisfiable);
        }
    }

    #[test]
    fn all_unknown_tokens_are_named() {
        let set = TokenSet {
            ids: vec![(3, 9), (7, 7)],
            names: vec!["<t>".into()],
            is_complement: true,
        };
        assert_eq!(tokens_of(set).expect_err("unknown tokens").problems.len(), 3);
    }
}
