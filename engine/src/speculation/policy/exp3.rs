//! EXP3: chooses arms at random, with probabilities that grow with their rewards.

use super::rule::{Choice, Rule};

/// The fraction of choices that is made uniformly.
const EVEN: f64 = 0.1;

/// EXP3 (Auer, Cesa-Bianchi, Freund and Schapire, SIAM Journal on Computing 32, 2002), which EXP3Spec of
/// BanditSpec ([Hou et al. 2025](https://arxiv.org/abs/2505.15141)) uses to choose how to speculate.
///
/// Rewards need not follow a distribution: for any rewards between 0 and 1, the expected regret against the
/// best fixed one of `K` arms after `t` choices is at most `(e − 1) γ t + K ln K / γ`, where `γ` is the
/// fraction of choices that is made uniformly. The generator has a fixed seed, and no random number of a
/// request is used.
#[derive(Clone, Debug)]
pub(crate) struct Exp3 {
    /// The logarithms of the weights, the largest of which is 0.
    logs: Vec<f64>,
    even: f64,
    random: u64,
}

impl Exp3 {
    pub(crate) fn new(arms: usize, seed: u64) -> Self {
        Exp3 {
            logs: vec![0.0; arms],
            even: EVEN,
            random: seed,
        }
    }

    /// Returns the probability of each arm.
    fn chances(&self) -> Vec<f64> {
        let weights: Vec<f64> = self.logs.iter().map(|log| log.exp()).collect();
        let all: f64 = weights.iter().sum();
        let part = self.even / weights.len() as f64;
        let chance = |weight: f64| (1.0 - self.even) * weight / all + part;
        weights.into_iter().map(chance).collect()
    }
}

impl Rule for Exp3 {
    fn choose(&mut self) -> Choice {
        let chances = self.chances();
        let mut left = unit(&mut self.random);
        let arm = chances.iter().position(|chance| {
            left -= chance;
            left < 0.0
        });
        // Rounding may leave a small remainder after the last arm.
        let arm = arm.unwrap_or(chances.len() - 1);
        Choice {
            arm,
            chance: chances[arm],
        }
    }

    fn learn(&mut self, choice: Choice, reward: f64) {
        let estimate = reward / choice.chance;
        self.logs[choice.arm] += self.even * estimate / self.logs.len() as f64;
        let most = self.logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.logs.iter_mut().for_each(|log| *log -= most);
    }
}

/// Returns the next number of SplitMix64, between 0 and 1.
pub(super) fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::super::rule::environment::{Coins, Environment, Turns, regret};
    use super::*;

    /// Returns the mean regret over some seeds, to which the bound applies.
    fn mean_regret(
        arms: usize,
        rounds: u32,
        mut environment: impl FnMut(u64) -> Box<dyn Environment>,
    ) -> f64 {
        let seeds = 20;
        let one = |seed: u64| regret(&mut Exp3::new(arms, seed + 1), rounds, &mut *environment(seed)).regret;
        (0..seeds).map(one).sum::<f64>() / seeds as f64
    }

    fn bound(arms: usize, rounds: u32) -> f64 {
        let arms = arms as f64;
        (std::f64::consts::E - 1.0) * EVEN * f64::from(rounds) + arms * arms.ln() / EVEN
    }

    #[test]
    fn the_regret_is_within_the_bound() {
        let means = vec![0.2, 0.5, 0.8, 0.6, 0.1];
        let found = mean_regret(5, 20_000, |seed| Box::new(Coins::new(seed, means.clone())));
        assert!(found < bound(5, 20_000), "{found}");
        // The uniform choices cost at least the fraction of them that takes worse arms.
        assert!(found > 0.5 * EVEN * 20_000.0 * 0.36, "{found}");
    }

    /// An adversary without a distribution: the arms are good in turns, and one is good for a little longer.
    #[test]
    fn the_regret_is_within_the_bound_where_rewards_have_no_law() {
        let found = mean_regret(4, 20_000, |_| Box::new(Turns::new(vec![300, 300, 400, 300])));
        assert!(found < bound(4, 20_000), "{found}");
    }

    #[test]
    fn it_follows_when_another_arm_becomes_the_best() {
        let mut rule = Exp3::new(3, 5);
        let first = regret(&mut rule, 4000, &mut Coins::new(1, vec![0.9, 0.1, 0.1]));
        let then = regret(&mut rule, 40_000, &mut Coins::new(2, vec![0.1, 0.1, 0.9]));
        assert!(first.chosen[0] > 3000, "{:?}", first.chosen);
        assert!(then.chosen[2] > 30_000, "{:?}", then.chosen);
    }

    #[test]
    fn a_seed_says_what_is_chosen() {
        let play = |seed| {
            regret(
                &mut Exp3::new(3, seed),
                500,
                &mut Coins::new(7, vec![0.3, 0.4, 0.5]),
            )
            .chosen
        };
        assert_eq!(play(1), play(1));
        assert_ne!(play(1), play(2));
    }
}
