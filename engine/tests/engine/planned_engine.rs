//! The decode loop over a model whose passes are run by plan, by the kernels on this processor or a card:
//! every reported token is compared with the rows of the torch decoder in f32, fed with the answer.

use crate::checkpoint::Checkpoint;
use crate::launcher::Asked;
use crate::laws::agrees;
use crate::memory::Chance;
use crate::planned::{Runner, counted, llama, options};
use crate::rig::{Heard, Listener, Redraw, drafting, generate, grammar_over, listen, wait_until};
use crate::torch::vocabulary;
use lexiform_engine::{
    Ask, Engine, EngineConfig, EngineError, Event, Feed, Finish, Flight, Law, LawTag, LoadOptions, Logits,
    Model, Request, Sampling, SlotMoves, Speculation,
};
use lexiform_law::{Distribution, Drawn, Row as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const VOCAB: usize = 96;

/// An engine over passes by plan, and the model that says what its rows must be.
struct Bench {
    engine: Engine,
    asked: Option<Arc<Asked>>,
    known: Box<dyn Model>,
}

impl Bench {
    fn new(runner: Runner, config: EngineConfig) -> Self {
        let checkpoint = llama();
        let (model, asked) = runner.model(&checkpoint);
        let draft = Checkpoint::decoder(&checkpoint);
        let mut known = checkpoint.decoder();
        known.create_cache(16, 16).unwrap();
        Bench {
            engine: Engine::start(model, Some(draft), vocabulary(), config).unwrap(),
            asked,
            known,
        }
    }

    /// The log-probabilities of all tokens after each token of a text, from the `first` on.
    fn rows(&mut self, text: &[u32], first: usize) -> Vec<Vec<f32>> {
        let table: Vec<u32> = (0..16).collect();
        let feed = Feed {
            tokens: text,
            start: 0,
            table: &table,
            rows: text.len() - first,
            parents: None,
            scale: 1.0,
        };
        let logits = self.known.forward(&[feed]).unwrap();
        let logs = |row: usize| {
            let row = Distribution::new(logits.row(row)).unwrap();
            (0..VOCAB as u32)
                .map(|token| row.log_probability(token) as f32)
                .collect()
        };
        (0..logits.len()).map(logs).collect()
    }

    /// How far the model's own log-probabilities of an answer's tokens are from what was told: the mean and
    /// the largest.
    fn off(&mut self, prompt: &[u32], heard: &Heard, told: fn(&Event) -> Option<f32>) -> (f32, f32) {
        let tokens = heard.tokens();
        let rows = self.rows(&[prompt, &tokens].concat(), prompt.len() - 1);
        let told = heard.events.iter().filter_map(told);
        let off: Vec<f32> = tokens
            .iter()
            .zip(told)
            .zip(rows)
            .map(|((&token, told), row)| (told - row[token as usize]).abs())
            .collect();
        assert_eq!(off.len(), tokens.len());
        let largest = off
            .iter()
            .fold(0.0, |most: f32, &off| if off <= most { most } else { off });
        (off.iter().sum::<f32>() / off.len().max(1) as f32, largest)
    }

    /// Holds answers that may write anything, whose tokens are drawn on the device.
    fn hold(&mut self, prompt: &[u32], heard: &Heard, what: &str) {
        let (mean, largest) = self.off(prompt, heard, |event| match event {
            Event::Token { log_share, .. } => Some(*log_share),
            _ => None,
        });
        assert!(mean < 0.08 && largest < 0.6, "{what}: off by {mean}, {largest}");
    }

    /// The rows that kernels drew from.
    fn drawn(&self) -> usize {
        counted(&self.asked, |it| &it.drawn)
    }

    /// The passes that were replayed.
    fn replayed(&self) -> usize {
        counted(&self.asked, |it| &it.replayed)
    }
}

fn config() -> EngineConfig {
    EngineConfig {
        blocks: 200,
        block_size: 16,
        ..drafting()
    }
}

fn request(prompt: &[u32], seed: u64, tokens: usize) -> Request {
    Request::new(prompt.to_vec(), tokens)
        .sampling(Sampling::seeded(seed))
        .ignore_eos(true)
}

fn prompt(seed: u64, len: usize) -> Vec<u32> {
    let mut chance = Chance::new(seed);
    (0..len).map(|_| chance.below(VOCAB) as u32).collect()
}

/// Prompts that fit a bucket and prompts that do not, alone and together, drawn and greedy, once more from
/// the cache.
fn texts_are_those_of_the_model(runner: Runner) {
    let mut bench = Bench::new(runner, config());
    let prompts: Vec<Vec<u32>> = [1, 9, 31, 40, 70]
        .iter()
        .map(|&len| prompt(len as u64, len))
        .collect();
    for round in 0..2 {
        let ask = |(number, prompt): (usize, &Vec<u32>)| {
            let mut request = request(prompt, 10 * round + number as u64, 24);
            if number == 2 {
                request.sampling.temperature = 0.0;
            }
            listen(&bench.engine, request)
        };
        let listeners: Vec<Listener> = prompts.iter().enumerate().map(ask).collect();
        let heard: Vec<Heard> = listeners.into_iter().map(Listener::wait).collect();
        for (prompt, heard) in prompts.iter().zip(heard) {
            assert_eq!(heard.outcome().finish, Finish::Length);
            if round == 1 && prompt.len() > 16 {
                assert!(heard.outcome().cached_tokens >= 16);
            }
            bench.hold(
                prompt,
                &heard,
                &format!("round {round}, a prompt of {}", prompt.len()),
            );
        }
    }
    assert!(bench.replayed() > 20 && bench.drawn() > 150, "{:?}", bench.asked);
}

/// The same seed draws the same text alone and in company: no sum depends on what else is in a pass. On a
/// card, products do.
fn the_text_of_a_seed_is_the_same_in_any_company(runner: Runner) {
    if matches!(runner, Runner::Card) {
        return;
    }
    let bench = Bench::new(
        runner,
        EngineConfig {
            mask_threads: 1,
            ..config()
        },
    );
    let own = request(&prompt(5, 12), 7, 30);
    let alone = generate(&bench.engine, own.clone());
    for others in [1, 6] {
        let others: Vec<Listener> = (0..others)
            .map(|number| listen(&bench.engine, request(&prompt(number, 12), number, 40)))
            .collect();
        let found = generate(&bench.engine, own.clone());
        assert_eq!(found.tokens_without_origin(), alone.tokens_without_origin());
        others.into_iter().for_each(|other| drop(other.wait()));
    }
}

/// Lookup, a draft model, trees of both, and samples that share their prompt.
fn drafted_texts_are_those_of_the_model(runner: Runner) {
    let mut bench = Bench::new(runner, config());
    let reference = prompt(3, 20);
    for seed in 0..6 {
        let mut request = request(&prompt(seed, 18), seed, 40)
            .speculation(Speculation::all())
            .reference(reference.clone());
        request.sampling.temperature = if seed % 3 == 2 { 0.0 } else { 1.0 };
        let heard = generate(&bench.engine, request.clone());
        bench.hold(&request.prompt.tokens, &heard, &format!("seed {seed}"));
    }
    let stats = wait_until(&bench.engine, |stats| stats.running == 0);
    assert!(stats.accepted > 30 && stats.drafted > stats.accepted, "{stats:?}");
    assert!(
        !stats.draft_model_failed && stats.failed == 0 && stats.panics == 0,
        "{stats:?}"
    );
    assert!(bench.replayed() > 10, "{:?}", bench.asked);
}

/// Five answers of one prompt, in a cache so small that they make room for each other.
fn forks_and_preempted_texts_are_those_of_the_model(runner: Runner) {
    let mut bench = Bench::new(
        runner,
        EngineConfig {
            blocks: 16,
            ..config()
        },
    );
    let prompts: Vec<Vec<u32>> = (0..5).map(|seed| prompt(seed, 24)).collect();
    let ask = |(seed, prompt): (usize, &Vec<u32>)| listen(&bench.engine, request(prompt, seed as u64, 60));
    let listeners: Vec<Listener> = prompts.iter().enumerate().map(ask).collect();
    let heard: Vec<Heard> = listeners.into_iter().map(Listener::wait).collect();
    for (seed, (prompt, heard)) in prompts.iter().zip(&heard).enumerate() {
        bench.hold(prompt, heard, &format!("seed {seed}"));
    }
    let samples = request(&prompt(9, 21), 9, 20).answers(4);
    for (number, heard) in crate::branches::answers(&bench.engine, samples.clone())
        .iter()
        .enumerate()
    {
        bench.hold(&samples.prompt.tokens, heard, &format!("sample {number}"));
    }
    let stats = wait_until(&bench.engine, |stats| stats.running == 0);
    assert!(stats.preemptions > 0 && stats.blocks_used == 0, "{stats:?}");
}

/// Penalties, biases and filters by rank, at several temperatures, masked and not, with and without drafts of
/// their own text.
fn asking(number: u64) -> Request {
    let sampling = Sampling {
        temperature: [0.7, 1.0, 0.0, 1.4][number as usize % 4],
        top_p: if number.is_multiple_of(3) { 0.9 } else { 1.0 },
        top_k: (number % 5 == 1).then_some(12),
        min_p: if number % 4 == 1 { 0.05 } else { 0.0 },
        repetition_penalty: if number.is_multiple_of(2) { 1.2 } else { 1.0 },
        frequency_penalty: if number % 3 == 1 { 0.3 } else { 0.0 },
        presence_penalty: if number % 5 == 2 { 0.4 } else { 0.0 },
        logit_bias: if number % 4 == 3 {
            vec![(33, 1.5)]
        } else {
            Vec::new()
        },
        ..Sampling::seeded(number)
    };
    let speculation = match number % 3 {
        2 => Speculation {
            lookup: true,
            max_draft: 4,
            branches: 2,
            ..Speculation::none()
        },
        _ => Speculation::none(),
    };
    request(&prompt(number % 5, 9), number, 16)
        .law(Law::Local)
        .grammar((number % 4 == 2).then(|| grammar_over(&vocabulary(), "[A-Z]{9,20}")))
        .sampling(sampling)
        .speculation(speculation)
}

/// What is asked of rows that stay on the device, and of the same rows in memory: the same tokens, with the
/// same probabilities to the last bit; and no row comes home.
fn penalties_and_filters_are_those_of_rows_in_memory(runner: Runner) {
    let answers = |draws: bool| {
        let (model, asked) = runner.model_that(
            LoadOptions {
                draws: Some(draws),
                ..options()
            },
            &llama(),
        );
        let brought = Arc::<AtomicUsize>::default();
        let model = Watched {
            model,
            brought: brought.clone(),
        };
        let engine = Engine::start(Box::new(model), None, vocabulary(), config()).unwrap();
        let told: Vec<_> = (0..24)
            .map(|number| generate(&engine, asking(number)))
            .map(|heard| (heard.tokens_without_origin(), heard.outcome().log_weight))
            .collect();
        (told, brought.load(Ordering::Relaxed), asked)
    };
    let (drawn, brought, asked) = answers(true);
    let kernels = counted(&asked, |it| &it.drawn);
    let tokens: usize = drawn.iter().map(|(tokens, _)| tokens.len()).sum();
    assert!(
        brought == 0 && kernels >= tokens && tokens > 200,
        "{brought} rows, {asked:?}"
    );
    let (known, brought, _) = answers(false);
    assert!(brought >= tokens);
    match runner {
        Runner::Processor => assert_eq!(drawn, known),
        // A row that comes home from a card is measured on the way, by sums of another order.
        Runner::Card => {
            let texts =
                |told: &[(Vec<Event>, _)]| told.iter().map(|(events, _)| events.len()).collect::<Vec<_>>();
            assert_eq!(texts(&drawn), texts(&known));
        }
    }
}

/// A model whose rows are counted as they come to memory.
struct Watched {
    model: Box<dyn Model>,
    brought: Arc<AtomicUsize>,
}

/// A pass of such a model.
struct WatchedFlight {
    flight: Box<dyn Flight>,
    brought: Arc<AtomicUsize>,
}

impl Flight for WatchedFlight {
    fn len(&self) -> usize {
        self.flight.len()
    }

    fn draws(&self) -> bool {
        self.flight.draws()
    }

    fn draw(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>, EngineError> {
        self.flight.draw(asks)
    }

    fn top(&mut self, rows: &[usize], count: usize) -> Result<Vec<Vec<(u32, f64)>>, EngineError> {
        self.flight.top(rows, count)
    }

    fn rows(&mut self, rows: &[usize]) -> Result<Logits, EngineError> {
        self.brought.fetch_add(rows.len(), Ordering::Relaxed);
        self.flight.rows(rows)
    }
}

impl Model for Watched {
    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn max_positions(&self) -> usize {
        self.model.max_positions()
    }

    fn cache_bytes_per_token(&self) -> usize {
        self.model.cache_bytes_per_token()
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError> {
        self.model.create_cache(blocks, block_size)
    }

    fn leave_out(&mut self, columns: &[usize]) {
        self.model.leave_out(columns);
    }

    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError> {
        let flight = self.model.submit(feeds)?;
        Ok(Box::new(WatchedFlight {
            flight,
            brought: self.brought.clone(),
        }))
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        self.model.move_slots(moves)
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        self.model.copy_blocks(pairs)
    }
}

const PATTERN: &str = "A[BC]|B[AC]{2}";
const TEXTS: [&str; 6] = ["AB", "AC", "BAA", "BAC", "BCA", "BCC"];
const PROMPT: [u32; 5] = [40, 7, 33, 90, 12];
const COUNT: u64 = 600;

/// The share of each text under the local law, from the rows of the model.
fn local_shares(bench: &mut Bench) -> Vec<(&'static str, f64)> {
    let tokens = |text: &str| -> Vec<u32> { text.bytes().map(|byte| u32::from(byte - b' ')).collect() };
    let share = |text: &'static str| {
        let mut share = 1.0;
        for at in 0..text.len() {
            let row = bench
                .rows(
                    &[&PROMPT[..], &tokens(&text[..at])].concat(),
                    PROMPT.len() + at - 1,
                )
                .remove(0);
            let next = TEXTS.iter().filter(|other| other.starts_with(&text[..at]));
            let mut next: Vec<u32> = next.map(|other| tokens(&other[at..=at])[0]).collect();
            next.sort_unstable();
            next.dedup();
            let mass: f32 = next.iter().map(|&token| row[token as usize].exp()).sum();
            share *= f64::from(row[tokens(&text[at..=at])[0] as usize].exp() / mass);
        }
        (text, share)
    };
    TEXTS.into_iter().map(share).collect()
}

/// Whole answers follow the local law of the model, whose masks the kernels apply, drafted and not.
fn answers_follow_their_law(runner: Runner) {
    let mut bench = Bench::new(runner, config());
    let expected = local_shares(&mut bench);
    let grammar = grammar_over(&vocabulary(), PATTERN);
    for speculation in [Speculation::none(), Speculation::all()] {
        let mut shares = BTreeMap::new();
        let request = |seed| {
            Request::new(PROMPT.to_vec(), 8)
                .task(Law::Local)
                .grammar(Some(grammar.clone()))
                .sampling(Sampling::seeded(seed))
                .speculation(speculation)
        };
        for seeds in (0..COUNT).collect::<Vec<_>>().chunks(60) {
            let listeners: Vec<Listener> = seeds
                .iter()
                .map(|&seed| listen(&bench.engine, request(seed)))
                .collect();
            for listener in listeners {
                let heard = listener.wait();
                assert_eq!(heard.outcome().law, LawTag::Local);
                let text: String = heard
                    .tokens()
                    .iter()
                    .map(|&token| char::from(b' ' + token as u8))
                    .collect();
                *shares.entry(text).or_insert(0.0) += 1.0 / COUNT as f64;
            }
        }
        agrees(&shares, &expected, COUNT);
    }
    assert!(bench.replayed() > 10 && bench.drawn() > 500, "{:?}", bench.asked);
}

/// Each of these by the kernels on the processor, and on a card.
mod by {
    use crate::planned::by_every_kernel;

    by_every_kernel!(
        texts_are_those_of_the_model,
        the_text_of_a_seed_is_the_same_in_any_company,
        drafted_texts_are_those_of_the_model,
        forks_and_preempted_texts_are_those_of_the_model,
        answers_follow_their_law,
        penalties_and_filters_are_those_of_rows_in_memory,
    );
}
