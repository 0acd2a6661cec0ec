//! Finds the states of an automaton that have the same language.
//!
//! Determinisation leaves states that differ only in their history: after `é` a search is in another state
//! than after `e`, although the continuations are the same. Partition refinement finds such states: states
//! begin in two classes, accepting and not, and a class is split as long as some byte leads its states to
//! different classes (Moore 1956). A state is examined again only if it leads to one that was split off, and
//! when a class is split, its largest part keeps the number (Hopcroft 1971), so no state changes its class
//! more often than the logarithm of their number.
//!
//! Rows are compared by hashes: the sum, over the columns, of a number for the column times a number for the
//! class that it leads to. When a state moves to another class, the hashes of its predecessors change by a
//! difference, and no row is read again. The final partition is checked once, row by row, so a collision can
//! cost the result but not make it wrong.
//!
//! # Why terminals keep their automata as they are
//!
//! Only the names of states come from the minimal automaton, and they are computed when the first mask needs
//! them. So masks are shared, and a terminal that never needs a mask costs nothing.

use rustc_hash::FxHashMap;

use super::graph::DEAD;

/// The tables of an automaton, as in a terminal.
#[derive(Clone, Copy)]
pub(super) struct Dfa<'a> {
    pub(super) classes: &'a [u8; 256],
    pub(super) stride: usize,
    pub(super) next: &'a [u32],
    pub(super) accepting: &'a [bool],
    /// `true` if the transitions that complete a unit are distinguished from others.
    pub(super) units: bool,
}

/// An automaton with one state for each class of states of another.
pub(super) struct Quotient {
    next: Vec<u32>,
    accepting: Vec<bool>,
}

impl Quotient {
    pub(super) fn table<'a>(&'a self, of: &Dfa<'a>) -> Dfa<'a> {
        Dfa {
            next: &self.next,
            accepting: &self.accepting,
            ..*of
        }
    }
}

impl Dfa<'_> {
    /// Returns the target of each column of a state, and whether a unit ends there, if units are
    /// distinguished.
    fn row(&self, state: usize) -> impl Iterator<Item = Option<(u32, bool)>> + '_ {
        let row = &self.next[state * self.stride..(state + 1) * self.stride];
        row.iter().map(|&packed| match packed {
            DEAD => None,
            packed => Some((packed >> 1, self.units && packed & 1 == 1)),
        })
    }

    pub(super) fn quotient(&self, classes: &[u32]) -> Quotient {
        let mut quotient = Quotient {
            next: Vec::new(),
            accepting: Vec::new(),
        };
        for (state, &class) in classes.iter().enumerate() {
            // Classes are numbered in the order of their first states.
            if class as usize == quotient.accepting.len() {
                quotient.accepting.push(self.accepting[state]);
                let packed = |(target, unit): (u32, bool)| classes[target as usize] << 1 | u32::from(unit);
                quotient
                    .next
                    .extend(self.row(state).map(|target| target.map_or(DEAD, packed)));
            }
        }
        quotient
    }
}

/// The maximum number of columns that are examined. Beyond it, no classes are computed.
const MOST_STEPS: usize = 1 << 19;

/// The minimum number of passes over all states that a refinement takes.
const FEWEST_ROUNDS: usize = 3;

/// Returns the class of each state, numbered from zero in the order of their first states; states of a class
/// have the same language. Returns `None` if that would take too long. O(edges · log states), bounded by
/// [`MOST_STEPS`].
pub(super) fn classes(automaton: &Dfa<'_>) -> Option<Vec<u32>> {
    if automaton.next.len() * 2 * FEWEST_ROUNDS > MOST_STEPS {
        return None;
    }
    let mut partition = Partition::new(automaton);
    let mut steps = MOST_STEPS;
    while !partition.open.is_empty() {
        let looks = partition.open.len() * 2 * (automaton.next.len() / partition.classes.len());
        steps = steps.checked_sub(looks)?;
        let parts = partition.parts();
        partition.split(parts);
    }
    let classes = partition.numbered();
    let count = classes.iter().max().map_or(0, |&last| last as usize + 1);
    is_right(automaton, &classes, count).then_some(classes)
}

