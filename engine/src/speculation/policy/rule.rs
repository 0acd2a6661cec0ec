//! The interface of bandit rules, and environments to test them in.

/// The number of an arm, and the probability with which it was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) arm: usize,
    pub(crate) chance: f64,
}

/// A rule that chooses an arm and learns from its reward, which is between 0 and 1 and may come after later
/// choices.
pub(crate) trait Rule: Send + std::fmt::Debug {
    fn choose(&mut self) -> Choice;

    fn learn(&mut self, choice: Choice, reward: f64);
}

/// Bandits whose best arm is known.
#[cfg(test)]
pub(crate) mod environment {
    use super::Rule;
    use crate::speculation::policy::exp3::unit;

    /// Gives the rewards of each arm.
    pub(crate) trait Environment {
        /// Returns the next reward of each arm.
        fn rewards(&mut self) -> Vec<f64>;

        /// Returns the mean reward of each arm; `None` if only the sums are known.
        fn means(&self) -> Option<&[f64]>;
    }

    /// Arms that each give 1 with some probability, and 0 otherwise.
    pub(crate) struct Coins {
        random: u64,
        means: Vec<f64>,
    }

    impl Coins {
        pub(crate) fn new(seed: u64, means: Vec<f64>) -> Self {
            // Different from the random numbers of the rules.
            let random = seed.wrapping_mul(0x1234_5678_9abc_def1) ^ 0xfeed;
            Coins { random, means }
        }
    }

    impl Environment for Coins {
        fn rewards(&mut self) -> Vec<f64> {
            let Coins { random, means } = self;
            means
                .iter()
                .map(|&mean| f64::from(u8::from(unit(random) < mean)))
                .collect()
        }

        fn means(&self) -> Option<&[f64]> {
            Some(&self.means)
        }
    }

    /// Arms that give 1 in turns of these lengths, and 0 otherwise.
    pub(crate) struct Turns {
        lengths: Vec<u32>,
        round: u32,
    }

    impl Turns {
        pub(crate) fn new(lengths: Vec<u32>) -> Self {
            Turns { lengths, round: 0 }
        }
    }

    impl Environment for Turns {
        fn rewards(&mut self) -> Vec<f64> {
            let mut at = self.round % self.lengths.iter().sum::<u32>();
            self.round += 1;
            let mut whose = 0;
            while at >= self.lengths[whose] {
                at -= self.lengths[whose];
                whose += 1;
            }
            (0..self.lengths.len())
                .map(|arm| f64::from(u8::from(arm == whose)))
                .collect()
        }

        fn means(&self) -> Option<&[f64]> {
            None
        }
    }

    /// The result of a rule.
    pub(crate) struct Played {
        /// How much more the best fixed arm would have given.
        pub(crate) regret: f64,
        /// The number of times that each arm was chosen.
        pub(crate) chosen: Vec<u32>,
    }

    /// Lets a rule choose `rounds` times.
    pub(crate) fn regret(rule: &mut dyn Rule, rounds: u32, environment: &mut dyn Environment) -> Played {
        let arms = environment.rewards().len();
        let (mut sums, mut chosen, mut won) = (vec![0.0; arms], vec![0; arms], 0.0);
        for _ in 0..rounds {
            let rewards = environment.rewards();
            let choice = rule.choose();
            rule.learn(choice, rewards[choice.arm]);
            sums.iter_mut()
                .zip(&rewards)
                .for_each(|(sum, reward)| *sum += reward);
            won += rewards[choice.arm];
            chosen[choice.arm] += 1;
        }
        let best = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let regret = match environment.means() {
            // By the means, which excludes the luck of single rewards.
            Some(means) => {
                let lost = chosen
                    .iter()
                    .zip(means)
                    .map(|(&times, mean)| f64::from(times) * (best(means) - mean));
                lost.sum()
            }
            None => best(&sums) - won,
        };
        Played { regret, chosen }
    }
}
