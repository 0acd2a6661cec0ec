//! Compiles an expression to a nondeterministic automaton, whose states are called places.
//!
//! Places are created from the end to the beginning, so that each knows its target when it is created; only
//! loops are closed afterwards. Places that lead to no word are not created: from every place a word can be
//! completed.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};
use regex_syntax::utf8::Utf8Sequences;
use rustc_hash::FxHashMap;

use super::failure::Failure;
use super::letters::{Alphabet, Set};

/// A place of an expression. An `enum` of a hundred thousand values has a million of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Reads a letter of a set.
    Read { set: u32, next: u32 },
    /// Continues at each of these of [`Nfa::ways`] without reading; nowhere if there are none.
    Split { first: u32, last: u32 },
    /// A word is complete.
    Accept,
}

/// A nondeterministic automaton.
pub(super) struct Nfa {
    pub(super) places: Vec<Place>,
    pub(super) ways: Vec<u32>,
    pub(super) start: u32,
    /// The sets of letters that places read.
    pub(super) sets: Vec<Set>,
}

/// No place: no word continues from here. The start of an expression that matches nothing.
pub(super) const NOWHERE: u32 = u32::MAX;

impl Nfa {
    pub(super) fn new(hir: &Hir, alphabet: Alphabet, room: usize) -> Result<Nfa, Failure> {
        if !hir.properties().look_set().is_empty() {
            return Err(Failure::Look);
        }
        let mut builder = Builder {
            places: vec![Place::Accept],
            ways: Vec::new(),
            sets: Vec::new(),
            known: FxHashMap::default(),
            letters: [None; 128],
            shared: None,
            alphabet,
            most: room / size_of::<Place>(),
        };
        let start = builder.place(hir, 0)?;
        Ok(Nfa {
            places: builder.places,
            ways: builder.ways,
            start,
            sets: builder.sets,
        })
    }
}

/// The smallest number of alternatives for which places are shared.
const MANY_PARTS: usize = 16;

struct Builder {
    places: Vec<Place>,
    ways: Vec<u32>,
    sets: Vec<Set>,
    known: FxHashMap<Set, u32>,
    /// The numbers of the single-letter ASCII sets that literals use.
    letters: [Option<u32>; 128],
    /// The places of alternations of many words, keyed by the set that they read and their target, so that
    /// words with equal suffixes share them. Only kept while such an alternation is compiled.
    shared: Option<FxHashMap<(u32, u32), u32>>,
    alphabet: Alphabet,
    /// The maximum number of places.
    most: usize,
}

