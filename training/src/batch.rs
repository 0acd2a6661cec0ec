//! Samples as rows of tokens, gathered into batches of nearly equal length.

use crate::error::Error;
use crate::random::Random;
use crate::text::{Sample, Writer};
use crate::tokenizer::{self, END, PAD};
use tch::{Kind, Tensor};
use tokenizers::Tokenizer;

/// How much a token of the prompt counts beside one of the answer. Some, since reading is learned from it too.
const PROMPT_WEIGHT: f32 = 0.1;
/// Longer samples are left out.
const LONGEST: usize = 400;

/// A sample as tokens: prompt, answer, end.
pub(crate) struct Row {
    pub(crate) ids: Vec<i64>,
    /// How many of the ids are the prompt's.
    pub(crate) prompt: usize,
}

/// Cuts a sample into tokens.
pub(crate) fn row(tokenizer: &Tokenizer, sample: &Sample) -> Result<Row, Error> {
    let mut ids = tokenizer::encode(
        tokenizer,
        &tokenizer::prompt(&sample.text, sample.sketch.as_deref()),
    )?;
    let prompt = ids.len();
    ids.extend(tokenizer::encode(tokenizer, &sample.answer)?);
    ids.push(END);
    Ok(Row { ids, prompt })
}

/// Rows of one length, with what each position should say next and how much that counts.
pub(crate) struct Batch {
    pub(crate) inputs: Tensor,
    pub(crate) targets: Tensor,
    pub(crate) weights: Tensor,
    /// True where the target is a token of an answer.
    pub(crate) answers: Tensor,
    /// How many tokens are no padding.
    pub(crate) tokens: usize,
}

/// Lays `rows` into one batch, padded to the longest.
pub(crate) fn lay(rows: &[Row]) -> Batch {
    let width = rows.iter().map(|row| row.ids.len()).max().unwrap_or(1) - 1;
    let (mut inputs, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let last = row.ids.len() - 1;
        for place in 0..width {
            let inside = place < last;
            inputs.push(if inside { row.ids[place] } else { PAD });
            targets.push(if inside { row.ids[place + 1] } else { PAD });
            weights.push(match inside {
                false => 0.0,
                true if place + 1 < row.prompt => PROMPT_WEIGHT,
                true => 1.0,
            });
        }
    }
    let size = [rows.len() as i64, width as i64];
    let weights = Tensor::from_slice(&weights).view(size);
    Batch {
        inputs: Tensor::from_slice(&inputs).view(size),
        targets: Tensor::from_slice(&targets).view(size),
        answers: weights.eq(1.0),
        weights,
        tokens: rows.iter().map(|row| row.ids.len()).sum(),
    }
}

impl Batch {
    /// Which targets the logits `[rows, tokens, vocabulary]` put first, as `[rows, tokens]` truth values.
    pub(crate) fn right(&self, logits: &Tensor) -> Tensor {
        logits.argmax(-1, false).eq_tensor(&self.targets)
    }

    /// The share of answer tokens that are right.
    pub(crate) fn accuracy(&self, logits: &Tensor) -> f64 {
        let right = self
            .right(logits)
            .logical_and(&self.answers)
            .sum(Kind::Float)
            .double_value(&[]);
        right / self.answers.sum(Kind::Float).double_value(&[])
    }
}

/// An endless source of batches for training.
pub(crate) struct Batches {
    tokenizer: Tokenizer,
    writer: Writer,
    random: Random,
    tokens: usize,
    ready: Vec<Batch>,
}

impl Batches {
    /// Batches of about `tokens` tokens each.
    pub(crate) fn new(tokenizer: Tokenizer, writer: Writer, seed: u64, tokens: usize) -> Self {
        Self {
            tokenizer,
            writer,
            random: Random::new(seed),
            tokens,
            ready: Vec::new(),
        }
    }

    /// The next batch, in which `ease` percent of the samples are simple.
    pub(crate) fn next(&mut self, ease: usize) -> Result<Batch, Error> {
        if self.ready.is_empty() {
            self.refill(ease)?;
        }
        Ok(self.ready.remove(0))
    }

    /// Rows of similar length share a batch, so that little is padding; batches then come in random order.
    fn refill(&mut self, ease: usize) -> Result<(), Error> {
        let mut rows = Vec::new();
        while rows.len() < 600 {
            let row = row(&self.tokenizer, &self.writer.sample(ease))?;
            if row.ids.len() <= LONGEST {
                rows.push(row);
            }
        }
        rows.sort_by_key(|row| row.ids.len());
        while let Some(longest) = rows.last().map(|row| row.ids.len()) {
            let count = (self.tokens / longest).clamp(1, rows.len());
            self.ready.push(lay(&rows.split_off(rows.len() - count)));
        }
        self.random.shuffle(&mut self.ready);
        Ok(())
    }
}
