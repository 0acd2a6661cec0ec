//! Context-free languages judged by two tables that follow from the definition of a derivation.
//!
//! ```text
//!   derives[A] ∋ (i, j)   A derives exactly text[i..j]
//!   reaches[A] ∋ i        A derives some text that begins with text[i..]
//! ```
//!
//! Both are least fixed points over the productions: no parser, no elimination of left recursion, no bound on
//! completions. Slow and obvious, for texts of a few bytes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::judge::{Judge, Verdict, texts};
use super::vocabulary::{NAMED, NAMED_MARK};

/// The right side of a rule, as grammars are written.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    Text(&'static str),
    /// A class of characters as it is written, with those of its characters that the vocabularies of the
    /// tests have.
    Class(&'static str, &'static str),
    /// The special token that a vocabulary of the tests names.
    Named,
    Rule(usize),
    Seq(Vec<Term>),
    Alt(Vec<Term>),
    Optional(Box<Term>),
    Star(Box<Term>),
    Plus(Box<Term>),
}

/// A grammar; the first rule is the start.
#[derive(Clone, Debug)]
pub(crate) struct Rules(pub(crate) Vec<Term>);

#[derive(Clone, Copy, Debug)]
enum Symbol {
    Text(&'static str),
    Rule(usize),
}

/// Plain productions: for each nonterminal its alternatives.
#[derive(Debug)]
pub(crate) struct Productions {
    alternatives: Vec<Vec<Vec<Symbol>>>,
    productive: Vec<bool>,
}

impl Rules {
    /// The grammar as EBNF text.
    pub(crate) fn source(&self) -> String {
        let line = |(rule, term): (usize, &Term)| format!("r{rule} ::= {}\n", source(term));
        self.0.iter().enumerate().map(line).collect()
    }

    pub(crate) fn productions(&self) -> Productions {
        let mut alternatives = vec![Vec::new(); self.0.len()];
        for (rule, term) in self.0.iter().enumerate() {
            let symbol = plain(term, &mut alternatives);
            alternatives[rule].push(vec![symbol]);
        }
        let mut productions = Productions {
            productive: vec![false; alternatives.len()],
            alternatives,
        };
        while productions.find_productive() {}
        productions
    }
}

fn source(term: &Term) -> String {
    let joined = |parts: &[Term], by: &str| parts.iter().map(source).collect::<Vec<_>>().join(by);
    match term {
        Term::Text(text) => format!("\"{text}\""),
        Term::Class(class, _) => (*class).to_owned(),
        Term::Named => NAMED.to_owned(),
        Term::Rule(rule) => format!("r{rule}"),
        Term::Seq(parts) => joined(parts, " "),
        Term::Alt(parts) => format!("({})", joined(parts, " | ")),
        Term::Optional(part) => format!("({})?", source(part)),
        Term::Star(part) => format!("({})*", source(part)),
        Term::Plus(part) => format!("({})+", source(part)),
    }
}

/// Rewrites a term into productions of new nonterminals.
fn plain(term: &Term, all: &mut Vec<Vec<Vec<Symbol>>>) -> Symbol {
    let bodies = match term {
        Term::Text(text) => return Symbol::Text(text),
        Term::Named => return Symbol::Text(NAMED_MARK),
        Term::Rule(rule) => return Symbol::Rule(*rule),
        Term::Class(_, letters) => {
            let letter = |at| vec![Symbol::Text(&letters[at..=at])];
            (0..letters.len()).map(letter).collect()
        }
        Term::Seq(parts) => vec![parts.iter().map(|part| plain(part, all)).collect()],
        Term::Alt(parts) => parts.iter().map(|part| vec![plain(part, all)]).collect(),
        Term::Optional(part) => vec![vec![], vec![plain(part, all)]],
        Term::Star(part) | Term::Plus(part) => {
            let part_symbol = plain(part, all);
            let repeated = Symbol::Rule(all.len());
            all.push(vec![vec![], vec![part_symbol, repeated]]);
            match term {
                Term::Star(_) => return repeated,
                _ => vec![vec![part_symbol, repeated]],
            }
        }
    };
    all.push(bodies);
    Symbol::Rule(all.len() - 1)
}

impl Productions {
    /// Whether the start derives any text at all.
    pub(crate) fn is_productive(&self) -> bool {
        self.productive[0]
    }