impl Builder {
    /// Returns the place at which `hir` begins if `next` comes after it.
    fn place(&mut self, hir: &Hir, next: u32) -> Result<u32, Failure> {
        if next == NOWHERE {
            return Ok(NOWHERE);
        }
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => self.literal(&literal.0, next),
            HirKind::Class(class) => self.class(class, next),
            HirKind::Look(_) => Err(Failure::Look),
            HirKind::Repetition(repetition) => self.repetition(repetition, next),
            HirKind::Capture(capture) => self.place(&capture.sub, next),
            HirKind::Concat(parts) => parts
                .iter()
                .rev()
                .try_fold(next, |next, part| self.place(part, next)),
            HirKind::Alternation(parts) => {
                let shares = parts.len() >= MANY_PARTS && self.shared.is_none();
                if shares {
                    self.shared = Some(FxHashMap::default());
                }
                let starts: Result<Vec<u32>, Failure> =
                    parts.iter().map(|part| self.place(part, next)).collect();
                if shares {
                    self.shared = None;
                }
                self.split(&starts?)
            }
        }
    }

    /// Returns a place that continues at each of these.
    fn split(&mut self, ways: &[u32]) -> Result<u32, Failure> {
        let first = self.ways.len() as u32;
        self.ways.extend(ways.iter().filter(|&&way| way != NOWHERE));
        let last = self.ways.len() as u32;
        match last - first {
            0 => Ok(NOWHERE),
            _ => self.add(Place::Split { first, last }),
        }
    }

    fn add(&mut self, place: Place) -> Result<u32, Failure> {
        if self.places.len() + self.ways.len() / 2 >= self.most {
            return Err(Failure::Limit);
        }
        self.places.push(place);
        Ok(self.places.len() as u32 - 1)
    }

    fn read(&mut self, set: Set, next: u32) -> Result<u32, Failure> {
        if set.is_empty() {
            return Ok(NOWHERE);
        }
        let set = self.number_of(set);
        self.read_set(set, next)
    }

    fn number_of(&mut self, set: Set) -> u32 {
        match self.known.get(&set) {
            Some(&known) => known,
            None => {
                let new = self.sets.len() as u32;
                self.known.insert(set.clone(), new);
                self.sets.push(set);
                new
            }
        }
    }

    fn read_set(&mut self, set: u32, next: u32) -> Result<u32, Failure> {
        if let Some(&known) = self.shared.as_ref().and_then(|shared| shared.get(&(set, next))) {
            return Ok(known);
        }
        let place = self.add(Place::Read { set, next })?;
        if let Some(shared) = &mut self.shared {
            shared.insert((set, next), place);
        }
        Ok(place)
    }

    /// Returns the place that reads one letter.
    fn letter(&mut self, letter: u32, next: u32) -> Result<u32, Failure> {
        let set = match self.letters.get(letter as usize) {
            Some(&Some(known)) => known,
            _ => self.number_of(vec![(letter, letter)]),
        };
        if let Some(known) = self.letters.get_mut(letter as usize) {
            *known = Some(set);
        }
        self.read_set(set, next)
    }

    fn literal(&mut self, bytes: &[u8], next: u32) -> Result<u32, Failure> {
        match self.alphabet {
            Alphabet::Bytes => {
                let mut bytes = bytes.iter().rev();
                bytes.try_fold(next, |next, &byte| self.letter(u32::from(byte), next))
            }
            Alphabet::Chars => {
                let text = std::str::from_utf8(bytes).map_err(|_| Failure::NotText)?;
                let mut chars = text.chars().rev();
                chars.try_fold(next, |next, c| self.letter(u32::from(c), next))
            }
        }
    }

    fn class(&mut self, class: &Class, next: u32) -> Result<u32, Failure> {
        match (class, self.alphabet) {
            (Class::Unicode(class), Alphabet::Chars) => {
                let ranges = class.ranges().iter();
                let set = ranges.map(|range| (u32::from(range.start()), u32::from(range.end())));
                self.read(set.collect(), next)
            }
            (Class::Bytes(class), alphabet) => {
                let ranges = class.ranges().iter();
                let set: Set = ranges
                    .map(|range| (u32::from(range.start()), u32::from(range.end())))
                    .collect();
                // A byte beyond ASCII is not a character.
                if alphabet == Alphabet::Chars && set.last().is_some_and(|range| range.1 > 0x7f) {
                    return Err(Failure::NotText);
                }
                self.read(set, next)
            }
            (Class::Unicode(class), Alphabet::Bytes) => {
                // Suffixes that several byte sequences share are created once.
                let mut ends: FxHashMap<(u8, u8, u32), u32> = FxHashMap::default();
                let mut starts = Vec::new();
                for range in class.ranges() {
                    for spelling in Utf8Sequences::new(range.start(), range.end()) {
                        let mut at = next;
                        for bytes in spelling.as_slice().iter().rev() {
                            let key = (bytes.start, bytes.end, at);
                            at = match ends.get(&key) {
                                Some(&known) => known,
                                None => self.read(vec![(u32::from(key.0), u32::from(key.1))], at)?,
                            };
                            ends.insert(key, at);
                        }
                        starts.push(at);
                    }
                }
                self.split(&starts)
            }
        }
    }

    fn repetition(&mut self, repetition: &Repetition, next: u32) -> Result<u32, Failure> {
        let body = &repetition.sub;
        let mut at = next;
        match repetition.max {
            None => {
                at = self.split(&[next, next])?;
                let again = self.place(body, at)?;
                if let (Place::Split { first, .. }, true) = (self.places[at as usize], again != NOWHERE) {
                    self.ways[first as usize] = again;
                }
            }
            Some(max) => {
                for _ in repetition.min..max {
                    let body = self.place(body, at)?;
                    at = self.split(&[body, next])?;
                }
            }
        }
        (0..repetition.min).try_fold(at, |at, _| self.place(body, at))
    }
}
