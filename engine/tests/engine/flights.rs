//! Passes that draw by themselves: the text equals the one that is drawn from rows in memory.

use crate::rig::{Heard, WIDTH, global, grammar, letters, listen, vocabulary, wordy_script};
use lexiform_engine::{
    Ask, Engine, EngineConfig, EngineError, Feed, Flight, Landed, Law, Logits, Lookahead, Model, Reporting,
    Request, Sampling, ScriptedModel, SlotMoves, Speculation, Verification,
};
use lexiform_law::Drawn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What passes were asked for.
#[derive(Default)]
struct Counts {
    drawn: AtomicUsize,
    brought: AtomicUsize,
    /// Rows whose likeliest tokens were requested.
    ranked: AtomicUsize,
}

/// What a device does when it is asked for draws.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// It is never asked.
    Never,
    Always,
    /// Every third row has to be looked at.
    SomeRows,
    Fails,
}

/// A model whose passes draw.
struct Drawing {
    model: ScriptedModel,
    manner: Manner,
    counts: Arc<Counts>,
    left_out: Vec<usize>,
}

struct Asked {
    landed: Landed,
    manner: Manner,
    counts: Arc<Counts>,
}

impl Flight for Asked {
    fn len(&self) -> usize {
        self.landed.len()
    }

    fn draws(&self) -> bool {
        self.manner != Manner::Never
    }

    fn draw(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>, EngineError> {
        if self.manner == Manner::Fails {
            return Err(EngineError::Model("no draw".to_string()));
        }
        self.counts.drawn.fetch_add(asks.len(), Ordering::Relaxed);
        let mut drawn = self.landed.draw(asks)?;
        if self.manner == Manner::SomeRows {
            drawn.iter_mut().step_by(3).for_each(|drawn| *drawn = None);
        }
        Ok(drawn)
    }

    fn top(&mut self, rows: &[usize], count: usize) -> Result<Vec<Vec<(u32, f64)>>, EngineError> {
        self.counts.ranked.fetch_add(rows.len(), Ordering::Relaxed);
        self.landed.top(rows, count)
    }

    fn rows(&mut self, rows: &[usize]) -> Result<Logits, EngineError> {
        self.counts.brought.fetch_add(rows.len(), Ordering::Relaxed);
        self.landed.rows(rows)
    }
}

impl Model for Drawing {
    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn max_positions(&self) -> usize {
        self.model.max_positions()
    }

