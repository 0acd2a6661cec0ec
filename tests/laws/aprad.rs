//! Approximately aligned decoding: the values of its paper.

use std::collections::{BTreeMap, BTreeSet};

use lexiform_law::{
    Allowed, Aprad, Chooser, Every, LawError, LawTag, Sampler, Seeded, Step, Table, Walk, Weight, law_of,
};

use crate::model::{END, Law, Task, Word, variation};
use crate::number::{Exact, ratio, total};

/// Returns a model with equal probabilities for all letters.
fn even<W: Weight>(letters: u32) -> Table<W> {
    let all = (0..letters).fold(W::zero(), |all, _| all + W::one());
    Table((0..letters).map(|_| W::one() / all.clone()).collect())
}

/// Draws a text of this many letters, which is checked once it is whole.
fn text<W: Weight, C: Chooser<W>>(
    (letters, length): (u32, usize),
    errors: &BTreeSet<Word>,
    sampler: &mut Aprad<W>,
    chooser: &mut C,
) -> Result<Word, LawError> {
    sampler.begin();
    let mut word = Word::new();
    loop {
        while word.len() < length {
            word.push(sampler.next(&even(letters), chooser)?.token);
        }
        if !errors.contains(&word) {
            return Ok(word);
        }
        word.truncate(sampler.reject(chooser)?);
    }
}

fn law(size: (u32, usize), errors: &BTreeSet<Word>, exponent: u32) -> BTreeMap<Word, Exact> {
    law_of(|chooser| {
        let mut sampler = Aprad::new(exponent, usize::MAX);
        text(size, errors, &mut sampler, chooser).expect("there is a text")
    })
}

#[test]
fn the_running_example_has_its_published_values() {
    let errors = BTreeSet::from([vec![0, 0]]);
    let expected = |ab, others: Exact| {
        BTreeMap::from([
            (vec![0, 1], ab),
            (vec![1, 0], others.clone()),
            (vec![1, 1], others),
        ])
    };
    assert_eq!(law((2, 2), &errors, 1), expected(ratio(5, 12), ratio(7, 24)));
    // Only the last token is drawn again.
    assert_eq!(law((2, 2), &errors, 0), expected(ratio(1, 2), ratio(1, 4)));
    // The probability of keeping the first letter is (2/3)^h.
    assert_eq!(law((2, 2), &errors, 2), expected(ratio(13, 36), ratio(23, 72)));
}

/// Returns the words of three letters that a pattern matches (`*` is any letter).
fn words(patterns: &[&str], but: &[&str]) -> BTreeSet<Word> {
    let letter = |byte: u8| u32::from(byte - b'A');
    let matches = |word: &Word, pattern: &str| {
        let pairs = word.iter().zip(pattern.bytes());
        pairs
            .into_iter()
            .all(|(&at, byte)| byte == b'*' || at == letter(byte))
    };
    let any = |word: &Word, patterns: &[&str]| patterns.iter().any(|pattern| matches(word, pattern));
    let all = (0..27).map(|number| vec![number / 9, number / 3 % 3, number % 3]);
    all.filter(|word| any(word, patterns) && !any(word, but))
        .collect()
}

/// Returns `KL(found ‖ exact)` of a law over three letters, and the variance of the logarithm of which it is
/// the mean.
fn divergence(found: impl IntoIterator<Item = f64>, errors: usize) -> (f64, f64) {
    let possible = (27 - errors) as f64;
    let (mut mean, mut squares) = (0.0, 0.0);
    for share in found {
        let log = (share * possible).ln();
        mean += share * log;
        squares += share * log * log;
    }
    (mean, squares - mean * mean)
}

/// Returns the tolerance of an estimate from this many texts: three standard deviations, and the bias of the
/// cells.
fn error_of(variance: f64, texts: f64, errors: usize) -> f64 {
    3.0 * (variance / texts).sqrt() + (27 - errors) as f64 / (2.0 * texts)
}

/// Table 1 of the paper: constrained decoding and AprAD over three even letters.
#[test]
fn the_published_table_comes_out() {
    let rows: [(&[&str], &[&str], f64, f64); 5] = [
        (&["AAA"], &[], 0.0075, 0.0046),
        (&["AAA", "AAC"], &[], 0.0429, 0.0157),
        (&["AAA", "AAB", "ABA", "BAA"], &[], 0.0504, 0.0224),
        (&["A**"], &["AAC"], 0.3836, 0.1540),
        (&["***"], &["AAA", "AAB", "ABA", "BAA"], 0.1771, 0.0521),
    ];
    for (patterns, but, constrained, aprad) in rows {
        let errors = words(patterns, but);
        for (exponent, published) in [(0, constrained), (1, aprad)] {
            let count = 80_000;
            let mut counts: BTreeMap<Word, f64> = BTreeMap::new();
            for sequence in 0..count {
                let mut sampler = Aprad::<f64>::new(exponent, usize::MAX);
                let mut chooser = Seeded::new(1, sequence);
                let word = text((3, 3), &errors, &mut sampler, &mut chooser).expect("there is a text");
                assert!(!errors.contains(&word));
                *counts.entry(word).or_default() += 1.0 / f64::from(count);
            }
            let (found, variance) = divergence(counts.into_values(), errors.len());
            // The paper drew 10,000 texts.
            let error = |texts| error_of(variance, texts, errors.len());
            assert!(
                (found - published).abs() < error(1e4) + error(f64::from(count)),
                "{patterns:?} but {but:?}, exponent {exponent}: {found}, published {published}"
            );
        }
    }
}

