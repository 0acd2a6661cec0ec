//! Where an output ends: what the settings that stop it, or keep it going, cannot be combined with.

use super::{Generation, Task};
use crate::wire::chat::reasoning::{Reasoning, Thinking};
use crate::wire::fields::Problems;

impl Generation {
    /// Refuses settings of where the output ends that cannot be honoured together.
    pub(super) fn check_end(&self, problems: &mut Problems) {
        let is_local = matches!(&self.task, Task::Draw(law) if law.is_local());
        if self.ignore_eos && !is_local {
            problems.invalid(
                "ignore_eos",
                "requires law: local: the others are about texts that end",
            );
        }
        for param in self.stop.fields().filter(|_| self.min_tokens > 0) {
            problems.invalid(param, "cannot be combined with min_tokens");
        }
    }

    /// Refuses `ignore_eos` where the masks that impose or limit a thought decide where the text ends.
    pub(crate) fn reasons(&self, reasoning: &Reasoning, problems: &mut Problems) {
        let is_masked = reasoning.thinking != Thinking::Auto || reasoning.max_tokens.is_some();
        if self.ignore_eos && is_masked {
            let reason = "cannot be combined with reasoning: on, reasoning: off or max_reasoning_tokens";
            problems.invalid("ignore_eos", reason);
        }
    }

    /// Refuses the settings that have no meaning beside a text that ends where it is complete.
    pub(crate) fn ends_whole(&self, what: &str, problems: &mut Problems) {
        if self.ignore_eos {
            let reason = format!("{what} ends where it is complete; min_tokens lets it grow");
            problems.invalid("ignore_eos", reason);
        }
        if let Some(param) = self.stop.fields().find(|_| self.weights) {
            let reason =
                format!("cannot be combined with {param}: the weight is that of a text that nothing cuts");
            problems.invalid("weights", reason);
        }
    }
}
