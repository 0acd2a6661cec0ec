//! The training loop: as many steps as fit into the given minutes or tokens.
//!
//! ```text
//!  rate  ▁▃▇████████████▆▅▃▂▁    warm-up, then full, then down to nothing
//!  ease  ███▆▅▃▂▁▁▁▁▁▁▁▁▁▁▁▁▁    simple samples first, so that copying is learned early
//!        0 ───── share of the training ───── 1
//! ```

pub(crate) mod optim;

use crate::batch::Batches;
use crate::error::Error;
use crate::export;
use crate::model::{Model, Shape};
use crate::text::Words;
use crate::tokenizer;
use crate::writer::Writer;
use optim::Optimizer;
pub(crate) use optim::Rates;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tch::{Kind, Reduction, Tensor};

/// How to train.
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) tokenizer: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) checkpoint: Option<PathBuf>,
    pub(crate) resume: Option<PathBuf>,
    pub(crate) length: Length,
    pub(crate) seed: u64,
    pub(crate) batch: usize,
    /// Longer samples are left out.
    pub(crate) longest: usize,
    pub(crate) rates: Rates,
    /// The share of the time during which simple samples fade out.
    pub(crate) simple: f64,
    /// The share of the time in which the rates go down to nothing.
    pub(crate) fall: f64,
}

/// How long to train.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    /// By the clock: how far it comes depends on the machine.
    Minutes(f64),
    /// By tokens: the same on every machine.
    Tokens(usize),
}

impl Length {
    /// How much of it is done.
    fn share(self, seconds: f64, tokens: usize) -> f64 {
        match self {
            Self::Minutes(minutes) => seconds / (minutes * 60.0),
            Self::Tokens(all) => tokens as f64 / all as f64,
        }
    }
}

/// Between two lines of the report.
const REPORT: usize = 20;
/// Seconds between two checkpoints.
const CHECKPOINT: f64 = 180.0;

/// Trains as planned and writes the model.
pub(crate) fn train(plan: &Plan) -> Result<(), Error> {
    let mut model = match &plan.resume {
        Some(path) => export::load_grown(plan.shape, path)?,
        None => Model::new(plan.shape, plan.seed),
    };
    let mut optimizer = Optimizer::new(&mut model);
    let tokenizer = tokenizer::open(&plan.tokenizer)?;
    let mut batches = Batches::new(
        tokenizer,
        Writer::new(plan.seed, Words::Seen),
        plan.seed,
        (plan.batch, plan.longest),
    );
    println!("{} parameters", model.size());
    let begin = Instant::now();
    let (mut tokens, mut saved) = (0, 0.0);
    let mut report = Report::default();
    for step in 0.. {
        let elapsed = begin.elapsed().as_secs_f64();
        let share = plan.length.share(elapsed, tokens);
        if share >= 1.0 {
            break;
        }
        let batch = batches.next(ease(share, plan.simple))?;
        tokens += batch.tokens;
        let logits = model.logits(&batch.inputs, &batch.positions, &batch.places);
        let loss = loss(&logits, &batch.targets, &batch.weights);
        loss.backward();
        let norm = optimizer.step(&mut model, scaled(plan.rates, share, plan.fall));
        report.add(
            loss.double_value(&[]),
            tch::no_grad(|| batch.right(&logits)),
            norm,
        );
        if step % REPORT == REPORT - 1 {
            let line = report.line();
            println!(
                "step {} | {:.1} min | {tokens} tokens, {:.0}/s | {line}",
                step + 1,
                elapsed / 60.0,
                tokens as f64 / elapsed
            );
        }
        if elapsed - saved > CHECKPOINT {
            saved = elapsed;
            keep(&model, plan)?;
        }
    }
    keep(&model, plan)?;
    println!(
        "{tokens} tokens in {:.1} minutes",
        begin.elapsed().as_secs_f64() / 60.0
    );
    finish(&model, &plan.tokenizer, &plan.out)
}

/// Writes a checkpoint, if the plan wants any.
fn keep(model: &Model, plan: &Plan) -> Result<(), Error> {
    plan.checkpoint
        .as_ref()
        .map_or(Ok(()), |path| export::save_checkpoint(model, path))
}

