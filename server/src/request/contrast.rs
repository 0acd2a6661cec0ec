//! What an answer is contrasted with: another prompt as tokens, or the draft model.

use lexiform_engine::{AmateurRows, ContrastWith};

use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::request::prompt;
use crate::request::tokenization::PromptTokenizer;
use crate::wire::chat::ChatRequest;
use crate::wire::completion::CompletionRequest;
use crate::wire::error::ApiError;
use crate::wire::generation::Other;

/// Returns what a chat is contrasted with, if anything: the draft model, or other messages, rendered like
/// those of the chat, with the same tools and the same constraint.
///
/// # Errors
/// Fails as the prompt of the chat itself would, and names the other one.
pub fn of_chat(
    served: &ServedModel,
    chat: &ChatRequest,
    interest: &Interest,
) -> Result<Option<ContrastWith>, ApiError> {
    let Some(contrast) = &chat.contrast else {
        return Ok(None);
    };
    let amateur = match &contrast.other {
        Other::DraftModel => AmateurRows::DraftModel,
        Other::Prompt(messages) => {
            let other = ChatRequest {
                messages: messages.clone(),
                ..chat.clone()
            };
            let cutting = PromptTokenizer::of_prompt(served, "contrast.messages", interest);
            let read = prompt::of_chat(served, &other, cutting);
            AmateurRows::Prompt(read.map_err(|error| error.about("contrast.messages"))?.tokens)
        }
    };
    Ok(Some(ContrastWith {
        amateur,
        contrast: contrast.weights(&chat.generation.task),
    }))
}

/// Returns what a completion is contrasted with, if anything.
///
/// # Errors
/// Fails as the prompt of the completion itself would, and names the other one.
pub fn of_completion(
    served: &ServedModel,
    completion: &CompletionRequest,
    interest: &Interest,
) -> Result<Option<ContrastWith>, ApiError> {
    let Some(contrast) = &completion.contrast else {
        return Ok(None);
    };
    let amateur = match &contrast.other {
        Other::DraftModel => AmateurRows::DraftModel,
        Other::Prompt(text) => {
            let cutting = PromptTokenizer::of_prompt(served, "contrast.prompt", interest);
            AmateurRows::Prompt(prompt::of_text(served, text, cutting)?)
        }
    };
    Ok(Some(ContrastWith {
        amateur,
        contrast: contrast.weights(&completion.generation.task),
    }))
}
