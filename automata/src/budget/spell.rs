//! One shortest completion, cut into the fewest tokens.
//!
//! Of the shortest completions that with the smallest bytes is taken. After its first token it goes on as the
//! one of the place reached there, so following it token by token gives what was promised. Inside JSON it is
//! what closes the text: `"}]}` is four bytes and, in most vocabularies, one or two tokens.
//!
//! Near the end of a budget many tokens are judged, and after each a completion is spelled that soon goes on
//! like those before it. So a place remembers the first step of its completion, and into how many tokens it
//! can be cut:
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
use crate::language::{ByteSet, NEVER};
use crate::pushdown::{ConfigId, Distances, Lookahead, Stacks};
use crate::vocab::Trie;
use crate::work::spend;

/// Longer completions are not spelled: they are far from the end in any vocabulary.
const LONGEST_SPELLED: u64 = 1 << 12;

/// A number with its key in the table that finds it, in bytes.
pub(super) const NUMBER_BYTES: usize = 48;

/// One step of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpelledStep {
    Byte(u8),
    Special,
}

/// A machine, which may be a copy of the grammar's, and the distances in it.
pub(super) type Measured<'a> = (Place<'a>, &'a Stacks, &'a Distances);

/// The completions in one machine, as far as they were asked for.
#[derive(Debug)]
pub(super) struct Spelling {
    steps: DashMap<ConfigId, (SpelledStep, ConfigId), FxBuildHasher>,
    tokens: DashMap<ConfigId, u64, FxBuildHasher>,
    /// For a configuration one with the same completion, which many share.
    bare: DashMap<ConfigId, ConfigId, FxBuildHasher>,
    kept: AtomicUsize,
    /// How many numbers are remembered at most, for speed alone.
    most: usize,
}

/// A place on the way to the end.
struct Stop {
    config: ConfigId,
    tokens: Option<u64>,
    /// Where on the way the tokens end that may come here; empty where the number of tokens is known.
    ends: SmallVec<[usize; 8]>,
}

/// A token that was begun on the way.
struct Begun {
    /// Where it begins.
    at: usize,
    /// How far it was read.
    node: Option<usize>,
}

impl Spelling {
    /// Completions of which at most `most` numbers are remembered.
    pub(super) fn new(most: usize) -> Spelling {
        Spelling {
            steps: DashMap::default(),
            tokens: DashMap::default(),
            bare: DashMap::default(),
            kept: AtomicUsize::new(0),
            most,
        }
    }

    /// The memory that is taken, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.kept.load(Ordering::Relaxed) * NUMBER_BYTES
    }

    /// The tokens of the completion that is spelled; [`NEVER`] where it is too long or cannot be written.
    /// O(steps that are not known yet + the longest token along them).
    pub(super) fn tokens(&self, measured: Measured<'_>, config: ConfigId) -> u64 {
        let (_, stacks, shortest) = measured;
        let bare = self.bare(stacks, config);
        debug_assert_eq!(shortest.of(stacks, bare), shortest.of(stacks, config));
        let config = bare;
        if let Some(known) = self.tokens.get(&config) {
            return *known;
        }
        let way = match shortest.of(stacks, config) {
            length if length > LONGEST_SPELLED => None,
            _ => self.way(measured, config),
        };
        let Some(mut way) = way else { return NEVER };
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

    /// The bytes of the completion that is spelled, up to its first special token.
    pub(super) fn bytes_of(&self, measured: Measured<'_>, mut config: ConfigId) -> Vec<u8> {
        let mut bytes = Vec::new();
        config = self.bare(measured.1, config);
        while let Some((SpelledStep::Byte(byte), next)) = self.step(measured, config) {
            bytes.push(byte);
            config = next;
        }
        bytes
    }

    /// The way from a place to the end, or as far as some token leads from a place whose tokens are not
    /// known.
    ///
    /// Tokens are followed byte by byte from each such place, so that the way ends where the last of them
    /// does: after some six bytes where all that comes is known.
    fn way(&self, measured: Measured<'_>, mut config: ConfigId) -> Option<Vec<Stop>> {
        let trie = measured.0.vocabulary().trie();
        let (mut way, mut begun): (Vec<Stop>, Vec<Begun>) = (Vec::new(), Vec::new());
        loop {
            spend(1 + begun.len());
            let at = way.len();
            let is_end = measured.2.of(measured.1, config) == 0;
            let known = self.tokens.get(&config).map(|tokens| *tokens);
            let tokens = if is_end { Some(0) } else { known };
            way.push(Stop::new(config, tokens));
            if is_end || tokens.is_some() && begun.is_empty() {
                return Some(way);
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
                        return Some(way);
                    }
                }
            }
            config = next;
        }
    }

    /// The first step of the completion of a bare configuration, and the bare one that it leads to; `None` at
    /// the end.
    fn step(&self, measured: Measured<'_>, config: ConfigId) -> Option<(SpelledStep, ConfigId)> {
        if let Some(known) = self.steps.get(&config) {
            return Some(*known);
        }
        let (_, stacks, shortest) = measured;
        let (step, next) = first_step(measured, config)?;
        let step = (step, self.bare(stacks, next));
        // Each step leads closer, so that the way ends.
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
    /// Reads the byte of the last place of the way, and notes where it begins if a token ends with it;
    /// whether some token goes on with it.
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

/// The least byte that leads closer to the end, else a special token.
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

/// The bytes that may be read next on a shortest way, and perhaps others.
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
