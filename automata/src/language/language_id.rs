//! Names for the languages of the states of an automaton, equal across automata.
//!
//! Every schema has strings, and every object with open keys has "a string that is none of these names":
//! different automata that share most of their behaviour. A digest identifies the continuations of a state,
//! so that results computed for one state apply to all states with the same continuations, in any terminal of
//! any grammar.
//!
//! ```text
//!   "name" excluded:  ─"─► ○ ─n─► ○ ─a─► ○ ─m─► ○ ─e─► ○      five states of their own
//!                          └───────┴──┬───┴──────┴── any other character
//!                                     ▼
//!                                  ◯ string body              the same digest in every terminal
//! ```
//!
//! States with the same language are found first (`minimise`). Their classes are named bottom-up along the
//! strongly connected components. A state on no cycle is described by its acceptance and its edges to named
//! states. A component with cycles is written out from a root that does not depend on the numbering; its
//! states are named by that text and their place in it. Equal language ids mean equal languages. Equal
//! languages may have different language ids if an automaton is too large to be minimised, which costs
//! sharing and nothing else; if it is larger still, each state has a name of its own.
//!
//! A digest consists of 128 bits from two keyed hashes whose keys are drawn once per process, so no source
//! can cause a collision on purpose.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHasher;

use super::components::components;
use super::graph::DEAD;
use super::minimise::{Dfa, classes};

/// The 128-bit id of the language of a state, equal for equal languages across automata.
pub(crate) type LanguageId = u128;

/// An edge: a range of bytes, first and last, that leads to the same place.
type RangeEdge = (u8, u8, u32);

/// The maximum number of roots with the same look that are tried.
const MOST_ROOTS: usize = 8;

/// An automaton with more states than this that was not minimised would share next to nothing.
const LARGE_AUTOMATON: usize = 4096;

/// Returns the digest of every state. O(states · classes), except for components with many states of the same
/// look, in addition to the cost of finding the states with the same language. Each state of a large
/// automaton gets a name of its own.
pub(super) fn language_ids(automaton: &Dfa<'_>) -> Box<[LanguageId]> {
    match classes(automaton) {
        Some(classes) => {
            let minimal = automaton.quotient(&classes);
            let language_ids = ids_of(&minimal.table(automaton));
            classes
                .iter()
                .map(|&class| language_ids[class as usize])
                .collect()
        }
        None if automaton.accepting.len() > LARGE_AUTOMATON => own_ids(automaton.accepting.len()),
        None => ids_of(automaton),
    }
}

/// Returns names that nothing else has.
fn own_ids(count: usize) -> Box<[LanguageId]> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut text = vec![OWN];
    text.extend(NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    let first = digest(&text);
    (0..count as LanguageId)
        .map(|state| first.wrapping_add(state))
        .collect()
}

fn ids_of(automaton: &Dfa<'_>) -> Box<[LanguageId]> {
    let edges = StateEdges::new(automaton);
    let targets: Vec<u32> = edges.list.iter().map(|&(.., packed)| packed >> 1).collect();
    let targets: Vec<&[u32]> = edges.starts.windows(2).map(|w| &targets[w[0]..w[1]]).collect();
    let component = components(&targets);
    let mut states: Vec<u32> = (0..targets.len() as u32).collect();
    states.sort_by_key(|&state| component[state as usize]);
    let mut naming = Naming {
        automaton,
        edges: &edges,
        component: &component,
        language_ids: vec![0; targets.len()].into(),
        places: vec![NOWHERE; targets.len()],
        text: Vec::new(),
    };
    for states in states.chunk_by(|&a, &b| component[a as usize] == component[b as usize]) {
        let alone = states.len() == 1 && !targets[states[0] as usize].contains(&states[0]);
        if alone {
            naming.name_alone(states[0]);
        } else {
            naming.name_component(states);
        }
    }
    naming.language_ids
}

/// The edges of all states, concatenated.
struct StateEdges {
    /// The start of each state's edges, which extend to the start of the next state's.
    starts: Vec<usize>,
    list: Vec<RangeEdge>,
}

impl StateEdges {
    fn new(automaton: &Dfa<'_>) -> StateEdges {
        let ranges = automaton.ranges();
        let mut edges = StateEdges {
            starts: vec![0],
            list: Vec::new(),
        };
        for state in 0..automaton.accepting.len() {
            automaton.add_edges_of(state, &ranges, &mut edges.list);
            edges.starts.push(edges.list.len());
        }
        edges
    }

    fn of(&self, state: u32) -> &[RangeEdge] {
        &self.list[self.starts[state as usize]..self.starts[state as usize + 1]]
    }
}

impl Dfa<'_> {
    /// Returns the bytes as maximal ranges of one class.
    fn ranges(&self) -> Vec<(u8, u8, u8)> {
        let mut ranges: Vec<(u8, u8, u8)> = Vec::new();
        for byte in 0..=255u8 {
            let class = self.classes[byte as usize];
            match ranges.last_mut() {
                Some(last) if last.2 == class => last.1 = byte,
                _ => ranges.push((byte, byte, class)),
            }
        }
        ranges
    }

    fn add_edges_of(&self, state: usize, ranges: &[(u8, u8, u8)], edges: &mut Vec<RangeEdge>) {
        let row = &self.next[state * self.stride..(state + 1) * self.stride];
        let own = edges.len();
        for &(first, last, class) in ranges {
            let packed = match row[class as usize] {
                DEAD => continue,
                packed if self.units => packed,
                packed => packed & !1,
            };
            match edges[own..].last_mut() {
                Some(edge) if edge.2 == packed && edge.1 + 1 == first => edge.1 = last,
                _ => edges.push((first, last, packed)),
            }
        }
    }
}

