//! Weighs closed lists of texts with the engine: how likely the model is to write each.

use lexiform_engine::{Event, Outcome, Request, Weighed};
use tokio::time::Instant;

use crate::model::running::Running;
use crate::model::served::ServedModel;
use crate::wire::error::ApiError;
use crate::wire::response::Usage;

/// The number of lists that are weighed at the same time; more would fill the queue that all clients share.
const TOGETHER: usize = 16;

/// Returns how likely each request's options are. The tokens used are added to `usage`. All requests together
/// have the time of one answer, which began at this moment.
///
/// # Errors
/// Fails if the engine cannot accept a request, or failed, or if the time is over.
pub async fn weigh(
    served: &ServedModel,
    requests: Vec<Request>,
    begun: Instant,
    usage: &mut Usage,
) -> Result<Vec<Vec<Weighed>>, ApiError> {
    let mut weighed = Vec::with_capacity(requests.len());
    let mut rest = requests.into_iter().peekable();
    while rest.peek().is_some() {
        let together = rest.by_ref().take(TOGETHER).collect();
        weighed.extend(weigh_together(served, together, begun, usage).await?);
    }
    Ok(weighed)
}

async fn weigh_together(
    served: &ServedModel,
    requests: Vec<Request>,
    begun: Instant,
    usage: &mut Usage,
) -> Result<Vec<Vec<Weighed>>, ApiError> {
    let mut weighed = vec![Vec::new(); requests.len()];
    let mut left = requests.len();
    let limits = served.limits().clone();
    let mut running = Running::start_as_part(served.engine(), requests, limits, begun)?;
    while left > 0 {
        let (index, event) = running.next().await?;
        match event {
            Event::Token { .. } => (),
            Event::Done(outcome) => {
                count_tokens(&outcome, usage);
                weighed[index] = outcome.options.unwrap_or_default();
                left -= 1;
            }
            Event::Failed(error) => return Err(ApiError::engine(&error)),
        }
    }
    Ok(weighed)
}

/// Returns the log-probabilities of options.
pub fn logs(weighed: &[Weighed]) -> Vec<f64> {
    weighed.iter().map(|weighed| weighed.log_probability).collect()
}

fn count_tokens(outcome: &Outcome, usage: &mut Usage) {
    usage.prompt_tokens += outcome.prompt_tokens;
    usage.prompt_tokens_details.cached_tokens += outcome.cached_tokens;
    usage.completion_tokens += outcome.completion_tokens;
}

/// Returns probabilities that add up to one, in proportion to the exponentials of these; uniform if all are
/// zero.
pub fn normalised(logs: &[f64]) -> Vec<f64> {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !most.is_finite() {
        return vec![1.0 / logs.len().max(1) as f64; logs.len()];
    }
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_to_one_however_small_they_are() {
        let shares = normalised(&[-2000.0, -2000.0 + (3.0_f64).ln()]);
        assert!((shares[0] - 0.25).abs() < 1e-9 && (shares[1] - 0.75).abs() < 1e-9);
        assert_eq!(normalised(&[f64::NEG_INFINITY; 2]), [0.5, 0.5]);
    }
}