/// Writes the model with the tokenizer beside it.
pub(crate) fn finish(model: &Model, tokenizer: &Path, out: &Path) -> Result<(), Error> {
    export::save(model, out)?;
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        if tokenizer != out {
            crate::error::write(&out.join(name), &crate::error::read(&tokenizer.join(name))?)?;
        }
    }
    Ok(())
}

fn loss(logits: &Tensor, targets: &Tensor, weights: &Tensor) -> Tensor {
    let losses = logits.cross_entropy_loss(targets, None::<Tensor>, Reduction::None, -100, 0.0);
    (losses * weights).sum(Kind::Float) / weights.sum(Kind::Float)
}

/// The percentage of simple samples.
fn ease(share: f64, simple: f64) -> usize {
    if simple <= 0.0 {
        4
    } else {
        (90.0 * (1.0 - share / simple)).max(4.0) as usize
    }
}

fn scaled(rates: Rates, share: f64, fall: f64) -> Rates {
    let warm = (share / 0.01).clamp(0.05, 1.0);
    let factor = warm.min(((1.0 - share) / fall).clamp(0.0, 1.0));
    Rates {
        muon: rates.muon * factor,
        adam: rates.adam * factor,
        ..rates
    }
}

/// Sums of the figures since the last line.
#[derive(Default)]
struct Report {
    loss: f64,
    norm: f64,
    steps: f64,
    right: f64,
    answers: f64,
}

impl Report {
    fn add(&mut self, loss: f64, (right, answers): (f64, f64), norm: f64) {
        self.loss += loss;
        self.norm += norm;
        self.right += right;
        self.answers += answers;
        self.steps += 1.0;
    }

    fn line(&mut self) -> String {
        let Self {
            loss,
            norm,
            steps,
            right,
            answers,
        } = std::mem::take(self);
        let percent = 100.0 * right / answers;
        format!(
            "loss {:.3} | answer tokens right {percent:.1} % | gradient {:.2}",
            loss / steps,
            norm / steps
        )
    }
}

#[cfg(test)]
mod tests {
    use super::optim::{Optimizer, Rates};
    use super::{ease, loss, scaled};
    use crate::batch::{self, Row};
    use crate::model::{Model, Shape};

    #[test]
    fn rates_rise_and_fall() {
        let rates = Rates {
            muon: 1.0,
            adam: 0.5,
            decay: 0.1,
        };
        let muon = |share| scaled(rates, share, 0.5).muon;
        assert!(muon(0.0) < muon(0.005) && muon(0.005) < muon(0.01));
        assert!((muon(0.3) - 1.0).abs() < 1e-9 && (muon(0.75) - 0.5).abs() < 1e-9);
        assert!(muon(0.999) < 0.01);
        assert!(ease(0.0, 0.2) > ease(0.1, 0.2) && ease(0.1, 0.2) > ease(0.2, 0.2));
    }

    #[test]
    fn a_few_steps_learn_a_batch_by_heart() {
        tch::set_num_threads(1);
        let shape = Shape {
            layers: 1,
            width: 32,
            heads: 2,
            key_heads: 1,
            hidden: 48,
            vocabulary: 30,
        };
        let mut model = Model::new(shape, 1);
        let mut optimizer = Optimizer::new(&mut model);
        let batch = batch::lay(&[
            Row::new(vec![2, 9, 4, 7, 7, 8, 1], 3),
            Row::new(vec![2, 5, 4, 6, 1], 3),
        ]);
        let mut losses = Vec::new();
        for _ in 0..40 {
            let loss = loss(
                &model.logits(&batch.inputs, &batch.positions, &batch.places),
                &batch.targets,
                &batch.weights,
            );
            losses.push(loss.double_value(&[]));
            loss.backward();
            optimizer.step(
                &mut model,
                Rates {
                    muon: 0.02,
                    adam: 0.01,
                    decay: 0.0,
                },
            );
        }
        let (first, last) = (losses[0], losses[losses.len() - 1]);
        assert!(last < first / 4.0, "the loss went from {first} to {last}");
        let (right, all) = batch.right(&model.logits(&batch.inputs, &batch.positions, &batch.places));
        assert_eq!((right, all), (6.0, 6.0));
    }
}
