//! Finds alphabets whose characters a state accepts in any order, up to a number of characters.
//!
//! In a search for `foo` every character has a successor state, and in a word of at most 32 letters the next
//! ten letters do, although none leads back to the state in which it was read. If a subtree of the trie uses
//! no other characters and is no higher than that number, all of its tokens stay in the language, and the
//! walk continues after it. Loops (`loops`) are the special case that can be seen without following any
//! transition.
//!
//! ```text
//!   (ab|cd)*e        height 1      height 2       height 3
//!     start          a c e         a b?  no: ac is no prefix
//!
//!   .*foo.*          height 1      height 2       and so on
//!     start          all           all            all        f leads to another state, which accepts all too
//! ```
//!
//! For each height, the alphabet of a state is computed from those of its successors, one height lower. If a
//! successor has a small alphabet, either the state's alphabet is reduced to it, or the characters that lead
//! to that successor are removed, whichever keeps more. So the alphabets are not the largest possible ones,
//! but they are correct.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use crate::language::{LanguageId, Terminal};
use crate::vocab::{Alphabet, Trie, UNSOUND, Within, ascii, beyond};
use crate::work::spend;

/// The largest finite height. Higher subtrees are skipped only if the alphabet holds for any height.
const HIGHEST: usize = 16;

/// A state that accepts fewer ASCII characters than this has no large subtree to skip.
const FEW_CHARACTERS: u32 = 16;

/// At least this many characters are never given up in favour of fewer.
const KEPT_CHARACTERS: usize = 12;

/// The maximum number of states that are analysed together with the state asked for.
const MOST_STATES: usize = 64;

/// The alphabet for each height from 1 on, and last the one that holds for any height.
type Heights = [Alphabet; HIGHEST + 1];

/// The place of all states that are not worth analysing; their alphabet is empty.
const NOTHING: u32 = 0;

/// The place of states beyond [`MOST_STATES`].
const CUT_OFF: u32 = 1;

/// The first place of a state that was analysed.
pub(crate) const FIRST_KNOWN: u32 = 2;

/// The maximum number of states whose alphabets a terminal keeps.
const MOST_KEPT: usize = 1 << 12;

/// The alphabets of the states of one terminal, computed on demand.
pub(crate) struct ClosedAlphabets<'a> {
    terminal: &'a Terminal,
    kept: &'a Kept,
    names: &'a [LanguageId],
    units: Units,
    letters: Arc<Letters>,
    /// The number of trie edges with the characters of each bit.
    weights: &'a [u32; 128],
    found: FoundAlphabets,
}

/// How units restrict the characters: they may have to be units that leave the distance to the end unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Units {
    /// Units are ignored.
    Ignored,
    /// Each character has to be a unit, in all states.
    Upper,
    /// Each character has to be a unit, and only endless states have an alphabet.
    Endless,
}

/// The computed alphabets, which the terminal keeps between walks.
#[derive(Debug, Default)]
struct FoundAlphabets {
    /// The index of each language in `known`.
    places: FxHashMap<LanguageId, u32>,
    known: Vec<Heights>,
    /// The end states of characters whose first bytes were read.
    ends: CharacterEnds,
}

/// The data that a terminal keeps between walks, one entry per [`Units`]. An entry in use is absent.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    letters: OnceLock<Arc<Letters>>,
    found: [Mutex<Option<FoundAlphabets>>; 3],
}

/// The common end state of all completions of a partial character, by the state within it and the bytes that
/// must follow.
type CharacterEnds = FxHashMap<(u32, Within), Option<u32>>;

/// The characters that a state accepts, grouped by the place that they lead to.
struct Ways {
    all: Alphabet,
    ways: Vec<(u32, Alphabet)>,
}

impl Drop for ClosedAlphabets<'_> {
    fn drop(&mut self) {
        if let Ok(mut kept) = self.kept.found[self.units as usize].lock()
            && self.found.known.len() <= MOST_KEPT
        {
            *kept = Some(std::mem::take(&mut self.found));
        }
    }
}

