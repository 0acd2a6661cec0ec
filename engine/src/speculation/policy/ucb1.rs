//! UCB1: chooses the arm whose mean reward could be the greatest, given how often it was tried.

use super::rule::{Choice, Rule};

/// The statistics of an arm.
#[derive(Clone, Copy, Debug, Default)]
struct BanditArm {
    chosen: f64,
    rewarded: f64,
    /// The mean of the rewards received.
    mean: f64,
}

/// UCB1 (Auer, Cesa-Bianchi and Fischer, Machine Learning 47, 2002): `argmax mean + √(2 ln t / chosen)` after
/// each arm was chosen once. UCBSpec of BanditSpec ([Hou et al. 2025](https://arxiv.org/abs/2505.15141)) uses
/// it to choose how to speculate.
///
/// For rewards between 0 and 1 whose distribution does not change, the regret after `t` choices is at most
/// `8 Σ ln t / Δ + (1 + π²/3) Σ Δ`, summed over the arms that are worse by `Δ`. A choice counts at once,
/// though its reward comes later, so that sequences of one pass do not all try the same arm.
#[derive(Clone, Debug)]
pub(crate) struct Ucb1(Vec<BanditArm>);

impl Ucb1 {
    pub(crate) fn new(arms: usize) -> Self {
        Ucb1(vec![BanditArm::default(); arms])
    }
}

impl Rule for Ucb1 {
    fn choose(&mut self) -> Choice {
        let all: f64 = self.0.iter().map(|arm| arm.chosen).sum();
        let bound = |arm: &BanditArm| match arm.chosen > 0.0 {
            true => arm.mean + (2.0 * all.ln() / arm.chosen).sqrt(),
            false => f64::INFINITY,
        };
        // Of equal bounds, the first arm.
        let numbers = (0..self.0.len()).rev();
        let best = numbers.max_by(|&one, &other| bound(&self.0[one]).total_cmp(&bound(&self.0[other])));
        let arm = best.unwrap_or(0);
        self.0[arm].chosen += 1.0;
        Choice { arm, chance: 1.0 }
    }

    fn learn(&mut self, choice: Choice, reward: f64) {
        let arm = &mut self.0[choice.arm];
        arm.rewarded += 1.0;
        arm.mean += (reward - arm.mean) / arm.rewarded;
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::environment::{Coins, regret};
    use super::*;

    #[test]
    fn the_regret_is_within_the_bound_and_the_best_arm_is_found() {
        let means = [0.2, 0.5, 0.8, 0.6, 0.1];
        let rounds = 20_000;
        let gaps = means.map(|mean| 0.8 - mean);
        let gaps = || gaps.iter().filter(|gap| **gap > 0.0);
        let bound = 8.0 * gaps().map(|gap| f64::from(rounds).ln() / gap).sum::<f64>()
            + (1.0 + std::f64::consts::PI.powi(2) / 3.0) * gaps().sum::<f64>();
        for seed in 0..20 {
            let mut coins = Coins::new(seed, means.to_vec());
            let played = regret(&mut Ucb1::new(means.len()), rounds, &mut coins);
            assert!(played.regret < bound, "{} of {bound}", played.regret);
            assert!(played.chosen[2] > 15_000, "{:?}", played.chosen);
        }
    }

    #[test]
    fn arms_whose_rewards_are_late_are_not_chosen_by_all_at_once() {
        let mut rule = Ucb1::new(4);
        let chosen: Vec<usize> = (0..8).map(|_| rule.choose().arm).collect();
        assert_eq!(chosen, [0, 1, 2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn the_same_rewards_lead_to_the_same_choices() {
        let play = || regret(&mut Ucb1::new(3), 500, &mut Coins::new(7, vec![0.3, 0.4, 0.5])).chosen;
        assert_eq!(play(), play());
    }
}
