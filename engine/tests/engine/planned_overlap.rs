//! Kernel passes that begin after the draws of another pass, whose tokens only the device knows: the bits are
//! those of passes that waited.

use crate::launcher::Asked;
use crate::memory::Chance;
use crate::planned::{Runner, counted, each, llama};
use crate::rig::{Heard, Listener, generate, grammar_over, listen, wait_until};
use crate::torch::vocabulary;
use lexiform_engine::{
    Ask, Engine, EngineConfig, EngineError, Event, Feed, Finish, Flight, Logits, Model, Request, Sampling,
    SlotMoves,
};
use lexiform_law::{Allowed, Drawn, History, Law, Place, Seeded, Warper, Warping};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const VOCAB: usize = 96;
/// The blocks of three texts, twice.
const TABLES: [[[u32; 2]; 3]; 2] = [[[0, 7], [2, 9], [11, 4]], [[6, 1], [8, 3], [10, 5]]];

fn feed<'a>(tokens: &'a [u32], start: usize, table: &'a [u32]) -> Feed<'a> {
    Feed {
        tokens,
        start,
        table,
        rows: 1,
        parents: None,
        scale: 1.0,
    }
}

fn beginnings<'a>(prompts: &[&'a [u32]], tables: &'a [[u32; 2]; 3]) -> Vec<Feed<'a>> {
    let feeds = prompts.iter().zip(tables);
    feeds.map(|(tokens, table)| feed(tokens, 0, table)).collect()
}

/// One ask for each of so many rows; of the second, nothing may come that is likely.
fn asks<'a>(rows: usize, position: u32, warpers: &'a [Warper; 2], mask: &'a [u32]) -> Vec<Ask<'a>> {
    let ask = |row: usize| Ask {
        row,
        allowed: if row == 1 {
            Allowed::Words(mask)
        } else {
            Allowed::All
        },
        warper: &warpers[usize::from(row == 1)],
        history: History::default(),
        seeded: Seeded::new(row as u64 * 0x9E37_79B9, 3),
        place: Place::new(0, position),
    };
    (0..rows).map(ask).collect()
}

fn warpers() -> [Warper; 2] {
    [1.0, 1e-4].map(|temperature| {
        let warping = Warping {
            temperature,
            ..Warping::default()
        };
        Warper::new(warping, Law::Local).unwrap()
    })
}

fn all_rows(flight: &mut dyn Flight) -> Vec<f32> {
    let numbers: Vec<usize> = (0..flight.len()).collect();
    let rows = flight.rows(&numbers).unwrap();
    numbers.iter().flat_map(|&row| rows.row(row).to_vec()).collect()
}

fn tokens(drawn: &[Option<Drawn>]) -> Vec<Option<u32>> {
    drawn
        .iter()
        .map(|drawn| drawn.as_ref().map(|drawn| drawn.token))
        .collect()
}

/// Two passes one behind the other, of which the host has read nothing yet; the second feeds some of the
/// first, in another order. A row that has to be looked at has fed token 0.
fn passes_behind_draws_have_the_bits_of_passes_that_waited(runner: Runner) {
    each(runner, 12, |kind, mut model, asked| {
        model.leave_out(&[5, 40]);
        let (warpers, mask) = (warpers(), [1_u32 << 9, 1 << 3, 0]);
        let prompts = [&[1, 2, 3][..], &[40], &[80, 9, 10, 11, 12]];
        for _ in 0..3 {
            let [ahead, waiting] = &TABLES;
            let first = |tables| beginnings(&prompts, tables);
            let mut flight = model.submit(&first(ahead)).unwrap();
            assert!(flight.starts_draws());
            let mut drawing = flight.start_draw(&asks(3, 0, &warpers, &mask)).unwrap().unwrap();
            let next = [
                feed(&[0], 5, &ahead[2]),
                feed(&[0], 3, &ahead[0]),
                feed(&[0], 1, &ahead[1]),
            ];
            let mut second = model.submit_after(&*drawing, &[2, 0, 1], &next).unwrap().unwrap();
            let mut drawing_of_second = second
                .start_draw(&asks(3, 1, &warpers, &mask)[..1])
                .unwrap()
                .unwrap();
            let last = [feed(&[0], 6, &ahead[2])];
            let mut third = model
                .submit_after(&*drawing_of_second, &[0], &last)
                .unwrap()
                .unwrap();
            let (drawn, drawn_of_second) = (drawing.wait().unwrap(), drawing_of_second.wait().unwrap());
            let found = [&mut flight, &mut second, &mut third].map(|flight| all_rows(&mut **flight));
            assert!(drawing.wait().is_err(), "draws are read once");

            let mut flight = model.submit(&first(waiting)).unwrap();
            let known = flight.draw(&asks(3, 0, &warpers, &mask)).unwrap();
            assert_eq!(drawn, known, "{kind:?}");
            let [Some(one), None, Some(other)] = tokens(&known)[..] else {
                panic!("{known:?}");
            };
            let (one, other) = ([one], [other]);
            let next = [
                feed(&other, 5, &waiting[2]),
                feed(&one, 3, &waiting[0]),
                feed(&[0], 1, &waiting[1]),
            ];
            let mut second = model.submit(&next).unwrap();
            let known = second.draw(&asks(3, 1, &warpers, &mask)[..1]).unwrap();
            assert_eq!(drawn_of_second, known, "{kind:?}");
            let token = [tokens(&known)[0].unwrap()];
            let mut third = model.submit(&[feed(&token, 6, &waiting[2])]).unwrap();
            let known = [&mut flight, &mut second, &mut third].map(|flight| all_rows(&mut **flight));
            assert_eq!(found, known, "{kind:?}");
        }
        let (ahead, replayed) = (
            counted(&asked, |it| &it.ahead),
            counted(&asked, |it| &it.replayed),
        );
        assert!(ahead >= 6 && replayed > 4, "{asked:?}");
    });
}

