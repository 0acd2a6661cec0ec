//! Cutting the tail of a row: top-k, then top-p, then min-p.
//!
//! Each keeps a run of the most likely tokens, so only the top of the row is ever sorted. Equal logits are kept in the
//! order of their ids, so that the cut does not depend on how the row was searched.

use super::exp::exp;

/// How many candidates top-p sorts at first; four times more whenever they are not enough.
const FIRST_SORTED: usize = 64;

/// Which tokens to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Filter {
    /// At most so many.
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

    /// The tokens kept, by id. `scale` turns differences of logits into differences of logarithms.
    pub(super) fn keep(&self, mut candidates: Vec<Candidate>, scale: f64) -> Vec<u32> {
        if let Some(k) = self.top_k.filter(|&k| k < candidates.len()) {
            if k > 0 {
                candidates.select_nth_unstable_by(k - 1, by_rank);
            }
            candidates.truncate(k);
        }
        let Some(peak) = candidates
            .iter()
            .map(|candidate| candidate.0)
            .max_by(f32::total_cmp)
        else {
            return Vec::new();
        };
        let weight = |candidate: &Candidate| exp((f64::from(candidate.0) - f64::from(peak)) * scale);
        if self.top_p < 1.0 {
            let bound = self.top_p * candidates.iter().map(weight).sum::<f64>();
            keep_until(&mut candidates, bound, weight);
        }
        let min_p = self.min_p;
        let kept = candidates.iter().filter(|&candidate| weight(candidate) >= min_p);
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

    fn candidates(probabilities: &[f32]) -> Vec<Candidate> {
        probabilities
            .iter()
            .enumerate()
            .map(|(token, p)| (p.ln(), token as u32))
            .collect()
    }

    #[test]
    fn each_filter_keeps_its_run() {
        let row = candidates(&[0.1, 0.4, 0.15, 0.3, 0.05]);
        let keep = |filter: Filter| filter.keep(row.clone(), 1.0);
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
        let row: Vec<Candidate> = (0..1000).map(|token| (0.0, token)).collect();
        let kept = Filter {
            top_p: 0.9,
            ..Filter::NONE
        }
        .keep(row.clone(), 1.0);
        assert_eq!(kept, (0..900).collect::<Vec<u32>>());
        assert_eq!(
            Filter {
                top_k: Some(3),
                ..Filter::NONE
            }
            .keep(row, 1.0),
            [0, 1, 2]
        );
    }
}
