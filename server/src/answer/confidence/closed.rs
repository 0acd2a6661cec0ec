//! The possible values at a place of an answer where the constraint leaves few: the values of an enum, `true`
//! and `false`, the texts of a choice.
//!
//! ```text
//!   … "size": "small" , …        tokens before ─► state of the grammar ─► every text of a value that it allows there
//!             ▲       ▲
//!             place   tail       what is weighed: "small" ,   "medium" ,   "large" ,
//! ```
//!
//! The weighed text begins where a token of the answer begins, and ends with the punctuation that follows the
//! value in the answer, since tokens often hold both. The grammar is queried byte by byte, with a bound on
//! the number of states that are queried.

use std::collections::{HashMap, HashSet, VecDeque};

use lexiform_engine::{Grammar, State};
use serde_json::Value;

use super::{Span, Trace, ValueKind, joined};
use crate::answer::parts::Part;
use crate::wire::response::Confidence;

/// The maximum number of values at a place.
pub const MOST_VALUES: usize = 1_024;
/// The maximum number of places of an answer that are reported.
pub const MOST_PLACES: usize = 256;
/// The number of possible next bytes above which a string counts as free.
const MOST_BYTES: usize = 128;
/// The maximum number of branches of texts that are explored for one answer.
const MOST_BRANCHES: usize = 1 << 14;
/// The maximum length of a number, in bytes. Without it, a number could have any number of trailing zeros.
const NUMBER_BYTES: usize = 32;
/// The characters that may follow a value in JSON and belong to no value.
const PUNCTUATION: &str = ",:]}\" \t\r\n";

/// A place of an answer at which the constraint leaves few values.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// The index of the value at this place, among the reported values.
    pub field: usize,
    /// The number of tokens of the answer before the weighed text.
    pub before: usize,
    /// The possible values.
    pub values: Vec<Value>,
    /// The weighed texts, each with the index of its value: a value may be written in several ways.
    pub texts: Vec<(String, usize)>,
    /// `true` if the answer ends after this value.
    pub with_end: bool,
}

/// The extent of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The value is a scalar of a JSON text.
    Scalar,
    /// The value is the whole text.
    Whole,
}

impl Trace {
    /// Returns the first `count` tokens of the answer.
    pub fn tokens(&self, count: usize) -> Vec<u32> {
        self.steps.iter().take(count).map(|step| step.token).collect()
    }

    /// Returns the values of an answer under a grammar, and the places at which the grammar allowed few
    /// values.
    pub fn with_closed(&self, parts: &[Part], grammar: &Grammar) -> (Vec<Confidence>, Vec<Closed>) {
        let mut located = self.located(parts);
        let mut reach = Reach::Scalar;
        if located.is_empty() {
            located.extend(self.text(parts));
            reach = Reach::Whole;
        }
        let mut walker = Walker {
            trace: self,
            grammar,
            at: (0, grammar.start()),
            branches: MOST_BRANCHES,
        };
        let places = located.iter().enumerate();
        let closed = places.filter_map(|(field, (_, span))| walker.closed(field, *span, reach));
        let closed = closed.take(MOST_PLACES).collect();
        (located.into_iter().map(|located| located.0).collect(), closed)
    }

    /// Returns the whole text of an answer that is not JSON and has no calls.
    fn text(&self, parts: &[Part]) -> Option<(Confidence, Span)> {
        let texts = joined(parts);
        let told = texts.iter().filter(|(kind, _)| *kind != ValueKind::Thought);
        let [(ValueKind::Content, text)] = &told.collect::<Vec<_>>()[..] else {
            return None;
        };
        let end = self.bytes.len();
        let begin = self.bytes.ends_with(text.as_bytes()).then(|| end - text.len())?;
        let span = Span {
            begin,
            end,
            decided: end,
        };
        Some((self.value(String::new(), None, span), span))
    }
}

/// Walks along an answer, from place to place.
struct Walker<'a> {
    trace: &'a Trace,
    grammar: &'a Grammar,
    /// The number of tokens read, and the state after them.
    at: (usize, State),
    /// The number of branches that may still be explored.
    branches: usize,
}