struct Naming<'a> {
    automaton: &'a Dfa<'a>,
    edges: &'a StateEdges,
    component: &'a [u32],
    language_ids: Box<[LanguageId]>,
    /// The place of each state in the text that is being written.
    places: Vec<u32>,
    /// A buffer for the text to digest.
    text: Vec<u8>,
}

const NOWHERE: u32 = u32::MAX;

impl Naming<'_> {
    /// Names a state on no cycle, all of whose edges lead to named states.
    fn name_alone(&mut self, state: u32) {
        let mut merged: Vec<(u8, u8, LanguageId, bool)> = Vec::new();
        for &(first, last, packed) in self.edges.of(state) {
            let (target, unit) = (self.language_ids[(packed >> 1) as usize], packed & 1 == 1);
            match merged.last_mut() {
                Some(edge) if edge.2 == target && edge.3 == unit && edge.1 + 1 == first => edge.1 = last,
                _ => merged.push((first, last, target, unit)),
            }
        }
        self.text.clear();
        self.text
            .extend([ALONE, u8::from(self.automaton.accepting[state as usize])]);
        for (first, last, target, unit) in merged {
            self.text.extend([first, last, u8::from(unit)]);
            self.text.extend(target.to_le_bytes());
        }
        self.language_ids[state as usize] = digest(&self.text);
    }

    /// Names states on common cycles: by one text for all, and each state's place in it.
    fn name_component(&mut self, states: &[u32]) {
        let roots = self.roots(states);
        let texts = roots.into_iter().map(|root| self.text(root));
        let Some((text, order)) = texts.min() else { return };
        for (state, place) in order.into_iter().zip(0u32..) {
            self.text.clear();
            self.text.push(CYCLE);
            self.text.extend(text.to_le_bytes());
            self.text.extend(place.to_le_bytes());
            self.language_ids[state as usize] = digest(&self.text);
        }
    }

    /// Returns the states whose look has the smallest hash.
    fn roots(&self, states: &[u32]) -> Vec<u32> {
        let own = self.component[states[0] as usize];
        let mut looks: Vec<(u64, u32)> = states.iter().map(|&s| (self.look(s, own), s)).collect();
        looks.sort_unstable();
        let least = looks[0].0;
        let alike = looks.iter().take_while(|(look, _)| *look == least);
        alike.map(|&(_, state)| state).take(MOST_ROOTS).collect()
    }

    /// Returns a hash of how a state looks, without the numbers in its component. Two states that look alike
    /// by chance cost another text.
    fn look(&self, state: u32, own: u32) -> u64 {
        let mut look = FxHasher::default();
        self.automaton.accepting[state as usize].hash(&mut look);
        for &(first, last, packed) in self.edges.of(state) {
            let target = packed >> 1;
            let outside = self.component[target as usize] != own;
            let seen = if outside {
                self.language_ids[target as usize] as u64
            } else {
                u64::from(target == state)
            };
            let edge = [first, last, (packed & 1) as u8, u8::from(outside)];
            look.write_u32(u32::from_le_bytes(edge));
            look.write_u64(seen);
        }
        look.finish()
    }

    /// Writes out the component breadth-first from a root; returns a digest of the text and the order of its
    /// states.
    fn text(&mut self, root: u32) -> (LanguageId, Vec<u32>) {
        let own = self.component[root as usize];
        let mut order = vec![root];
        self.places[root as usize] = 0;
        self.text.clear();
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            let edges = self.edges.of(state);
            self.text.push(u8::from(self.automaton.accepting[state as usize]));
            self.text.extend((edges.len() as u32).to_le_bytes());
            for &(first, last, packed) in edges {
                let target = packed >> 1;
                let inside = self.component[target as usize] == own;
                self.text
                    .extend([first, last, (packed & 1) as u8, u8::from(inside)]);
                if inside {
                    let place = &mut self.places[target as usize];
                    if *place == NOWHERE {
                        *place = order.len() as u32;
                        order.push(target);
                    }
                    self.text.extend(place.to_le_bytes());
                } else {
                    self.text.extend(self.language_ids[target as usize].to_le_bytes());
                }
            }
            at += 1;
        }
        for &state in &order {
            self.places[state as usize] = NOWHERE;
        }
        (digest(&self.text), order)
    }
}

/// The first byte of the text of a state on no cycle; `CYCLE` is that of a state on one.
const ALONE: u8 = 0;
const CYCLE: u8 = 1;
/// The first byte of the text for names that nothing else has.
const OWN: u8 = 2;

/// Returns two hashes with different secret keys.
fn digest(text: &[u8]) -> LanguageId {
    static KEYS: OnceLock<(RandomState, RandomState)> = OnceLock::new();
    let (one, two) = KEYS.get_or_init(Default::default);
    u128::from(one.hash_one(text)) << 64 | u128::from(two.hash_one(text))
}
