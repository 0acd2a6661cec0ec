//! Samples as rows of tokens, gathered into batches of nearly equal length.

use crate::error::Error;
use crate::model::POSITIONS;
use crate::random::Random;
use crate::sample::Sample;
use crate::tokenizer::{self, END, PAD, begins_part};
use crate::writer::Writer;
use tch::{Kind, Tensor};
use tokenizers::Tokenizer;

/// How much a token of the prompt counts beside one of the answer. Some, since reading is learned from it
/// too.
const PROMPT_WEIGHT: f32 = 0.3;
/// Only each eighth token of a prompt is learned from, for the sake of speed: the logits of the others are
/// not needed.
const PROMPT_STRIDE: usize = 8;
/// Of 100 rows, how many have gaps between their positions.
const GAPPED: usize = 20;

/// A sample as tokens: prompt, answer, end.
pub(crate) struct Row {
    pub(crate) ids: Vec<i64>,
    /// The position of each.
    pub(crate) positions: Vec<i64>,
    /// How many of the ids are the prompt's.
    pub(crate) prompt: usize,
}

/// Cuts a sample into tokens.
pub(crate) fn row(tokenizer: &Tokenizer, sample: &Sample) -> Result<Row, Error> {
    let mut ids = tokenizer::encode(tokenizer, &sample.prompt.render())?;
    let prompt = ids.len();
    ids.extend(tokenizer::encode(tokenizer, &sample.answer)?);
    ids.push(END);
    Ok(Row::new(ids, prompt))
}

impl Row {
    /// A row whose positions follow each other.
    pub(crate) fn new(ids: Vec<i64>, prompt: usize) -> Self {
        let positions = (0..ids.len() as i64).collect();
        Self {
            ids,
            positions,
            prompt,
        }
    }

    /// Skips positions where parts of the prompt begin, so that a short text shows the distances of long
    /// ones: what is known as positional skip-wise training (PoSE).
    fn skip(&mut self, random: &mut Random) {
        let begins: Vec<usize> = (1..self.prompt)
            .filter(|&place| begins_part(self.ids[place]))
            .collect();
        if begins.is_empty() || self.ids.len() >= POSITIONS {
            return;
        }
        // Small gaps and large ones alike: the exponent is drawn, not the sum.
        let room = (POSITIONS - self.ids.len()) as f64;
        let mut left = room.powf(0.2 + 0.8 * random.below(1000) as f64 / 1000.0) as usize;
        let count = 1 + random.below(begins.len());
        for index in random.positions(begins.len(), count) {
            let gap = random.below(left + 1);
            left -= gap;
            for position in &mut self.positions[begins[index]..] {
                *position += gap as i64;
            }
        }
    }
}

/// Rows of one length, and the positions after which something is to be said.
pub(crate) struct Batch {
    /// `[rows, tokens]`
    pub(crate) inputs: Tensor,
    /// `[rows, tokens]`
    pub(crate) positions: Tensor,
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
    let (mut inputs, mut positions) = (Vec::new(), Vec::new());
    let (mut targets, mut weights) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let last = row.ids.len() - 1;
        for place in 0..width {
            let inside = place < last;
            inputs.push(if inside { row.ids[place] } else { PAD });
            positions.push(if inside { row.positions[place] } else { 0 });
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
    let size = [rows.len() as i64, width as i64];
    Batch {
        inputs: Tensor::from_slice(&inputs).view(size),
        positions: Tensor::from_slice(&positions).view(size),
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
    longest: usize,
    ready: Vec<Batch>,
}

impl Batches {
    /// Batches of about `tokens` tokens each, of samples of up to `longest`.
    pub(crate) fn new(
        tokenizer: Tokenizer,
        writer: Writer,
        seed: u64,
        (tokens, longest): (usize, usize),
    ) -> Self {
        Self {
            tokenizer,
            writer,
            random: Random::new(seed),
            tokens,
            longest,
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
            let mut row = row(&self.tokenizer, &self.writer.sample(ease))?;
            if self.random.chance(GAPPED) {
                row.skip(&mut self.random);
            }
            if row.ids.len() <= self.longest {
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
