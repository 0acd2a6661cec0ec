//! The grammar of the spans of a text: verbatim quotations from it.
//!
//! A span extends from the beginning of one piece of the text to the end of another. From wherever it begins,
//! it is a path of the *suffix automaton* of the pieces, the smallest automaton that accepts every factor of
//! a sequence (Blumer and others, *The smallest automaton recognizing the subwords of a text*, 1985). The
//! automaton has at most twice as many states as there are pieces, and becomes a grammar with one rule for
//! each state:
//!
//! ```text
//!   "a b a c"      start = "a" A | "b" B | "c"          A = "" | " b" B | " c"
//!                                                       B = "" | " a" C       C = "" | " c"
//! ```
//!
//! Such a constraint keeps a model from answering with anything that the text does not say (*How Optimal is
//! Greedy Decoding for Extractive Question Answering?*, arXiv 2108.05857).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId, RuleId};
use lexiform_automata::limits::Limits;

/// The places where spans begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// At words, which are runs of letters and digits, and at other visible characters.
    #[default]
    Word,
    /// At any visible character.
    Character,
}

/// Returns the pieces that spans consist of, as ranges of bytes: words and other visible characters, or all
/// visible characters. White space belongs to a span only between two pieces.
pub fn pieces(text: &str, boundary: Boundary) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let mut is_word_open = false;
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        let is_word = boundary == Boundary::Word && letter.is_alphanumeric();
        match pieces.last_mut() {
            Some(last) if is_word && is_word_open => last.end = end,
            _ if letter.is_whitespace() => (),
            _ => pieces.push(at..end),
        }
        is_word_open = is_word;
    }
    pieces
}

/// Checks whether a text is one of the spans of another text. This is the definition that [`lower`] is tested
/// against.
pub fn is_span(span: &str, text: &str, boundary: Boundary) -> bool {
    let pieces = pieces(text, boundary);
    let begins = |at: usize| pieces.binary_search_by_key(&at, |piece| piece.start).is_ok();
    let ends = |at: usize| pieces.binary_search_by_key(&at, |piece| piece.end).is_ok();
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(span)) {
        let at = from + found;
        if !span.is_empty() && begins(at) && ends(at + span.len()) {
            return true;
        }
        let Some(letter) = text[at..].chars().next() else {
            return false;
        };
        from = at + letter.len_utf8();
    }
    false
}

/// Lowers the spans of a text, in time and memory linear in the number of its pieces.
///
/// # Errors
/// Returns an error if the text has no visible character, or more bytes than a source may have.
pub fn lower(text: &str, boundary: Boundary, limits: &Limits) -> Result<Cfg, CompileError> {
    let most = limits.source_bytes;
    if text.len() > most {
        let message = format!(
            "the text has {} bytes; the limit `source_bytes` is {most}",
            text.len()
        );
        return Err(Problem::new(ProblemKind::Limit, Place::Whole, message).into());
    }
    let pieces = pieces(text, boundary);
    if pieces.is_empty() {
        let message = "the text has no visible character, so it has no spans";
        return Err(Problem::new(ProblemKind::Unsatisfiable, Place::Whole, message).into());
    }
    // A symbol is a piece with the white space before it. Both of its texts are kept, with that white space
    // and without.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut symbols: Vec<(&str, &str)> = Vec::new();
    let mut sequence = Vec::with_capacity(pieces.len());
    let mut before = pieces[0].start;
    for piece in &pieces {
        let whole = &text[before..piece.end];
        let number = *numbers.entry(whole).or_insert(symbols.len());
        if number == symbols.len() {
            symbols.push((whole, &text[piece.clone()]));
        }
        sequence.push(number);
        before = piece.end;
    }
    Ok(written(&SuffixAutomaton::of(&sequence), &symbols))
}

/// Returns the grammar of all runs of consecutive pieces, and of the empty text. There must be a piece.
pub(in crate::notation) fn runs(pieces: &[String]) -> Cfg {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut symbols: Vec<(&str, &str)> = Vec::new();
    let mut sequence = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let number = *numbers.entry(piece).or_insert(symbols.len());
        if number == symbols.len() {
            symbols.push((piece, piece));
        }
        sequence.push(number);
    }
    let spans = written(&SuffixAutomaton::of(&sequence), &symbols);
    let mut builder = CfgBuilder::new();
    let spans = builder.import(spans);
    let start = builder.declare("");
    let body = builder.optional(spans);
    builder.define(start, body);
    builder.finish(start)
}

/// Converts the automaton to a grammar. Each symbol has two texts: one within a span and one at its
/// beginning.
fn written(automaton: &SuffixAutomaton, symbols: &[(&str, &str)]) -> Cfg {
    let mut builder = CfgBuilder::new();
    let rules: Vec<RuleId> = automaton.states.iter().map(|_| builder.declare("")).collect();
    for (state, rule) in automaton.states.iter().zip(&rules) {
        let is_start = *rule == rules[0];
        let mut ways: Vec<ExprId> = Vec::with_capacity(state.next.len() + 1);
        if !is_start {
            ways.push(builder.empty());
        }
        for (&symbol, &to) in &state.next {
            let (within, first) = symbols[symbol];
            let text = builder.bytes(if is_start { first } else { within });
            ways.push(match automaton.states[to].next.is_empty() {
                true => text,
                false => {
                    let rest = builder.rule(rules[to]);
                    builder.seq([text, rest])
                }
            });
        }
        let body = builder.choice(ways);
        builder.define(*rule, body);
    }
    builder.finish(rules[0])
}

