//! Methods that choose among choices by the log-probabilities of their tokens, as SGLang's `choices` does.
//!
//! | method | the choice with the highest |
//! |---|---|
//! | `token_length_normalized` | mean of its tokens' log-probabilities |
//! | `greedy_token_selection` | log-probability of its first token; of those, of its second token, and so on |
//! | `unconditional_likelihood_normalized` | mean of the differences to those without the prompt |
//!
//! Where the greedy selection compares a choice beyond its last token, the mean of its tokens counts. Without
//! the prompt, a choice is read from its first token, which has no log-probability then; it counts as zero.
//! The first of several equal choices is chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use lexiform_engine::{Options, OptionsError, Weighed};
use serde_json::{Map, Value, json};

use crate::model::weighing::logs;
use crate::wire::decisions::{Choice, Method, Question};
use crate::wire::response::finite;

/// The token sequences of choices, and the trees of tokens whose probabilities a method needs.
pub(super) struct TokenTrees {
    method: Method,
    sequences: Vec<Vec<u32>>,
    /// The tokens after the prompt.
    pub(super) prompted: Arc<Options>,
    /// The tokens after each first token, without the prompt; only if the method asks for them.
    pub(super) unprompted: BTreeMap<u32, Arc<Options>>,
}

impl TokenTrees {
    /// Returns the trees of these sequences, each of which has at least one token.
    ///
    /// # Errors
    /// Fails if the sequences have too many tokens.
    pub(super) fn new(method: Method, sequences: Vec<Vec<u32>>) -> Result<Self, OptionsError> {
        let prompted = Arc::new(Options::beginnings(&sequences)?);
        let mut rests: BTreeMap<u32, Vec<Vec<u32>>> = BTreeMap::new();
        if method == Method::UnconditionalLikelihoodNormalized {
            for sequence in &sequences {
                if let Some((&first, rest)) = sequence.split_first().filter(|(_, rest)| !rest.is_empty()) {
                    rests.entry(first).or_default().push(rest.to_vec());
                }
            }
        }
        let tree = |(first, rests): (u32, Vec<Vec<u32>>)| Ok((first, Arc::new(Options::beginnings(&rests)?)));
        Ok(Self {
            method,
            prompted,
            unprompted: rests.into_iter().map(tree).collect::<Result<_, _>>()?,
            sequences,
        })
    }

    /// Returns the answer to a question, from the weights of the tree after the prompt and of those without
    /// it, in their order.
    pub(super) fn answer(&self, question: &Question, weighed: &[Vec<Weighed>]) -> Value {
        let mut weighed = weighed.iter().map(|weighed| logs(weighed));
        let after_prompt = weighed.next().unwrap_or_default();
        let without: BTreeMap<u32, Vec<f64>> = self.unprompted.keys().copied().zip(weighed).collect();
        let sequences = self.sequences.iter();
        let prompted: Vec<Vec<f64>> = sequences
            .map(|sequence| token_logs(&self.prompted, sequence, &after_prompt))
            .collect();
        let unprompted = self.sequences.iter().map(|sequence| {
            let mut logs = vec![0.0];
            if let Some((first, rest)) = sequence.split_first()
                && let (Some(options), Some(weights)) = (self.unprompted.get(first), without.get(first))
            {
                logs.extend(token_logs(options, rest, weights));
            }
            logs
        });
        let unprompted: Vec<Vec<f64>> = unprompted.collect();
        let (best, scores) = choose(self.method, &prompted, &unprompted);
        let shown = |logs: &[f64]| json!(logs.iter().map(|&log| finite(log)).collect::<Vec<_>>());
        let entry = |(place, choice): (usize, &Choice)| {
            let mut entry = Map::new();
            entry.insert("value".to_owned(), choice.value.clone());
            if let Some(scores) = &scores {
                entry.insert("score".to_owned(), json!(finite(scores[place])));
            }
            entry.insert("token_logprobs".to_owned(), shown(&prompted[place]));
            if self.method == Method::UnconditionalLikelihoodNormalized {
                entry.insert(
                    "unconditional_token_logprobs".to_owned(),
                    shown(&unprompted[place]),
                );
            }
            Value::Object(entry)
        };
        let entries: Vec<Value> = question.options.iter().enumerate().map(entry).collect();
        json!({"type": "choice", "name": question.name, "choices_method": self.method.name(),
               "choice": question.options.get(best).map(|option| &option.value), "scores": entries})
    }
}

/// Returns the log-probability of each token of a sequence, from those of its beginnings.
fn token_logs(options: &Options, sequence: &[u32], weights: &[f64]) -> Vec<f64> {
    let mut before = 0.0;
    let log = |option: usize| {
        let all = weights.get(option).copied().unwrap_or(f64::NEG_INFINITY);
        let log = match all.is_finite() {
            true => all - before,
            false => f64::NEG_INFINITY,
        };
        before = all;
        log
    };
    options.along(sequence).into_iter().map(log).collect()
}

