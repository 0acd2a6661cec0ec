//! Finds the configurations that are one character away: each once, with one character that leads there.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use lexiform_automata::pushdown::{ConfigId, Stacks, more_bytes, second_bytes};

/// The configurations that are one character away, each with such a character.
pub(super) type Ways = Rc<[(ConfigId, char)]>;

/// A cache of the ways from each configuration.
pub(super) struct Characters {
    /// The characters that are tried; `None` for all characters.
    alphabet: Option<Vec<char>>,
    known: FxHashMap<ConfigId, Ways>,
}

impl Characters {
    /// Returns an empty cache for the characters of an alphabet, or for all characters.
    pub(super) fn new(alphabet: Option<Vec<char>>) -> Characters {
        Characters {
            alphabet,
            known: FxHashMap::default(),
        }
    }

    /// Returns the configurations after one more character.
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

/// Returns the configuration after a character.
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
    // Many first bytes lead to the same configuration, after which everything is the same.
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

/// Returns the configurations after all characters that begin with this byte, each with the bytes of one such
/// character.
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

/// Returns all ASCII characters, in the order in which a reader would prefer to find them in a text.
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