impl Walker<'_> {
    fn closed(&mut self, field: usize, span: Span, reach: Reach) -> Option<Closed> {
        let Trace { bytes, steps } = self.trace;
        let end_of = |count: usize| count.checked_sub(1).map_or(0, |last| steps[last].end);
        let mut before = steps.partition_point(|step| step.end <= span.begin);
        // A token may end within a character.
        while std::str::from_utf8(&bytes[end_of(before)..span.begin]).is_err() {
            before = before.checked_sub(1)?;
        }
        let lead = std::str::from_utf8(&bytes[end_of(before)..span.begin]).ok()?;
        let state = self.state_after(before)?;
        let state = self.grammar.try_step_bytes(state, lead.as_bytes()).ok()??;
        let spellings = self.spellings(state, reach)?;
        let last = steps.partition_point(|step| step.end < span.decided);
        let behind =
            String::from_utf8_lossy(&bytes[span.end..end_of((last + 1).min(steps.len())).max(span.end)]);
        let tail: String = behind
            .chars()
            .take_while(|letter| PUNCTUATION.contains(*letter))
            .collect();
        let with_end = span.end == bytes.len();
        if tail.is_empty() && !with_end && has_beginnings(&spellings) {
            return None;
        }
        let mut values: Vec<Value> = Vec::new();
        let mut texts: Vec<(String, usize)> = Vec::with_capacity(spellings.len());
        let mut known: HashMap<String, usize> = HashMap::new();
        for spelling in spellings {
            let value = reach.value(&spelling)?;
            let number = *known.entry(identity(&value)).or_insert(values.len());
            if number == values.len() {
                values.push(value);
            }
            texts.push((format!("{lead}{spelling}{tail}"), number));
        }
        (values.len() > 1).then_some(Closed {
            field,
            before,
            values,
            texts,
            with_end,
        })
    }

    /// Returns the state after this many tokens of the answer.
    fn state_after(&mut self, tokens: usize) -> Option<State> {
        if self.at.0 > tokens {
            self.at = (0, self.grammar.start());
        }
        while self.at.0 < tokens {
            let step = self.trace.steps[self.at.0];
            let state = self.grammar.try_step(self.at.1, step.token).ok()??;
            self.at = (self.at.0 + 1, state);
        }
        Some(self.at.1)
    }

    /// Returns all texts of a value that the grammar allows at this state, in order of length up to forced
    /// text; `None` if there are too many values, or if not all are scalars. Numbers are limited to
    /// `NUMBER_BYTES` bytes.
    fn spellings(&mut self, state: State, reach: Reach) -> Option<Vec<String>> {
        let (mut open, mut found) = (VecDeque::from([(state, Vec::new())]), Vec::new());
        let mut values = HashSet::new();
        while let Some((mut state, mut text)) = open.pop_front() {
            self.branches = self.branches.checked_sub(1)?;
            for byte in self.grammar.forced(state) {
                // Forced text may continue after the value.
                if reach.is_closed(&text) || reach.goes_on(&text, byte) == Some(false) {
                    break;
                }
                state = self.grammar.try_step_bytes(state, &[byte]).ok()??;
                text.push(byte);
            }
            let next = match reach.is_closed(&text) {
                true => Vec::new(),
                false => self.following(state)?,
            };
            if next.len() > MOST_BYTES {
                return None;
            }
            let may_end = next.is_empty() || self.grammar.is_accepting(state);
            if reach.ends(&text, next.iter().map(|(byte, _)| *byte), may_end) {
                let spelling = String::from_utf8(text.clone()).ok()?;
                values.insert(identity(&reach.value(&spelling)?));
                found.push(spelling);
            }
            let is_long = reach.is_number(&text) && text.len() >= NUMBER_BYTES;
            for (byte, state) in next.into_iter().filter(|_| !is_long) {
                match reach.goes_on(&text, byte) {
                    Some(true) => open.push_back((state, [&text[..], &[byte]].concat())),
                    Some(false) => (),
                    None => return None,
                }
            }
            if values.len().max(open.len()) > MOST_VALUES {
                return None;
            }
        }
        Some(found)
    }

    /// Returns the bytes that may come next, each with the state after it.
    fn following(&self, state: State) -> Option<Vec<(u8, State)>> {
        let mask = self.grammar.try_mask(state).ok()?;
        let vocabulary = self.grammar.vocabulary();
        let mut next = Vec::new();
        for byte in 0..=u8::MAX {
            // Most bytes are tokens, for which the mask has the answer.
            let own = vocabulary.token_of_byte(byte);
            if own.is_none_or(|token| mask.contains(token))
                && let Some(state) = self.grammar.try_step_bytes(state, &[byte]).ok()?
            {
                next.push((byte, state));
            }
        }
        Some(next)
    }
}

