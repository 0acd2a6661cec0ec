//! Converts a small automaton to an expression.
//!
//! The automaton is minimised first; then its states are eliminated one by one, each time joining the edges
//! into the state with the edges out of it. The order affects the size: the state with the fewest such pairs
//! goes first.

use foldhash::{HashMap, HashMapExt};
use regex_syntax::hir::ClassUnicode;

use super::language::Language;
use super::node::Node;

/// A complete automaton over numbered kinds of characters, with the initial state 0.
pub(crate) struct Dfa {
    /// The next state for each state and kind.
    pub(crate) moves: Vec<Vec<usize>>,
    /// `true` for each state that accepts.
    pub(crate) accepting: Vec<bool>,
}

/// Returns an expression for the language of an automaton over these kinds.
pub(crate) fn expression(dfa: &Dfa, kinds: &[ClassUnicode]) -> Language {
    let dfa = minimal(dfa);
    let mut edges = LanguageEdges::new(&dfa, kinds);
    while let Some(state) = edges.cheapest() {
        edges.eliminate(state);
    }
    edges.result()
}

/// Returns the smallest automaton of the same language, by refining the partition into accepting and other
/// states.
fn minimal(dfa: &Dfa) -> Dfa {
    let mut class: Vec<usize> = dfa
        .accepting
        .iter()
        .map(|&accepting| usize::from(accepting))
        .collect();
    let mut count = 0;
    loop {
        let mut numbers: HashMap<(usize, Vec<usize>), usize> = HashMap::new();
        let mut finer = Vec::with_capacity(class.len());
        for (state, moves) in dfa.moves.iter().enumerate() {
            let signature = (class[state], moves.iter().map(|&to| class[to]).collect());
            let next = numbers.len();
            finer.push(*numbers.entry(signature).or_insert(next));
        }
        class = finer;
        if numbers.len() == count {
            break;
        }
        count = numbers.len();
    }
    let mut small = Dfa {
        moves: vec![Vec::new(); count],
        accepting: vec![false; count],
    };
    for (state, moves) in dfa.moves.iter().enumerate() {
        // Classes are numbered in the order of their first states, so the start stays state 0.
        small.moves[class[state]] = moves.iter().map(|&to| class[to]).collect();
        small.accepting[class[state]] = dfa.accepting[state];
    }
    small
}

/// Edges labelled with languages, between the remaining states; the last two states are an added start and
/// end.
struct LanguageEdges {
    labels: Vec<HashMap<usize, Language>>,
    left: Vec<usize>,
    start: usize,
    end: usize,
}

impl LanguageEdges {
    fn new(dfa: &Dfa, kinds: &[ClassUnicode]) -> Self {
        let count = dfa.moves.len();
        let (start, end) = (count, count + 1);
        let mut labels = vec![HashMap::new(); count + 2];
        for (state, moves) in dfa.moves.iter().enumerate() {
            let mut sets: HashMap<usize, ClassUnicode> = HashMap::new();
            for (kind, &to) in moves.iter().enumerate() {
                sets.entry(to)
                    .or_insert_with(ClassUnicode::empty)
                    .union(&kinds[kind]);
            }
            labels[state] = sets
                .into_iter()
                .map(|(to, set)| (to, Language::of(&Node::Set(set))))
                .collect();
            if dfa.accepting[state] {
                labels[state].insert(end, Language::empty());
            }
        }
        labels[start].insert(0, Language::empty());
        let mut edges = LanguageEdges {
            labels,
            left: (0..count).collect(),
            start,
            end,
        };
        edges.drop_dead();
        edges
    }

    /// Removes the states from which the end is unreachable.
    fn drop_dead(&mut self) {
        let mut alive = vec![false; self.labels.len()];
        alive[self.end] = true;
        let mut grew = true;
        while grew {
            grew = false;
            for state in 0..self.labels.len() {
                if !alive[state] && self.labels[state].keys().any(|&to| alive[to]) {
                    alive[state] = true;
                    grew = true;
                }
            }
        }
        self.labels
            .iter_mut()
            .for_each(|row| row.retain(|&to, _| alive[to]));
        self.left.retain(|&state| alive[state]);
    }

    /// Returns the remaining state whose removal copies the least.
    fn cheapest(&self) -> Option<usize> {
        let cost = |state: usize| {
            let into = self
                .labels
                .iter()
                .enumerate()
                .filter(|&(from, row)| from != state && row.contains_key(&state));
            let into: Vec<u64> = into.map(|(_, row)| row[&state].size()).collect();
            let on: Vec<u64> = self.labels[state]
                .iter()
                .filter(|&(&to, _)| to != state)
                .map(|(_, label)| label.size())
                .collect();
            let sum = |sizes: &[u64]| sizes.iter().fold(0, |sum: u64, &size| sum.saturating_add(size));
            let around = self.labels[state].get(&state).map_or(0, Language::size);
            let pairs = (into.len() * on.len()) as u64;
            let copies = sum(&into)
                .saturating_mul(on.len() as u64)
                .saturating_add(sum(&on).saturating_mul(into.len() as u64));
            copies.saturating_add(around.saturating_mul(pairs))
        };
        self.left.iter().copied().min_by_key(|&state| cost(state))
    }

    fn eliminate(&mut self, state: usize) {
        self.left.retain(|&other| other != state);
        let mut on = std::mem::take(&mut self.labels[state]);
        let around = on.remove(&state).map(|label| label.star());
        let mut on: Vec<(usize, Language)> = on.into_iter().collect();
        on.sort_unstable_by_key(|&(to, _)| to);
        for from in self.left.iter().copied().chain([self.start]) {
            let Some(into) = self.labels[from].remove(&state) else {
                continue;
            };
            let through = match &around {
                Some(around) => Language::concat(&into, around),
                None => into,
            };
            for (to, label) in &on {
                let path = Language::concat(&through, label);
                let known = self.labels[from].remove(to);
                self.labels[from].insert(*to, Language::union(known.into_iter().chain([path])));
            }
        }
    }

    fn result(mut self) -> Language {
        self.labels[self.start]
            .remove(&self.end)
            .unwrap_or_else(|| Language::union([]))
    }
}
