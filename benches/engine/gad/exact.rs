//! The global law by enumeration: the probability that the model writes a text of the grammar, summed over
//! all prefixes, one length at a time.

use super::rows::{Memo, Task};
use lexiform::MaskRequest;
use lexiform::State;
use lexiform_law::Row;
use std::collections::HashMap;
use std::error::Error;

/// The maximum number of different prefixes of one length; a language with more of them is not enumerated.
const PREFIXES: usize = 20_000;
/// The share of the mass of its length below which a prefix is left out.
const NEGLIGIBLE: f64 = 1e-9;

/// The law `P(w) / Z` of the texts of a task.
pub(crate) struct Enumerated {
    mass: f64,
}

impl Enumerated {
    /// Sums the mass of all texts, or returns `None` if there are too many prefixes. Prefixes after which the
    /// model and the grammar continue alike are merged.
    pub(crate) fn of(task: &Task, memo: &mut Memo<'_>) -> Result<Option<Enumerated>, Box<dyn Error>> {
        let mut mass = 0.0;
        let mut layer: HashMap<(State, Vec<u32>), f64> =
            HashMap::from([((task.grammar.start(), Vec::new()), 1.0)]);
        for length in 0..task.longest {
            let total: f64 = layer.values().sum();
            layer.retain(|_, share| *share >= NEGLIGIBLE * total);
            if layer.len() > PREFIXES {
                return Ok(None);
            }
            let mut next = HashMap::new();
            for ((state, context), before) in layer {
                let row = memo.row(&context)?;
                for token in task
                    .grammar
                    .try_mask(MaskRequest::from(state).within(task.longest - length))
                    .expect("within the limits")
                    .iter()
                {
                    let share = before * row.log_probability(token).exp();
                    if task.ends().contains(&token) {
                        mass += share;
                    } else if let Some(state) = task.grammar.step(state, token) {
                        let longer = [&context[..], &[token]].concat();
                        *next.entry((state, memo.context(&longer).to_vec())).or_default() += share;
                    }
                }
            }
            layer = next;
        }
        Ok(Some(Enumerated { mass }))
    }

    /// Returns `Z`, the probability that the model writes a text of the language.
    pub(crate) fn mass(&self) -> f64 {
        self.mass
    }

    /// Returns `KL(samples ‖ law)` in nats, or `None` without samples.
    pub(crate) fn divergence(
        &self,
        samples: &[Vec<u32>],
        memo: &mut Memo<'_>,
    ) -> Result<Option<f64>, Box<dyn Error>> {
        let mut counts: HashMap<&[u32], usize> = HashMap::new();
        for sample in samples {
            *counts.entry(sample).or_default() += 1;
        }
        let total = samples.len() as f64;
        let mut divergence = 0.0;
        for (text, count) in counts {
            let mut log = 0.0;
            for at in 0..text.len() {
                log += memo.row(&text[..at])?.log_probability(text[at]);
            }
            let share = count as f64 / total;
            divergence += share * (share.ln() + self.mass.ln() - log);
        }
        Ok((!samples.is_empty()).then_some(divergence))
    }
}