impl<'a> ClosedAlphabets<'a> {
    pub(crate) fn new(terminal: &'a Terminal, trie: &'a Trie, kept: &'a Kept) -> ClosedAlphabets<'a> {
        ClosedAlphabets::with(terminal, trie, Units::Ignored, kept)
    }

    /// Creates alphabets in which each character has to be a unit of a counted language and to lead to a
    /// state from which a word takes as many more units. Unless only the `upper` bound matters, only endless
    /// states have an alphabet.
    pub(crate) fn of_units(
        terminal: &'a Terminal,
        trie: &'a Trie,
        upper: bool,
        kept: &'a Kept,
    ) -> ClosedAlphabets<'a> {
        let units = if upper { Units::Upper } else { Units::Endless };
        ClosedAlphabets::with(terminal, trie, units, kept)
    }

    fn with(terminal: &'a Terminal, trie: &'a Trie, units: Units, kept: &'a Kept) -> ClosedAlphabets<'a> {
        let found = kept.found[units as usize].lock().ok();
        let found = found.and_then(|mut found| found.take());
        let letters = || Arc::new(Letters::new(terminal));
        ClosedAlphabets {
            terminal,
            kept,
            names: terminal.language_ids(units != Units::Ignored),
            units,
            letters: kept.letters.get_or_init(letters).clone(),
            weights: trie.weights(),
            found: found.unwrap_or_else(|| FoundAlphabets {
                known: vec![Heights::default(); 2],
                ..FoundAlphabets::default()
            }),
        }
    }

    /// Returns the place of a state's alphabets.
    pub(crate) fn place(&mut self, state: u32) -> u32 {
        match self.found.places.get(&self.names[state as usize]) {
            Some(&known) => known,
            None => self.find(state),
        }
    }

    /// Returns the characters that can be read in any sequence as long as a subtree of this height is high.
    #[inline]
    pub(crate) fn alphabet(&self, place: u32, height: u8) -> Alphabet {
        self.found.known[place as usize][usize::from(height).clamp(1, HIGHEST + 1) - 1]
    }

    /// Computes the alphabets of a state and of the states that it leads to.
    fn find(&mut self, state: u32) -> u32 {
        let first = self.found.known.len();
        let mut found = Vec::new();
        let start = self.number(state, first, &mut found);
        let mut at = 0;
        let mut all: Vec<Ways> = Vec::new();
        while let Some(&state) = found.get(at) {
            at += 1;
            let targets = self.targets(state);
            let mut ways: Vec<(u32, Alphabet)> = Vec::new();
            for (target, letters) in targets {
                let place = self.number(target, first, &mut found);
                match ways.iter_mut().find(|way| way.0 == place) {
                    Some(way) => way.1 |= letters,
                    None => ways.push((place, letters)),
                }
            }
            ways.sort_by_key(|way| Reverse(way.1.count_ones()));
            let all_letters = ways.iter().fold(0, |all, way| all | way.1);
            all.push(Ways {
                all: all_letters,
                ways,
            });
        }
        self.found.known.resize(first + all.len(), Heights::default());
        self.fill(first, &all);
        self.forget_cut_off(first, start, &found, &all);
        // Spend only now: the computed alphabets are kept even if the query ends here, and must be complete.
        spend(all.len());
        start
    }

    /// Forgets the states whose alphabets would be larger without the limit on states, except the state asked
    /// for.
    fn forget_cut_off(&mut self, first: usize, start: u32, found: &[u32], all: &[Ways]) {
        // The distance, in characters, to the nearest state beyond the limit.
        let mut away = vec![HIGHEST; all.len()];
        for _ in 0..HIGHEST {
            for at in (0..all.len()).rev() {
                let targets = all[at].ways.iter().map(|&(place, _)| match place as usize {
                    place if place >= first => away[place - first] + 1,
                    place if place == CUT_OFF as usize => 1,
                    _ => HIGHEST,
                });
                away[at] = targets.min().unwrap_or(HIGHEST).min(away[at]);
            }
        }
        for (&state, place) in found.iter().zip(first..) {
            if away[place - first] < HIGHEST && place != start as usize {
                self.found.places.remove(&self.names[state as usize]);
            }
        }
    }

    /// Returns the place of a state, and assigns a new one while there is room.
    fn number(&mut self, state: u32, first: usize, found: &mut Vec<u32>) -> u32 {
        let name = self.names[state as usize];
        if let Some(&known) = self.found.places.get(&name) {
            return known;
        }
        let is_mute = self.units == Units::Endless && !self.terminal.is_endless(state);
        if is_mute || self.letters.count(self.terminal, state) < FEW_CHARACTERS {
            self.found.places.insert(name, NOTHING);
            return NOTHING;
        }
        if found.len() == MOST_STATES {
            return CUT_OFF;
        }
        let place = (first + found.len()) as u32;
        self.found.places.insert(name, place);
        found.push(state);
        place
    }

    /// Returns the states that the characters of a state lead to. A group is omitted if some of its
    /// characters lead nowhere, or to different languages.
    fn targets(&mut self, state: u32) -> Vec<(u32, Alphabet)> {
        let letters = self.letters.clone();
        let ascii = letters.ascii.iter();
        let mut targets: Vec<(u32, Alphabet)> = ascii
            .filter_map(|&(byte, bits)| Some((self.next(state, byte, true)?, bits)))
            .collect();
        let mut groups: Vec<(Alphabet, Option<u32>)> = Vec::new();
        for &(lead, second, within, group) in &letters.beyond {
            let inside = self.next(state, lead, false);
            let target = inside.and_then(|inside| match within.next() {
                Some(within) => {
                    let inside = self.next(inside, second, false)?;
                    self.leave(inside, within)
                }
                None => self.next(inside, second, true),
            });
            match groups.iter_mut().find(|known| known.0 == group) {
                Some((_, known)) => *known = known.filter(|&known| self.is_same(Some(known), target)),
                None => groups.push((group, target)),
            }
        }
        targets.extend(groups.iter().filter_map(|&(bit, target)| Some((target?, bit))));
        targets.retain(|&(target, _)| self.counts_alike(state, target));
        targets
    }

    /// Returns `true` if both states exist and have the same language.
    fn is_same(&self, one: Option<u32>, other: Option<u32>) -> bool {
        let name = |state: Option<u32>| state.map(|state| self.names[state as usize]);
        one.is_some() && name(one) == name(other)
    }

    /// Returns `true` if units are ignored, or if words take as many units from either state and the target
    /// may have an alphabet.
    fn counts_alike(&self, state: u32, target: u32) -> bool {
        let as_far = || self.terminal.least_units(state) == self.terminal.least_units(target);
        match self.units {
            Units::Ignored => true,
            Units::Upper => as_far(),
            Units::Endless => as_far() && self.terminal.is_endless(target),
        }
    }

    /// Returns the next state. Unless units are ignored, a byte has to complete a unit if it is the last one
    /// of a character, and only then.
    fn next(&self, state: u32, byte: u8, is_last: bool) -> Option<u32> {
        let (next, unit) = self.terminal.next_unit(state, byte)?;
        (self.units == Units::Ignored || unit == is_last).then_some(next)
    }

    /// Returns the state that all completions of a character lead to, if they agree on its language.
    fn leave(&mut self, inside: u32, within: Within) -> Option<u32> {
        if let Some(&known) = self.found.ends.get(&(inside, within)) {
            return known;
        }
        let letters = self.letters.clone();
        let mut end = |tail| match within.next() {
            Some(within) => {
                let next = self.next(inside, tail, false)?;
                self.leave(next, within)
            }
            None => self.next(inside, tail, true),
        };
        let (&tail, others) = letters.tails.split_first()?;
        let first = end(tail);
        let ends: Vec<Option<u32>> = others.iter().map(|&tail| end(tail)).collect();
        let found = first.filter(|_| ends.iter().all(|&other| self.is_same(first, other)));
        self.found.ends.insert((inside, within), found);
        found
    }

    /// Computes the alphabets height by height; once none changes any more, they hold for any height.
    fn fill(&mut self, first: usize, all: &[Ways]) {
        for (ways, known) in all.iter().zip(&mut self.found.known[first..]) {
            known[0] = ways.all;
        }
        for height in 1..=HIGHEST {
            let mut stays =
                (self.found.known[..first].iter()).all(|known| known[height - 1] == known[HIGHEST]);
            for (ways, place) in all.iter().zip(first..) {
                let taken_by = |target: u32| self.found.known[target as usize][height - 1];
                let alphabet = ways.kept(self.weights, taken_by);
                stays &= alphabet == self.found.known[place][height - 1];
                self.found.known[place][height] = alphabet;
            }
            if stays {
                for known in &mut self.found.known[first..] {
                    let last = known[height - 1];
                    known[height..].fill(last);
                }
                return;
            }
        }
        for known in &mut self.found.known[first..] {
            known[HIGHEST] = 0;
        }
    }
}

impl Ways {
    /// Returns the characters that remain when every successor state has to accept all of them again. Of
    /// conflicting characters, those that the trie uses less are given up.
    fn kept(&self, weights: &[u32; 128], taken_by: impl Fn(u32) -> Alphabet) -> Alphabet {
        let mut kept = self.all;
        for &(target, letters) in &self.ways {
            let taken = taken_by(target);
            let (missing, leading) = (kept & !taken, kept & letters);
            if missing == 0 || leading == 0 {
                continue;
            }
            kept &= match weight(missing, weights) <= weight(leading, weights) {
                true => taken,
                false => !letters,
            };
        }
        kept
    }
}

/// Returns how many trie edges have these characters; [`u32::MAX`] from [`KEPT_CHARACTERS`] characters on.
fn weight(letters: Alphabet, weights: &[u32; 128]) -> u32 {
    let mut left = letters;
    let mut sum = 0u32;
    for _ in 0..KEPT_CHARACTERS {
        if left == 0 {
            return sum;
        }
        sum += weights[left.trailing_zeros() as usize];
        left &= left - 1;
    }
    u32::MAX
}

/// The classes of characters that a terminal distinguishes.
#[derive(Debug, Default)]
struct Letters {
    /// A byte of each class of ASCII characters, with the bits of all characters in the class.
    ascii: Vec<(u8, Alphabet)>,
    /// The first two bytes of non-ASCII characters that a terminal may distinguish, with the bit of their
    /// group.
    beyond: Vec<(u8, u8, Within, Alphabet)>,
    /// A byte of each class of continuation bytes.
    tails: Vec<u8>,
}

impl Letters {
    fn new(terminal: &Terminal) -> Letters {
        let mut ascii_of: Vec<(u8, Alphabet)> = Vec::new();
        for byte in 0..128u8 {
            let bit = ascii(byte) & !UNSOUND;
            match ascii_of
                .iter_mut()
                .find(|known| terminal.are_alike(known.0, byte))
            {
                _ if bit == 0 => {}
                Some(known) => known.1 |= bit,
                None => ascii_of.push((byte, bit)),
            }
        }
        let mut letters = Letters {
            ascii: ascii_of,
            beyond: Vec::new(),
            tails: Vec::new(),
        };
        for byte in 0x80..=0xBF {
            if !letters.tails.iter().any(|&tail| terminal.are_alike(tail, byte)) {
                letters.tails.push(byte);
            }
        }
        for (lead, within) in Within::leads() {
            for second in within.bytes() {
                let group = beyond(lead, second);
                let mut known = letters.beyond.iter().rev();
                let is_known = known.any(|&(one, other, then, bit)| {
                    bit == group
                        && then.next() == within.next()
                        && terminal.are_alike(one, lead)
                        && terminal.are_alike(other, second)
                });
                if !is_known {
                    letters.beyond.push((lead, second, within, group));
                }
            }
        }
        letters
    }