/// Returns the place of the best choice, and the scores of all if the method has such.
fn choose(method: Method, prompted: &[Vec<f64>], unprompted: &[Vec<f64>]) -> (usize, Option<Vec<f64>>) {
    let scores: Vec<f64> = match method {
        Method::GreedyTokenSelection => return (greedy(prompted), None),
        Method::TokenLengthNormalized => prompted.iter().map(|logs| mean(logs.iter().copied())).collect(),
        Method::UnconditionalLikelihoodNormalized => {
            let both = prompted.iter().zip(unprompted);
            both.map(|(with, without)| mean(with.iter().zip(without).map(|(with, without)| with - without)))
                .collect()
        }
    };
    let all: Vec<usize> = (0..scores.len()).collect();
    let best = highest(&all, |place| scores[place]);
    (best.first().copied().unwrap_or(0), Some(scores))
}

/// Returns the place that is chosen token by token.
fn greedy(logs: &[Vec<f64>]) -> usize {
    let longest = logs.iter().map(Vec::len).max().unwrap_or(0);
    let means: Vec<f64> = logs.iter().map(|logs| mean(logs.iter().copied())).collect();
    let mut left: Vec<usize> = (0..logs.len()).collect();
    for token in 0..longest {
        if left.len() < 2 {
            break;
        }
        left = highest(&left, |place| {
            logs[place].get(token).copied().unwrap_or(means[place])
        });
    }
    left.first().copied().unwrap_or(0)
}

/// Returns the places with the highest score, in order.
fn highest(places: &[usize], score: impl Fn(usize) -> f64) -> Vec<usize> {
    let most = places
        .iter()
        .map(|&place| score(place))
        .fold(f64::NEG_INFINITY, f64::max);
    places
        .iter()
        .copied()
        .filter(|&place| score(place) >= most)
        .collect()
}

fn mean(logs: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = logs.len();
    logs.sum::<f64>() / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `organ`, `organ ism` and a long word whose later tokens are certain.
    fn prompted() -> Vec<Vec<f64>> {
        vec![
            vec![-0.5],
            vec![-0.5, -1.5],
            vec![-2.0, -0.0625, -0.0625, -0.0625],
        ]
    }

    #[test]
    fn the_methods_choose_by_their_definitions() {
        let prompted = prompted();
        let (best, scores) = choose(Method::TokenLengthNormalized, &prompted, &[]);
        assert_eq!((best, scores), (0, Some(vec![-0.5, -1.0, -0.546_875])));
        // Both begin with the likeliest token; the shorter one goes on with its mean.
        assert_eq!(choose(Method::GreedyTokenSelection, &prompted, &[]).0, 0);
        let likelier = [vec![-0.5], vec![-0.5, -0.25], vec![-0.75, 0.0]];
        assert_eq!(choose(Method::GreedyTokenSelection, &likelier, &[]).0, 1);
        let unprompted = [vec![0.0], vec![0.0, -4.0], vec![0.0, -0.25, -0.25, -0.25]];
        let (best, scores) = choose(Method::UnconditionalLikelihoodNormalized, &prompted, &unprompted);
        assert_eq!((best, scores), (1, Some(vec![-0.5, 1.0, -0.359_375])));
    }

    #[test]
    fn the_first_of_equal_choices_is_chosen() {
        let same = [vec![-1.0, -3.0], vec![-2.0], vec![-2.0, -2.0]];
        assert_eq!(choose(Method::TokenLengthNormalized, &same, &[]).0, 0);
        let same = [vec![-2.0], vec![-1.0], vec![-1.0, -1.0]];
        assert_eq!(choose(Method::GreedyTokenSelection, &same, &[]).0, 1);
        let impossible = [vec![f64::NEG_INFINITY], vec![f64::NEG_INFINITY; 2]];
        assert_eq!(choose(Method::TokenLengthNormalized, &impossible, &[]).0, 0);
        assert_eq!(choose(Method::GreedyTokenSelection, &impossible, &[]).0, 0);
    }

    #[test]
    fn the_logs_of_tokens_are_the_differences_of_their_sums() {
        let sequences = [vec![7, 8], vec![7], vec![3]];
        let options = Options::beginnings(&sequences).expect("three");
        let weights = [f64::NEG_INFINITY, -1.0, -3.5];
        let logs = sequences.map(|sequence| token_logs(&options, &sequence, &weights));
        assert_eq!(logs, [vec![-1.0, -2.5], vec![-1.0], vec![f64::NEG_INFINITY]]);
    }
}
