//! The independence of a request's answer from the other requests in service: the demo model, alone and in a
//! batch.

use crate::rig::{Redraw, listen};
use crate::torch::{FAMILIES, folder};
use lexiform::vocab::Tokenizer;
use lexiform_engine::{
    Dtype, Engine, EngineConfig, Event, Feed, Finish, LoadOptions, LoadedModel, Model, ModelFiles, Refusal,
    Reporting, Request, Sampling, Search, Speculation, Task, WeightFormat, load,
};
use std::path::Path;
use std::sync::Arc;

fn options() -> LoadOptions {
    LoadOptions {
        dtype: Dtype::F32,
        threads: 2,
        ..LoadOptions::default()
    }
}

fn loaded(options: &LoadOptions) -> (LoadedModel, Tokenizer) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/demo");
    let loaded = load(&ModelFiles::folder(&folder), options).unwrap();
    let tokenizer = Tokenizer::from_bytes(&std::fs::read(folder.join("tokenizer.json")).unwrap()).unwrap();
    (loaded, tokenizer)
}

fn demo(options: &LoadOptions) -> (Engine, Tokenizer) {
    let (loaded, tokenizer) = loaded(options);
    let vocabulary = tokenizer
        .vocabulary_with_rows(&loaded.eos, loaded.config.vocab_size)
        .unwrap();
    let engine = Engine::start(loaded.model, None, Arc::new(vocabulary), EngineConfig::default()).unwrap();
    (engine, tokenizer)
}

/// The tokens of an answer among so many others, each with the model's own log-probability.
fn asked(engine: &Engine, tokenizer: &Tokenizer, others: u64) -> Vec<(u32, f32)> {
    let request = |text: &str, seed, tokens| {
        Request::new(tokenizer.encode(text).unwrap(), tokens)
            .sampling(Sampling::seeded(seed))
            .ignore_eos(true)
            .reporting(Reporting {
                logprobs: Some(0),
                ..Reporting::default()
            })
    };
    let others: Vec<_> = (0..others)
        .map(|number| {
            let text = format!("Person {number} lives in Vienna, and this one is company number {number}.");
            listen(engine, request(&text, 100 + number, 60))
        })
        .collect();
    let own = listen(
        engine,
        request("Ada Lovelace is 36 years old and lives in London.", 7, 32),
    )
    .wait();
    for other in others {
        assert_eq!(other.wait().outcome().finish, Finish::Length);
    }
    let tokens = own.events.iter().filter_map(|event| match event {
        Event::Token { token, logprob, .. } => Some((*token, logprob.unwrap())),
        _ => None,
    });
    tokens.collect()
}

/// In f32 on the processor a token has the same numbers in any company: sums of products have one order,
/// whatever else is in the pass. The first answer, whose prompt was computed as a whole, and the later ones,
/// for which its beginning is in the cache, differ at most by what torch's attention to a long prompt and the
/// loops' make of the same sums.
#[test]
fn the_text_of_a_seed_is_the_same_in_any_company() {
    let int8 = LoadOptions {
        weights: WeightFormat::Int8,
        ..options()
    };
    for options in [options(), int8] {
        company_changes_nothing(&options);
    }
}

fn company_changes_nothing(options: &LoadOptions) {
    let (engine, tokenizer) = demo(options);
    // The first time, the whole prompt is computed. Later a part of it is in the cache, and the rest is a
    // smaller product.
    let first = asked(&engine, &tokenizer, 0);
    let alone = asked(&engine, &tokenizer, 0);
    let again = asked(&engine, &tokenizer, 0);
    let bits = |answer: &[(u32, f32)]| -> Vec<(u32, u32)> {
        answer
            .iter()
            .map(|(token, logprob)| (*token, logprob.to_bits()))
            .collect()
    };
    assert_eq!(alone.len(), 32);
    assert_eq!(bits(&alone), bits(&again));
    for others in [1, 7, 31] {
        let found = asked(&engine, &tokenizer, others);
        assert_eq!(bits(&found), bits(&alone), "among {others} others");
    }
    let tokens = |answer: &[(u32, f32)]| -> Vec<u32> { answer.iter().map(|(token, _)| *token).collect() };
    assert_eq!(tokens(&first), tokens(&alone));
}