/// Checks the rows with few errors against the law itself.
#[test]
fn the_laws_of_few_errors_are_as_published() {
    for (patterns, exponent, published) in [
        (&["AAA"][..], 1, 0.0046),
        (&["AAA"], 0, 0.0075),
        (&["AAA", "AAC"], 1, 0.0157),
        (&["AAA", "AAC"], 0, 0.0429),
    ] {
        let errors = words(patterns, &[]);
        let law = law((3, 3), &errors, exponent);
        let (exact, variance) = divergence(law.values().map(Exact::to_f64), errors.len());
        assert!(
            (exact - published).abs() < error_of(variance, 1e4, errors.len()),
            "{patterns:?} {exponent}: {exact}"
        );
    }
}

#[test]
fn what_errors_taught_is_kept_for_the_next_text() {
    let errors = BTreeSet::from([vec![0, 0], vec![0, 1]]);
    law_of(|chooser: &mut Every<Exact>| {
        let mut sampler = Aprad::new(1, usize::MAX);
        assert_eq!(sampler.tag(), LawTag::Aprad);
        for _ in 0..2 {
            text((2, 2), &errors, &mut sampler, chooser).expect("there is a text");
            assert!(sampler.errors() <= 2);
        }
    });
}

#[test]
fn a_language_without_texts_and_a_full_memory_are_errors() {
    let all = words(&["***"], &[]);
    for (errors, capacity) in [(&all, usize::MAX), (&BTreeSet::new(), 4)] {
        let mut sampler = Aprad::<f64>::new(1, capacity);
        let found = text((3, 3), errors, &mut sampler, &mut Seeded::new(3, 0));
        assert!(matches!(found, Err(LawError::Exhausted { .. })), "{found:?}");
    }
}

/// Draws a word of a task where the errors are found by the mask.
fn masked<C: Chooser<Exact>>(task: &Task, exponent: u32, chooser: &mut C) -> (Word, u32) {
    let mut walk = Walk::aligned(Aprad::new(exponent, usize::MAX), 100, &[END]);
    let mut word = Word::new();
    loop {
        let (row, mask) = (task.row(&word), task.mask(&word));
        match walk.next(&row, Allowed::Words(&mask), chooser) {
            Step::Token(drawn) => word.push(drawn.token),
            Step::Restart => word.truncate(walk.position() as usize),
            Step::End(drawn) => {
                word.push(drawn.token);
                return (word, walk.failed_attempts());
            }
            Step::Stuck(error) => panic!("{error}"),
        }
    }
}

/// The same where an error removes a single token, as in the paper.
fn one_by_one<C: Chooser<Exact>>(task: &Task, exponent: u32, chooser: &mut C) -> (Word, u32) {
    let mut sampler = Aprad::new(exponent, usize::MAX);
    sampler.begin();
    let mut word = Word::new();
    while word.last() != Some(&END) {
        let token = sampler
            .next(&task.row(&word), chooser)
            .expect("there is a word")
            .token;
        let is_allowed = Allowed::Words(&task.mask(&word)).contains(token);
        word.push(token);
        if !is_allowed {
            word.truncate(sampler.reject(chooser).expect("there is a word"));
        }
    }
    (word, sampler.errors())
}

/// Returns the law of the words, and the mean number of errors.
fn words_and_errors(law: BTreeMap<(Word, u32), Exact>) -> (Law, f64) {
    let errors = law
        .iter()
        .map(|((_, errors), p)| f64::from(*errors) * p.to_f64())
        .sum();
    let mut words = Law::new();
    for ((word, _), p) in law {
        let entry = words.entry(word).or_insert_with(Exact::zero);
        *entry = entry.clone() + p;
    }
    (words, errors)
}

/// With a mask, an error removes all forbidden tokens of its prefix at once: there are fewer errors, and the
/// law is nearer to the global one.
#[test]
fn an_error_removes_all_that_the_mask_forbids() {
    let task = Task::few_of_many();
    let (global, _) = task.global(3);
    let (single, single_errors) = words_and_errors(law_of(|chooser| one_by_one(&task, 1, chooser)));
    let (all, errors) = words_and_errors(law_of(|chooser| masked(&task, 1, chooser)));
    assert_eq!(
        (total(single.values()), total(all.values())),
        (Exact::one(), Exact::one())
    );
    let (far, near) = (variation(&single, &global), variation(&all, &global));
    assert!(errors * 1.5 < single_errors, "{errors}, {single_errors}");
    assert!(
        near.clone() * ratio(3, 1) < far,
        "{}, {}",
        near.to_f64(),
        far.to_f64()
    );
    // Nothing that was allowed is given up.
    let (kept, _) = words_and_errors(law_of(|chooser| masked(&task, 0, chooser)));
    assert_eq!(kept, task.local());
}

/// A prefix is at fault at most once.
#[test]
fn errors_are_fewer_than_prefixes() {
    for task in [
        Task::first(),
        Task::random(1, 2),
        Task::random(2, 2),
        Task::random(3, 2),
    ] {
        for exponent in [0, 1, 2] {
            let (law, _) = words_and_errors(law_of(|chooser| {
                let (word, errors) = masked(&task, exponent, chooser);
                assert!(errors <= 7, "{word:?}: {errors}");
                (word, errors)
            }));
            assert_eq!(total(law.values()), Exact::one());
            assert!(law.keys().all(|word| task.words.contains(word)));
        }
    }
}
