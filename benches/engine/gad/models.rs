//! The models: a network, and a table of n-grams.

use super::rows::Task;
use lexiform::MaskRequest;
use lexiform_engine::{Feed, LoadedModel};
use lexiform_law::{Chooser, Place, Seeded};
use std::collections::HashMap;
use std::error::Error;

/// A model that predicts the token after a prefix of an answer.
pub(crate) trait Model {
    fn logits(&mut self, prefix: &[u32]) -> Result<Vec<f32>, Box<dyn Error>>;

    /// Returns the part of a prefix that the model looks at: the logits after both are the same.
    fn context<'p>(&self, prefix: &'p [u32]) -> &'p [u32] {
        prefix
    }
}

/// The number of tokens of a block of the cache.
const BLOCK: usize = 16;

/// A network after a prompt, whose keys and values are computed once.
pub(crate) struct Demo<'m> {
    model: &'m mut LoadedModel,
    prompt: Vec<u32>,
    table: Vec<u32>,
}

impl<'m> Demo<'m> {
    /// Creates the model. A prompt that does not fit into its context is cut from the left.
    pub(crate) fn new(
        model: &'m mut LoadedModel,
        mut prompt: Vec<u32>,
        tokens: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let positions = model.config.max_positions;
        prompt.drain(..prompt.len().saturating_sub(positions - tokens));
        let blocks = positions.div_ceil(BLOCK);
        model.model.create_cache(blocks, BLOCK)?;
        let table: Vec<u32> = (0..blocks as u32).collect();
        let (last, before) = prompt.split_last().ok_or("the prompt is empty")?;
        if !before.is_empty() {
            let feed = Feed {
                tokens: before,
                start: 0,
                table: &table,
                rows: 1,
                parents: None,
                scale: 1.0,
            };
            model.model.forward(&[feed])?;
        }
        let prompt = [before, &[*last]].concat();
        Ok(Demo { model, prompt, table })
    }
}

impl Model for Demo<'_> {
    fn logits(&mut self, prefix: &[u32]) -> Result<Vec<f32>, Box<dyn Error>> {
        let start = self.prompt.len() - 1;
        let tokens = [&self.prompt[start..], prefix].concat();
        let feed = Feed {
            tokens: &tokens,
            start,
            table: &self.table,
            rows: 1,
            parents: None,
            scale: 1.0,
        };
        Ok(self.model.model.forward(&[feed])?.row(0).to_vec())
    }
}

/// The number of random texts that the n-grams are counted on.
const TEXTS: u32 = 300;
/// The mean number of tokens for each mistake, which replaces a token (possibly the end) by an earlier one of
/// the text.
const MISTAKES: u64 = 60;
/// The share of the probability that each context leaves to shorter ones. `ANY` is the share of all tokens
/// alike.
const BACK_OFF: f64 = 0.05;
const ANY: f64 = 0.0005;

/// The counts of the tokens that followed each context in a corpus.
#[derive(Default)]
struct Counts(HashMap<Vec<u32>, HashMap<u32, f64>>);

impl Counts {
    fn add(&mut self, before: &[u32], token: u32) {
        *self
            .0
            .entry(before.to_vec())
            .or_default()
            .entry(token)
            .or_default() += 1.0;
    }

    /// Adds the share of every token that followed, times a factor. Returns `false` if nothing is known of
    /// the context.
    fn mix(&self, before: &[u32], factor: f64, row: &mut [f64]) -> bool {
        let Some(counts) = self.0.get(before) else {
            return false;
        };
        let total: f64 = counts.values().sum();
        for (&token, count) in counts {
            row[token as usize] += factor * count / total;
        }
        true
    }
}

/// A table of n-grams with back-off.
pub(crate) struct Ngram {
    counts: Counts,
    size: usize,
    /// The maximum number of tokens that it looks back at.
    context: usize,
}

impl Ngram {
    /// Counts n-grams on random texts of the grammar, in which some tokens are mistakes.
    pub(crate) fn counted(task: &Task, context: usize) -> Ngram {
        let mut counts = Counts::default();
        for text in 0..TEXTS {
            let text = random_text(task, Seeded::new(1, text));
            for at in 0..text.len() {
                for length in 0..=context.min(at) {
                    counts.add(&text[at - length..at], text[at]);
                }
            }
        }
        Ngram {
            counts,
            size: task.vocabulary.len(),
            context,
        }
    }
}

/// Returns a text of the grammar as its tokenizer splits it, drawn uniformly from the allowed tokens, with
/// mistakes.
fn random_text(task: &Task, mut chooser: Seeded) -> Vec<u32> {
    let (mut state, mut bytes, mut drawn) = (task.grammar.start(), Vec::new(), 0);
    let end = loop {
        let mask = task
            .grammar
            .try_mask(MaskRequest::from(state).within(task.longest.saturating_sub(drawn)))
            .expect("within the limits");
        let allowed: Vec<u32> = mask.iter().collect();
        let place = Place::new(0, drawn as u32);
        let token = allowed[chooser.choose(place, &vec![1.0; allowed.len()])];
        match task.grammar.step(state, token) {
            Some(next) if !task.ends().contains(&token) => state = next,
            _ => break token,
        }
        bytes.extend_from_slice(task.vocabulary.bytes(token));
        drawn += 1;
    };
    let mut text = task.tokeniser.tokens(&bytes).unwrap_or_default();
    text.push(end);
    for at in 1..text.len() {
        let place = Place::new(1, at as u32);
        if chooser.choose(place, &[1.0, (MISTAKES - 1) as f64]) == 0 {
            text[at] = text[chooser.choose(place.round(1), &vec![1.0; at])];
        }
    }
    text
}

impl Model for Ngram {
    fn logits(&mut self, prefix: &[u32]) -> Result<Vec<f32>, Box<dyn Error>> {
        let mut row = vec![ANY / self.size as f64; self.size];
        let mut left = 1.0 - ANY;
        for length in (0..=self.context.min(prefix.len())).rev() {
            let factor = match length {
                0 => left,
                _ => left * (1.0 - BACK_OFF),
            };
            if self
                .counts
                .mix(&prefix[prefix.len() - length..], factor, &mut row)
            {
                left -= factor;
            }
        }
        Ok(row.into_iter().map(|share| share.ln() as f32).collect())
    }

    fn context<'p>(&self, prefix: &'p [u32]) -> &'p [u32] {
        &prefix[prefix.len().saturating_sub(self.context)..]
    }
}