/// The smallest automaton that accepts every factor of a sequence; all states accept.
struct SuffixAutomaton {
    states: Vec<State>,
}

/// A set of factors that end at the same places of the sequence.
struct State {
    /// The length of the longest of these factors.
    longest: usize,
    /// The state of the longest suffix that also ends at other places; `None` for the state of the empty
    /// factor.
    link: Option<usize>,
    next: BTreeMap<usize, usize>,
}

impl SuffixAutomaton {
    fn of(sequence: &[usize]) -> Self {
        let empty = State {
            longest: 0,
            link: None,
            next: BTreeMap::new(),
        };
        let mut automaton = SuffixAutomaton { states: vec![empty] };
        let mut last = 0;
        for &symbol in sequence {
            last = automaton.extend(last, symbol);
        }
        automaton
    }

    /// Appends a symbol to the sequence, whose state is `last`, and returns the state of the longer sequence.
    fn extend(&mut self, last: usize, symbol: usize) -> usize {
        let new = self.states.len();
        self.states.push(State {
            longest: self.states[last].longest + 1,
            link: Some(0),
            next: BTreeMap::new(),
        });
        let mut at = Some(last);
        while let Some(state) = at {
            if let Some(&known) = self.states[state].next.get(&symbol) {
                let link = self.apart(state, symbol, known);
                self.states[new].link = Some(link);
                break;
            }
            self.states[state].next.insert(symbol, new);
            at = self.states[state].link;
        }
        new
    }

    /// Returns a state for the factors of `state` followed by this symbol and for no longer ones: `known`, to
    /// which the symbol leads, or a copy of it if it has longer factors, which do not end at the end of the
    /// sequence.
    fn apart(&mut self, state: usize, symbol: usize, known: usize) -> usize {
        let longest = self.states[state].longest + 1;
        if self.states[known].longest == longest {
            return known;
        }
        let copy = self.states.len();
        self.states.push(State {
            longest,
            link: self.states[known].link,
            next: self.states[known].next.clone(),
        });
        self.states[known].link = Some(copy);
        let mut at = Some(state);
        while let Some(state) = at.filter(|state| self.states[*state].next.get(&symbol) == Some(&known)) {
            self.states[state].next.insert(symbol, copy);
            at = self.states[state].link;
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Returns all factors that the automaton accepts.
    fn read(automaton: &SuffixAutomaton) -> Vec<Vec<usize>> {
        let (mut open, mut found) = (vec![(0, Vec::new())], Vec::new());
        while let Some((state, text)) = open.pop() {
            for (&symbol, &to) in &automaton.states[state].next {
                open.push((to, [&text[..], &[symbol]].concat()));
            }
            found.push(text);
        }
        found
    }

    #[test]
    fn the_automaton_reads_every_stretch_in_one_way() {
        let mut number = 7_u64;
        for length in 0..40 {
            let sequence: Vec<usize> = (0..length)
                .map(|_| {
                    number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (number >> 33) as usize % (1 + length / 8)
                })
                .collect();
            let automaton = SuffixAutomaton::of(&sequence);
            let stretches = (0..=length).flat_map(|begin| (begin..=length).map(move |end| begin..end));
            let expected: BTreeSet<Vec<usize>> = stretches.map(|place| sequence[place].to_vec()).collect();
            let read = read(&automaton);
            assert_eq!(read.len(), expected.len(), "{sequence:?}");
            assert_eq!(
                read.into_iter().collect::<BTreeSet<_>>(),
                expected,
                "{sequence:?}"
            );
            assert!(automaton.states.len() <= 2 * length.max(1), "{sequence:?}");
        }
    }

    #[test]
    fn spans_stand_between_boundaries() {
        let text = "né 34, à-b";
        let read = |boundary| {
            pieces(text, boundary)
                .into_iter()
                .map(|piece| &text[piece])
                .collect::<Vec<_>>()
        };
        assert_eq!(read(Boundary::Word), ["né", "34", ",", "à", "-", "b"]);
        assert_eq!(
            read(Boundary::Character),
            ["n", "é", "3", "4", ",", "à", "-", "b"]
        );
        for (span, words, characters) in [
            ("né 34", true, true),
            ("é 34", false, true),
            ("34, à", true, true),
            ("", false, false),
            (" 34", false, false),
            ("né34", false, false),
        ] {
            assert_eq!(is_span(span, text, Boundary::Word), words, "{span:?}");
            assert_eq!(is_span(span, text, Boundary::Character), characters, "{span:?}");
        }
    }
}
