//! Texts that the model rewrites: the prompt with the given text, and the draft of the tokens that the model
//! is likely to repeat.

use lexiform::limits::Cancel;
use lexiform::repair::{Costs, Repair, RepairLimits};
use lexiform_engine::Grammar;

use crate::grammars::interest::Interest;
use crate::grammars::language::Language;
use crate::model::served::ServedModel;
use crate::request::prompt::{self, Chat};
use crate::request::tokenization::{PromptTokenizer, TextKind};
use crate::request::told;
use crate::wire::chat::{ChatRequest, Message};
use crate::wire::completion::Prompt;
use crate::wire::error::ApiError;
use crate::wire::generation::Generation;

/// The task for the model.
const TASK: &str =
    "Write this text again in the required form. Keep what it says, and change only what does not fit.";
/// The number of pairs of a place and a state that the search for a draft may visit: a few milliseconds. If
/// they are not enough, the text itself is the draft, which may make the answer slower.
const DRAFT_NODES: usize = 1 << 14;

/// Returns the prompt with a text and an additional instruction: as a chat if the model has a template, else
/// as a text.
///
/// # Errors
/// Fails if the template refuses the conversation, or if the text is too long.
pub fn prompt(
    served: &ServedModel,
    (text, instruction): (&str, Option<&str>),
    generation: &Generation,
    interest: &Interest,
) -> Result<Chat, ApiError> {
    let cutting = PromptTokenizer::of_prompt(served, "text", interest);
    let asked = [Some(TASK), instruction];
    let asked: Vec<&str> = asked.into_iter().flatten().collect();
    let asked = asked.join("\n");
    if served.text().template.is_some() {
        let message = Message {
            role: "user".to_owned(),
            content: Some(format!("{asked}\n\n{text}")),
            ..Message::default()
        };
        let request = ChatRequest {
            generation: generation.clone(),
            ..ChatRequest::plain(&generation.model, vec![message])
        };
        // The conversation is ours; any problem with it is caused by the text.
        return prompt::of_chat(served, &request, cutting).map_err(|error| error.about("text"));
    }
    let described = told::in_text(generation).map_or_else(String::new, |told| format!("{told}\n\n"));
    let text = format!("{asked}\n\n{described}Text:\n{text}\n\nThe same text in the required form:\n");
    Ok(Chat {
        tokens: prompt::of_text(served, &Prompt::Text(text), cutting)?,
        prompt: None,
        language: Language {
            content: generation.constraint.clone(),
            ..Language::default()
        },
    })
}

/// Returns the tokens that the model is likely to write in place of a text: the nearest valid text, or the
/// text itself if the search does not find one. They affect the speed of the answer and never its content; so
/// if they do not fit, none are returned.
///
/// # Errors
/// Fails if the interest was lost.
pub fn likely(
    served: &ServedModel,
    grammar: &Grammar,
    (text, costs): (&str, &Costs),
    interest: &Interest,
) -> Result<Vec<u32>, ApiError> {
    let limits = RepairLimits {
        text_bytes: text.len(),
        nodes: DRAFT_NODES,
        cancel: Cancel::when({
            let interest = interest.clone();
            move || interest.is_lost()
        }),
    };
    let nearest = Repair::of_text(grammar, text, costs, &limits).ok();
    let likely = nearest.as_ref().map_or(text, |nearest| &nearest.text);
    let mut cutting = PromptTokenizer::of_prediction(served, interest);
    let cut = cutting.text(likely, TextKind::Exact);
    if interest.is_lost() {
        return Err(ApiError::nobody_waits());
    }
    Ok(cut.map_or_else(|_| Vec::new(), |()| cutting.tokens()))
}
