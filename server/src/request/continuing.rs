//! Answers that a prompt has begun: the last message of a chat, which the model continues.

use lexiform_engine::{Grammar, Request};

use crate::model::served::ServedModel;
use crate::wire::chat::ChatRequest;
use crate::wire::error::ApiError;

/// The text of an answer with which a prompt ends.
#[derive(Clone, Debug)]
pub struct Begun {
    /// The text.
    pub text: String,
    /// The field of the request that it came from.
    param: String,
}

impl Begun {
    /// Returns the text that a chat continues, if it continues one.
    ///
    /// # Errors
    /// Fails if the text has a mark of a thought: in a message it would be text to the model, and no mark.
    pub fn of(served: &ServedModel, request: &ChatRequest) -> Result<Option<Self>, ApiError> {
        let last = request.messages.iter().enumerate().next_back();
        let Some((place, message)) = last.filter(|_| request.continues) else {
            return Ok(None);
        };
        let begun = Self {
            text: message.content.clone().unwrap_or_default(),
            param: format!("messages[{place}].content"),
        };
        let marks = served.thought_marks().into_iter();
        let mut marks = marks.flat_map(|marks| [marks.open, marks.close()]);
        match marks.find(|mark| begun.text.contains(mark)) {
            Some(mark) => Err(begun.refused(&format!("{mark}: a thought cannot be continued"))),
            None => Ok(Some(begun)),
        }
    }

    /// Tells requests the text that their prompts end with. Their grammars are those of the
    /// [rest](Self::rest).
    pub fn mark(&self, requests: &mut [Request]) {
        for request in requests {
            request.prompt.begun = self.text.clone().into_bytes();
        }
    }

    /// Returns the grammar of the texts that continue this one to a text of a grammar.
    ///
    /// # Errors
    /// Fails if there are none, or if reading the text takes too long.
    pub fn rest(&self, grammar: &Grammar) -> Result<Grammar, ApiError> {
        match grammar.after(self.text.as_bytes()) {
            Ok(Some(rest)) => Ok(rest),
            Ok(None) => Err(self.not_allowed(grammar)),
            Err(exhausted) => Err(self.refused(&exhausted.to_string())),
        }
    }

    /// The error for a text in which the call of a tool may begin.
    pub fn may_call(&self) -> ApiError {
        self.refused("the text contains the beginning of a call, or ends in what may be one; only text can be continued")
    }

    /// Refuses the text for this reason.
    fn refused(&self, reason: &str) -> ApiError {
        let message = format!("{}: continue_final_message: {reason}.", self.param);
        ApiError::invalid("invalid_value", Some(self.param.clone()), message)
    }

    /// The error that names the first byte after which the grammar has no text.
    fn not_allowed(&self, grammar: &Grammar) -> ApiError {
        let bytes = self.text.as_bytes();
        let mut state = grammar.start();
        for (place, byte) in bytes.iter().enumerate() {
            match grammar.step_bytes(state, std::slice::from_ref(byte)) {
                Some(next) => state = next,
                None => {
                    let character = self.text.floor_char_boundary(place);
                    let found: String = self.text[character..].chars().take(1).collect();
                    return self.refused(&format!(
                        "the constraint does not allow this text; at byte {place}, {found:?} is not allowed"
                    ));
                }
            }
        }
        self.refused("the tokens of the model cannot complete this text as the constraint requires")
    }
}
