//! Samples as rows of tokens, gathered into batches of nearly equal length.

use crate::error::Error;
use crate::random::Random;
use crate::text::{Sample, Writer};
use crate::tokenizer::{self, END, PAD};
use tch::{Kind, Tensor};
use tokenizers::Tokenizer;

/// How much a token of the prompt counts beside one of the answer. Some, since reading is learned from it too.
const PROMPT_WEIGHT: f32 = 0.4;
/// Only each fourth token of a prompt is learned from, for the sake of speed: the logits of the others are not needed.
const PROMPT_STRIDE: usize = 4;
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

/// Rows of one length, and the positions after which something is to be said.
pub(crate) struct Batch {
    /// `[rows, tokens]`
    pub(crate) inputs: Tensor,
    /// The positions that count, as indices into all positions of all rows.
    pub(crate) places: Tensor,
    /// What should be said there.
    pub(crate) targets: Tensor,
    /// How much each counts.
    pub(crate) weights: Tensor,
    /// How many tokens are no padding.
    pub(crate) tokens: usize,
}

/// Lays `rows` into one batch, padded to the longest.
pub(crate) fn lay(rows: &[Row]) -> Batch {
    let width = rows.iter().map(|row| row.ids.len()).max().unwrap_or(1) - 1;
    let (mut inputs, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let last = row.ids.len() - 1;
        for place in 0..width {
            let inside = place < last;
            inputs.push(if inside { row.ids[place] } else { PAD });
            targets.push(if inside { row.ids[place + 1] } else { PAD });
            weights.push(match place + 1 < row.prompt {
                _ if !inside => 0.0,
                true if (place + number) % PROMPT_STRIDE == 0 => PROMPT_WEIGHT,
                true => 0.0,
                false => 1.0,
            });
        }
    }
    let all = Tensor::from_slice(&weights);
    let places = all.nonzero().view([-1]);
    Batch {
        inputs: Tensor::from_slice(&inputs).view([rows.len() as i64, width as i64]),
        targets: Tensor::from_slice(&targets).index_select(0, &places),
        weights: all.index_select(0, &places),
        places,
        tokens: rows.iter().map(|row| row.ids.len()).sum(),
    }
}

impl Batch {
    /// How many answer tokens the logits `[places, vocabulary]` put first, and how many there are.
    pub(crate) fn right(&self, logits: &Tensor) -> (f64, f64) {
        let answers = self.weights.eq(1.0);
        let right = logits
            .argmax(-1, false)
            .eq_tensor(&self.targets)
            .logical_and(&answers);
        (
            right.sum(Kind::Float).double_value(&[]),
            answers.sum(Kind::Float).double_value(&[]),
        )
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
