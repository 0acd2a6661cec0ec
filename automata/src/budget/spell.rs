//! Splits one shortest completion into the fewest tokens.
//!
//! Of the shortest completions, the lexicographically smallest is chosen. After its first token it continues
//! as the chosen completion of the configuration reached there, so following it token by token keeps the
//! promised length. Inside JSON it is the text that closes everything: `"}]}` is four bytes and, in most
//! vocabularies, one or two tokens.
//!
//! Near the end of a budget many tokens are judged, and the completion spelled after each soon joins one
//! spelled before. So each configuration caches the first step of its completion, and the number of tokens
//! that the completion splits into:
//!
//! ```text
//!   hello"   ──,"b":1──┐
//!   hello"}  ──────────┼──► • ──}──► • ──]──► • ──}──► end
//!   hello",  ──"b":1───┘    2        2        1        0      tokens, known since the first was spelled
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use super::place::Place;
use crate::language::{ByteSet, NEVER, plus};
use crate::pushdown::{ConfigId, Distances, Lookahead, Stacks};
use crate::vocab::Trie;
use crate::work::spend;

/// The maximum length of a spelled completion in steps: longer ones are far from the end in any vocabulary.
const LONGEST_SPELLED: u64 = 1 << 12;

/// The bytes of a number with its key in a table.
pub(super) const NUMBER_BYTES: usize = 48;

/// A step of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpelledStep {
    Byte(u8),
    Special,
}

/// A machine, which may be a copy of the grammar's, and its distances.
pub(super) type Measured<'a> = (Place<'a>, &'a Stacks, &'a Distances);

/// The spelled completions in one machine, computed on demand.
#[derive(Debug)]
pub(super) struct Spelling {
    steps: DashMap<ConfigId, (SpelledStep, ConfigId), FxBuildHasher>,
    tokens: DashMap<ConfigId, u64, FxBuildHasher>,
    /// A representative for each configuration with the same completion, which many share.
    bare: DashMap<ConfigId, ConfigId, FxBuildHasher>,
    kept: AtomicUsize,
    /// The maximum number of cached entries, which affects only speed.
    most: usize,
}

/// The rest of an object of which some properties are missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// The number of tokens of the missing properties.
    pub(super) tokens: u64,
    /// The configuration after the object.
    pub(super) then: ConfigId,
}

/// A configuration on the path to the end.
struct Stop {
    config: ConfigId,
    tokens: Option<u64>,
    /// The positions on the path at which tokens that begin here may end; empty if the number of tokens is
    /// known.
    ends: SmallVec<[usize; 8]>,
}

/// A token that has begun on the path.
struct Begun {
    /// The position at which it begins.
    at: usize,
    /// The trie node up to which it was read.
    node: Option<usize>,
}

impl Spelling {
    /// Creates a cache of at most `most` entries.
    pub(super) fn new(most: usize) -> Spelling {
        Spelling {
            steps: DashMap::default(),
            tokens: DashMap::default(),
            bare: DashMap::default(),
            kept: AtomicUsize::new(0),
            most,
        }
    }

    /// Returns the bytes that the entries take.
    pub(super) fn bytes(&self) -> usize {
        self.kept.load(Ordering::Relaxed) * NUMBER_BYTES
    }

    /// Returns the number of tokens of the spelled completion; [`NEVER`] if it is too long or cannot be
    /// written. O(steps that are not known yet + the longest token along them).
    pub(super) fn tokens(&self, measured: Measured<'_>, config: ConfigId) -> u64 {
        let (_, stacks, shortest) = measured;
        let mut at = self.bare(stacks, config);
        debug_assert_eq!(shortest.of(stacks, at), shortest.of(stacks, config));
        let mut before = Vec::new();
        let mut tokens = loop {
            spend(1);
            if let Some(known) = self.tokens.get(&at) {
                break *known;
            }
            let way = match shortest.of(stacks, at) {
                length if length > LONGEST_SPELLED => None,
                _ => self.way(measured, at),
            };
            match way {
                None => break NEVER,
                Some((way, None)) => break self.count(way),
                Some((way, Some(rest))) => {
                    before.push((way, rest.tokens));
                    at = self.bare(stacks, rest.then);
                }
            }
        };
        while let Some((mut way, missing)) = before.pop() {
            spend(1);
            let last = way.len() - 1;
            way[last].tokens = Some(plus(tokens, missing));
            self.remember(&self.tokens, way[last].config, plus(tokens, missing));
            tokens = self.count(way);
        }
        tokens
    }

    /// Counts the tokens from all places of a path whose end is known, and returns those from the first.
    fn count(&self, mut way: Vec<Stop>) -> u64 {
        for at in (0..way.len()).rev() {
            if way[at].tokens.is_none() {
                let ways = way[at].ends.iter().map(|&end| plus_one(way[end].tokens));
                let tokens = ways.min().unwrap_or(NEVER);
                way[at].tokens = Some(tokens);
                self.remember(&self.tokens, way[at].config, tokens);
            }
        }
        way[0].tokens.unwrap_or(NEVER)
    }

    /// Returns the first bytes of the spelled completion, at most `most` and up to its first special token.
    pub(super) fn bytes_of(&self, measured: Measured<'_>, mut config: ConfigId, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        config = self.bare(measured.1, config);
        while bytes.len() < most
            && let Some((SpelledStep::Byte(byte), next)) = self.step(measured, config)
        {
            spend(1);
            bytes.push(byte);
            config = next;
        }
        bytes
    }

