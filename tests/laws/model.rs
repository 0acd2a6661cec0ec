//! Tiny models and languages: every sequence can be listed.

use std::collections::{BTreeMap, BTreeSet};

use lexiform_law::{Allowed, Table, Weight};

use crate::number::{Cases, Exact, ratio, total};

/// Tokens 0 and 1 write; token 2 ends.
pub(crate) const END: u32 = 2;

pub(crate) type Word = Vec<u32>;
pub(crate) type Law = BTreeMap<Word, Exact>;

/// A model over the tokens 0, 1, END and a set of valid words, each with its END.
pub(crate) struct Task {
    rows: BTreeMap<Word, Vec<Exact>>,
    pub(crate) words: BTreeSet<Word>,
}

impl Task {
    /// F1: words of three letters; after a leading 0 the model writes 0 one time in ten.
    pub(crate) fn first() -> Task {
        let mut rows = BTreeMap::new();
        let half = || vec![ratio(1, 2), ratio(1, 2), ratio(0, 1)];
        for prefix in prefixes(3) {
            let row = match (prefix.len(), prefix.first()) {
                (3, _) => vec![ratio(0, 1), ratio(0, 1), ratio(1, 1)],
                (1 | 2, Some(0)) => vec![ratio(1, 10), ratio(9, 10), ratio(0, 1)],
                _ => half(),
            };
            rows.insert(prefix, row);
        }
        let valid = |word: &Word| word[0] == 1 || *word == [0, 0, 0, END];
        let words = prefixes(3).into_iter().filter(|prefix| prefix.len() == 3);
        let words = words.map(|mut prefix| {
            prefix.push(END);
            prefix
        });
        Task {
            rows,
            words: words.filter(valid).collect(),
        }
    }

    /// Words of a letter and END. After the likelier letter the model hardly ever ends, and writes one of
    /// three forbidden letters instead.
    pub(crate) fn few_of_many() -> Task {
        let letters = |shares: [i64; 4]| shares.map(|share| ratio(share, 20)).to_vec();
        let rows = [
            (vec![], letters([12, 8, 0, 0])),
            (vec![0], letters([9, 6, 1, 4])),
            (vec![1], letters([4, 3, 10, 3])),
        ];
        Task {
            rows: rows.into(),
            words: [vec![0, END], vec![1, END]].into(),
        }
    }

    /// A random model that ends by itself after at most `longest` letters, and a random language with at
    /// least two words, if the model has so many.
    pub(crate) fn random(seed: u64, longest: usize) -> Task {
        let mut cases = Cases(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5555);
        let mut rows = BTreeMap::new();
        for prefix in prefixes(longest) {
            let row = match prefix.len() {
                0 => [&cases.row(2)[..], &[ratio(0, 1)]].concat(),
                length if length == longest => vec![ratio(0, 1), ratio(0, 1), ratio(1, 1)],
                _ => cases.row(3),
            };
            rows.insert(prefix, row);
        }
        let mut task = Task {
            rows,
            words: BTreeSet::new(),
        };
        let all: Vec<Word> = task.sequences().into_keys().collect();
        // A model may have a single sequence.
        while task.words.len() < (all.len() * 2 / 5).max(2).min(all.len()) {
            task.words
                .insert(all[cases.below(all.len() as u64) as usize].clone());
        }
        task
    }

    pub(crate) fn row(&self, prefix: &[u32]) -> Table<Exact> {
        Table(self.rows[prefix].clone())
    }

    pub(crate) fn mask(&self, prefix: &[u32]) -> Vec<u32> {
        let next = |word: &&Word| word.len() > prefix.len() && word.starts_with(prefix);
        vec![
            self.words
                .iter()
                .filter(next)
                .fold(0, |bits, word| bits | 1 << word[prefix.len()]),
        ]
    }

