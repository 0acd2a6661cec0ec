//! Sets of strings that a schema defines: its patterns and formats.
//!
//! A pattern becomes one or several [`Text`]s, each with a sign: lookahead results in an intersection of
//! languages and of complements. Each text is stored once, as an expression over *decoded* strings that
//! matches the whole string, together with the encoded form that the grammar needs and a matcher that decides
//! whether a string belongs to it. Both are created on first use: most patterns never need a matcher, and
//! most matchers never need a grammar.

pub(super) mod format;
pub(super) mod hir;
mod hostname;
mod idna;
mod pattern;
pub(super) mod punycode;
mod spelled;

pub(crate) use spelled::{Text, any_key, quoted, unrolled};

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use regex_automata::nfa::thompson::{self, pikevm::PikeVM};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Look};

use crate::regex::{self, Escapes, RegexError};
use lexiform_automata::grammar::{Expression, Part};
use lexiform_automata::idna::is_name_in_punycode;
use lexiform_automata::language::{Alphabet, Automaton, Letters, Room};
use lexiform_automata::limits::{Account, Cancel, Limits};

use spelled::{Spelled, spelled};

/// The index of a set of strings that a pattern or format consists of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct TextId(u32);

/// The strings that are in every set with `true` and in no set with `false`.
pub(crate) type TextSet = Rc<[(TextId, bool)]>;

/// What a language comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TextSource<'t> {
    /// A pattern of the source, and its languages.
    Pattern(&'t str, Vec<(TextId, bool)>),
    Format(&'static str),
    /// A language that the compiler made, or the complement of one.
    Other(TextId, bool),
}

#[derive(Debug)]
struct TextEntry {
    spelled: Arc<Spelled>,
    matcher: OnceCell<Option<PikeVM>>,
    /// The automaton of the text, for comparisons with other texts.
    automaton: OnceCell<Option<Rc<Automaton>>>,
}

/// All patterns and formats of a source.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    entries: Vec<TextEntry>,
    patterns: HashMap<Box<str>, TextSet>,
    formats: HashMap<&'static str, Rc<[TextSet]>>,
    /// Formats for which fewer strings are allowed than they say, each with a set that contains the whole
    /// format; that set is used where the format is denied.
    wider: Vec<(TextSet, TextSet)>,
    cancel: Cancel,
    /// The number of states that were created to compare sets so far.
    compared: Cell<usize>,
    /// The account of the memory of all these.
    held: RefCell<Account>,
}

/// The most states that all comparisons of a source may create together. Beyond it, two sets count as
/// possibly overlapping, which only loses the knowledge that they are disjoint.
const MOST_COMPARED: usize = 400_000;

impl Texts {
    /// Returns an empty table; `cancel` reports whether the compilation was cancelled.
    pub(crate) fn new(cancel: &Cancel) -> Texts {
        Texts {
            cancel: cancel.clone(),
            held: RefCell::new(cancel.account()),
            ..Texts::default()
        }
    }

    /// Adds a language that the compiler created.
    pub(crate) fn add(&mut self, text: Text) -> TextId {
        self.add_spelled(Arc::new(Spelled::new(text)))
    }

    fn add_spelled(&mut self, spelled: Arc<Spelled>) -> TextId {
        self.entries.push(TextEntry {
            spelled,
            matcher: OnceCell::new(),
            automaton: OnceCell::new(),
        });
        TextId(self.entries.len() as u32 - 1)
    }

