//! Masks of many rows at once are those of each row alone; of tokens with the same bytes one is enough where asked.

use std::sync::Arc;

use lexiform::matcher::Row;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, Options, Source, compile, fill_batch};

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
                rows.push(Some(Row {
                    grammar,
                    state,
                    budget,
                }));
            }
        }
    }
    let mut words = vec![7; rows.len() * 2 + 1];
    fill_batch(&rows, 2, &mut words);
    assert_eq!(
        words[..2],
        [u32::MAX, u32::MAX],
        "no constraint allows everything"
    );
    for (row, words) in rows.iter().zip(words.chunks(2)).skip(1) {
        let row = row.as_ref().expect("the first alone is free");
        let alone = match row.budget {
            Some(budget) => row.grammar.mask_within(row.state, budget),
            None => row.grammar.mask(row.state),
        };
        assert_eq!((words[0], words[1]), (alone.words()[0], 0), "{row:?}");
    }
    assert_eq!(words.last(), Some(&7), "what is behind the rows is left alone");
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
