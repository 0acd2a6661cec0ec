//! Answers whose samples have all ended: what is found out about them before they are written as a whole.

use tokio::time::Instant;

use super::AnswerBuilder;
use crate::answer::confidence::value_options::Chosen;
use crate::answer::parts::Part;
use crate::model::running::Running;
use crate::wire::error::ApiError;

impl AnswerBuilder {
    /// Waits for all samples and returns the whole answer.
    ///
    /// # Errors
    /// Fails if the engine failed.
    pub async fn collect(self, running: Running) -> Result<Written, ApiError> {
        self.grown(running).await?.finish()
    }

    /// Waits for all samples.
    ///
    /// # Errors
    /// Fails if the engine failed.
    pub async fn grown(mut self, mut running: Running) -> Result<Grown, ApiError> {
        match self.grow(&mut running).await {
            Ok(parts) => Ok(Grown {
                builder: self,
                parts,
                chosen: Vec::new(),
            }),
            Err(error) => {
                self.settle(error.code());
                Err(error)
            }
        }
    }
}

/// An answer whose samples have all ended.
pub struct Grown {
    builder: AnswerBuilder,
    /// The parts of each sample.
    parts: Vec<Vec<Part>>,
    /// The values of each sample, if they are reported with the values that were possible in their places.
    chosen: Vec<Chosen>,
}

impl Grown {
    /// Finds the places where the constraint left few values, if the request asks for them. This can be slow.
    pub fn find_places(&mut self) {
        let Some(options) = &self.builder.value_options else {
            return;
        };
        let samples = self.builder.samples.iter().zip(&self.parts).enumerate();
        let chosen = samples.map(|(index, (growing, parts))| match growing.sample.trace() {
            Some(trace) if growing.is_told() => options.find(&self.builder.served, index, (trace, parts)),
            _ => Chosen::default(),
        });
        self.chosen = chosen.collect();
    }

    /// Weighs the values of those places.
    ///
    /// # Errors
    /// Fails if the engine has no room for more requests, or failed.
    pub async fn weigh(&mut self) -> Result<(), ApiError> {
        let begun = Instant::now();
        for chosen in &mut self.chosen {
            let weighed = chosen
                .weigh(&self.builder.served, begun, &mut self.builder.weighed)
                .await;
            if let Err(error) = weighed {
                self.builder.settle(error.code());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the whole answer.
    ///
    /// # Errors
    /// Fails if a certificate shows that a text in the answer is invalid.
    pub fn finish(mut self) -> Result<Written, ApiError> {
        let told = self.builder.samples.iter().filter(|growing| growing.is_told());
        let mut ended = told.filter_map(|growing| growing.ended);
        let is_steered = ended.any(|ended| ended.budget.is_some());
        let whole = self.builder.whole(self.parts, self.chosen);
        let whole = whole.inspect_err(|error| self.builder.settle(error.code()));
        whole.map(|json| Written { json, is_steered })
    }
}

/// A whole answer with the facts that its headers report.
pub struct Written {
    /// The answer as JSON.
    pub json: String,
    /// `true` if `max_tokens` narrowed the choice in any of its samples.
    pub is_steered: bool,
}