    fn add_parts<'p>(&mut self, parts: impl IntoIterator<Item = &'p (Arc<Spelled>, bool)>) -> TextSet {
        let parts = parts.into_iter();
        parts
            .map(|(spelled, sign)| (self.add_spelled(spelled.clone()), *sign))
            .collect()
    }

    /// Returns the strings in which an ECMA-262 pattern is found.
    pub(crate) fn pattern(&mut self, pattern: &str, limits: &Limits) -> Result<TextSet, RegexError> {
        if let Some(known) = self.patterns.get(pattern) {
            return Ok(known.clone());
        }
        let parts = regex::ecma(pattern, limits)?.parts;
        for part in &parts {
            let (Part::Match(expression) | Part::Not(expression) | Part::Units { unit: expression, .. }) =
                part;
            self.hold(expression.own_bytes() + PATTERN_BYTES + pattern.len());
        }
        let set = self.add_parts(&spelled(parts));
        self.patterns.insert(pattern.into(), set.clone());
        Ok(set)
    }

    /// Returns the strings of a format, as a union, or `None` if the format is unknown.
    pub(crate) fn format(&mut self, name: &str) -> Option<Rc<[TextSet]>> {
        let (name, parts) = format::named(name)?;
        if let Some(known) = self.formats.get(name) {
            return Some(known.clone());
        }
        let mut sets = vec![self.add_parts(parts)];
        sets.extend(format::further(name).map(|parts| self.add_parts(parts)));
        if let Some(wider) = format::wider(name) {
            let wider = self.add_parts(wider);
            let parts = sets.iter().map(|set| (set.clone(), wider.clone()));
            self.wider.extend(parts);
        }
        let sets: Rc<[TextSet]> = sets.into();
        self.formats.insert(name, sets.clone());
        Some(sets)
    }

    /// Returns `true` if these texts are the whole of a format that includes names in Punycode, without
    /// further conditions. A format that is a union is represented by its first part.
    pub(crate) fn have_punycode(&self, texts: &[(TextId, bool)]) -> bool {
        let mut formats = self.formats.iter().filter(|(name, _)| format::has_punycode(name));
        let is_same = |set: &TextSet| set.len() == texts.len() && set.iter().all(|text| texts.contains(text));
        formats.any(|(_, sets)| is_same(&sets[0]))
    }

    /// Returns the set whose complement is taken where a set is denied: the set itself or, for the known part
    /// of a format, a set that contains the whole format. The complement of the part would contain strings of
    /// the format.
    pub(crate) fn denied(&self, set: &TextSet) -> TextSet {
        let known = self.wider.iter().find(|(part, _)| part == set);
        known.map_or(set, |(_, wider)| wider).clone()
    }

    /// Returns `true` if a text belongs to a format of which only a part is known, so that a string outside
    /// of the text may have the format.
    fn is_part(&self, id: TextId) -> bool {
        let mut parts = self.wider.iter().flat_map(|(part, _)| part.iter());
        parts.any(|&(known, _)| known == id)
    }

    /// Returns the patterns and formats that these languages come from. Each language belongs to one of them;
    /// where several have it, the one with the most languages takes it.
    pub(crate) fn sources(&self, texts: &[(TextId, bool)]) -> Vec<TextSource<'_>> {
        let patterns = self
            .patterns
            .iter()
            .map(|(pattern, set)| (set, TextSource::Pattern(pattern, set.to_vec())));
        let formats = self
            .formats
            .iter()
            .flat_map(|(name, sets)| sets.iter().map(move |set| (set, name)));
        let formats = formats.map(|(set, name)| (set, TextSource::Format(name)));
        let mut known: Vec<(&TextSet, TextSource<'_>)> = patterns.chain(formats).collect();
        known.sort_by(|(left, a), (right, b)| right.len().cmp(&left.len()).then_with(|| a.cmp(b)));
        let (mut left, mut sources) = (texts.to_vec(), Vec::new());
        for (set, source) in known {
            if !set.is_empty() && set.iter().all(|text| left.contains(text)) {
                left.retain(|text| !set.contains(text));
                sources.push(source);
            }
        }
        sources.extend(left.into_iter().map(|(id, sign)| TextSource::Other(id, sign)));
        sources
    }

    /// Returns the languages of a format that has been used.
    pub(crate) fn format_texts(&self, name: &str) -> Vec<(TextId, bool)> {
        let sets = self.formats.get(name);
        sets.and_then(|sets| sets.first())
            .map_or_else(Vec::new, |set| set.to_vec())
    }

    pub(crate) fn text(&self, id: TextId) -> &Text {
        &self.entries[id.0 as usize].spelled.text
    }

    /// Returns the pattern or format that a set comes from, for messages, or its number if the compiler
    /// created it.
    pub(crate) fn name(&self, id: TextId) -> String {
        let has = |set: &TextSet| {
            set.iter()
                .position(|&(own, _)| own == id)
                .map(|at| (at, set.len()))
        };
        let part = |(at, of): (usize, usize)| {
            if of == 1 {
                String::new()
            } else {
                format!(" (part {})", at + 1)
            }
        };
        let patterns = self.patterns.iter();
        let mut found: Vec<String> = patterns
            .filter_map(|(pattern, set)| Some(format!("/{pattern}/{}", part(has(set)?))))
            .collect();
        let formats = self
            .formats
            .iter()
            .flat_map(|(name, sets)| sets.iter().map(move |set| (name, set)));
        found.extend(formats.filter_map(|(name, set)| Some(format!("{name}{}", part(has(set)?)))));
        found.sort();
        found
            .into_iter()
            .next()
            .unwrap_or_else(|| format!("language {}", id.0))
    }

    /// Returns the expression, or the unit, as it is spelled between the quotes of a JSON string.
    pub(crate) fn encoded(&self, id: TextId, escapes: Escapes) -> &Expression {
        let spelled = &self.entries[id.0 as usize].spelled;
        let (Text::Match(hir) | Text::Units { unit: hir, .. }) = &spelled.text;
        spelled.encoded[escapes as usize].get_or_init(|| {
            let encoded: Expression = regex::encode_json(hir, escapes).into();
            self.hold(encoded.bytes());
            encoded
        })
    }

    /// Checks whether a string belongs to the text; returns `None` if the expression is too large to decide.
    pub(crate) fn contains(&self, id: TextId, string: &str) -> Option<bool> {
        let machine = self.matcher(id)?;
        Some(machine.is_match(&mut machine.create_cache(), string))
    }

    /// Returns the machine that matches the strings of a text, or `None` if it would be too large.
    pub(crate) fn matcher(&self, id: TextId) -> Option<&PikeVM> {
        let entry = &self.entries[id.0 as usize];
        let matcher = entry.matcher.get_or_init(|| {
            let matcher = matcher(&entry.spelled.text)?;
            self.hold(matcher.get_nfa().memory_usage());
            Some(matcher)
        });
        matcher.as_ref()
    }

    /// Returns `true` if no string belongs to both sets; also returns `false` if that is too much work to
    /// decide.
    pub(crate) fn are_disjoint(&self, left: &[(TextId, bool)], right: &[(TextId, bool)]) -> bool {
        let single = |set: &[(TextId, bool)]| match set {
            &[(id, true)] if !self.is_part(id) => Some((self.automaton(id)?, true)),
            _ => None,
        };
        match (single(left), single(right)) {
            (Some(left), Some(right)) => self.product_is_empty(&[left, right]),
            _ => false,
        }
    }

    /// Returns `true` if no string of these lengths is in all the sets with `true` and in no set with
    /// `false`; also returns `false` if that is too much work to decide.
    pub(crate) fn is_surely_empty(&self, set: &[(TextId, bool)], min: u64, max: Option<u64>) -> bool {
        let length = Text::Units {
            unit: Hir::class(Class::Unicode(ClassUnicode::new([ClassUnicodeRange::new(
                '\0',
                '\u{10ffff}',
            )])))
            .into(),
            min,
            max,
        };
        let whole = set.iter().filter(|&&(id, _)| !self.is_part(id));
        let texts = whole.map(|&(id, sign)| Some((self.automaton(id)?, sign)));
        let mut parts: Vec<_> = match texts.collect() {
            Some(parts) => parts,
            None => return false,
        };
        if min > 0 || max.is_some() {
            let Some(length) = self.built(&length) else {
                return false;
            };
            parts.push((Rc::new(length), true));
        }
        !parts.is_empty() && self.product_is_empty(&parts)
    }

    /// Checks whether a string belongs to the set.
    pub(crate) fn set_contains(&self, set: &[(TextId, bool)], string: &str) -> Option<bool> {
        let mut within = true;
        for &(text, sign) in set {
            within &= self.contains(text, string)? == sign;
        }
        Some(within || self.has_name_in_punycode(set, string)?)
    }

    /// Checks whether a string belongs to a set as a name in Punycode, which no expression can decide but
    /// which can be decided for a single string.
    fn has_name_in_punycode(&self, set: &[(TextId, bool)], string: &str) -> Option<bool> {
        if !is_name_in_punycode(string) {
            return Some(false);
        }
        for (_, sets) in self.formats.iter().filter(|(name, _)| format::has_punycode(name)) {
            if sets[0].iter().all(|text| set.contains(text)) {
                let others = set.iter().filter(|text| !sets[0].contains(text));
                let within = others.map(|&(text, sign)| Some(self.contains(text, string)? == sign));
                if within
                    .collect::<Option<Vec<bool>>>()?
                    .into_iter()
                    .all(|within| within)
                {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    /// Returns a set without the texts of formats of which only a part is known.
    pub(crate) fn without_parts(&self, set: &[(TextId, bool)]) -> Vec<(TextId, bool)> {
        set.iter().copied().filter(|&(id, _)| !self.is_part(id)).collect()
    }

    fn hold(&self, bytes: usize) {
        self.held.borrow_mut().grow(bytes);
    }

    /// Counts the states of a comparison; returns `false` if there have been too many, or the compilation was
    /// cancelled.
    pub(crate) fn may_compare(&self, states: usize) -> bool {
        let compared = self.compared.get().saturating_add(states);
        self.compared.set(compared);
        !self.cancel.is_asked() && compared <= MOST_COMPARED
    }

    fn automaton(&self, id: TextId) -> Option<Rc<Automaton>> {
        let entry = &self.entries[id.0 as usize];
        let built = || self.built(&entry.spelled.text).map(Rc::new);
        entry.automaton.get_or_init(built).clone()
    }

    fn built(&self, text: &Text) -> Option<Automaton> {
        let hir = match text {
            Text::Match(hir) => hir.clone(),
            Text::Units { unit, min, max } => unrolled(unit, *min, *max)?.into(),
        };
        if !self.may_compare(0) {
            return None;
        }
        let room = Room {
            bytes: MOST_BYTES,
            cancel: &self.cancel,
        };
        let built = Automaton::new(&hir, Alphabet::Chars, room);
        // An automaton that was given up had about as many states as it may have.
        let bytes = built.as_ref().map_or(MOST_BYTES, Automaton::bytes);
        self.hold(built.as_ref().map_or(0, Automaton::bytes));
        self.may_compare(bytes / STATE_BYTES)
            .then(|| built.ok())
            .flatten()
    }

    /// Walks the product of automata from the start. It is empty if no state of it accepts in every part that
    /// must match and in none that must not.
    fn product_is_empty(&self, parts: &[(Rc<Automaton>, bool)]) -> bool {
        if !self.may_compare(COMPARISON) {
            return false;
        }
        let divisions: Vec<&Letters> = parts.iter().map(|(automaton, _)| automaton.letters()).collect();
        let Ok((letters, maps)) = Letters::joint(&divisions, Alphabet::Chars) else {
            return false;
        };
        let first = vec![Automaton::START; parts.len()];
        let mut seen = HashSet::from_iter([first.clone()]);
        let mut open = vec![first];
        while let Some(states) = open.pop() {
            let mut each = parts.iter().zip(&states);
            if each.all(|((automaton, sign), &state)| automaton.accepts(state) == *sign) {
                return false;
            }
            for class in 0..letters.count() {
                let each = parts.iter().zip(&states).zip(&maps);
                let next: Vec<u32> = each
                    .map(|(((automaton, _), &state), map)| automaton.next(state, map[class]))
                    .collect();
                let mut signed = parts.iter().zip(&next);
                if signed.any(|((_, sign), &state)| *sign && state == Automaton::DEAD) {
                    continue;
                }
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
            if seen.len() > MOST_STATES || !self.may_compare(1) {
                return false;
            }
        }
        true
    }
}

/// The approximate number of bytes of a pattern and its entries in the tables, without its expression.
const PATTERN_BYTES: usize = 320;

/// The most bytes of an automaton that is used only for comparisons.
const MOST_BYTES: usize = 1 << 20;

/// The cost of beginning a comparison, in states.
const COMPARISON: usize = 8;

/// The most states of the product that one comparison walks.
const MOST_STATES: usize = 20_000;

/// The approximate number of bytes of a state of an automaton: a row of a few dozen classes.
const STATE_BYTES: usize = 256;

fn matcher(text: &Text) -> Option<PikeVM> {
    let hir = match text {
        Text::Match(hir) => hir.clone(),
        Text::Units { unit, min, max } => unrolled(unit, *min, *max)?.into(),
    };
    let whole = Hir::concat(vec![
        Hir::look(Look::Start),
        Hir::clone(&hir),
        Hir::look(Look::End),
    ]);
    let config = thompson::Config::new().nfa_size_limit(Some(64 << 20));
    let nfa = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(&whole)
        .ok()?;
    PikeVM::new_from_nfa(nfa).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_share_no_string_are_disjoint() {
        let mut texts = Texts::default();
        let mut set = |pattern: &str| texts.pattern(pattern, &Limits::default()).expect("a pattern");
        let (a, b, any_a) = (set("^a[0-9]+$"), set("^b"), set("a"));
        assert!(texts.are_disjoint(&a, &b));
        assert!(!texts.are_disjoint(&a, &any_a));
        assert!(!texts.are_disjoint(&b, &any_a));
    }

    #[test]
    fn formats_allow_what_their_documents_allow() {
        let (long, many) = ("a".repeat(64), "a.".repeat(127));
        let mut texts = Texts::default();
        for (name, good, bad) in [
            ("date", "2024-02-29", "2023-02-29"),
            ("date", "2000-02-29", "1900-02-29"),
            ("date-time", "1998-12-31T23:59:60Z", "1998-12-31T22:59:60Z"),
            ("time", "01:29:60+01:30", "01:30:60+01:30"),
            ("email", "joe.bloggs@example.com", "joe..bloggs@example.com"),
            ("ipv4", "192.168.0.1", "192.168.00.1"),
            ("ipv6", "::ffff:192.168.0.1", "1::2::3"),
            ("ipv6", "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7"),
            ("uri", "http://foo.bar/?baz=qux#quux", "//foo.bar"),
            ("uri", "urn:oasis:names", "http:// shouldfail.com"),
            (
                "uuid",
                "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
                "2eb8aa08aa9811eab4aa73b441d16380",
            ),
            ("duration", "P4DT12H30M5S", "P1D2H"),
            ("hostname", "www.example.com", "-a.example"),
            ("hostname", "a--b.com", "xn--X"),
            ("idn-hostname", "실례。테스트", "-hello"),
            ("idn-hostname", "παράδειγμα.com", "a·l"),
            ("idn-hostname", &long[..63], &long[..64]),
            ("idn-hostname", &long[..59], "a--"),
            ("idn-hostname", &many[..253], &many[..254]),
            ("regex", r"([abc])+\s+$", "^(abc]"),
            ("regex", r"^(?:a|[^b-]{2,3})*?(?<=x)\u00e4$", r"\a"),
        ] {
            let sets = texts.format(name).expect("a format");
            let within = |string: &str| {
                let sets = sets
                    .iter()
                    .map(|set| texts.set_contains(set, string).expect("small enough"));
                sets.filter(|&within| within).count()
            };
            assert_eq!((within(good), within(bad)), (1, 0), "{name} {good} {bad}");
        }
    }

    #[test]
    fn each_way_to_escape_has_an_expression_of_its_own() {
        let mut texts = Texts::default();
        let set = texts.pattern("^a$", &Limits::default()).expect("a pattern");
        let any = texts.encoded(set[0].0, Escapes::Any);
        let canonical = texts.encoded(set[0].0, Escapes::Canonical);
        assert_ne!(any, canonical);
        assert_eq!(canonical, texts.encoded(set[0].0, Escapes::Canonical));
    }
}
