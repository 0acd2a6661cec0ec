//! Names for the languages after the states of an automaton, equal across automata.
//!
//! Every schema has strings, and every object with open keys has "a string that is none of these names":
//! different automata that share most of their behaviour. A digest names what can follow a state, so that
//! what was found out about one state is known of all states with the same future, in whatever terminal of
//! whatever grammar.
//!
//! ```text
//!   "name" excluded:  ─"─► ○ ─n─► ○ ─a─► ○ ─m─► ○ ─e─► ○      five states of their own
//!                          └───────┴──┬───┴──────┴── any other character
//!                                     ▼
//!                                  ◯ string body              the same digest in every terminal
//! ```
//!
//! States of the same language are found first (`minimise`). Their classes are named bottom up along the
//! strongly connected components. A state that is on no cycle is its acceptance and its edges to named
//! states. A component with cycles is written down from a root that does not depend on the numbering; its
//! states are named by that text and their place in it. Equal language_ids mean equal languages. Equal
//! languages may have different language_ids where an automaton is too large to be made minimal, which costs
//! sharing and nothing else; where it is larger still, each state has a name of its own.
//!
//! A digest has 128 bits from two keyed hashes whose keys are drawn once per process, so that no source can
//! be made to collide on purpose.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHasher;

use super::components::components;
use super::graph::DEAD;
use super::minimise::{Dfa, classes};

/// The 128-bit name of the language of a state, equal for equal languages across automata.
pub(crate) type LanguageId = u128;

/// An edge: all bytes of a range lead to the same place.
type RangeEdge = (u8, u8, u32);

/// Roots that look alike are all tried, but not more of them than this.
const MOST_ROOTS: usize = 8;

/// An automaton of more states that was not made minimal shares next to nothing.
const LARGE_AUTOMATON: usize = 4096;

/// The digest of every state. O(states · classes) for all but components with many states that look alike,
/// besides what it takes to find the states of the same language. States of large automata are languages of
/// their own.
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

/// Names that nothing else has.
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

/// The edges of all states, one state after the other.
struct StateEdges {
    /// Those of a state are from its start to that of the next.
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
    /// The bytes as maximal ranges of one class.
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
    /// Room for what a digest is taken of.
    text: Vec<u8>,
}

const NOWHERE: u32 = u32::MAX;

impl Naming<'_> {
    /// A state on no cycle: all its edges lead to states that have their names.
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

    /// States on common cycles: one text for all, and each state's place in it.
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

    /// The states whose neighbourhood has the least hash.
    fn roots(&self, states: &[u32]) -> Vec<u32> {
        let own = self.component[states[0] as usize];
        let mut looks: Vec<(u64, u32)> = states.iter().map(|&s| (self.look(s, own), s)).collect();
        looks.sort_unstable();
        let least = looks[0].0;
        let alike = looks.iter().take_while(|(look, _)| *look == least);
        alike.map(|&(_, state)| state).take(MOST_ROOTS).collect()
    }

    /// A state as it looks without the numbers of its component. Two that look alike by chance cost another
    /// text.
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

    /// The component written down breadth first from a root, and the order in which its states come.
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

/// What the text of a state begins with.
const ALONE: u8 = 0;
const CYCLE: u8 = 1;
/// What the text of names begins with that stand for nothing else.
const OWN: u8 = 2;

/// Two hashes with different secret keys.
fn digest(text: &[u8]) -> LanguageId {
    static KEYS: OnceLock<(RandomState, RandomState)> = OnceLock::new();
    let (one, two) = KEYS.get_or_init(Default::default);
    u128::from(one.hash_one(text)) << 64 | u128::from(two.hash_one(text))
}
