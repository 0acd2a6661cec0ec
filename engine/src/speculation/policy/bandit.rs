//! A bandit over the sources of drafts: it chooses which of them a sequence feeds, by their success at
//! similar places.
//!
//! ```text
//!   class of the place ─► rule of the class ─ choose ─► arm: the sources whose drafts are fed
//!                              ▲                          │ pass
//!                              └── learn ◄── tokens, by what the pass cost beyond one without drafts
//! ```
//!
//! This is BanditSpec ([Hou et al. 2025](https://arxiv.org/abs/2505.15141)), where the arms are
//! configurations of speculation and the rule is [UCB1](super::ucb1) or [EXP3](super::exp3). The reward is
//! the number of tokens of a pass, divided by the ratio of the cost of the pass to its cost without the
//! drafts of the sequence, according to the measured [costs](super::cost).
//!
//! The choice depends on earlier passes and on the class of the place, never on a drafted token, so sampled
//! drafts stay exact.

use crate::config::Drafting;
use crate::speculation::class::StateClass;
use crate::speculation::draft::{Draft, Source};
use crate::speculation::policy::exp3::Exp3;
use crate::speculation::policy::rule::{Choice, Rule};
use crate::speculation::policy::ucb1::Ucb1;

/// The number of tokens per pass from which on all rewards are 1.
const MOST_TOKENS: f64 = 8.0;

/// The sources whose drafts are fed. The tokens that a driver gives are fed with every arm, and so are
/// guesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    Nothing,
    /// Text that the grammar forces.
    Forced,
    /// Forced text, and tokens that were copied from the text or the reference.
    Copied,
    /// Forced text, and tokens that stores have learned.
    Learned,
    /// Forced text, and tokens that the draft model draws.
    Model,
    All,
}

const ARMS: [Arm; 6] = [
    Arm::Nothing,
    Arm::Forced,
    Arm::Copied,
    Arm::Learned,
    Arm::Model,
    Arm::All,
];

impl Arm {
    pub(crate) fn takes(self, source: Source) -> bool {
        match source {
            Source::Given | Source::Guessed => true,
            Source::Forced => self != Arm::Nothing,
            Source::Copied | Source::Predicted => matches!(self, Arm::Copied | Arm::All),
            Source::Learned(..) | Source::Drawn(..) => matches!(self, Arm::Learned | Arm::All),
            Source::Model | Source::Branch(_) => matches!(self, Arm::Model | Arm::All),
        }
    }

    /// Returns for each of these drafts whether it is taken: its source must be, and the sources of all its
    /// ancestors.
    pub(crate) fn taken(self, drafts: &[Draft]) -> Vec<bool> {
        let mut taken: Vec<bool> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            taken.push(self.takes(draft.source) && draft.parent.is_none_or(|parent| taken[parent]));
        }
        taken
    }
}

/// An arm that was chosen for the next pass of a sequence, and its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Play {
    class: StateClass,
    choice: Choice,
    /// The ratio of the cost of the pass to its cost without the drafts.
    cost: f64,
    /// The number of tokens of the pass, once there was one.
    tokens: Option<usize>,
}

impl Play {
    pub(crate) fn arm(&self) -> Arm {
        ARMS[self.choice.arm]
    }

    /// Sets the ratio of the cost of the pass to its cost without drafts of the sequence.
    pub(crate) fn costs(&mut self, cost: f64) {
        self.cost = cost;
    }

    /// Records that the pass gave `tokens` tokens.
    pub(crate) fn brought(&mut self, tokens: usize) {
        self.tokens = Some(tokens);
    }

    /// Returns the reward, between 0 and 1; `None` before the pass.
    fn reward(&self) -> Option<f64> {
        let rate = self.tokens? as f64 / self.cost.max(f64::MIN_POSITIVE);
        Some((rate / MOST_TOKENS).clamp(0.0, 1.0))
    }
}

/// The rules of all classes.
#[derive(Debug)]
pub(crate) struct Bandit(Vec<Box<dyn Rule>>);

impl Bandit {
    /// Returns the bandit of a policy; `None` for a policy without one.
    pub(crate) fn of(drafting: Drafting) -> Option<Self> {
        let rule = |class: usize| -> Option<Box<dyn Rule>> {
            match drafting {
                Drafting::Measured | Drafting::Always | Drafting::Svip => None,
                Drafting::Ucb1 => Some(Box::new(Ucb1::new(ARMS.len()))),
                Drafting::Exp3 => Some(Box::new(Exp3::new(ARMS.len(), class as u64))),
            }
        };
        let rules: Option<Vec<_>> = (0..StateClass::ALL.len()).map(rule).collect();
        rules.map(Bandit)
    }

    /// Chooses an arm for a sequence at a place of this class.
    pub(crate) fn play(&mut self, class: StateClass) -> Play {
        Play {
            class,
            choice: self.0[class as usize].choose(),
            cost: 1.0,
            tokens: None,
        }
    }

    /// Learns from a play if it is over, and returns `true` if it is.
    pub(crate) fn hear(&mut self, play: &Play) -> bool {
        let reward = play.reward();
        if let Some(reward) = reward {
            self.0[play.class as usize].learn(play.choice, reward);
        }
        reward.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(source: Source, parent: Option<usize>) -> Draft {
        Draft {
            token: 0,
            parent,
            source,
            state: None,
            proposal: lexiform_law::draft::Proposal::Point,
            is_last: false,
        }
    }

    #[test]
    fn nothing_is_fed_without_what_stands_above_it() {
        let drafts = [
            draft(Source::Forced, None),
            draft(Source::Copied, Some(0)),
            draft(Source::Forced, Some(1)),
            draft(Source::Given, Some(0)),
        ];
        assert_eq!(Arm::Nothing.taken(&drafts), [false, false, false, false]);
        assert_eq!(Arm::Forced.taken(&drafts), [true, false, false, true]);
        assert_eq!(Arm::Copied.taken(&drafts), [true, true, true, true]);
        assert_eq!(Arm::Learned.taken(&drafts), Arm::Forced.taken(&drafts));
    }

    /// Drafts that are cheap and right in keys, and expensive and wrong in free strings: each class finds a
    /// different arm.
    #[test]
    fn classes_learn_apart() {
        for drafting in [Drafting::Ucb1, Drafting::Exp3] {
            let mut bandit = Bandit::of(drafting).expect("a bandit");
            let mut fed = [0; StateClass::ALL.len()];
            for round in 0..6000 {
                for class in [StateClass::Key, StateClass::Text] {
                    let mut play = bandit.play(class);
                    let is_fed = play.arm() == Arm::All;
                    fed[class as usize] += usize::from(is_fed && round >= 3000);
                    match (is_fed, class) {
                        (true, StateClass::Key) => play.brought(8),
                        (true, _) => {
                            play.costs(4.0);
                            play.brought(1);
                        }
                        (false, _) => play.brought(1),
                    }
                    assert!(bandit.hear(&play));
                }
            }
            let [keys, texts] = [StateClass::Key, StateClass::Text].map(|class| fed[class as usize]);
            assert!(keys > 2000 && texts < 600, "{drafting:?}: {keys} and {texts}");
        }
        assert!(Bandit::of(Drafting::Measured).is_none());
    }

    #[test]
    fn a_play_is_heard_once_its_pass_is_over() {
        let mut bandit = Bandit::of(Drafting::Ucb1).expect("a bandit");
        let mut play = bandit.play(StateClass::Key);
        assert!(!bandit.hear(&play));
        play.brought(100);
        assert_eq!(play.reward(), Some(1.0));
        play.costs(50.0);
        assert_eq!(play.reward(), Some(0.25));
    }
}