struct Partition {
    classes: Vec<u32>,
    members: Vec<Vec<u32>>,
    /// The place of each state among the members of its class.
    places: Vec<u32>,
    before: Predecessors,
    /// The hash of each state's row, ignoring its own class.
    looks: Vec<u64>,
    /// The states to examine, grouped by class.
    open: Vec<u32>,
}

/// The parts that a class is split into: the examined states, grouped by hash, and whether the states that
/// were not examined belong to the first group.
struct ClassParts {
    class: u32,
    looked_at: Vec<Vec<u32>>,
    others_are_first: bool,
}

impl Partition {
    fn new(automaton: &Dfa<'_>) -> Partition {
        let mut members = vec![Vec::new(); 2];
        let mut places = Vec::with_capacity(automaton.accepting.len());
        for (state, &accepts) in automaton.accepting.iter().enumerate() {
            let class = &mut members[usize::from(accepts)];
            places.push(class.len() as u32);
            class.push(state as u32);
        }
        let classes: Vec<u32> = automaton
            .accepting
            .iter()
            .map(|&accepts| u32::from(accepts))
            .collect();
        let before = Predecessors::new(automaton);
        let mut looks = vec![0u64; classes.len()];
        for (state, &class) in (0u32..).zip(&classes) {
            for &(from, columns) in before.of(state) {
                let look = &mut looks[from as usize];
                *look = look.wrapping_add(columns.wrapping_mul(number(class)));
            }
        }
        Partition {
            classes,
            open: members.concat(),
            members,
            places,
            before,
            looks,
        }
    }

    /// Returns the parts of the classes of the open states.
    fn parts(&self) -> Vec<ClassParts> {
        let class = |state: u32| self.classes[state as usize];
        let mut all = Vec::new();
        for open in self.open.chunk_by(|&a, &b| class(a) == class(b)) {
            let mut parts = ClassParts {
                class: class(open[0]),
                looked_at: Vec::new(),
                others_are_first: false,
            };
            let mut known: FxHashMap<u64, usize> = FxHashMap::default();
            let members = &self.members[parts.class as usize];
            if open.len() < members.len() {
                // The states that are not open still look alike, so one of them represents all.
                let other = members.iter().find(|state| open.binary_search(state).is_err());
                known.insert(self.looks[*other.unwrap_or(&open[0]) as usize], 0);
                parts.looked_at.push(Vec::new());
                parts.others_are_first = true;
            }
            for &state in open {
                let next = known.len();
                let place = *known.entry(self.looks[state as usize]).or_insert(next);
                if place == parts.looked_at.len() {
                    parts.looked_at.push(Vec::new());
                }
                parts.looked_at[place].push(state);
            }
            if parts.looked_at.len() > 1 {
                all.push(parts);
            }
        }
        all
    }

    /// Turns all parts of each class except the largest into classes, and opens the predecessors of their
    /// states. O(examined states), plus the predecessors of those that move.
    fn split(&mut self, all: Vec<ClassParts>) {
        self.open.clear();
        for parts in all {
            let parts_of = parts.class;
            for part in self.moving(parts) {
                let class = self.members.len() as u32;
                let change = number(class).wrapping_sub(number(parts_of));
                for (&state, place) in part.iter().zip(0..) {
                    self.classes[state as usize] = class;
                    self.places[state as usize] = place;
                    for &(from, columns) in self.before.of(state) {
                        let look = &mut self.looks[from as usize];
                        *look = look.wrapping_add(columns.wrapping_mul(change));
                        self.open.push(from);
                    }
                }
                self.members.push(part);
            }
        }
        let classes = &self.classes;
        self.open
            .sort_unstable_by_key(|&state| (classes[state as usize], state));
        self.open.dedup();
    }

