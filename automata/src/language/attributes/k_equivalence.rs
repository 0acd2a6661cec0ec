//! The number of bytes for which two states go on alike (k-equivalence).
//!
//! In a text of at most fifty words every word begins in a state of its own, because the end is nearer. And yet no token
//! can tell the first of them from the tenth: forty words are longer than any.
//!
//! ```text
//!   (\S+\s+){0,49}\S+       1st word ── alike for 32 bytes ── 10th word
//!                          48th word ── alike for  3 bytes ── 47th word
//! ```
//!
//! States are alike for no byte if words end in both or in neither, and for one more byte than those that each byte leads
//! to are. So classes are split round by round; in a round only states are looked at from which a byte leads to one whose
//! class is new. This is Moore's way to a minimal automaton, stopped early.

use rustc_hash::FxHashMap;

use crate::language::graph::DEAD;

/// The lengths for which classes are kept.
const LENGTHS: [usize; 4] = [8, 12, 20, 32];

/// Spreads the bits of a name. States of one name that differ are told apart anyway.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// States may be looked at as many times as there are states.
const MOST_LOOKS: usize = 8;

/// The classes of states that are alike for each of the lengths.
#[derive(Debug)]
pub(crate) struct KEquivalence([Box<[u32]>; LENGTHS.len()]);

impl KEquivalence {
    /// Which states of a table are alike. O(states · classes of bytes); for the lengths for which it would take much longer
    /// nothing is found.
    pub(crate) fn new(next: &[u32], stride: usize, accepting: &[bool]) -> KEquivalence {
        let mut split = Split::new(next, stride, accepting);
        let mut round = 0;
        KEquivalence(LENGTHS.map(|length| {
            while round < length && split.looks > 0 {
                split.go_on();
                round += 1;
            }
            let is_done = round == length || split.touched.is_empty();
            let classes: &[u32] = if is_done { &split.classes } else { &[] };
            classes.into()
        }))
    }

    /// The greatest of the lengths for which two states are alike.
    pub(crate) fn bytes(&self, one: u32, other: u32) -> Option<usize> {
        let are_alike = |classes: &[u32]| classes.get(one as usize) == classes.get(other as usize);
        let lengths = self.0.iter().zip(LENGTHS).rev();
        { lengths }
            .find(|(classes, _)| !classes.is_empty() && are_alike(classes))
            .map(|(_, length)| length)
    }
}

/// What bytes lead to from a state: neighbouring classes of bytes that lead to the same are one run, which ends before
/// this class of bytes.
type Run = (u32, u32);

struct Split {
    /// The runs of each state, one state after the other, and where those of each begin.
    runs: (Vec<Run>, Vec<u32>),
    classes: Vec<u32>,
    /// How many states there are of each class.
    sizes: Vec<u32>,
    /// Where the states that lead to each state begin, and these, one state after the other.
    before: (Vec<u32>, Vec<u32>),
    /// The states that are looked at next.
    touched: Vec<u32>,
    /// How many may be looked at yet.
    looks: usize,
}

impl Split {
    fn new(next: &[u32], stride: usize, accepting: &[bool]) -> Split {
        let states = accepting.len();
        let runs = runs(next, stride);
        let before = before(&runs);
        let ends = accepting.iter().filter(|&&accepting| accepting).count() as u32;
        Split {
            runs,
            classes: accepting.iter().map(|&accepting| accepting.into()).collect(),
            sizes: vec![states as u32 - ends, ends],
            before,
            touched: (0..states as u32).collect(),
            looks: states * MOST_LOOKS,
        }
    }

    /// One round: the classes of the states that are alike for one more byte.
    fn go_on(&mut self) {
        self.looks = self.looks.saturating_sub(self.touched.len().max(1));
        let changed = self.changed();
        for &(state, class) in &changed {
            let before = std::mem::replace(&mut self.classes[state as usize], class);
            self.sizes[before as usize] -= 1;
            self.sizes[class as usize] += 1;
        }
        self.touch_before(&changed);
    }

    /// The states that are looked at whose class becomes another one.
    fn changed(&mut self) -> Vec<(u32, u32)> {
        // How many of each class stay what they are: those that are not looked at, or else those that are like the first.
        let mut stay = self.sizes.clone();
        for &state in &self.touched {
            stay[self.classes[state as usize] as usize] -= 1;
        }
        let mut known: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
        let mut changed = Vec::new();
        for &state in &self.touched {
            let class = self.classes[state as usize];
            let name = self.name(state);
            let like = known.get(&name).copied();
            let like = like.filter(|&(other, _)| self.go_on_alike(state, other));
            let new = like.map_or_else(
                || match std::mem::replace(&mut stay[class as usize], 1) {
                    0 => class,
                    _ => {
                        self.sizes.push(0);
                        self.sizes.len() as u32 - 1
                    }
                },
                |(_, class)| class,
            );
            known.insert(name, (state, new));
            if new != class {
                changed.push((state, new));
            }
        }
        changed
    }

    /// A number that states have in common with the same after them, and others mostly not: a sum over the classes of
    /// bytes, in which a run counts as all of its classes.
    fn name(&self, state: u32) -> u64 {
        let mut begin = 0;
        let own = u64::from(self.classes[state as usize]).wrapping_mul(FACTOR);
        self.runs_of(state).iter().fold(own, |name, &(end, packed)| {
            let weight = weight(end).wrapping_sub(weight(begin));
            begin = end;
            let class = u64::from(self.class(packed)).wrapping_add(1).wrapping_mul(FACTOR);
            name.wrapping_add((class ^ class >> 29).wrapping_mul(weight))
        })
    }