    /// P: every sequence of the model with its probability.
    pub(crate) fn sequences(&self) -> Law {
        let mut law = Law::new();
        for prefix in self.rows.keys() {
            let end = self.rows[prefix][END as usize].clone();
            let letters = prefix.iter().enumerate();
            let letters = letters.map(|(at, &token)| self.rows[&prefix[..at]][token as usize].clone());
            let probability = letters.fold(end, |product, letter| product * letter);
            if probability.is_positive() {
                law.insert([prefix, &[END][..]].concat(), probability);
            }
        }
        law
    }

    /// The global law of words of at most `longest` tokens, and its normaliser Z.
    pub(crate) fn global(&self, longest: usize) -> (Law, Exact) {
        let mut law = self.sequences();
        law.retain(|word, _| self.words.contains(word) && word.len() <= longest);
        let mass = total(law.values());
        (normalised(law), mass)
    }

    /// The local law, from its formula.
    pub(crate) fn local(&self) -> Law {
        let law = self
            .sequences()
            .into_iter()
            .filter(|(word, _)| self.words.contains(word));
        law.map(|(word, probability)| {
            let weight = self.weight(&word);
            (word, probability / weight)
        })
        .collect()
    }

    /// W(w) = Π m(u) along a word.
    pub(crate) fn weight(&self, word: &[u32]) -> Exact {
        (0..word.len()).fold(Exact::one(), |product, at| product * self.mass(&word[..at]))
    }

    /// m(u).
    pub(crate) fn mass(&self, prefix: &[u32]) -> Exact {
        let mask = self.mask(prefix);
        let row = self.rows[prefix].iter().enumerate();
        total(
            row.filter(|&(token, _)| Allowed::Words(&mask).contains(token as u32))
                .map(|(_, p)| p),
        )
    }

    /// c(u): the probability that the model completes a prefix to a word of at most `longest` tokens.
    pub(crate) fn completion(&self, prefix: &[u32], longest: usize) -> Exact {
        let below = |word: &Word| word.starts_with(prefix);
        let sequences = self.sequences();
        let all = total(sequences.iter().filter(|(word, _)| below(word)).map(|(_, p)| p));
        let valid = |word: &Word| below(word) && self.words.contains(word) && word.len() <= longest;
        let good = total(sequences.iter().filter(|(word, _)| valid(word)).map(|(_, p)| p));
        if all.is_positive() {
            good / all
        } else {
            Exact::zero()
        }
    }
}

/// The law with its total as one; empty if the total is nothing.
pub(crate) fn normalised(law: Law) -> Law {
    let mass = total(law.values());
    let possible = law.into_iter().filter(|(_, p)| p.is_positive());
    possible.map(|(word, p)| (word, p / mass.clone())).collect()
}

/// Half the sum of absolute differences.
pub(crate) fn variation(one: &Law, other: &Law) -> Exact {
    let words: BTreeSet<&Word> = one.keys().chain(other.keys()).collect();
    let at = |law: &Law, word| law.get(word).cloned().unwrap_or_else(Exact::zero);
    let difference = |word| match (at(one, word), at(other, word)) {
        (a, b) if a > b => a - b,
        (a, b) => b - a,
    };
    total(&words.into_iter().map(difference).collect::<Vec<_>>()) * ratio(1, 2)
}

/// All words over 0 and 1 up to a length, without END.
fn prefixes(longest: usize) -> Vec<Word> {
    let mut all = vec![vec![]];
    let mut from = 0;
    for _ in 0..longest {
        let upto = all.len();
        for index in from..upto {
            for letter in [0, 1] {
                all.push([&all[index][..], &[letter]].concat());
            }
        }
        from = upto;
    }
    all
}

/// Some random models have a single sequence.
#[test]
fn every_seed_gives_a_task() {
    for seed in 0..400 {
        for longest in [2, 3] {
            let task = Task::random(seed, longest);
            assert!(!task.words.is_empty() && task.words.len() <= task.sequences().len());
        }
    }
}