    /// Removes all parts except the largest from a class. States that were not examined are rarely touched:
    /// they are usually most of the class, and stay.
    fn moving(&mut self, mut parts: ClassParts) -> Vec<Vec<u32>> {
        let looked_at: usize = parts.looked_at.iter().map(Vec::len).sum();
        let others = self.members[parts.class as usize].len() - looked_at;
        let largest = parts.looked_at.iter().map(Vec::len).max().unwrap_or(0);
        if parts.others_are_first && others + parts.looked_at[0].len() >= largest {
            parts.looked_at.swap_remove(0);
            for &state in parts.looked_at.iter().flatten() {
                self.take_out(parts.class, state);
            }
            return parts.looked_at;
        }
        if parts.others_are_first {
            // There are fewer of the other states than were examined.
            for &state in parts.looked_at[1..].iter().flatten() {
                self.take_out(parts.class, state);
            }
            parts.looked_at[0] = std::mem::take(&mut self.members[parts.class as usize]);
        }
        let kept = (0..parts.looked_at.len()).max_by_key(|&part| parts.looked_at[part].len());
        let kept = parts.looked_at.swap_remove(kept.unwrap_or(0));
        for (&state, place) in kept.iter().zip(0..) {
            self.places[state as usize] = place;
        }
        self.members[parts.class as usize] = kept;
        parts.looked_at
    }

    fn take_out(&mut self, class: u32, state: u32) {
        let members = &mut self.members[class as usize];
        let place = self.places[state as usize];
        members.swap_remove(place as usize);
        if let Some(&moved) = members.get(place as usize) {
            self.places[moved as usize] = place;
        }
    }

    /// Returns the classes, numbered in the order of their first states.
    fn numbered(&self) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; self.members.len()];
        let mut count = 0;
        let number = |&class: &u32| {
            let number = &mut numbers[class as usize];
            if *number == u32::MAX {
                *number = count;
                count += 1;
            }
            *number
        };
        self.classes.iter().map(number).collect()
    }
}

/// The predecessors of each state, each with the sum of the numbers of its columns.
struct Predecessors {
    /// The start of each state's predecessors, which extend to the start of the next state's.
    starts: Vec<u32>,
    states: Vec<(u32, u64)>,
}