    /// Whether two states are of one class, and those that each byte leads to.
    fn go_on_alike(&self, one: u32, other: u32) -> bool {
        let (mut ones, mut others) = (self.runs_of(one), self.runs_of(other));
        let mut are_alike = self.classes[one as usize] == self.classes[other as usize];
        while let ([(end, to), ..], [(other_end, other_to), ..]) = (ones, others) {
            if !are_alike {
                break;
            }
            are_alike = self.class(*to) == self.class(*other_to);
            let (is_over, other_is_over) = (end <= other_end, other_end <= end);
            ones = &ones[usize::from(is_over)..];
            others = &others[usize::from(other_is_over)..];
        }
        are_alike
    }

    fn runs_of(&self, state: u32) -> &[Run] {
        let (runs, starts) = &self.runs;
        &runs[starts[state as usize] as usize..starts[state as usize + 1] as usize]
    }

    /// The class of what a byte leads to.
    fn class(&self, packed: u32) -> u32 {
        match packed {
            DEAD => DEAD,
            _ => self.classes[(packed >> 1) as usize],
        }
    }

    fn touch_before(&mut self, changed: &[(u32, u32)]) {
        let (starts, list) = &self.before;
        let before = |state: u32| &list[starts[state as usize] as usize..starts[state as usize + 1] as usize];
        self.touched = changed
            .iter()
            .flat_map(|&(state, _)| before(state))
            .copied()
            .collect();
        self.touched.sort_unstable();
        self.touched.dedup();
    }
}

/// What the classes of bytes before this one weigh together in a name.
fn weight(class: u32) -> u64 {
    let mixed = u64::from(class).wrapping_mul(FACTOR);
    (mixed ^ mixed >> 32).wrapping_mul(FACTOR)
}

/// The runs of each state, and where those of each begin.
fn runs(next: &[u32], stride: usize) -> (Vec<Run>, Vec<u32>) {
    let (mut runs, mut starts) = (Vec::new(), vec![0]);
    for row in next.chunks_exact(stride) {
        let mut end = 0;
        for run in row.chunk_by(|one, other| one == other) {
            end += run.len() as u32;
            runs.push((end, run[0]));
        }
        starts.push(runs.len() as u32);
    }
    (runs, starts)
}

/// Where the states that lead to each state begin, and these; some may be there more than once.
fn before((runs, begins): &(Vec<Run>, Vec<u32>)) -> (Vec<u32>, Vec<u32>) {
    let states = begins.len() - 1;
    let mut starts = vec![0; states + 1];
    let alive = |&&(_, packed): &&Run| packed != DEAD;
    for &(_, packed) in runs.iter().filter(alive) {
        starts[(packed >> 1) as usize + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut ends = starts.clone();
    let mut list = vec![0; starts[states] as usize];
    for (from, of) in begins.windows(2).enumerate() {
        for &(_, packed) in runs[of[0] as usize..of[1] as usize].iter().filter(alive) {
            let end = &mut ends[(packed >> 1) as usize];
            list[*end as usize] = from as u32;
            *end += 1;
        }
    }
    (starts, list)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::{Part, Regular};
    use crate::language::Terminal;
    use crate::limits::Limits;

    /// The slow way: whether all texts of this number of bytes are read alike.
    fn are_alike(terminal: &Terminal, one: u32, other: u32, bytes: usize) -> bool {
        let mut pairs = vec![(one, other)];
        for left in (0..=bytes).rev() {
            let ends = |state| terminal.is_accepting_state(state);
            if pairs.iter().any(|&(one, other)| ends(one) != ends(other)) {
                return false;
            }
            let mut next = Vec::new();
            for (one, other) in pairs.into_iter().filter(|_| left > 0) {
                for byte in 0..=255 {
                    match (terminal.next_state(one, byte), terminal.next_state(other, byte)) {
                        (Some(one), Some(other)) => next.push((one, other)),
                        (None, None) => {}
                        _ => return false,
                    }
                }
            }
            next.sort_unstable();
            next.dedup();
            pairs = next;
        }
        true
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

        #[test]
        fn states_are_alike_for_just_as_long_as_is_said(
            most in 1..24usize,
            unit in prop::sample::select(vec!["a", "[ab]+ ", "a|bc", "é", "(a|b)c?"]),
            end in prop::sample::select(vec!["", "x", "a*", "(abc){0,9}"]),
        ) {
            let hir = regex_syntax::parse(&format!("({unit}){{0,{most}}}{end}")).expect("it is well formed");
            let regular = Regular { parts: vec![Part::Match(hir.into())] };
            let terminal = Terminal::new(&regular, &Limits::default()).expect("it compiles");
            let alike = terminal.k_equivalence();
            for one in 0..terminal.len() as u32 {
                for other in one.saturating_sub(8)..one {
                    let slowly = LENGTHS.into_iter().rev().find(|&length| are_alike(&terminal, one, other, length));
                    prop_assert_eq!(alike.bytes(one, other), slowly, "{} and {}", one, other);
                }
            }
        }
    }
}