impl Reach {
    /// Returns the value that a text denotes.
    fn value(self, spelling: &str) -> Option<Value> {
        match self {
            Reach::Scalar => serde_json::from_str(spelling).ok(),
            Reach::Whole => Some(Value::String(spelling.to_owned())),
        }
    }

    fn is_number(self, text: &[u8]) -> bool {
        let first = text.first().filter(|_| self == Reach::Scalar);
        first.is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-')
    }

    /// Returns `true` if a text is a whole value regardless of what follows: a string up to its closing
    /// quote.
    fn is_closed(self, text: &[u8]) -> bool {
        let Some(inner) = text.strip_prefix(b"\"").filter(|_| self == Reach::Scalar) else {
            return false;
        };
        let mut is_escaped = false;
        inner.iter().any(|byte| {
            let closes = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            closes
        })
    }

    /// Returns `true` if a text can be a whole value, given the bytes that may come next and whether the text
    /// may end.
    fn ends(self, text: &[u8], mut next: impl Iterator<Item = u8>, may_end: bool) -> bool {
        match (self, text.first()) {
            (Reach::Whole, _) => may_end,
            (Reach::Scalar, None) => false,
            (Reach::Scalar, Some(b'"')) => self.is_closed(text),
            (Reach::Scalar, Some(_)) => may_end || next.any(is_punctuation),
        }
    }

    /// Returns `true` if a byte continues the value; `None` if it begins a value that is not a scalar.
    fn goes_on(self, text: &[u8], byte: u8) -> Option<bool> {
        match (self, text.first(), byte) {
            (Reach::Scalar, None, b'{' | b'[') => None,
            (Reach::Scalar, None, b'"') | (Reach::Whole, ..) | (Reach::Scalar, Some(b'"'), _) => Some(true),
            (Reach::Scalar, ..) => Some(!is_punctuation(byte)),
        }
    }
}

/// Returns a text that is equal for equal values: `1`, `1.0` and `10e-1` are one number.
fn identity(value: &Value) -> String {
    match value.as_f64().filter(|_| !value.is_i64() && !value.is_u64()) {
        Some(number) => number.to_string(),
        None => value.to_string(),
    }
}

fn is_punctuation(byte: u8) -> bool {
    PUNCTUATION.contains(char::from(byte))
}

