//! Scores of texts: an energy or a metric of a host, by which texts weigh more or less than under the model.

use super::Failure;

/// A host that scores texts.
pub trait Score: Send + Sync {
    /// Returns the log of the factor by which a text weighs more, given its tokens without the one that ends
    /// it; minus infinity if the text must not come. `is_whole` is `false` if more may follow. Equal texts
    /// must get equal scores.
    ///
    /// # Errors
    /// The host has no answer.
    fn score(&self, text: &[u32], is_whole: bool) -> Result<f64, Failure>;
}

impl<F: Fn(&[u32], bool) -> Result<f64, Failure> + Send + Sync> Score for F {
    fn score(&self, text: &[u32], is_whole: bool) -> Result<f64, Failure> {
        self(text, is_whole)
    }
}