    fn cache_bytes_per_token(&self) -> usize {
        0
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError> {
        self.model.create_cache(blocks, block_size)
    }

    fn leave_out(&mut self, columns: &[usize]) {
        self.left_out = columns.to_vec();
    }

    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError> {
        let rows = self.model.forward(feeds)?;
        let mut values: Vec<f32> = (0..rows.len()).flat_map(|row| rows.row(row).to_vec()).collect();
        for row in values.chunks_mut(WIDTH) {
            self.left_out
                .iter()
                .for_each(|&column| row[column] = f32::NEG_INFINITY);
        }
        Ok(Box::new(Asked {
            landed: Landed::new(Logits::new(values, WIDTH)),
            manner: self.manner,
            counts: self.counts.clone(),
        }))
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        self.model.move_slots(moves)
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        self.model.copy_blocks(pairs)
    }
}

fn engine(manner: Manner, lookahead: Option<Lookahead>) -> (Engine, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    let model = Drawing {
        model: ScriptedModel::new(WIDTH, 1000, wordy_script),
        manner,
        counts: counts.clone(),
        left_out: Vec::new(),
    };
    let config = EngineConfig {
        lookahead,
        ..EngineConfig::default()
    };
    let engine = Engine::start(Box::new(model), None, vocabulary(), config);
    (engine.unwrap(), counts)
}

/// Requests of which most need no row: with and without grammar, greedy and not, drafted as chains and as
/// trees.
fn request(number: u64) -> Request {
    let grammars = ["[a-z ]{2,9}(the|[0-9]{1,3})", "(ab|cd|abab){3,}"];
    let branches = 1 + number as usize % 3;
    Request::new(letters("abab cd ab"), 24)
        .task(if number % 16 == 7 {
            global(2000)
        } else {
            Law::Local
        })
        .grammar((!number.is_multiple_of(3)).then(|| grammar(grammars[number as usize % 2])))
        .sampling(Sampling {
            temperature: if number % 16 == 7 {
                1.0
            } else {
                [1.0, 0.7, 0.0, 1.5][number as usize % 4]
            },
            top_p: if number % 8 == 5 { 0.8 } else { 1.0 },
            top_k: (number % 10 == 1).then_some(5),
            repetition_penalty: if number % 6 == 1 { 1.4 } else { 1.0 },
            frequency_penalty: if number % 9 == 2 { 0.3 } else { 0.0 },
            presence_penalty: if number % 9 == 4 { 0.5 } else { 0.0 },
            logit_bias: if number % 7 == 3 {
                vec![(98, 2.0)]
            } else {
                Vec::new()
            },
            // One that no device knows.
            typical_p: if number % 16 == 13 { 0.9 } else { 1.0 },
            ..Sampling::seeded(number)
        })
        .speculation(Speculation {
            branches,
            verification: Verification::DrawOnce,
            ..Speculation::all()
        })
        .reporting(Reporting {
            logprobs: (number % 5 == 2).then_some(0),
            ..Reporting::default()
        })
}

fn answers(manner: Manner, lookahead: Option<Lookahead>) -> (Vec<Heard>, Arc<Counts>) {
    let (engine, counts) = engine(manner, lookahead);
    let listeners: Vec<_> = (0..64).map(|number| listen(&engine, request(number))).collect();
    let heard = listeners.into_iter().map(|listener| listener.wait()).collect();
    (heard, counts)
}

#[test]
fn a_pass_that_draws_writes_the_same_texts() {
    let (plain, _) = answers(Manner::Never, None);
    assert!(plain.iter().all(|heard| heard.failure().is_none()));
    let guesses = Some(Lookahead::default());
    for (manner, lookahead) in [
        (Manner::Always, None),
        (Manner::SomeRows, None),
        (Manner::Always, guesses),
        (Manner::SomeRows, guesses),
    ] {
        let (drawn, counts) = answers(manner, lookahead);
        for (number, (one, other)) in plain.iter().zip(&drawn).enumerate() {
            assert_eq!(
                one.tokens_without_origin(),
                other.tokens_without_origin(),
                "{number}"
            );
            let [one, other] = [one, other].map(|heard| heard.outcome());
            assert_eq!((one.finish, one.law), (other.finish, other.law), "{number}");
            assert_eq!(one.log_weight, other.log_weight, "{number}");
        }
        let [drawn, brought] = [&counts.drawn, &counts.brought].map(|count| count.load(Ordering::Relaxed));
        assert!(drawn > 500, "{drawn}");
        if manner == Manner::Always && lookahead.is_none() {
            assert!(brought < drawn, "{brought} rows were brought, {drawn} drawn");
        }
    }
}

#[test]
fn a_draw_that_fails_ends_the_requests_of_its_pass() {
    let (engine, _) = engine(Manner::Fails, None);
    let heard = listen(&engine, request(1)).wait();
    assert_eq!(heard.failure(), Some(&EngineError::Model("no draw".to_string())));
    let stats = crate::rig::wait_until(&engine, |stats| stats.running == 0);
    assert_eq!(stats.blocks_used, 0);
}

/// Where only the token is wanted, no row comes to memory.
#[test]
fn nothing_is_brought_that_nobody_asked_for() {
    let (engine, counts) = engine(Manner::Always, Some(Lookahead::default()));
    let request = Request::new(letters("ab"), 12)
        .grammar(Some(grammar("[a-z ]{2,9}(the|[0-9]{1,3})")))
        .sampling(Sampling {
            temperature: 0.7,
            top_p: 0.9,
            top_k: Some(20),
            min_p: 0.01,
            frequency_penalty: 0.2,
            repetition_penalty: 1.1,
            ..Sampling::seeded(3)
        })
        .speculation(Speculation {
            learned: true,
            max_draft: 8,
            ..Speculation::none()
        });
    assert!(listen(&engine, request).wait().failure().is_none());
    assert_eq!(counts.brought.load(Ordering::Relaxed), 0);
}

/// Guards against stores that learn the drawn token alone where the device draws: what else was likely is
/// then forgotten.
#[test]
fn stores_learn_what_the_device_found_likely() {
    let (engine, counts) = engine(Manner::Always, None);
    let request = |learned| {
        Request::new(letters("ab"), 12)
            .sampling(Sampling::seeded(5))
            .ignore_eos(true)
            .speculation(Speculation {
                learned,
                max_draft: 8,
                ..Speculation::none()
            })
    };
    assert!(listen(&engine, request(true)).wait().failure().is_none());
    let ranked = counts.ranked.load(Ordering::Relaxed);
    assert!(ranked >= 12, "{ranked}");
    assert_eq!(counts.brought.load(Ordering::Relaxed), 0);
}