/// One launch takes the tokens of 128 draws: what would be fed with more waits for the host.
fn more_draws_than_a_launch_takes_feed_nothing(runner: Runner) {
    each(runner, 130, |kind, mut model, _| {
        model.leave_out(&[5, 40]);
        let (warpers, mask) = (warpers(), [u32::MAX; 3]);
        let tables: Vec<[u32; 1]> = (0..130).map(|block| [block]).collect();
        for (count, is_fed) in [(128, true), (129, false), (130, false)] {
            let first: Vec<Feed<'_>> = tables[..count].iter().map(|table| feed(&[7], 0, table)).collect();
            let mut flight = model.submit(&first).unwrap();
            let mut drawing = flight
                .start_draw(&asks(count, 0, &warpers, &mask))
                .unwrap()
                .unwrap();
            let next: Vec<Feed<'_>> = tables[..count].iter().map(|table| feed(&[0], 1, table)).collect();
            let numbers: Vec<usize> = (0..count).collect();
            let second = model.submit_after(&*drawing, &numbers, &next).unwrap();
            assert_eq!(second.is_some(), is_fed, "{kind:?}, {count} draws");
            drawing.wait().unwrap();
        }
    });
}

/// What a model does not take, it leaves to who asks.
fn draws_that_are_not_there_feed_nothing(runner: Runner) {
    each(runner, 4, |_, mut model, _| {
        let (warpers, tables) = (warpers(), [[0, 1], [2, 3]]);
        model.leave_out(&[]);
        let mut flight = model.submit(&[feed(&[1, 2], 0, &tables[0])]).unwrap();
        let greedy = Warper::new(
            Warping {
                temperature: 0.0,
                ..Warping::default()
            },
            Law::Local,
        )
        .unwrap();
        let ask = Ask {
            warper: &greedy,
            ..asks(1, 0, &warpers, &[])[0]
        };
        // Who starts those some day changes this.
        if let Some(mut drawing) = flight.start_draw(&[ask]).unwrap() {
            assert_eq!(
                tokens(&drawing.wait().unwrap()),
                tokens(&flight.draw(&[ask]).unwrap())
            );
        }
        let drawing = flight.start_draw(&asks(1, 0, &warpers, &[])).unwrap().unwrap();
        let next = [feed(&[0], 2, &tables[0])];
        assert!(model.submit_after(&*drawing, &[1], &next).unwrap().is_none());
        assert!(model.submit_after(&*drawing, &[], &next).unwrap().is_none());
        let two = [feed(&[0, 0], 2, &tables[0])];
        assert!(model.submit_after(&*drawing, &[0], &two).unwrap().is_none());
        let far = [feed(&[0], 32, &tables[0])];
        assert!(matches!(
            model.submit_after(&*drawing, &[0], &far),
            Err(EngineError::Malformed { .. })
        ));
        assert!(model.submit_after(&*drawing, &[0], &next).unwrap().is_some());
        assert!(flight.start_draw(&[]).unwrap().is_none());
        let no_row = Ask {
            row: 7,
            ..asks(1, 0, &warpers, &[])[0]
        };
        assert!(flight.start_draw(&[no_row]).is_err());
    });
}

/// A model that is waited for.
struct Waiting(Box<dyn Model>);

struct Waited(Box<dyn Flight>);

impl Flight for Waited {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn wait(&mut self) -> Result<(), EngineError> {
        self.0.wait()
    }

    fn draws(&self) -> bool {
        self.0.draws()
    }

    fn draw(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>, EngineError> {
        self.0.draw(asks)
    }

    fn top(&mut self, rows: &[usize], count: usize) -> Result<Vec<Vec<(u32, f64)>>, EngineError> {
        self.0.top(rows, count)
    }

    fn rows(&mut self, rows: &[usize]) -> Result<Logits, EngineError> {
        self.0.rows(rows)
    }
}

impl Model for Waiting {
    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    fn max_positions(&self) -> usize {
        self.0.max_positions()
    }

