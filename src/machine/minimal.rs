//! Which states of an automaton have the same language.
//!
//! Determinisation leaves states that differ in nothing but their history: behind `é` a search stands in another state
//! than behind `e`, although the same may follow. Partition refinement (Moore 1956) finds them: states begin in two
//! classes, accepting and not, and a class is split as long as some byte leads its states to different classes.
//!
//! Rows are compared by hashes, and the partition that comes out is checked row by row once, so that a collision can
//! cost the result but not make it wrong.

use std::hash::{BuildHasher, Hash, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::digest::Table;

/// More steps than this are not taken: the states of large automata stay as they are.
const MOST_STEPS: usize = 1 << 19;

/// The class of each state, numbered from zero; states of a class have the same language. `None` if it would take
/// too long. O(states · columns) for each round, and as many rounds as it takes to tell two states apart.
pub(super) fn classes(automaton: &Table<'_>) -> Option<Vec<u32>> {
    let states = automaton.accepting.len();
    let mut classes: Vec<u32> = automaton
        .accepting
        .iter()
        .map(|&accepts| u32::from(accepts))
        .collect();
    let mut count = 0;
    for _ in 0..=MOST_STEPS / automaton.next.len().max(1) {
        let mut known: FxHashMap<u64, u32> = FxHashMap::default();
        let refined: Vec<u32> = (0..states)
            .map(|state| {
                let next = known.len() as u32;
                *known.entry(signature(automaton, &classes, state)).or_insert(next)
            })
            .collect();
        let is_stable = known.len() == count;
        count = known.len();
        classes = refined;
        if is_stable || count == states {
            return is_right(automaton, &classes, count).then_some(classes);
        }
    }
    None
}

/// A hash of the class of a state and of those that its bytes lead to.
fn signature(automaton: &Table<'_>, classes: &[u32], state: usize) -> u64 {
    let mut hasher = FxBuildHasher.build_hasher();
    classes[state].hash(&mut hasher);
    for target in automaton.row(state) {
        target
            .map(|(target, unit)| (classes[target as usize], unit))
            .hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether all states of a class accept alike and go on alike.
fn is_right(automaton: &Table<'_>, classes: &[u32], count: usize) -> bool {
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
    use super::super::product::DEAD;
    use super::*;

    /// An automaton over two columns; `-` is no way on.
    fn classes_of(next: &[[i32; 2]], accepting: &[bool]) -> Vec<u32> {
        let pack = |&target: &i32| u32::try_from(target).map_or(DEAD, |target| target << 1);
        let next: Vec<u32> = next.iter().flatten().map(pack).collect();
        let table = Table {
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
        // Twice the same loop, entered by different bytes.
        let found = classes_of(&[[1, 2], [1, 2], [2, 1]], &[false, true, true]);
        assert_eq!(found[1], found[2]);
        assert_ne!(found[0], found[1]);
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