impl Predecessors {
    fn new(automaton: &Dfa<'_>) -> Predecessors {
        let count = automaton.accepting.len();
        let columns: Vec<u64> = (0..automaton.stride as u32 * 2)
            .map(|column| number(!column))
            .collect();
        let mut edges: Vec<(u32, u32, u64)> = Vec::new();
        // The last edge seen to lead to each state.
        let mut last = vec![usize::MAX; count];
        let mut starts = vec![0; count + 1];
        for state in 0..count as u32 {
            let first = edges.len();
            for (target, columns) in automaton.row(state as usize).zip(columns.chunks_exact(2)) {
                let Some((target, unit)) = target else { continue };
                let column = columns[usize::from(unit)];
                let last = &mut last[target as usize];
                if *last >= first && *last < edges.len() {
                    edges[*last].2 = edges[*last].2.wrapping_add(column);
                    continue;
                }
                *last = edges.len();
                starts[target as usize + 1] += 1;
                edges.push((target, state, column));
            }
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut places = starts.clone();
        let mut states = vec![(0, 0); edges.len()];
        for (target, state, columns) in edges {
            let place = &mut places[target as usize];
            states[*place as usize] = (state, columns);
            *place += 1;
        }
        Predecessors { starts, states }
    }

    fn of(&self, state: u32) -> &[(u32, u64)] {
        let range = self.starts[state as usize]..self.starts[state as usize + 1];
        &self.states[range.start as usize..range.end as usize]
    }
}

/// Returns a pseudo-random number for `of` (SplitMix64).
fn number(of: u32) -> u64 {
    let mut number = (u64::from(of) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// Checks that all states of a class agree on acceptance and on the classes of their targets.
fn is_right(automaton: &Dfa<'_>, classes: &[u32], count: usize) -> bool {
    let mut first = vec![usize::MAX; count];
    let class_of =
        |target: Option<(u32, bool)>| target.map(|(target, unit)| (classes[target as usize], unit));
    (0..classes.len()).all(|state| {
        let model = &mut first[classes[state] as usize];
        if *model == usize::MAX {
            *model = state;
        }
        automaton.accepting[*model] == automaton.accepting[state]
            && automaton
                .row(*model)
                .map(class_of)
                .eq(automaton.row(state).map(class_of))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::graph::DEAD;
    use super::*;

    /// Returns the classes of an automaton over two columns; a negative target means no edge.
    fn classes_of(next: &[[i32; 2]], accepting: &[bool]) -> Vec<u32> {
        let pack = |&target: &i32| u32::try_from(target).map_or(DEAD, |target| target << 1);
        let next: Vec<u32> = next.iter().flatten().map(pack).collect();
        let table = Dfa {
            classes: &[0; 256],
            stride: 2,
            next: &next,
            accepting,
            units: true,
        };
        classes(&table).expect("small automata are refined")
    }

    #[test]
    fn states_with_the_same_language_are_one_class() {
        // Two copies of the same loop, entered by different bytes.
        let found = classes_of(&[[1, 2], [1, 2], [2, 1]], &[false, true, true]);
        assert_eq!(found[1], found[2]);
        assert_ne!(found[0], found[1]);
    }

    /// Each pass splits one state off a class of thousands, which must not cost an examination of all of
    /// them.
    #[test]
    fn a_chain_is_refined_from_its_end() {
        let length = 40_000;
        let next: Vec<[i32; 2]> = (0..length)
            .map(|state| [if state + 1 < length { state + 1 } else { -1 }, -1])
            .collect();
        let mut accepting = vec![false; length as usize];
        accepting[length as usize - 1] = true;
        let found = classes_of(&next, &accepting);
        assert_eq!(found, (0..length as u32).collect::<Vec<_>>());
    }

    /// Refines by comparing rows directly.
    fn slowly(next: &[[i32; 2]], accepting: &[bool]) -> Vec<u32> {
        let mut classes: Vec<u32> = accepting.iter().map(|&accepts| u32::from(accepts)).collect();
        loop {
            let class = |&target: &i32| usize::try_from(target).map(|target| classes[target]).ok();
            let looks = next
                .iter()
                .zip(&classes)
                .map(|(row, &own)| (own, row.each_ref().map(class)));
            let mut known = Vec::new();
            let found: Vec<u32> = looks
                .map(|look| {
                    let place = known.iter().position(|other| *other == look);
                    place.unwrap_or_else(|| {
                        known.push(look);
                        known.len() - 1
                    }) as u32
                })
                .collect();
            if found == classes {
                return classes;
            }
            classes = found;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn classes_are_those_of_rows_compared_as_they_are(
            rows in prop::collection::vec((-1..24i32, -1..24i32, prop::bool::weighted(0.2)), 1..24),
        ) {
            let count = rows.len() as i32;
            let next: Vec<[i32; 2]> = rows.iter().map(|row| [row.0, row.1].map(|to| if to < 0 { to } else { to % count })).collect();
            let accepting: Vec<bool> = rows.iter().map(|row| row.2).collect();
            prop_assert_eq!(classes_of(&next, &accepting), slowly(&next, &accepting));
        }
    }

    #[test]
    fn a_difference_far_ahead_tells_states_apart() {
        let found = classes_of(
            &[[1, 4], [2, -1], [3, -1], [-1, -1], [5, -1], [6, -1], [-1, 3]],
            &[false, false, false, true, false, false, false],
        );
        assert_ne!(found[1], found[4]);
        let mut all = found.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 7);
    }
}
