//! States that go on alike for so many bytes.
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

use super::super::product::DEAD;
use super::Terminal;

/// The lengths for which classes are kept.
const LENGTHS: [usize; 4] = [8, 12, 20, 32];

/// Spreads the bits of a name. Rows of one name that differ are told apart anyway.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Rows may be looked at so many times as there are states.
const MOST_LOOKS: usize = 8;

/// The classes of states that are alike for each of the lengths.
#[derive(Debug)]
pub(crate) struct Alike([Box<[u32]>; LENGTHS.len()]);

impl Alike {
    /// The greatest of the lengths for which two states are alike.
    pub(crate) fn bytes(&self, one: u32, other: u32) -> Option<usize> {
        let are_alike = |classes: &[u32]| classes.get(one as usize) == classes.get(other as usize);
        let lengths = self.0.iter().zip(LENGTHS).rev();
        { lengths }
            .find(|(classes, _)| !classes.is_empty() && are_alike(classes))
            .map(|(_, length)| length)
    }
}

impl Terminal {
    /// Which states are alike, bounds left aside. O(states · classes of bytes), once; for the lengths for which it would take
    /// much longer nothing is found.
    pub(crate) fn alike(&self) -> &Alike {
        self.alike.get_or_init(|| {
            let mut split = Split::new(self);
            let mut round = 0;
            Alike(LENGTHS.map(|length| {
                while round < length && split.looks > 0 {
                    split.go_on();
                    round += 1;
                }
                let is_done = round == length || split.touched.is_empty();
                let classes: &[u32] = if is_done { &split.classes } else { &[] };
                classes.into()
            }))
        })
    }
}

struct Split<'a> {
    terminal: &'a Terminal,
    classes: Vec<u32>,
    /// How many states there are of each class.
    sizes: Vec<u32>,
    /// Where the states that lead to each state begin, and these, one state behind the other.
    before: (Vec<u32>, Vec<u32>),
    /// The states that are looked at next.
    touched: Vec<u32>,
    /// How many may be looked at yet.
    looks: usize,
}

impl<'a> Split<'a> {
    fn new(terminal: &'a Terminal) -> Split<'a> {
        let states = terminal.len();
        let accepting = terminal.accepting.iter().filter(|&&accepting| accepting).count() as u32;
        Split {
            terminal,
            classes: terminal
                .accepting
                .iter()
                .map(|&accepting| accepting.into())
                .collect(),
            sizes: vec![states as u32 - accepting, accepting],
            before: terminal.before(),
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
            let like = like.filter(|&(other, _)| self.behind(state).eq(self.behind(other)));
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

    /// A number that states have in common with the same behind them, and others mostly not.
    fn name(&self, state: u32) -> u64 {
        let mix = |name: u64, class| (name.rotate_left(5) ^ u64::from(class)).wrapping_mul(FACTOR);
        self.behind(state).fold(0, mix)
    }

    /// The class of a state, and of those that bytes lead to.
    fn behind(&self, state: u32) -> impl Iterator<Item = u32> + '_ {
        let class = |&packed: &u32| match packed {
            DEAD => DEAD,
            _ => self.classes[(packed >> 1) as usize],
        };
        let own = self.classes[state as usize];
        std::iter::once(own).chain(self.terminal.row(state).iter().map(class))
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

impl Terminal {
    fn row(&self, state: u32) -> &[u32] {
        &self.next[state as usize * self.stride..][..self.stride]
    }

    /// The states that lead to each state, and where those of each begin; some may be there more than once.
    fn before(&self) -> (Vec<u32>, Vec<u32>) {
        let mut starts = vec![0; self.len() + 1];
        self.for_each_run(|_, to| starts[to as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut ends = starts.clone();
        let mut list = vec![0; starts[self.len()] as usize];
        self.for_each_run(|from, to| {
            let end = &mut ends[to as usize];
            list[*end as usize] = from;
            *end += 1;
        });
        (starts, list)
    }

    /// Calls for each state with those that bytes lead to, once for all neighbouring classes of bytes that lead to the same.
    fn for_each_run(&self, mut call: impl FnMut(u32, u32)) {
        for from in 0..self.len() as u32 {
            let runs = self.row(from).chunk_by(|one, other| one == other);
            for run in runs.filter(|run| run[0] != DEAD) {
                call(from, run[0] >> 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::{Part, Regular};
    use crate::limits::Limits;

    /// The slow way: whether all texts of so many bytes are read alike.
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
            let alike = terminal.alike();
            for one in 0..terminal.len() as u32 {
                for other in one.saturating_sub(8)..one {
                    let slowly = LENGTHS.into_iter().rev().find(|&length| are_alike(&terminal, one, other, length));
                    prop_assert_eq!(alike.bytes(one, other), slowly, "{} and {}", one, other);
                }
            }
        }
    }
}
