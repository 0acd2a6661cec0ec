//! The outcome that is reported when an answer has ended.

use super::Sequence;
use crate::request::{Contrasted, Diagnostics, Finish, Outcome, law};

impl Sequence {
    /// Returns the weight of a whole answer, if it leads to the global law.
    fn log_weight(&self, finish: Finish) -> Option<f64> {
        let is_whole = finish == Finish::Stop && !self.report.ended_unasked;
        let has_law = self.draw.walk.tag().has_weight();
        // If monitors are queried, the mass that a filter leaves of the allowed tokens is not known.
        let is_known = !self.is_watched() || !self.draw.warper.is_filtered();
        // Nor is the mass of tokens that are plausible beside those that are allowed.
        let is_known = is_known && !self.cuts_implausible();
        (is_whole && has_law && is_known).then(|| self.draw.walk.log_weight())
    }

    /// Returns `true` if a contrast cuts implausible tokens of masked rows, like a filter.
    fn cuts_implausible(&self) -> bool {
        let contrast = self.request.sampling.contrast.as_ref();
        let is_cut = contrast.is_some_and(|with| with.contrast.alpha > 0.0);
        is_cut && law::masks_before_filters(&self.request)
    }

    /// Returns the number of tokens of the answer without its end, if one was drawn.
    fn text_tokens(&self) -> usize {
        let is_end = |token: &u32| self.draw.walk.ends().contains(token);
        self.generated().len() - usize::from(self.generated().last().is_some_and(is_end))
    }

    pub(crate) fn outcome(&self, finish: Finish) -> Outcome {
        Outcome {
            finish,
            law: match self.cuts_implausible() {
                true => self.draw.walk.tag().filtered(),
                false => self.draw.walk.tag(),
            },
            contrast: self.request.sampling.contrast.as_ref().map(|with| Contrasted {
                contrast: with.contrast,
                prompt_tokens: with.prompt().map(<[u32]>::len),
            }),
            log_probability: self.draw.walk.log_probability(),
            log_weight: self.log_weight(finish),
            prompt_tokens: self.request.prompt.tokens.len(),
            cached_tokens: self.text.cached,
            completion_tokens: self.generated().len(),
            drafted: self.draft.drafted,
            accepted: self.draft.accepted,
            accepted_predictions: self.draft.accepted_predictions,
            rejected_predictions: self.draft.predictions - self.draft.accepted_predictions,
            steered: self.draw.steering.told(
                self.text_tokens(),
                (self.request.limits.max_tokens, self.request.limits.preamble),
            ),
            times: self.report.moments.times(),
            attempts: self.draw.walk.failed_attempts() as usize + 1,
            diagnostics: self.draw.walk.moves().map(|(steps, moves)| Diagnostics::Chain {
                steps: steps as usize,
                moves: moves as usize,
            }),
            options: None,
            particles: Vec::new(),
        }
    }
}
