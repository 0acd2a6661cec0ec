//! A decoder that leaves out some of its layers and drafts for the whole one: self-speculation as in SWIFT
//! ([Xia et al. 2024](https://arxiv.org/abs/2410.06916)).
//!
//! ```text
//!   whole   x ─ 0 ─ 1 ─ 2 ─ 3 ─ 4 ─ 5 ─► logits       one copy of the weights
//!   draft   x ─ 0 ─ 1 ─────── 4 ─ 5 ─► logits         a separate cache, of the layers that it has
//! ```
//!
//! The input of a layer depends on the layers below it, so the keys and values of the whole decoder cannot be
//! used for the draft: each has a separate cache. As a draft model it is like any other, and its tokens are
//! verified by the same rules.
//!
//! The layers to leave out are named by the user, or chosen by similarity on a text
//! ([`clasp`](super::clasp)).
//!
//! Tests: `engine/tests/engine/layer_skipping.rs`.

use super::{Decoder, Result, clasp};
use crate::error::LoadError;
use crate::model::Feed;
use crate::torch::layers::attention::Plan;
use crate::torch::layers::cache::Cache;
use crate::torch::layers::layer::Turns;
use crate::torch::options::SkippedLayers;
use tch::{Kind, Tensor};

/// The most tokens of a text by which layers are chosen; the first ones are used.
const CHOSEN_BY: usize = 512;

impl Decoder {
    /// Returns a decoder without some of the layers, which shares the weights of the others, and the numbers
    /// of the skipped layers.
    ///
    /// # Errors
    /// There is no such layer, none would be left, or there is no text to choose by.
    pub(in crate::torch) fn skipping(
        &self,
        layers: &SkippedLayers,
    ) -> std::result::Result<(Self, Vec<usize>), LoadError> {
        let skipped = match layers {
            SkippedLayers::Named(named) => {
                let mut named = named.clone();
                named.sort_unstable();
                named.dedup();
                named
            }
            SkippedLayers::Likeliest { count, text } => {
                self.check_skipped(*count, None)?;
                let text = &text[..text.len().min(CHOSEN_BY).min(self.config.max_positions)];
                self.check_text(text)?;
                let chosen = self.least_missed(*count, text);
                chosen.map_err(|error| refused(error.to_string()))?
            }
        };
        self.check_skipped(skipped.len(), skipped.last().copied())?;
        let kept = self.layers.iter().enumerate();
        let kept = kept.filter(|(number, _)| !skipped.contains(number));
        let mut config = self.config.clone();
        let mut numbers = 0..config.layers.len();
        config
            .layers
            .retain(|_| numbers.next().is_none_or(|number| !skipped.contains(&number)));
        let decoder = Decoder {
            config,
            place: self.place,
            threads: self.threads,
            crew: self.crew.clone(),
            embedding: self.embedding.share(),
            positions: self.positions.as_ref().map(Tensor::shallow_clone),
            layers: kept.map(|(_, layer)| layer.share()).collect(),
            norm: self.norm.share(),
            head: self.head.share(),
            turns: self.turns.iter().map(Turns::share).collect(),
            caches: Vec::new(),
            states: None,
            block_size: 1,
            left_out: None,
            draws: self.draws,
            batch_invariant: self.batch_invariant,
            planner: self.planner.clone(),
            planned: None,
            tell: self.tell,
        };
        Ok((decoder, skipped))
    }

    fn check_skipped(&self, count: usize, last: Option<usize>) -> std::result::Result<(), LoadError> {
        let layers = self.layers.len();
        let problem = match last {
            Some(last) if last >= layers => {
                format!("there is no layer {last}; the model has {layers}, from 0 on")
            }
            _ if count >= layers => {
                format!("{count} layers cannot be skipped of {layers}: one at least must be left")
            }
            _ if count == 0 => "no layer would be skipped".to_owned(),
            _ => return Ok(()),
        };
        Err(refused(problem))
    }

    fn check_text(&self, text: &[u32]) -> std::result::Result<(), LoadError> {
        let vocabulary = self.config.vocab;
        match text.iter().max() {
            None => Err(refused("there is no text to choose layers by")),
            Some(&token) if i64::from(token) >= vocabulary => Err(refused(format!(
                "the text has token {token}, and the model {vocabulary} tokens"
            ))),
            Some(_) => Ok(()),
        }
    }

    /// Returns the layers without which the hidden states of a text change their direction the least.
    fn least_missed(&self, count: usize, text: &[u32]) -> Result<Vec<usize>> {
        let table: Vec<u32> = (0..text.len().div_ceil(self.block_size) as u32).collect();
        let feed = Feed {
            tokens: text,
            start: 0,
            table: &table,
            rows: 0,
            parents: None,
            scale: 1.0,
        };
        // Both apply only to the calling thread.
        let _no_grad = tch::no_grad_guard();
        tch::set_num_threads(self.threads as i32);
        let mut probe = Probe::new(self, &feed)?;
        let begin = self.embed(&probe.plan)?;
        let layers = (self.layers.len(), count);
        clasp::choose(layers, begin, |layer, x| probe.run(layer, x), likeness)
    }
}

fn refused(message: impl Into<String>) -> LoadError {
    LoadError::Skipped {
        message: message.into(),
    }
}

/// A text to run single layers on.
struct Probe<'d> {
    decoder: &'d Decoder,
    plan: Plan,
    turns: Vec<Turns>,
    /// The cache of every run. Each run writes all that it reads, so one is enough.
    cache: Cache,
}

impl<'d> Probe<'d> {
    fn new(decoder: &'d Decoder, feed: &Feed<'_>) -> Result<Self> {
        let plan = Plan::new(std::slice::from_ref(feed), decoder.layout())?;
        let slots = feed.table.len() * decoder.block_size;
        let heads = decoder.config.attention.heads();
        let turns = decoder.turns.iter();
        let turns = match decoder.crew {
            Some(_) => turns.map(|turns| Ok(turns.share())).collect::<Result<_>>()?,
            None => turns
                .map(|turns| turns.at(&plan.positions))
                .collect::<Result<_>>()?,
        };
        Ok(Probe {
            decoder,
            plan,
            turns,
            cache: Cache::new(slots as i64, heads.keys * heads.size, decoder.place)?,
        })
    }

    /// Returns the output of a layer for hidden states, which are not changed.
    fn run(&mut self, layer: usize, x: &Tensor) -> Result<Tensor> {
        let mut read = x.f_empty_like()?;
        read.f_copy_(x)?;
        let mut x = read;
        let (plan, cache, turns) = (&self.plan, &mut self.cache, &self.turns);
        let layer = &self.decoder.layers[layer];
        match &self.decoder.crew {
            Some(crew) => {
                let mut scratch = x.f_empty_like()?;
                layer.by_loops(crew, &mut x, cache, plan, turns, &mut scratch)?;
            }
            None => layer.by_torch(&mut x, cache, plan, turns)?,
        }
        Ok(x)
    }
}

/// Returns the mean of the cosines of the hidden states of each token.
fn likeness(one: &Tensor, other: &Tensor) -> Result<f64> {
    let [one, other] = [one, other].map(|x| x.f_to_kind(Kind::Float));
    let cosines = Tensor::f_cosine_similarity(&one?, &other?, 1, 1e-12)?;
    f64::try_from(cosines.f_mean(Kind::Float)?)
}
