//! The table of a terminal without the bounds of its counts.
//!
//! Most strings of a schema are "between so and so many characters". Languages that differ in their bounds alone have one
//! table, the same names of its states, and the same judgement of what is nearest to an end.
//!
//! ```text
//!   Units(char, 1..=100) ─┐
//!   Units(char, ..=20)   ─┴─► Units(char) ─► one table        + a Counter for each
//! ```

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::automaton::Automata;
use super::counter::UnitGraph;
use super::digest::Digest;
use super::product::{Operands, Table};
use super::terminal::TerminalError;
use crate::grammar::{Part, Regular};
use crate::limits::Limits;

/// A table over classes of bytes. Whoever has it has a copy, because steps are looked up in it all the time; what takes long to
/// find is shared.
#[derive(Clone, Debug)]
pub(super) struct Spelled {
    pub(super) classes: Box<[u8; 256]>,
    pub(super) stride: usize,
    /// `target * 2 + (1 if a unit ends)`, or `DEAD`.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
    /// Whether a complete word never goes on, bounds left aside.
    pub(super) prefix_code: bool,
    /// The same as a graph, where units are counted.
    pub(super) units: Option<Arc<UnitGraph>>,
    pub(super) named: Arc<Named>,
}

/// The names of the states, found when they are first asked for.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Where units do not matter, and where they do.
    pub(super) names: [OnceLock<Box<[Digest]>>; 2],
    /// A state of each name, where units matter.
    pub(super) states: OnceLock<FxHashMap<Digest, u32>>,
}

impl Spelled {
    /// The table of a language, and the bounds of its counts where it has any.
    pub(super) fn of(
        regular: &Regular,
        automata: &Automata,
        limits: &Limits,
    ) -> Result<(Spelled, Option<Bounds>), TerminalError> {
        let Some(bounds) = bounds(regular) else {
            return Ok((Spelled::new(regular, automata, limits)?, None));
        };
        let unbounded = unbounded(regular);
        let build = || Spelled::new(&unbounded, automata, limits);
        Ok((automata.spelled(&unbounded, build)?, Some(bounds)))
    }

    fn new(regular: &Regular, automata: &Automata, limits: &Limits) -> Result<Spelled, TerminalError> {
        let operands = Operands::new(regular, automata, limits)?;
        let Table {
            graph,
            classes,
            prefix_code,
        } = operands.spelled(limits)?;
        Ok(Spelled {
            units: operands.counts().then(|| Arc::new(graph.units())),
            classes,
            stride: graph.stride,
            next: graph.next,
            accepting: graph.accepting,
            prefix_code,
            named: Arc::default(),
        })
    }

    /// The memory that the table takes.
    pub(super) fn bytes(&self) -> usize {
        512 + self.next.len() * 4 + self.accepting.len() * 2
    }
}

/// The least and the greatest number of units.
pub(super) type Bounds = (u64, Option<u64>);

/// The common range of all counts of a language; `None` where nothing is counted.
fn bounds(regular: &Regular) -> Option<Bounds> {
    let counts = regular.parts.iter().filter_map(|part| match part {
        Part::Units { min, max, .. } => Some((*min, *max)),
        _ => None,
    });
    counts.reduce(|(min, max), (from, to)| (min.max(from), max.into_iter().chain(to).min()))
}

fn unbounded(regular: &Regular) -> Regular {
    let parts = regular.parts.iter().map(|part| match part {
        Part::Units { unit, .. } => Part::Units {
            unit: unit.clone(),
            min: 0,
            max: None,
        },
        part => part.clone(),
    });
    Regular {
        parts: parts.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Expression;
    use crate::machine::terminal::{Cursor, Terminal};

    fn hir(pattern: &str) -> Expression {
        let parsed = regex_syntax::parse(pattern);
        parsed.expect("the test's pattern is well formed").into()
    }

    fn counted(pattern: Option<&str>, counts: &[Bounds]) -> Regular {
        let units = counts.iter().map(|&(min, max)| {
            let unit = hir("[ab]|é");
            Part::Units { unit, min, max }
        });
        let pattern = pattern.map(|pattern| Part::Match(hir(pattern)));
        Regular {
            parts: pattern.into_iter().chain(units).collect(),
        }
    }

    /// All texts of up to five letters, and whether they are words.
    fn words(terminal: &Terminal) -> Vec<(String, bool)> {
        let mut words = Vec::new();
        let mut open = vec![(String::new(), Some(terminal.start()))];
        while let Some((text, cursor)) = open.pop() {
            let is_word = cursor.is_some_and(|cursor| terminal.is_accepting(cursor));
            if text.chars().count() < 5 {
                for letter in ["a", "b", "é", "c"] {
                    let step = |cursor: Option<Cursor>, byte| cursor.and_then(|it| terminal.next(it, byte));
                    open.push((format!("{text}{letter}"), letter.bytes().fold(cursor, step)));
                }
            }
            words.push((text, is_word));
        }
        words
    }

    #[test]
    fn languages_with_other_bounds_share_a_table_and_stay_what_they_are() {
        let limits = Limits::default();
        for pattern in [None, Some("(?:aé)*b?.*"), Some("a*|é{3}")] {
            let automata = Automata::default();
            let mut tables = Vec::new();
            for counts in [
                &[(0, Some(2))][..],
                &[(3, None)],
                &[(2, Some(3))],
                &[(1, Some(4)), (3, None)],
                &[(0, None)],
            ] {
                let regular = counted(pattern, counts);
                let shared = Terminal::with(&regular, &automata, &limits).expect("it has words");
                let alone = Terminal::new(&regular, &limits).expect("it has words");
                assert_eq!(words(&shared), words(&alone), "{pattern:?} {counts:?}");
                if counts.len() == 1 {
                    let (table, _) = Spelled::of(&regular, &automata, &limits).expect("it has words");
                    tables.push(table.named);
                }
            }
            assert!(
                tables.iter().all(|table| Arc::ptr_eq(table, &tables[0])),
                "{pattern:?}"
            );
        }
    }

    #[test]
    fn bounds_without_a_common_number_leave_no_word() {
        let (automata, limits) = (Automata::default(), Limits::default());
        let some = Terminal::with(&counted(None, &[(0, Some(3))]), &automata, &limits);
        assert!(some.is_ok());
        let none = Terminal::with(&counted(None, &[(0, Some(3)), (4, None)]), &automata, &limits);
        assert_eq!(none.err(), Some(TerminalError::Empty));
        let none = Terminal::with(&counted(Some("aa|aaa"), &[(4, None)]), &automata, &limits);
        assert_eq!(none.err(), Some(TerminalError::Empty));
    }
}
