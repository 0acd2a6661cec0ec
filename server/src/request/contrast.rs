//! The prompt that an answer is contrasted with, as tokens.

use lexiform_engine::ContrastPrompt;

use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::request::prompt;
use crate::request::tokenization::PromptTokenizer;
use crate::wire::chat::ChatRequest;
use crate::wire::error::ApiError;
use crate::wire::generation::{Generation, OtherPrompt};

/// Returns the prompt that the answers are contrasted with, if there is one. Messages are rendered as those of
/// `chat`, with the same tools and the same constraint.
///
/// # Errors
/// Fails as the prompt of the request itself would, and names the field of the other one.
pub fn of(
    served: &ServedModel,
    generation: &Generation,
    chat: Option<&ChatRequest>,
    interest: &Interest,
) -> Result<Option<ContrastPrompt>, ApiError> {
    let Some(contrast) = &generation.contrast else {
        return Ok(None);
    };
    let tokens = match (&contrast.prompt, chat) {
        (OtherPrompt::Messages(messages), Some(chat)) => {
            let other = ChatRequest {
                messages: messages.clone(),
                ..chat.clone()
            };
            let cutting = PromptTokenizer::of_prompt(served, "contrast.messages", interest);
            prompt::of_chat(served, &other, cutting)
                .map_err(|error| error.about("contrast.messages"))?
                .tokens
        }
        (OtherPrompt::Prompt(text), _) => {
            let cutting = PromptTokenizer::of_prompt(served, "contrast.prompt", interest);
            prompt::of_text(served, text, cutting)?
        }
        // Refused when the request was read.
        (OtherPrompt::Messages(_), None) => return Ok(None),
    };
    Ok(Some(ContrastPrompt {
        tokens,
        contrast: contrast.weights(&generation.task),
    }))
}