    fn cache_bytes_per_token(&self) -> usize {
        self.0.cache_bytes_per_token()
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError> {
        self.0.create_cache(blocks, block_size)
    }

    fn leave_out(&mut self, columns: &[usize]) {
        self.0.leave_out(columns);
    }

    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError> {
        Ok(Box::new(Waited(self.0.submit(feeds)?)))
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        self.0.move_slots(moves)
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        self.0.copy_blocks(pairs)
    }
}

fn engine(runner: Runner, overlaps: bool, blocks: usize) -> (Engine, Option<Arc<Asked>>) {
    let (model, asked) = runner.model(&llama());
    let model: Box<dyn Model> = if overlaps { model } else { Box::new(Waiting(model)) };
    let config = EngineConfig {
        blocks,
        block_size: 16,
        ..EngineConfig::default()
    };
    (Engine::start(model, None, vocabulary(), config).unwrap(), asked)
}

/// Free texts and texts of a grammar, at temperatures of which the last leaves nothing of what is allowed but
/// where it is likeliest.
fn request(number: u64) -> Request {
    let mut chance = Chance::new(number);
    let prompt = (0..3 + number as usize)
        .map(|_| chance.below(VOCAB) as u32)
        .collect();
    Request::new(prompt, 20 + number as usize * 5 % 17)
        .grammar(
            (!number.is_multiple_of(3)).then(|| grammar_over(&vocabulary(), "[ABC]{4}[D-H]{10}|[D-K]{14}")),
        )
        .sampling(Sampling {
            temperature: [1.0, 0.7, 1e-4][number as usize % 3],
            ..Sampling::seeded(number)
        })
        .ignore_eos(number.is_multiple_of(2))
}

fn told(heard: &Heard) -> (Vec<Event>, Finish, f64) {
    let outcome = heard.outcome();
    (
        heard.tokens_without_origin(),
        outcome.finish,
        outcome.log_probability,
    )
}

/// Alone and together, with a cache so small that they make room for each other.
fn texts_are_those_of_the_loop_that_waits(runner: Runner) {
    for blocks in [200, 12] {
        let (waiting, _) = engine(runner, false, blocks);
        let (overlapping, asked) = engine(runner, true, blocks);
        let all = |engine: &Engine| -> Vec<_> {
            let listeners: Vec<Listener> = (0..9).map(|number| listen(engine, request(number))).collect();
            let mut all: Vec<_> = listeners
                .into_iter()
                .map(|listener| told(&listener.wait()))
                .collect();
            all.extend((9..12).map(|number| told(&generate(engine, request(number)))));
            all
        };
        let (known, found) = (all(&waiting), all(&overlapping));
        // On a card, products depend on how many are in a pass.
        if matches!(runner, Runner::Processor) {
            for (number, (one, other)) in found.iter().zip(&known).enumerate() {
                assert_eq!(one, other, "request {number}");
            }
        }
        let stats = wait_until(&overlapping, |stats| stats.running == 0 && stats.blocks_used == 0);
        assert_eq!((stats.panics, stats.failed), (0, 0));
        assert!(blocks > 12 || stats.preemptions > 0, "{stats:?}");
        assert!(counted(&asked, |it| &it.ahead) > 40, "{asked:?}");
    }
}

/// What is lost ends the requests that it is lost for, and the engine goes on.
#[test]
fn a_launcher_that_fails_under_an_overlap_is_given_up() {
    let name = "a_launcher_that_fails_under_an_overlap_is_given_up";
    if !Runner::Processor.is_there(name) {
        return;
    }
    let plain = request(0).ignore_eos(true).max_tokens(9);
    let mut lost = 0;
    for after in 0..24 {
        let (engine, asked) = engine(Runner::Processor, true, 50);
        let asked = asked.unwrap();
        generate(&engine, plain.clone());
        let steps = asked.steps.load(Ordering::Relaxed);
        asked.refused.store(steps + 60 + after, Ordering::Relaxed);
        let heard = generate(&engine, plain.clone());
        // What was drawn is told; passes go on by libtorch, whose last digits are others.
        match heard.failure() {
            Some(error) => assert!(error.to_string().contains("the card was lost"), "{error}"),
            None => assert_eq!(heard.outcome().finish, Finish::Length),
        }
        lost += usize::from(heard.failure().is_some());
        let again = generate(&engine, plain.clone());
        assert!(again.failure().is_none(), "libtorch serves");
        let stats = wait_until(&engine, |stats| stats.running == 0 && stats.blocks_used == 0);
        assert_eq!(stats.panics, 0);
    }
    assert!(lost > 0, "{lost}");
}

/// Each of these by the kernels on the processor, and on a card.
mod by {
    use crate::planned::by_every_kernel;

    by_every_kernel!(
        passes_behind_draws_have_the_bits_of_passes_that_waited,
        draws_that_are_not_there_feed_nothing,
        more_draws_than_a_launch_takes_feed_nothing,
        texts_are_those_of_the_loop_that_waits,
    );
}