    fn symbol_is_productive(&self, symbol: &Symbol) -> bool {
        match symbol {
            Symbol::Text(_) => true,
            Symbol::Rule(rule) => self.productive[*rule],
        }
    }

    fn find_productive(&mut self) -> bool {
        let now: Vec<bool> = self
            .alternatives
            .iter()
            .map(|bodies| {
                bodies
                    .iter()
                    .any(|body| body.iter().all(|symbol| self.symbol_is_productive(symbol)))
            })
            .collect();
        let changed = now != self.productive;
        self.productive = now;
        changed
    }

    fn tables<'t>(&self, text: &'t [u8]) -> Tables<'_, 't> {
        let count = self.alternatives.len();
        let mut tables = Tables {
            grammar: self,
            text,
            derives: vec![BTreeSet::new(); count],
            reaches: vec![BTreeSet::new(); count],
        };
        while tables.grow() {}
        tables
    }
}

struct Tables<'g, 't> {
    grammar: &'g Productions,
    text: &'t [u8],
    derives: Vec<BTreeSet<(usize, usize)>>,
    reaches: Vec<BTreeSet<usize>>,
}

impl Tables<'_, '_> {
    /// Applies every production everywhere once; false when nothing is new.
    fn grow(&mut self) -> bool {
        let mut changed = false;
        for rule in 0..self.grammar.alternatives.len() {
            for start in 0..=self.text.len() {
                for body in &self.grammar.alternatives[rule] {
                    let (ends, reaches) = self.apply(body, start);
                    for end in ends {
                        changed |= self.derives[rule].insert((start, end));
                    }
                    changed |= reaches && self.reaches[rule].insert(start);
                }
            }
        }
        changed
    }

    /// Where a body that starts here may end, and whether it may run past the end of the text.
    fn apply(&self, body: &[Symbol], start: usize) -> (BTreeSet<usize>, bool) {
        let mut ends = BTreeSet::from([start]);
        let mut reaches = false;
        for (at, symbol) in body.iter().enumerate() {
            let rest_is_productive = body[at + 1..]
                .iter()
                .all(|symbol| self.grammar.symbol_is_productive(symbol));
            reaches |= rest_is_productive && ends.iter().any(|&end| self.symbol_reaches(symbol, end));
            ends = ends
                .iter()
                .flat_map(|&end| self.symbol_ends(symbol, end))
                .collect();
        }
        (ends.clone(), reaches || ends.contains(&self.text.len()))
    }

    fn symbol_ends(&self, symbol: &Symbol, start: usize) -> Vec<usize> {
        match symbol {
            Symbol::Text(text) if self.text[start..].starts_with(text.as_bytes()) => vec![start + text.len()],
            Symbol::Text(_) => Vec::new(),
            Symbol::Rule(rule) => self.derives[*rule]
                .iter()
                .filter(|(from, _)| *from == start)
                .map(|(_, end)| *end)
                .collect(),
        }
    }

    fn symbol_reaches(&self, symbol: &Symbol, start: usize) -> bool {
        match symbol {
            Symbol::Text(text) => text.as_bytes().starts_with(&self.text[start..]),
            // Nothing of the text is left: any text of the rule will do.
            Symbol::Rule(rule) if start == self.text.len() => self.grammar.productive[*rule],
            Symbol::Rule(rule) => self.reaches[*rule].contains(&start),
        }
    }
}

