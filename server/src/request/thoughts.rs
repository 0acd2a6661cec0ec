//! Thoughts before the answers of a chat: whether there is one, and the most tokens of it.

use lexiform_engine::{PreambleLimit, Request};

use crate::grammars::language::Language;
use crate::grammars::thought::Thought;
use crate::model::served::ServedModel;
use crate::wire::chat::ChatRequest;
use crate::wire::chat::reasoning::Thinking;
use crate::wire::error::ApiError;

/// Sets how the answers of a chat begin after a prompt that its template ended like this.
///
/// # Errors
/// Fails if the request asks for a thought that cannot be.
pub fn begin(
    served: &ServedModel,
    request: &ChatRequest,
    ending: &str,
    language: &mut Language,
) -> Result<(), ApiError> {
    let thinking = request.reasoning.thinking;
    let refused = |reason: &str| {
        let message = format!("reasoning: {reason}.");
        Err(ApiError::invalid(
            "invalid_value",
            Some("reasoning".to_owned()),
            message,
        ))
    };
    let Some(marks) = served.thought_marks() else {
        return match thinking {
            Thinking::On => refused("on requires a model that has tokens for the marks of a thought"),
            Thinking::Auto | Thinking::Off => Ok(()),
        };
    };
    // A message that is continued has no thought before it that is still to be written.
    if request.continues {
        return match thinking {
            Thinking::On => {
                refused("on is impossible with continue_final_message, behind whose text no thought begins")
            }
            Thinking::Auto | Thinking::Off => Ok(()),
        };
    }
    language.thought = Thought::after(ending, &marks, thinking);
    language.marks = marks;
    Ok(())
}

/// Limits the tokens of the thoughts of these requests, whose answers are in this language.
///
/// # Errors
/// Fails if finding what completes an answer behind its thought takes too long.
pub fn limit(language: &Language, requests: &mut [Request], most: Option<usize>) -> Result<(), ApiError> {
    let Some((preamble, most)) = language.thought.preamble(language.marks_of_thought()).zip(most) else {
        return Ok(());
    };
    for request in requests {
        if let Some(grammar) = &request.constraints.grammar {
            let limit = PreambleLimit::new(grammar, preamble, most);
            request.limits.preamble = Some(limit.map_err(|exhausted| {
                let message = format!("max_reasoning_tokens: {exhausted}.");
                let param = Some("max_reasoning_tokens".to_owned());
                ApiError::invalid("invalid_value", param, message)
            })?);
        }
    }
    Ok(())
}

/// Returns `true` if an answer needs a grammar though it may be any text: to impose or to limit its thought.
pub fn needs_grammar(language: &Language, most: Option<usize>) -> bool {
    language.thought.is_imposed() || most.is_some() && !language.thought.is_absent()
}
