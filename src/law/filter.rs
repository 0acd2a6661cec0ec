//! Cutting the tail of a row: top-k, then top-p, then min-p.
//!
//! Each keeps a run of the most likely tokens, so only the top of the row is ever sorted. Equal logits are kept in the
//! order of their ids, so that the cut does not depend on how the row was searched.

use super::exp::exp;
use super::sums::BLOCK;

/// How many candidates top-p sorts at first; four times more whenever they are not enough.
const FIRST_SORTED: usize = 64;

/// Which tokens to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Filter {
    /// The most tokens that are kept; `None` is no bound.
    pub(super) top_k: Option<usize>,
    /// The fewest that hold this share of what top-k left.
    pub(super) top_p: f64,
    /// Those at least this likely, where the most likely counts as 1.
    pub(super) min_p: f64,
}

/// A token and its logit.
type Candidate = (f32, u32);

fn by_rank(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

impl Filter {
    /// Keeps everything.
    pub(super) const NONE: Filter = Filter {
        top_k: None,
        top_p: 1.0,
        min_p: 0.0,
    };

    /// What a block of 32 tokens must weigh to hold one that is kept, so that few are looked at. `sums` are the weights of
    /// the blocks, in all `sum`, of which there are `len` tokens at most.
    ///
    /// The largest token of a block weighs no more than the block and no less than a 32nd of it.
    pub(super) fn least_block(&self, sums: &[f64], sum: f64, len: usize) -> f64 {
        let size = BLOCK as f64;
        let least = match self.top_k {
            // The k heaviest blocks hold k tokens that weigh a 32nd of the lightest of them.
            Some(k) if k <= sums.len() => {
                let mut sums = sums.to_vec();
                *sums.select_nth_unstable_by(k.max(1) - 1, |a, b| b.total_cmp(a)).1 / size
            }
            Some(_) => 0.0,
            None => {
                let heaviest = sums.iter().copied().fold(0.0, f64::max);
                // Tokens this light cannot together hold what top-p cuts.
                let cut = (1.0 - self.top_p) * sum / len as f64;
                cut.max(self.min_p * heaviest / size)
            }
        };
        // Room for the rounding of all this.
        least * (1.0 - 1e-6)
    }

    /// A logit below which no token can be kept, so that few have to be looked at. `peaks` are the largest logits of some
    /// groups of the tokens, of which there are `len` in all.
    pub(super) fn floor(&self, peaks: &[f32], len: usize, scale: f64) -> f32 {
        let best = peaks.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let floor = match self.top_k {
            // The k-th largest peak is at most the k-th largest logit.
            Some(k) if k <= peaks.len() => {
                let mut peaks = peaks.to_vec();
                f64::from(
                    *peaks
                        .select_nth_unstable_by(k.max(1) - 1, |a, b| b.total_cmp(a))
                        .1,
                )
            }
            Some(_) => f64::NEG_INFINITY,
            // Tokens this far below the best cannot together hold what top-p cuts.
            None => f64::from(best) + self.min_p.max((1.0 - self.top_p) / len as f64).ln() / scale,
        };
        // Room for the rounding of all this.
        (floor - 1e-3 - floor.abs() * 1e-6) as f32
    }

    /// The tokens kept, by id, of candidates that leave out only what is below the [`floor`](Self::floor). `scale` turns
    /// differences of logits into differences of logarithms; `sum` is the weight of all tokens, where `peak` weighs 1.
    pub(super) fn keep(
        &self,
        mut candidates: Vec<Candidate>,
        scale: f64,
        (peak, sum): (f32, f64),
    ) -> Vec<u32> {
        let weight = |candidate: &Candidate| exp((f64::from(candidate.0) - f64::from(peak)) * scale);
        let mut sum = sum;
        if let Some(k) = self.top_k {
            if (1..candidates.len()).contains(&k) {
                candidates.select_nth_unstable_by(k - 1, by_rank);
            }
            candidates.truncate(k);
            sum = candidates.iter().map(weight).sum();
        }
        if self.top_p < 1.0 {
            keep_until(&mut candidates, self.top_p * sum, weight);
        }
        let best = candidates.iter().map(weight).fold(0.0, f64::max);
        let kept = candidates
            .iter()
            .filter(|candidate| weight(candidate) >= self.min_p * best);
        let mut tokens: Vec<u32> = kept.map(|candidate| candidate.1).collect();
        tokens.sort_unstable();
        tokens
    }
}

/// Cuts the candidates to the fewest, from the most likely down, whose weights reach the bound.
fn keep_until(candidates: &mut Vec<Candidate>, bound: f64, weight: impl Fn(&Candidate) -> f64) {
    let (mut done, mut reached, mut size) = (0, 0.0, FIRST_SORTED);
    while done < candidates.len() {
        let rest = &mut candidates[done..];
        if size < rest.len() {
            rest.select_nth_unstable_by(size - 1, by_rank);
        }
        let sorted = size.min(rest.len());
        rest[..sorted].sort_unstable_by(by_rank);
        for (index, candidate) in rest[..sorted].iter().enumerate() {
            reached += weight(candidate);
            if reached >= bound {
                candidates.truncate(done + index + 1);
                return;
            }
        }
        done += sorted;
        size *= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter over a row of probabilities in groups of two.
    fn kept(filter: Filter, probabilities: &[f32]) -> Vec<u32> {
        let logits: Vec<f32> = probabilities.iter().map(|p| p.ln()).collect();
        let largest = |group: &[f32]| group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let peaks: Vec<f32> = logits.chunks(2).map(largest).collect();
        let floor = filter.floor(&peaks, logits.len(), 1.0);
        let candidates = logits
            .iter()
            .copied()
            .zip(0..)
            .filter(|&(logit, _)| logit >= floor)
            .collect();
        let peak = largest(&logits);
        let sum = logits.iter().map(|&logit| f64::from(logit - peak).exp()).sum();
        filter.keep(candidates, 1.0, (peak, sum))
    }

    #[test]
    fn each_filter_keeps_its_run() {
        let keep = |filter: Filter| kept(filter, &[0.1, 0.4, 0.15, 0.3, 0.05]);
        assert_eq!(keep(Filter::NONE), [0, 1, 2, 3, 4]);
        assert_eq!(
            keep(Filter {
                top_k: Some(2),
                ..Filter::NONE
            }),
            [1, 3]
        );
        assert_eq!(
            keep(Filter {
                top_k: Some(9),
                ..Filter::NONE
            }),
            [0, 1, 2, 3, 4]
        );
        assert_eq!(
            keep(Filter {
                top_p: 0.75,
                ..Filter::NONE
            }),
            [1, 2, 3]
        );
        assert_eq!(
            keep(Filter {
                min_p: 0.3,
                ..Filter::NONE
            }),
            [1, 2, 3]
        );
        // Of 0.4 and 0.3, renormalised, the first alone holds more than half.
        assert_eq!(
            keep(Filter {
                top_k: Some(2),
                top_p: 0.5,
                ..Filter::NONE
            }),
            [1]
        );
    }

    #[test]
    fn ties_go_to_the_smaller_id_and_long_runs_are_sorted_in_pieces() {
        let row = [0.001; 1000];
        let most = kept(
            Filter {
                top_p: 0.9,
                ..Filter::NONE
            },
            &row,
        );
        assert_eq!(most, (0..900).collect::<Vec<u32>>());
        assert_eq!(
            kept(
                Filter {
                    top_k: Some(3),
                    ..Filter::NONE
                },
                &row
            ),
            [0, 1, 2]
        );
    }
}
