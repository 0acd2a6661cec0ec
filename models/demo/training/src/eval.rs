//! Measures a model: greedy answers to held-out prompts, counted right only if every byte is.

use crate::batch::{self, Row};
use crate::error::Error;
use crate::model::Model;
use crate::sample::{Kind, Sample};
use crate::text::Words;
use crate::tokenizer::{self, END};
use crate::writer::Writer;
use tch::Tensor;
use tokenizers::Tokenizer;

/// The seed of held-out samples; training must not use it.
pub(crate) const SEED: u64 = 0x0068_656c_646f_7574;

/// How many answers were right, of how many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    pub(crate) right: usize,
    pub(crate) of: usize,
}

/// `count` samples of a kind that training has not seen.
pub(crate) fn samples(count: usize, seed: u64, words: Words, kind: Kind) -> Vec<Sample> {
    let mut writer = Writer::new(seed ^ SEED ^ (kind as u64) << 32, words);
    (0..count).map(|_| writer.of(kind)).collect()
}

/// Counts the samples whose greedy answer is right, and lists up to `show` wrong ones.
///
/// The greedy answer is right exactly if, with the right answer laid before the model, each next token of it
/// ranks first; so one pass over prompt and answer decides, and nothing needs to be decoded token by token.
pub(crate) fn measure(
    model: &Model,
    tokenizer: &Tokenizer,
    samples: &[Sample],
    show: usize,
) -> Result<Score, Error> {
    let mut score = Score {
        right: 0,
        of: samples.len(),
    };
    let mut shown = 0;
    for sample in samples {
        let row = batch::row(tokenizer, sample)?;
        if passes(model, row) {
            score.right += 1;
        } else if shown < show {
            shown += 1;
            let prompt = sample.prompt.render();
            let got = answer(model, tokenizer, &prompt, 200)?;
            println!("{prompt}\n  want {}\n  got  {got}", sample.answer);
        }
    }
    Ok(score)
}

fn passes(model: &Model, row: Row) -> bool {
    let batch = batch::lay(&[row]);
    let (right, all) =
        tch::no_grad(|| batch.right(&model.logits(&batch.inputs, &batch.positions, &batch.places)));
    right == all
}

/// The greedy continuation of `prompt`, to the end token or `most` tokens.
pub(crate) fn answer(
    model: &Model,
    tokenizer: &Tokenizer,
    prompt: &str,
    most: usize,
) -> Result<String, Error> {
    let ids = tokenizer::encode(tokenizer, prompt)?;
    let mut out = Vec::new();
    tch::no_grad(|| {
        let mut cache = model.empty_cache();
        let mut next = Tensor::from_slice(&ids).unsqueeze(0);
        let mut position = 0;
        while out.len() < most {
            let logits = model.step(&next, position, &mut cache);
            position += next.size()[1];
            let best = logits.argmax(-1, false).int64_value(&[0]);
            if best == END {
                break;
            }
            out.push(best as u32);
            next = Tensor::from_slice(&[best]).unsqueeze(0);
        }
    });
    Ok(tokenizer.decode(&out, false)?)
}
