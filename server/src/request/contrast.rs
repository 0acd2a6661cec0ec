//! The prompt that an answer is contrasted with, as tokens.

use lexiform_engine::ContrastPrompt;

use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::request::prompt;
use crate::request::tokenization::PromptTokenizer;
use crate::wire::chat::ChatRequest;
use crate::wire::completion::CompletionRequest;
use crate::wire::error::ApiError;

/// Returns the prompt that a chat is contrasted with, if there is one: its messages, rendered like those of
/// the chat, with the same tools and the same constraint.
///
/// # Errors
/// Fails as the prompt of the chat itself would, and names the other one.
pub fn of_chat(
    served: &ServedModel,
    chat: &ChatRequest,
    interest: &Interest,
) -> Result<Option<ContrastPrompt>, ApiError> {
    let Some(contrast) = &chat.contrast else {
        return Ok(None);
    };
    let other = ChatRequest {
        messages: contrast.prompt.clone(),
        ..chat.clone()
    };
    let cutting = PromptTokenizer::of_prompt(served, "contrast.messages", interest);
    let read = prompt::of_chat(served, &other, cutting);
    let tokens = read.map_err(|error| error.about("contrast.messages"))?.tokens;
    Ok(Some(ContrastPrompt {
        tokens,
        contrast: contrast.weights(&chat.generation.task),
    }))
}

/// Returns the prompt that a completion is contrasted with, if there is one.
///
/// # Errors
/// Fails as the prompt of the completion itself would, and names the other one.
pub fn of_completion(
    served: &ServedModel,
    completion: &CompletionRequest,
    interest: &Interest,
) -> Result<Option<ContrastPrompt>, ApiError> {
    let Some(contrast) = &completion.contrast else {
        return Ok(None);
    };
    let cutting = PromptTokenizer::of_prompt(served, "contrast.prompt", interest);
    Ok(Some(ContrastPrompt {
        tokens: prompt::of_text(served, &contrast.prompt, cutting)?,
        contrast: contrast.weights(&completion.generation.task),
    }))
}
