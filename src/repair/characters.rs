//! Where one more character leads from a configuration: each place once, with one character that leads there.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use lexiform_automata::pushdown::{ConfigId, Stacks, more_bytes, second_bytes};

/// The places that are one character away.
pub(super) type Ways = Rc<[(ConfigId, char)]>;

/// What was found so far.
pub(super) struct Characters {
    /// The characters that are tried, if not all are.
    alphabet: Option<Vec<char>>,
    known: FxHashMap<ConfigId, Ways>,
}

impl Characters {
    /// Of these characters, or of all.
    pub(super) fn new(alphabet: Option<Vec<char>>) -> Characters {
        Characters {
            alphabet,
            known: FxHashMap::default(),
        }
    }

    /// The configurations after one more character.
    pub(super) fn from(&mut self, stacks: &Stacks, config: ConfigId) -> Ways {
        if let Some(known) = self.known.get(&config) {
            return known.clone();
        }
        let ways: Ways = match &self.alphabet {
            None => find(stacks, config),
            Some(alphabet) => among(stacks, config, alphabet),
        }
        .into();
        self.known.insert(config, ways.clone());
        ways
    }
}

/// The configuration after a character.
pub(super) fn after(stacks: &Stacks, config: ConfigId, c: char) -> Option<ConfigId> {
    let mut buffer = [0; 4];
    let bytes = c.encode_utf8(&mut buffer).bytes();
    bytes
        .into_iter()
        .try_fold(config, |config, byte| stacks.step(config, byte))
}

fn among(stacks: &Stacks, config: ConfigId, alphabet: &[char]) -> Vec<(ConfigId, char)> {
    let mut reached = FxHashSet::default();
    let ways = alphabet
        .iter()
        .filter_map(|&c| Some((after(stacks, config, c)?, c)));
    ways.filter(|&(next, _)| reached.insert(next)).collect()
}

fn find(stacks: &Stacks, config: ConfigId) -> Vec<(ConfigId, char)> {
    let mut ways = Vec::new();
    let mut reached = FxHashSet::default();
    for byte in ascii() {
        if let Some(next) = stacks.step(config, byte)
            && reached.insert(next)
        {
            ways.push((next, char::from(byte)));
        }
    }
    // Many first bytes lead to the same configuration, behind which everything is the same.
    let mut inside = FxHashSet::default();
    for first in 0xC2..=0xF4 {
        if let Some(next) = stacks.step(config, first)
            && inside.insert((next, second_bytes(first), more_bytes(first)))
        {
            for (config, bytes) in spelled(stacks, next, first) {
                let c = std::str::from_utf8(&bytes)
                    .ok()
                    .and_then(|text| text.chars().next());
                if let Some(c) = c.filter(|_| reached.insert(config)) {
                    ways.push((config, c));
                }
            }
        }
    }
    ways
}

/// Where the characters lead that begin with this byte, each with the bytes of one.
fn spelled(stacks: &Stacks, config: ConfigId, first: u8) -> Vec<(ConfigId, Vec<u8>)> {
    let mut open = vec![(config, vec![first])];
    for place in 0..more_bytes(first) {
        let (low, high) = if place == 0 {
            second_bytes(first)
        } else {
            (0x80, 0xBF)
        };
        let (mut next, mut reached) = (Vec::new(), FxHashSet::default());
        for (config, bytes) in open {
            for byte in low..=high {
                if let Some(config) = stacks.step(config, byte)
                    && reached.insert(config)
                {
                    next.push((config, [&bytes[..], &[byte]].concat()));
                }
            }
        }
        open = next;
    }
    open
}

/// All ASCII characters, those first that a reader would rather find in a text.
pub(super) fn ascii() -> impl Iterator<Item = u8> {
    let rank = |byte: &u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        b'!'..=b'~' => 3,
        b' ' => 4,
        _ => 5,
    };
    let mut all: Vec<u8> = (0..0x80).collect();
    all.sort_by_key(rank);
    all.into_iter()
}
