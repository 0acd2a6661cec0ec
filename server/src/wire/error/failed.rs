//! The errors of valid requests that failed: the engine failed, or a text has no repair.

use actix_web::http::StatusCode;
use lexiform::repair::RepairError;
use lexiform_engine::{EngineError, MonitorProblem};

use super::ApiError;

impl ApiError {
    /// The text has no repair, or none was found.
    pub fn repair(error: &RepairError) -> Self {
        let message = error.to_string();
        let (kind, code) = match error {
            RepairError::TooFar { .. } => ("invalid_request_error", "repair_too_far"),
            RepairError::Exhausted(_) => ("invalid_request_error", "grammar_too_expensive"),
            _ => return Self::invalid("invalid_value", Some("text".to_owned()), message),
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, kind, code, message)
    }

    /// The engine failed while it wrote the answer.
    pub fn engine(error: &EngineError) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        match error {
            EngineError::AttemptsExhausted { .. } => {
                let message = format!(
                    "{error}; raise max_attempts, or use the local law, or on_exhaustion: weighted or mcmc"
                );
                Self::new(status, "invalid_request_error", "attempts_exhausted", message)
            }
            EngineError::FilteredOut { filters } => {
                let message = format!(
                    "{error}: a law about the model, or a search, applies filters before the constraint; leave them out or \
                     loosen them, or use law: local, which filters the allowed tokens (with law: global, \
                     on_exhaustion: weighted does so where nothing else is left)"
                );
                Self {
                    param: filters.first().map(|&filter| filter.to_owned()),
                    ..Self::new(status, "invalid_request_error", "filtered_out", message)
                }
            }
            EngineError::FewTexts { .. } => {
                let message = format!("{error}; widen the search, or use another one");
                Self::new(status, "invalid_request_error", "search_found_nothing", message)
            }
            EngineError::ErrorsExhausted { .. } => {
                let message = format!("{error}; raise max_attempts, or use the local law");
                Self::new(status, "invalid_request_error", "attempts_exhausted", message)
            }
            EngineError::SearchExhausted { .. } => {
                let message = format!("{error}; raise it, ask for fewer answers, or use another search");
                Self::new(status, "invalid_request_error", "search_exhausted", message)
            }
            EngineError::PhrasesMissing { .. } => {
                let message = format!(
                    "{error}; raise the width, or see whether the constraint and filters allow the phrases"
                );
                Self {
                    param: Some("search.must_contain".to_owned()),
                    ..Self::new(status, "invalid_request_error", "phrases_missing", message)
                }
            }
            EngineError::OutOfTokens { .. } => {
                let message = format!("{error} (on_budget is error)");
                Self {
                    param: Some("max_tokens".to_owned()),
                    ..Self::new(status, "invalid_request_error", "budget_exceeded", message)
                }
            }
            EngineError::Monitor { monitor, problem } => {
                Self::monitor(problem, error.to_string()).about(monitor)
            }
            EngineError::TooExpensive { .. } => Self::new(
                status,
                "invalid_request_error",
                "grammar_too_expensive",
                error.to_string(),
            ),
            EngineError::Late { allowed, attempts } => {
                Self::attempts_timed_out(allowed.as_secs_f64(), *attempts)
            }
            EngineError::Stopped => Self::shutting_down(),
            _ => {
                tracing::error!("{error}");
                Self::internal()
            }
        }
    }

    /// A monitor allows nothing that the others allow, or has no answer.
    fn monitor(problem: &MonitorProblem, message: String) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        match problem {
            MonitorProblem::Refused { .. } => {
                Self::new(status, "invalid_request_error", "monitor_refused", message)
            }
            MonitorProblem::Host { is_late, .. } => {
                let status = match is_late {
                    true => StatusCode::GATEWAY_TIMEOUT,
                    false => StatusCode::BAD_GATEWAY,
                };
                Self::new(status, "server_error", "callback_failed", message)
            }
            MonitorProblem::Failed(_) | MonitorProblem::Slow { .. } => {
                Self::new(status, "invalid_request_error", "monitor_failed", message)
            }
        }
    }
}
