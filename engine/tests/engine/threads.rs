//! Draws on several threads, and from rows that the model measured: the tokens are the same as without.

use crate::rig::{Heard, WIDTH, drafting, global, grammar, letters, listen, vocabulary, wordy_script};
use lexiform_engine::{
    Engine, EngineConfig, EngineError, Feed, Flight, Landed, Law, Logits, LogprobsOf, Model, Reporting,
    Request, Sampling, ScriptedModel, SlotMoves, Speculation, Verification,
};

/// Logits that real models have beyond the vocabulary, so many that threads are worth it.
const WIDE: usize = 1 << 16;

fn wide(prefix: &[u32]) -> Vec<f32> {
    let mut row = wordy_script(prefix);
    row.resize(WIDE, 3.0);
    row
}

/// A model that measures its rows, as those on cards do.
struct Measuring {
    model: ScriptedModel,
    left_out: Vec<usize>,
}

impl Model for Measuring {
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
        let logits = self.model.forward(feeds)?;
        let (mut values, mut peaks, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        let scales: Vec<f64> = feeds
            .iter()
            .flat_map(|feed| std::iter::repeat_n(feed.scale, feed.rows))
            .collect();
        for (number, &scale) in scales.iter().enumerate() {
            let mut row = logits.row(number).to_vec();
            self.left_out
                .iter()
                .for_each(|&column| row[column] = f32::NEG_INFINITY);
            let peak = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weight = |&logit: &f32| (scale * (f64::from(logit) - f64::from(peak))).exp();
            sums.extend(row.chunks(32).map(|block| block.iter().map(weight).sum::<f64>()));
            peaks.push(peak);
            values.extend(row);
        }
        let logits = Logits::new(values, self.vocab_size()).measured(peaks, scales, sums);
        Ok(Box::new(Landed::new(logits)))
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        self.model.move_slots(moves)
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        self.model.copy_blocks(pairs)
    }
}

/// Whether the models measure their rows, and how wide these are.
#[derive(Clone, Copy)]
struct Shape {
    measures: bool,
    width: usize,
}

fn engine(draw_threads: usize, shape: Shape) -> Engine {
    let model = |script: fn(&[u32]) -> Vec<f32>| -> Box<dyn Model> {
        let cut = move |prefix: &[u32]| script(prefix)[..shape.width].to_vec();
        let (model, left_out) = (ScriptedModel::new(shape.width, 1000, cut), Vec::new());
        match shape.measures {
            true => Box::new(Measuring { model, left_out }),
            false => Box::new(model),
        }
    };
    let config = EngineConfig {
        draw_threads,
        ..drafting()
    };
    // The draft model is wrong about every other token.
    let draft = |prefix: &[u32]| match prefix.len() % 2 {
        0 => wide(prefix),
        _ => wide(&prefix[1..]),
    };
    Engine::start(model(wide), Some(model(draft)), vocabulary(), config).unwrap()
}

fn request(number: u64) -> Request {
    let constrained = !number.is_multiple_of(4);
    let tried = global(2000);
    Request::new(letters("ab"), 12)
        .task(if number % 4 == 1 { tried } else { Law::Local })
        .grammar(constrained.then(|| grammar("[a-z ]{2,5}(the|[0-9]{1,3})")))
        .sampling(Sampling {
            temperature: [1.0, 0.7, 1.5][number as usize % 3],
            top_p: if number.is_multiple_of(5) { 0.9 } else { 1.0 },
            top_k: (number % 7 == 3).then_some(20),
            frequency_penalty: if number.is_multiple_of(2) { 0.4 } else { 0.0 },
            logit_bias: (number % 7 == 4).then_some((4, 1.5)).into_iter().collect(),
            ..Sampling::seeded(number)
        })
        .speculation(if number % 3 == 1 {
            Speculation::none()
        } else {
            Speculation {
                // Whether a draft is made depends on how busy the machine is; which text a seed gives then
                // must not.
                verification: Verification::DrawOnce,
                ..Speculation::all()
            }
        })
        .reporting(Reporting {
            logprobs: Some(2),
            logprobs_of: if number.is_multiple_of(2) {
                LogprobsOf::Model
            } else {
                LogprobsOf::Allowed
            },
            ..Reporting::default()
        })
}

fn answers(draw_threads: usize, shape: Shape) -> Vec<Heard> {
    let engine = engine(draw_threads, shape);
    let listeners: Vec<_> = (0..24).map(|number| listen(&engine, request(number))).collect();
    listeners.into_iter().map(|listener| listener.wait()).collect()
}

#[test]
fn threads_change_no_draw() {
    const { assert!(WIDE > WIDTH) };
    let shape = Shape {
        measures: false,
        width: WIDE,
    };
    let alone = answers(1, shape);
    for (number, (one, many)) in alone.iter().zip(answers(8, shape)).enumerate() {
        assert!(!one.tokens().is_empty(), "{number}: {one:?}");
        assert_eq!(
            one.tokens_without_origin(),
            many.tokens_without_origin(),
            "{number}"
        );
        let (one, many) = (one.outcome(), many.outcome());
        assert_eq!(
            (
                one.finish,
                one.law,
                one.log_probability,
                one.log_weight,
                one.attempts
            ),
            (
                many.finish,
                many.law,
                many.log_probability,
                many.log_weight,
                many.attempts
            ),
            "{number}"
        );
    }
}

/// Guards against draws from sums that count what is no token: a hole of the vocabulary, and columns beyond
/// it.
#[test]
fn measures_change_no_draw() {
    for width in [WIDTH, WIDE] {
        let plain = answers(
            1,
            Shape {
                measures: false,
                width,
            },
        );
        let measured = answers(
            8,
            Shape {
                measures: true,
                width,
            },
        );
        for (number, (plain, measured)) in plain.iter().zip(measured).enumerate() {
            assert_eq!(plain.tokens(), measured.tokens(), "{width}, {number}");
            let (plain, measured) = (plain.outcome(), measured.outcome());
            assert_eq!(
                (plain.finish, plain.law),
                (measured.finish, measured.law),
                "{width}, {number}"
            );
            let off = (plain.log_probability - measured.log_probability).abs()
                + (plain.log_weight.unwrap_or_default() - measured.log_weight.unwrap_or_default()).abs();
            assert!(off < 1e-9, "{width}, {number}: off by {off}");
        }
    }
}
