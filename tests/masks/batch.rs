//! The masks of a batch of rows equal those of each row alone; on request, one of several tokens with the
//! same bytes is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lexiform::MaskRequest;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{BatchRow, Pool};
use lexiform::{Grammar, Options, Source, compile};

fn vocabulary() -> Vocabulary {
    let texts = ["<eos>", "a", "b", "ab", "a", "c", "abc"];
    let tokens = texts.map(|text| (TokenKind::Text, text));
    Vocabulary::new(&tokens, &[0]).expect("a vocabulary")
}

fn grammar(pattern: &str, vocabulary: Vocabulary) -> Grammar {
    let compiled = compile(Source::Regex(pattern), &Arc::new(vocabulary), &Options::default());
    compiled.expect("the pattern compiles").0
}

#[test]
fn a_batch_is_its_rows() {
    let grammars = ["(ab)*c", "a{3,9}", "[abc]*"].map(|pattern| grammar(pattern, vocabulary()));
    let mut rows = vec![None];
    for grammar in &grammars {
        for budget in [None, Some(1), Some(4)] {
            for state in [Some(grammar.start()), grammar.step(grammar.start(), 1)]
                .into_iter()
                .flatten()
            {
                let grammar = grammar.clone();
                rows.push(Some(BatchRow {
                    grammar,
                    state,
                    budget,
                    ends: None,
                }));
            }
        }
    }
    let mut words = vec![7; rows.len() * 2 + 1];
    let refused = Pool::new(2, std::process::id).fill_batch(&rows, 2, &mut words);
    assert_eq!(refused, []);
    assert_eq!(
        words[..2],
        [u32::MAX, u32::MAX],
        "no constraint allows everything"
    );
    for (row, words) in rows.iter().zip(words.chunks(2)).skip(1) {
        let row = row.as_ref().expect("the first alone is free");
        let alone = match row.budget {
            Some(budget) => row
                .grammar
                .try_mask(MaskRequest::from(row.state).within(budget))
                .expect("within the limits"),
            None => row.grammar.mask(row.state),
        };
        assert_eq!((words[0], words[1]), (alone.words()[0], 0), "{row:?}");
    }
    assert_eq!(words.last(), Some(&7), "what is behind the rows is left alone");
}

#[test]
fn rows_go_where_they_are_sent_and_the_rest_stays() {
    let grammar = grammar("(ab)*c", vocabulary());
    let state = grammar.start();
    let row = BatchRow {
        grammar: grammar.clone(),
        state,
        budget: None,
        ends: None,
    };
    let mut words = vec![7; 6];
    let rows = [(2, row.clone()), (0, row)];
    assert_eq!(Pool::new(0, std::process::id).fill_rows(rows, 2, &mut words), []);
    let mask = grammar.mask(state).words()[0];
    assert_eq!(words, [mask, 0, 7, 7, mask, 0]);
}

/// Returns a grammar whose masks cost more than it allows, after one token.
fn costly() -> Grammar {
    let mut options = Options::default();
    options.limits.mask_work = 2;
    let source = Source::Ebnf("root ::= root root | 'a' | 'b' root");
    compile(source, &Arc::new(vocabulary()), &options)
        .expect("it compiles")
        .0
}

#[test]
fn rows_beyond_their_limits_are_named_and_cleared_and_the_others_are_right() {
    let (plain, costly) = (grammar("(ab)*c", vocabulary()), costly());
    let row = |grammar: &Grammar| {
        let (grammar, state) = (grammar.clone(), grammar.start());
        Some(BatchRow {
            grammar,
            state,
            budget: None,
            ends: None,
        })
    };
    let rows = [row(&costly), row(&plain), row(&costly), None];
    for threads in [1, 2] {
        let mut words = vec![7; 4];
        let refused = Pool::new(threads, std::process::id).fill_batch(&rows, 1, &mut words);
        let numbers: Vec<usize> = refused.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0, 2]);
        assert!(refused.iter().all(|(_, why)| why.limit == "mask_work"));
        assert_eq!(words, [0, plain.mask(plain.start()).words()[0], 0, u32::MAX]);
    }
}

static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Returns a different process id on each call, so that the pool believes that it has been forked.
fn another_process() -> u32 {
    PROCESS.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn a_pool_starts_new_threads_in_a_new_process() {
    // Costly enough for the calling thread to leave the work to the pool.
    let patterns = ["(a|b|c){1,300}abc", "(ab?c){2,200}b"];
    let pool = Pool::new(2, another_process);
    for round in 1..=3 {
        let grammars = patterns.map(|pattern| grammar(pattern, vocabulary()));
        let rows = grammars.clone().map(|grammar| {
            let state = grammar.start();
            Some(BatchRow {
                grammar,
                state,
                budget: Some(250),
                ends: None,
            })
        });
        let mut words = [0; 2];
        assert_eq!(pool.fill_batch(&rows, 1, &mut words), []);
        let alone = grammars.map(|grammar| {
            grammar
                .try_mask(MaskRequest::from(grammar.start()).within(250))
                .expect("within the limits")
                .words()[0]
        });
        assert_eq!(words, alone);
        assert_eq!(
            PROCESS.load(Ordering::Relaxed),
            round,
            "the masks were left to the pool"
        );
    }
}

#[test]
fn tokens_with_the_same_bytes_are_all_allowed_or_only_the_first() {
    let allowed = |grammar: &Grammar| grammar.mask(grammar.start()).iter().collect::<Vec<_>>();
    let all = grammar("[abc]+", vocabulary());
    assert_eq!(allowed(&all), [1, 2, 3, 4, 5, 6]);
    let first = grammar("[abc]+", vocabulary().without_duplicates());
    assert_eq!(allowed(&first), [1, 2, 3, 5, 6]);
    assert!(first.allows(first.start(), 1) && !first.allows(first.start(), 4));
    assert_eq!(
        first.vocabulary().bytes(4),
        b"a",
        "what a duplicate writes is still known"
    );
}