    /// Returns the path to the end, or the part of it that tokens reach from configurations whose number of
    /// tokens is not known.
    ///
    /// Tokens are followed byte by byte from each such configuration, so the path ends where the last of them
    /// does: after about six bytes if everything after that is known. It also ends where the [rest](Rest) of
    /// an object is counted by properties.
    fn way(&self, measured: Measured<'_>, mut config: ConfigId) -> Option<(Vec<Stop>, Option<Rest>)> {
        let trie = measured.0.vocabulary().trie();
        let (mut way, mut begun): (Vec<Stop>, Vec<Begun>) = (Vec::new(), Vec::new());
        loop {
            spend(1 + begun.len());
            let at = way.len();
            if let Some(rest) = self.rest(measured, config) {
                way.push(Stop::new(config, None));
                return Some((way, Some(rest)));
            }
            let is_end = measured.2.of(measured.1, config) == 0;
            let known = self.tokens.get(&config).map(|tokens| *tokens);
            let tokens = if is_end { Some(0) } else { known };
            way.push(Stop::new(config, tokens));
            if is_end || tokens.is_some() && begun.is_empty() {
                return Some((way, None));
            }
            let (step, next) = self.step(measured, config)?;
            match step {
                SpelledStep::Special => {
                    begun.clear();
                    way[at].ends.push(at + 1);
                }
                SpelledStep::Byte(byte) => {
                    begun.extend(tokens.is_none().then_some(Begun { at, node: None }));
                    begun.retain_mut(|token| token.read(trie, byte, &mut way));
                    if begun.is_empty() {
                        return Some((way, None));
                    }
                }
            }
            config = next;
        }
    }

    /// Returns the first step of the completion of a bare configuration, and the bare configuration that it
    /// leads to; `None` at the end.
    fn step(&self, measured: Measured<'_>, config: ConfigId) -> Option<(SpelledStep, ConfigId)> {
        if let Some(known) = self.steps.get(&config) {
            return Some(*known);
        }
        let (_, stacks, shortest) = measured;
        let (step, next) = first_step(measured, config)?;
        let step = (step, self.bare(stacks, next));
        // Each step leads closer to the end, so the path is finite.
        if shortest.of(stacks, step.1) >= shortest.of(stacks, config) {
            return None;
        }
        self.remember(&self.steps, config, step);
        Some(step)
    }

    fn bare(&self, stacks: &Stacks, config: ConfigId) -> ConfigId {
        let known = |config| self.bare.get(&config).map(|bare| *bare);
        stacks.bare(config, known, |config, bare| {
            self.remember(&self.bare, config, bare)
        })
    }

    fn remember<V>(&self, known: &DashMap<ConfigId, V, FxBuildHasher>, config: ConfigId, value: V) {
        if known.insert(config, value).is_none() && self.kept.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.steps.clear();
            self.tokens.clear();
            self.bare.clear();
            self.kept.store(0, Ordering::Relaxed);
        }
    }
}

impl Stop {
    fn new(config: ConfigId, tokens: Option<u64>) -> Stop {
        Stop {
            config,
            tokens,
            ends: SmallVec::new(),
        }
    }
}

impl Begun {
    /// Reads the byte of the last position of the path, and records the position after it if a token ends
    /// there. Returns `true` if some token continues with the byte.
    fn read(&mut self, trie: &Trie, byte: u8, way: &mut [Stop]) -> bool {
        let Some(node) = trie.find_below(self.node, &[byte]) else {
            return false;
        };
        if trie.nodes()[node].count > 0 {
            let end = way.len();
            way[self.at].ends.push(end);
        }
        self.node = Some(node);
        true
    }
}

fn plus_one(tokens: Option<u64>) -> u64 {
    tokens.unwrap_or(NEVER).saturating_add(1)
}

/// Returns the smallest byte that leads closer to the end, or else a special token.
fn first_step((place, stacks, shortest): Measured<'_>, config: ConfigId) -> Option<(SpelledStep, ConfigId)> {
    let length = shortest.of(stacks, config);
    let closer = |next: &ConfigId| shortest.of(stacks, *next) < length;
    let mut bytes = readable(stacks, shortest, config);
    let bytes = std::iter::from_fn(|| bytes.pop());
    let bytes = bytes.filter(|&byte| place.vocabulary().token_of_byte(byte).is_some());
    let mut ways = bytes.filter_map(|byte| Some((byte, stacks.step(config, byte)?)));
    if let Some((byte, next)) = ways.find(|(_, next)| closer(next)) {
        return Some((SpelledStep::Byte(byte), next));
    }
    let specials = 0..place.specials.len() as u32;
    let mut ways = specials.filter_map(|special| stacks.step_special(config, special));
    ways.find(|next| closer(next))
        .map(|next| (SpelledStep::Special, next))
}

/// Returns a superset of the bytes that may be read next on a shortest path.
fn readable(stacks: &Stacks, shortest: &Distances, config: ConfigId) -> ByteSet {
    let heads = Lookahead::strict(stacks);
    let readers = &stacks.closure(config).readers;
    let lengths = readers.iter().map(|&reader| shortest.of_reader(stacks, reader));
    let least = lengths.clone().min().unwrap_or(NEVER);
    let (mut bytes, mut sure) = (ByteSet::default(), ByteSet::default());
    for (&(frame, callers), length) in readers.iter().zip(lengths) {
        if length == least {
            heads.add_bytes(&heads.reader(frame, callers, 0), &mut bytes, &mut sure);
        }
    }
    bytes
}