/// The bits of all rows of a text that is fed in pieces of these lengths, each in a pass together with so
/// many other texts.
fn bits(model: &mut dyn Model, tokens: &[u32], pieces: &[usize], others: usize) -> Vec<u32> {
    let blocks = tokens.len().div_ceil(4);
    model.create_cache(blocks * (1 + others), 4).unwrap();
    // Every other block, from behind, so that no two are side by side.
    let table = |number: usize| -> Vec<u32> {
        let own = (0..blocks)
            .rev()
            .map(|block| (block * (1 + others) + number) as u32);
        own.collect()
    };
    let tables: Vec<Vec<u32>> = (0..=others).map(table).collect();
    let mut found = Vec::new();
    let mut start = 0;
    for &piece in pieces {
        let own = &tokens[start..start + piece];
        // The others are at the same place, with other tokens, and feed more or less of them.
        let turned: Vec<Vec<u32>> = (1..=others)
            .map(|number| {
                own.iter()
                    .cycle()
                    .skip(number)
                    .take(1 + (number * 5) % piece)
                    .copied()
                    .collect()
            })
            .collect();
        let feed = |(number, tokens): (usize, &'_ [u32])| (number, tokens.to_vec());
        let mut all: Vec<(usize, Vec<u32>)> = turned
            .iter()
            .enumerate()
            .map(|(number, tokens)| feed((number + 1, tokens)))
            .collect();
        all.insert(others / 2, feed((0, own)));
        let feeds: Vec<Feed<'_>> = all
            .iter()
            .map(|(number, tokens)| Feed {
                tokens,
                start: if *number == 0 { start } else { 0 },
                table: &tables[*number],
                rows: tokens.len(),
                parents: None,
                scale: 1.0,
            })
            .collect();
        let logits = model.forward(&feeds).unwrap();
        let first: usize = feeds[..others / 2].iter().map(|feed| feed.rows).sum();
        let rows = (first..first + piece).flat_map(|row| logits.row(row).to_vec());
        found.extend(rows.map(f32::to_bits));
        start += piece;
    }
    found
}

/// All pieces, in any company, against the whole text alone.
fn pieces_change_nothing(model: &mut dyn Model, tokens: &[u32], pieces: &[&[usize]], what: &str) {
    let alone = bits(model, tokens, &[tokens.len()], 0);
    for pieces in pieces {
        for others in [0, 5] {
            let found = bits(model, tokens, pieces, others);
            assert_eq!(found.len(), alone.len());
            let off = found
                .iter()
                .zip(&alone)
                .filter(|(one, other)| one != other)
                .count();
            assert_eq!(off, 0, "{what}: in pieces of {pieces:?} among {others} others");
        }
    }
}

/// Every family, on the processor, batch-invariant: activations, experts, windows, caps and norms included.
#[test]
fn no_family_computes_a_row_otherwise_in_company() {
    let tokens: Vec<u32> = (0..40).map(|number| (number * 37 + 5) % 90).collect();
    let ones = [1; 40];
    for family in FAMILIES {
        let options = LoadOptions {
            batch_invariant: true,
            ..options()
        };
        let mut loaded = load(&ModelFiles::folder(folder(family)), &options).unwrap();
        let pieces: [&[usize]; 3] = [&[40], &ones, &[13, 27]];
        pieces_change_nothing(&mut *loaded.model, &tokens, &pieces, family);
    }
}

/// Guards against a long prompt whose attention depends on how it was cut, which is what torch's does.
#[test]
fn a_long_prompt_may_be_cut_anywhere() {
    for weights in [WeightFormat::Stored, WeightFormat::Int8] {
        let (mut loaded, tokenizer) = loaded(&LoadOptions {
            batch_invariant: true,
            weights,
            ..options()
        });
        let text = "Order 4711 by Ada Lovelace from 12 March 2024: three lamps at 19.90 each. ".repeat(5);
        let tokens = tokenizer.encode(&text).unwrap();
        let (count, half) = (tokens.len(), tokens.len() / 2);
        assert!(half > 64, "long enough for torch's attention in pieces, too");
        let pieces: [&[usize]; 2] = [&[half, count - half], &[64, count - 65, 1]];
        pieces_change_nothing(&mut *loaded.model, &tokens, &pieces, "demo");
    }
}

/// What a request is told that wants more than it can be promised.
#[test]
fn company_is_refused_by_name_where_it_matters() {
    let usual = demo(&options()).0;
    let invariant = demo(&LoadOptions {
        batch_invariant: true,
        ..options()
    })
    .0;
    assert!(usual.variance().is_some() && invariant.variance().is_none());
    let plain = Request::new(vec![5], 4).batch_invariant(true);
    let because = |engine: &Engine, request: &Request| match engine.check(request) {
        Ok(()) => None,
        Err(Refusal::DependsOnOthers { because }) => Some(because),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(because(&usual, &plain), usual.variance());
    assert_eq!(because(&usual, &plain.clone().batch_invariant(false)), None);
    assert_eq!(because(&invariant, &plain), None);
    let several = plain.clone().answers(3);
    assert_eq!(because(&invariant, &several), None);
    let guessing = plain.clone().speculation(Speculation::all());
    assert!(because(&invariant, &guessing).is_some_and(|because| because.contains("drafted")));
    let search = Search::KBest {
        max_rows: 64,
        max_frontier: 64,
    };
    let searching = plain.task(Task::Search { search, answers: 1 });
    assert!(because(&invariant, &searching).is_some_and(|because| because.contains("searches")));
}
