//! The training loop: as many steps as fit into the given minutes.
//!
//! ```text
//!  rate  ▁▃▇████████████▆▅▃▂▁    warm-up, then full, then down to nothing
//!  ease  ███▆▅▃▂▁▁▁▁▁▁▁▁▁▁▁▁▁    simple samples first, so that copying is learned early
//!        0 ───── share of the minutes ───── 1
//! ```

use crate::batch::Batches;
use crate::error::Error;
use crate::export;
use crate::model::{Model, Shape};
use crate::optim::{Optimizer, Rates};
use crate::text::{Words, Writer};
use crate::tokenizer;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tch::{Kind, Reduction, Tensor};

/// How to train.
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) tokenizer: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) checkpoint: PathBuf,
    pub(crate) resume: Option<PathBuf>,
    pub(crate) minutes: f64,
    pub(crate) seed: u64,
    pub(crate) batch: usize,
    pub(crate) rates: Rates,
    /// The share of the time during which simple samples fade out.
    pub(crate) simple: f64,
    /// The share of the time in which the rates go down to nothing.
    pub(crate) fall: f64,
}

/// Between two lines of the report.
const REPORT: usize = 20;
/// Seconds between two checkpoints.
const CHECKPOINT: f64 = 180.0;

/// Trains as planned and writes the model.
pub(crate) fn train(plan: &Plan) -> Result<(), Error> {
    let mut model = match &plan.resume {
        Some(path) => export::load_weights(plan.shape, path)?,
        None => Model::new(plan.shape, plan.seed),
    };
    let mut optimizer = Optimizer::new(&mut model);
    let tokenizer = tokenizer::open(&plan.tokenizer)?;
    let mut batches = Batches::new(
        tokenizer,
        Writer::new(plan.seed, Words::Seen),
        plan.seed,
        plan.batch,
    );
    println!("{} parameters", model.size());
    let begin = Instant::now();
    let (mut tokens, mut saved) = (0, 0.0);
    let mut report = Report::default();
    for step in 0.. {
        let elapsed = begin.elapsed().as_secs_f64();
        let share = elapsed / (plan.minutes * 60.0);
        if share >= 1.0 {
            break;
        }
        let batch = batches.next(ease(share, plan.simple))?;
        tokens += batch.tokens;
        let logits = model.logits(&batch.inputs);
        let loss = loss(&logits, &batch.targets, &batch.weights);
        loss.backward();
        let norm = optimizer.step(&mut model, scaled(plan.rates, share, plan.fall));
        report.add(
            loss.double_value(&[]),
            tch::no_grad(|| batch.accuracy(&logits)),
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
            export::save_checkpoint(&model, &plan.checkpoint)?;
        }
    }
    export::save_checkpoint(&model, &plan.checkpoint)?;
    println!(
        "{tokens} tokens in {:.1} minutes",
        begin.elapsed().as_secs_f64() / 60.0
    );
    finish(&model, &plan.tokenizer, &plan.out)
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
    let flat = logits.view([-1, logits.size()[2]]);
    let losses = flat.cross_entropy_loss(&targets.view([-1]), None::<Tensor>, Reduction::None, -100, 0.0);
    (losses * weights.view([-1])).sum(Kind::Float) / weights.sum(Kind::Float)
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

/// Means of the figures since the last line.
#[derive(Default)]
struct Report {
    sums: [f64; 3],
    count: f64,
}

impl Report {
    fn add(&mut self, loss: f64, accuracy: f64, norm: f64) {
        for (sum, value) in self.sums.iter_mut().zip([loss, accuracy, norm]) {
            *sum += value;
        }
        self.count += 1.0;
    }

    fn line(&mut self) -> String {
        let [loss, accuracy, norm] = self.sums.map(|sum| sum / self.count);
        *self = Self::default();
        format!(
            "loss {loss:.3} | answer tokens right {:.1} % | gradient {norm:.2}",
            accuracy * 100.0
        )
    }
}
