//! Prompts by plan: passes of any number of tokens, split into pieces that attend one after another, compared
//! with the torch decoder.

use crate::checkpoint::{Checkpoint, Kind, LLAMA, MISTRAL, MIXTRAL, POSITIONS, QWEN, QWEN_MIXTURE};
use crate::memory::Chance;
use crate::planned::{ERROR_OF_ROW, Runner, VOCAB, by_every_kernel, counted, relative};
use lexiform_engine::{Feed, Model};

/// Eight query heads share a key head, so that a piece has eight tokens.
const GROUPED: Kind = Kind {
    heads: 8,
    key_heads: 1,
    ..LLAMA
};
/// Blocks of a text, out of order.
const TABLES: [[u32; 16]; 3] = {
    let mut tables = [[0; 16]; 3];
    let mut number = 0;
    while number < 48 {
        // 29 has no factor in common with 48.
        tables[number / 16][number % 16] = (number * 29 % 48) as u32;
        number += 1;
    }
    tables
};

fn tokens(count: usize, seed: usize) -> Vec<u32> {
    (0..count)
        .map(|number| ((number * number + 7 * number + seed) % VOCAB) as u32)
        .collect()
}

/// Two models with the same weights, the first by plan.
struct Pair {
    planned: Box<dyn Model>,
    known: Box<dyn Model>,
}

impl Pair {
    /// Feeds both, and compares each wanted row.
    fn pass(&mut self, feeds: &[Feed<'_>], what: &str) {
        let wanted: usize = feeds.iter().map(|feed| feed.rows).sum();
        let [found, known] = [&mut self.planned, &mut self.known].map(|model| {
            let logits = model.forward(feeds).unwrap();
            assert_eq!(logits.len(), wanted, "{what}");
            (0..wanted)
                .map(|row| logits.row(row).to_vec())
                .collect::<Vec<_>>()
        });
        for (row, (found, known)) in found.iter().zip(&known).enumerate() {
            let off = relative(found, known);
            assert!(off < ERROR_OF_ROW, "{what}, row {row}: {off}");
        }
    }
}

fn feed<'a>(tokens: &'a [u32], start: usize, text: usize, rows: usize) -> Feed<'a> {
    Feed {
        tokens,
        start,
        table: &TABLES[text],
        rows,
        parents: None,
        scale: 1.0,
    }
}

/// Long prompts and short ones, alone and beside texts that go on, with rows that nobody wants, in two
/// passes, and with a tree at the end: each row is that of torch, and what comes after them sees their keys.
fn prompts_in_pieces_have_the_rows_of_torch(runner: Runner) {
    let kinds = [LLAMA, MISTRAL, QWEN, GROUPED, MIXTRAL, QWEN_MIXTURE];
    for (seed, kind) in kinds.into_iter().enumerate() {
        let checkpoint = Checkpoint::random(kind, &mut Chance::new(seed as u64 + 21));
        let (planned, asked) = runner.model(&checkpoint);
        let known: Box<dyn Model> = checkpoint.decoder();
        let mut pair = Pair { planned, known };
        for model in [&mut pair.planned, &mut pair.known] {
            model.create_cache(48, 16).unwrap();
        }
        let long = tokens(POSITIONS - 20, seed);
        let short = tokens(40, seed + 50);
        let tree = [0, 0, 1, 1, 4];
        let passes: [(&str, Vec<Feed<'_>>); 6] = [
            (
                "two prompts",
                vec![feed(&long[..170], 0, 0, 3), feed(&short[..9], 0, 1, 2)],
            ),
            (
                "beside a text, in the order of the feeds",
                vec![
                    feed(&long[..130], 0, 2, 1),
                    feed(&short[9..10], 9, 1, 1),
                    feed(&long[170..175], 170, 0, 5),
                ],
            ),
            (
                "a prompt of which no row is wanted",
                vec![feed(&long[130..200], 130, 2, 0)],
            ),
            (
                "a tree at the end of a prompt",
                vec![
                    feed(&short[10..11], 10, 1, 1),
                    Feed {
                        parents: Some(&tree),
                        ..feed(&long[175..230], 175, 0, 6)
                    },
                ],
            ),
            (
                "the text goes on where the tree stood",
                vec![feed(&long[200..201], 225, 0, 1)],
            ),
            (
                "one token of each",
                vec![
                    feed(&short[11..12], 11, 1, 1),
                    feed(&long[201..202], 226, 0, 1),
                    feed(&long[200..201], 200, 2, 1),
                ],
            ),
        ];
        for (what, feeds) in passes {
            let before = counted(&asked, |it| &it.steps);
            pair.pass(&feeds, &format!("{kind:?}, {what}"));
            let after = counted(&asked, |it| &it.steps);
            assert!(
                after > before || after == usize::MAX,
                "{kind:?}, {what}: not by plan"
            );
        }
    }
}

/// How a prompt is cut into passes decides the last digits alone.
fn a_prompt_in_two_passes_is_the_prompt(runner: Runner) {
    let checkpoint = Checkpoint::random(LLAMA, &mut Chance::new(31));
    let (mut model, _) = runner.model(&checkpoint);
    model.create_cache(48, 16).unwrap();
    let text = tokens(150, 3);
    let mut last = |cuts: &[usize], table: usize| {
        let (mut start, mut row) = (0, Vec::new());
        for &end in cuts {
            let logits = model
                .forward(&[feed(&text[start..end], start, table, 1)])
                .unwrap();
            row = logits.row(0).to_vec();
            start = end;
        }
        row
    };
    let whole = last(&[150], 0);
    for (cuts, table) in [
        (&[33, 150][..], 1),
        (&[100, 101, 150], 2),
        (&[1, 2, 3, 149, 150], 1),
    ] {
        let off = relative(&last(cuts, table), &whole);
        assert!(off < ERROR_OF_ROW / 2.0, "{cuts:?}: {off}");
    }
}

mod by {
    super::by_every_kernel!(
        prompts_in_pieces_have_the_rows_of_torch,
        a_prompt_in_two_passes_is_the_prompt,
    );
}