    /// Returns how many ASCII characters a state accepts.
    fn count(&self, terminal: &Terminal, state: u32) -> u32 {
        let taken = self
            .ascii
            .iter()
            .filter(|(byte, _)| terminal.next_state(state, *byte).is_some());
        taken.map(|(_, bits)| bits.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::{Part, Regular};
    use crate::limits::Limits;
    use crate::vocab::BEYOND_ASCII;

    fn terminal(matched: &str, denied: Option<&str>) -> Option<Terminal> {
        let hir = |pattern: &str| regex_syntax::parse(pattern).expect("the test's pattern is well formed");
        let mut parts = vec![Part::Match(hir(matched).into())];
        parts.extend(denied.map(|pattern| Part::Not(hir(pattern).into())));
        Terminal::new(&Regular::of(parts), &Limits::default()).ok()
    }

    fn trie() -> Trie {
        let words = ["the", "then", "they", "kiwi"];
        Trie::new((0u32..).zip(words))
    }

    /// Returns characters of all groups, and the bit of each.
    fn characters() -> Vec<(String, Alphabet)> {
        let ascii_ones = ('\t'..='~').filter(char::is_ascii);
        let others = "\u{a0}éжא\u{915}ก\u{1680}한\u{2028}€\u{3000}あ中豈\u{1F642}\u{10FFFF}";
        let bit = |character: char| {
            let text = character.to_string();
            let bit = match text.as_bytes() {
                &[byte] => ascii(byte),
                bytes => beyond(bytes[0], bytes[1]),
            };
            (text, bit)
        };
        ascii_ones.chain(others.chars()).map(bit).collect()
    }

    /// Returns `true` if all texts of at most `height` characters of the alphabet can be read from the state.
    fn lasts(terminal: &Terminal, state: u32, alphabet: Alphabet, height: usize) -> bool {
        let mut states = vec![state];
        for _ in 0..height {
            let mut next = Vec::new();
            for &state in &states {
                for (text, bit) in characters() {
                    if alphabet & bit == 0 || bit == UNSOUND {
                        continue;
                    }
                    let read = |state, byte| terminal.next_state(state, byte);
                    match text.bytes().try_fold(state, read) {
                        Some(state) => next.push(state),
                        None => return false,
                    }
                }
            }
            next.sort_unstable();
            next.dedup();
            states = next;
        }
        true
    }

    #[test]
    fn a_search_and_its_denial_pass_over_what_cannot_complete_the_word() {
        let trie = trie();
        let search = terminal("(?s).*the.*", None).expect("it compiles");
        let kept = Kept::default();
        let mut closed = ClosedAlphabets::new(&search, &trie, &kept);
        let place = closed.place(0);
        assert_eq!(closed.alphabet(place, 255) & BEYOND_ASCII, BEYOND_ASCII);
        assert_ne!(closed.alphabet(place, 255) & ascii(b't'), 0);
        let denial = terminal("(?s).*", Some("(?s).*kiwi.*")).expect("it compiles");
        let kept = Kept::default();
        let mut closed = ClosedAlphabets::new(&denial, &trie, &kept);
        let place = closed.place(0);
        let missing = |height| !closed.alphabet(place, height) & (ascii(b'k') | ascii(b'i') | ascii(b'w'));
        assert_eq!(missing(3), 0, "three letters are no kiwi");
        assert_eq!(missing(4).count_ones(), 1, "without one of them there is none");
    }

    #[test]
    fn what_is_counted_lasts_as_long_as_there_is_room() {
        let trie = trie();
        let word = terminal("[a-z]{1,10}-[0-9]", None).expect("it compiles");
        let kept = Kept::default();
        let mut closed = ClosedAlphabets::new(&word, &trie, &kept);
        let place = closed.place(0);
        let has_a = |height| closed.alphabet(place, height) & ascii(b'a') != 0;
        assert!((1..=10).all(has_a) && !(11..=30).any(has_a));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

        #[test]
        fn all_that_is_said_is_true(
            word in "[abcé]{1,4}",
            other in "[ab中]{1,3}",
            count in 1..12usize,
            shape in 0..6usize,
        ) {
            let (matched, denied) = match shape {
                0 => (format!("(?s).*{word}.*"), None),
                1 => ("(?s).*".to_owned(), Some(format!("(?s).*{word}.*|{other}"))),
                2 => (format!("([a-z]{{1,{count}}}({other})?){{1,3}}"), None),
                3 => (format!("(?s)[^{word}]*{word}.{{0,{count}}}"), Some(format!("{other}.*"))),
                4 => (format!("(?:[a-z]|{word}[0-9])*"), None),
                _ => (format!("\"(?:[^\"\\\\]|\\\\[a-f]|{word}\\\\)*\""), Some(format!("(?s).*{other}.*"))),
            };
            let Some(terminal) = terminal(&matched, denied.as_deref()) else { return Ok(()) };
            let trie = trie();
            let kept = Kept::default();
        let mut closed = ClosedAlphabets::new(&terminal, &trie, &kept);
            for state in 0..terminal.len() as u32 {
                let place = closed.place(state);
                for height in [1, 2, 3, 4, 7, 15, 16, 17, 40] {
                    let alphabet = closed.alphabet(place, height);
                    prop_assert!(lasts(&terminal, state, alphabet, usize::from(height)), "{matched} without {denied:?}, {height} from {state}");
                }
            }
        }
    }
}