/// Returns `true` if one of these texts is a prefix of another.
fn has_beginnings(texts: &[String]) -> bool {
    let mut sorted: Vec<&String> = texts.iter().collect();
    sorted.sort();
    sorted.windows(2).any(|pair| pair[1].starts_with(pair[0]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use lexiform::vocab::{TokenKind, Vocabulary};
    use lexiform::{Options, Source, compile};
    use serde_json::json;

    use super::*;

    /// Tokens that hold more than one byte, besides one token for each byte.
    const LONGER: [&str; 5] = ["\":", "\",\"", "\"}", "{\"", "re"];

    fn vocabulary() -> Arc<Vocabulary> {
        let mut tokens: Vec<(TokenKind, Vec<u8>)> =
            (0..=255).map(|byte| (TokenKind::Text, vec![byte])).collect();
        tokens.extend(LONGER.map(|text| (TokenKind::Text, text.as_bytes().to_vec())));
        tokens.push((TokenKind::Special, b"<end>".to_vec()));
        Arc::new(Vocabulary::new(&tokens, &[261]).expect("tokens"))
    }

    /// Returns the places of an answer in these tokens.
    fn places(source: Source<'_>, tokens: &[&str]) -> Vec<Closed> {
        let vocabulary = vocabulary();
        let (grammar, _) = compile(source, &vocabulary, &Options::default()).expect("a grammar");
        let mut trace = Trace::default();
        for text in tokens {
            let token = vocabulary.token_of(text.as_bytes()).expect("a token");
            trace.push((token, text.as_bytes()), -1.0, 0.0);
        }
        trace.with_closed(&[Part::Content(tokens.concat())], &grammar).1
    }

    fn texts(closed: &Closed) -> Vec<&str> {
        let mut texts: Vec<&str> = closed.texts.iter().map(|(text, _)| text.as_str()).collect();
        texts.sort_unstable();
        texts
    }

    #[test]
    fn the_values_of_enums_and_booleans_are_named_with_what_stands_around_them() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["c", "n", "b", "t"],
            "properties": {"c": {"enum": ["red", "green", "reed"]}, "n": {"enum": [1, 12, 3]}, "b": {"type": "boolean"},
                "t": {"type": "string"}}});
        let text = [
            "{\"", "c", "\":", "\"", "re", "d", "\",\"", "n", "\":", "1", "2", ",", "\"", "b", "\":",
        ];
        let text = [
            &text[..],
            &["t", "r", "u", "e", ",", "\"", "t", "\":", "\"", "x", "\"}"],
        ]
        .concat();
        let found = places(Source::JsonSchema(&schema.to_string()), &text);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!((found[0].field, found[0].before), (0, 3));
        assert_eq!(texts(&found[0]), ["\"green\",\"", "\"red\",\"", "\"reed\",\""]);
        assert_eq!(texts(&found[2]), ["false,", "true,"]);
        // A number may be written in several ways that are one value, represented by the shortest.
        let numbers: BTreeSet<u64> = found[1].values.iter().filter_map(Value::as_u64).collect();
        assert_eq!((found[1].values.len(), numbers), (3, BTreeSet::from([1, 3, 12])));
        assert!(
            ["1,", "12,", "3,"]
                .iter()
                .all(|text| texts(&found[1]).contains(text)),
            "{found:?}"
        );
        for (text, number) in &found[1].texts {
            let written: f64 = text.trim_end_matches(',').parse().expect("a number");
            assert_eq!(Some(written), found[1].values[*number].as_f64());
        }
        assert!(found.iter().all(|closed| !closed.with_end));
    }

    #[test]
    fn a_whole_text_is_a_place_where_it_is_one_of_few() {
        let found = places(Source::Regex("re(d|ed)|green|re"), &["re", "d"]);
        let values: Vec<Value> = ["re", "red", "reed", "green"].map(Value::from).to_vec();
        let mut named = found[0].values.clone();
        named.sort_by_key(|value| values.iter().position(|known| known == value));
        assert_eq!((named, found[0].with_end, found[0].before), (values, true, 0));
        assert_eq!(places(Source::Regex("[a-z]+"), &["re", "d"]), []);
        assert_eq!(
            places(Source::Regex("red"), &["re", "d"]),
            [],
            "nothing was to be chosen"
        );
    }

    #[test]
    fn too_many_values_are_none() {
        let values: Vec<String> = (0..1500).map(|number| format!("v{number}")).collect();
        let schema = json!({"enum": values}).to_string();
        assert_eq!(places(Source::JsonSchema(&schema), &["\"", "v", "7", "\""]), []);
        let schema = json!({"enum": values[..1000]}).to_string();
        let found = places(Source::JsonSchema(&schema), &["\"", "v", "7", "\""]);
        assert_eq!((found[0].values.len(), found[0].with_end), (1000, true));
        let schema = json!({"anyOf": [{"const": 1}, {"type": "array"}]}).to_string();
        assert_eq!(places(Source::JsonSchema(&schema), &["1"]), []);
    }
}