impl Judge for Productions {
    fn verdict(&self, text: &[u8]) -> Verdict {
        let tables = self.tables(text);
        let viable = match text.is_empty() {
            true => self.productive[0],
            false => tables.reaches[0].contains(&0),
        };
        Verdict {
            viable,
            accepted: tables.derives[0].contains(&(0, text.len())),
        }
    }
}

/// Random grammars of up to four rules, with all the recursion that comes of itself: left, right, nested,
/// hidden behind what may be empty, ambiguous, and without any end.
pub(crate) fn grammars() -> impl Strategy<Value = Rules> {
    grammars_with(0)
}

/// The same, with regular parts.
pub(crate) fn grammars_with_classes() -> impl Strategy<Value = Rules> {
    grammars_with(3)
}

fn grammars_with(classes: u32) -> impl Strategy<Value = Rules> {
    (1usize..=4).prop_flat_map(move |count| {
        let text = prop::sample::select(vec!["a", "b", "c", "ab", "ba", "", "cc"]);
        // The last is wide: what takes many characters is laid otherwise.
        let class = prop::sample::select(vec![("[ab]", "ab"), ("[b-c]", "bc"), ("[a-z]", "abc")]);
        let leaf = prop_oneof![
            6 => text.prop_map(Term::Text),
            classes => class.prop_map(|(class, letters)| Term::Class(class, letters)),
            4 => (0..count).prop_map(Term::Rule),
            1 => Just(Term::Named),
        ];
        let term = leaf.prop_recursive(3, 10, 3, |inner| {
            prop_oneof![
                4 => prop::collection::vec(inner.clone(), 2..4).prop_map(Term::Seq),
                4 => prop::collection::vec(inner.clone(), 2..4).prop_map(Term::Alt),
                1 => inner.clone().prop_map(|part| Term::Optional(Box::new(part))),
                1 => inner.clone().prop_map(|part| Term::Star(Box::new(part))),
                1 => inner.prop_map(|part| Term::Plus(Box::new(part))),
            ]
        });
        // An alternative that ends keeps most of the grammars productive.
        let text = prop::sample::select(vec!["a", "b", "c", "ab"]);
        let rule = (term, prop::option::weighted(0.7, text)).prop_map(|(term, end)| match end {
            Some(end) => Term::Alt(vec![term, Term::Text(end)]),
            None => term,
        });
        prop::collection::vec(rule, count).prop_map(Rules)
    })
}

/// All texts of a grammar up to a length, by joining texts of its parts: the judge of the judge.
fn enumerated(productions: &Productions, len: usize) -> BTreeSet<String> {
    let mut languages: Vec<BTreeSet<String>> = vec![BTreeSet::new(); productions.alternatives.len()];
    loop {
        let before: usize = languages.iter().map(BTreeSet::len).sum();
        for rule in 0..languages.len() {
            for body in &productions.alternatives[rule] {
                let joined = body
                    .iter()
                    .fold(BTreeSet::from([String::new()]), |starts, symbol| {
                        let text = |text: &str| BTreeSet::from([text.to_owned()]);
                        let ends = match symbol {
                            Symbol::Text(it) => text(it),
                            Symbol::Rule(rule) => languages[*rule].clone(),
                        };
                        let pairs = starts
                            .iter()
                            .flat_map(|start| ends.iter().map(move |end| format!("{start}{end}")));
                        pairs.filter(|text| text.len() <= len).collect()
                    });
                languages[rule].extend(joined);
            }
        }
        if languages.iter().map(BTreeSet::len).sum::<usize>() == before {
            return languages.swap_remove(0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_judge_agrees_with_enumeration(rules in grammars()) {
        let productions = rules.productions();
        let language = enumerated(&productions, 5);
        for text in texts(&["a", "b", "c"], 4) {
            let verdict = productions.verdict(text.as_bytes());
            prop_assert_eq!(verdict.accepted, language.contains(&text), "{:?}", text);
            let completed = language.iter().any(|whole| whole.starts_with(&text));
            prop_assert!(!completed || verdict.viable, "{:?} can go on", text);
        }
    }
}
