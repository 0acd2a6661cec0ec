//! Builds the table of a regular language: the product of its parts, spelled in bytes.
//!
//! Most strings of a schema are bounded by a minimum and a maximum length. Languages that differ only in
//! their bounds share one table, the ids of its states, and the distances to the nearest end.
//!
//! ```text
//!   Units(char, 1..=100) ─┐
//!   Units(char, ..=20)   ─┴─► Units(char) ─► one table        + a Counter for each
//! ```
//!
use std::sync::Arc;

use super::cache::Automata;
use super::error::TerminalError;
use super::product::{ByteGraph, Operands};
use super::table::Table;
use crate::grammar::{Longest, Part, Regular};
use crate::limits::Limits;

/// The smallest and the largest number of units.
pub(super) type Bounds = (u64, Option<u64>);

/// Builds the table of a language, and returns its count bounds if it has any.
pub(super) fn build(
    regular: &Regular,
    automata: &Automata,
    limits: &Limits,
) -> Result<(Table, Option<Bounds>), TerminalError> {
    let Some(bounds) = bounds(regular) else {
        let words = table(regular, automata, limits)?;
        let Some(Longest { longer, gaps }) = &regular.longest else {
            return Ok((words, None));
        };
        let longer = Regular::of(vec![Part::Match(longer.clone())]);
        let longer = automata.spelled(&longer, || table(&longer, automata, limits))?;
        return Ok((words.ending_longest(&longer, gaps, limits)?, None));
    };
    let unbounded = unbounded(regular);
    let build = || table(&unbounded, automata, limits);
    Ok((automata.spelled(&unbounded, build)?, Some(bounds)))
}

fn table(regular: &Regular, automata: &Automata, limits: &Limits) -> Result<Table, TerminalError> {
    let operands = Operands::new(regular, automata, limits)?;
    let ByteGraph {
        graph,
        classes,
        prefix_code,
    } = operands.spelled(limits)?;
    Ok(Table {
        units: operands.counts().then(|| Arc::new(graph.units())),
        classes,
        stride: graph.stride,
        next: graph.next,
        accepting: graph.accepting,
        prefix_code,
        named: Arc::default(),
        blocked: None,
    })
}

/// Returns the intersection of the ranges of all counts of a language; `None` if nothing is counted.
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
    Regular::of(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Expression;
    use crate::language::{Cursor, Terminal};

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
        Regular::of(pattern.into_iter().chain(units).collect())
    }

    /// Returns all texts of up to five letters, and whether they are words.
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
                    let (table, _) = build(&regular, &automata, &limits).expect("it has words");
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
