//! Tokenization of prompts within bounds: nothing is cut that cannot fit, and no more is cut than can.
//!
//! ```text
//!   bytes of the prompt ─► more than any prompt of this model has: refused, before it is rendered or copied
//!   text ─► piece ─► tokens ─► more than fit: refused, and the rest is not looked at
//!           └─ does anybody still wait?
//! ```
//!
//! Cutting takes some hundred bytes of memory and some hundred nanoseconds for each byte of text. A text
//! without a place where it may be cut in pieces (blanks, a word of a million letters) is bounded by itself.

use lexiform::vocab::{Tokenizer, TokenizerError};

use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::wire::error::ApiError;

/// The bytes that a prompt may have for each token of the context, beside [`SPARE_BYTES`]: prose has four or
/// five, and of indented code few files have ten.
const BYTES_PER_TOKEN: usize = 16;
/// The bytes that a prompt may have in any case.
const SPARE_BYTES: usize = 64 << 10;
/// The longest text that is cut as one piece.
const PIECE_BYTES: usize = 256 << 10;

/// In which way a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// As what a model would have to write to say it.
    Exact,
    /// As a prompt from a stranger, in which nothing becomes a special token.
    Plain,
    /// As what a chat template wrote, in which the names of special tokens become these.
    Template,
}

/// Cuts the texts of one prompt into tokens.
pub struct PromptTokenizer<'a> {
    tokenizer: &'a Tokenizer,
    interest: &'a Interest,
    /// The context, if the prompt has to fit into it.
    context: Option<usize>,
    /// The field that holds the prompt.
    param: &'static str,
    /// What errors call the text.
    noun: &'static str,
    tokens: Vec<u32>,
}

impl<'a> PromptTokenizer<'a> {
    /// Of a prompt that this model is to read.
    pub fn of_prompt(served: &'a ServedModel, param: &'static str, interest: &'a Interest) -> Self {
        Self {
            context: Some(served.engine().max_context()),
            ..Self::of_text(served, param, interest)
        }
    }

    /// Of a text that the answer is likely to repeat: one that does not fit into the context cannot be
    /// repeated.
    pub fn of_prediction(served: &'a ServedModel, interest: &'a Interest) -> Self {
        Self {
            noun: "prediction",
            ..Self::of_prompt(served, "prediction.content", interest)
        }
    }

    /// Of a text that somebody wants to know the tokens of, however many.
    pub fn of_text(served: &'a ServedModel, param: &'static str, interest: &'a Interest) -> Self {
        Self {
            tokenizer: &served.text().tokenizer,
            interest,
            context: None,
            param,
            noun: "prompt",
            tokens: Vec::new(),
        }
    }

    /// Takes tokens as they are.
    pub fn push(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Refuses a prompt by its length alone.
    ///
    /// # Errors
    /// It has more bytes than any prompt of this context has.
    pub fn check_bytes(&self, bytes: usize) -> Result<(), ApiError> {
        let Some(context) = self.context else {
            return Ok(());
        };
        let most = context
            .saturating_mul(BYTES_PER_TOKEN)
            .saturating_add(SPARE_BYTES);
        if bytes <= most {
            return Ok(());
        }
        let noun = self.noun;
        let message = format!(
            "This model's maximum context length is {context} tokens, and the {noun} has {bytes} bytes; the limit \
             prompt_bytes is {most}."
        );
        Err(exceeded(self.param, message))
    }

    /// Takes the tokens of a text.
    ///
    /// # Errors
    /// The vocabulary cannot write it, it is too long, or nobody waits any more.
    pub fn text(&mut self, text: &str, reading: TextKind) -> Result<(), ApiError> {
        self.check_bytes(text.len())?;
        for piece in self.tokenizer.pieces(text) {
            if self.interest.is_lost() {
                return Err(ApiError::nobody_waits());
            }
            self.check_piece(piece)?;
            if piece.len() > PIECE_BYTES {
                return Err(self.too_long_a_piece());
            }
            let tokens = self.cut(piece, reading).map_err(|error| {
                ApiError::invalid("invalid_value", Some(self.param.to_owned()), error.to_string())
            })?;
            self.tokens.extend(tokens);
            if let Some(context) = self.context {
                self.check_room(context, self.tokens.len())?;
            }
        }
        Ok(())
    }

    /// All tokens.
    pub fn tokens(self) -> Vec<u32> {
        self.tokens
    }

    fn cut(&self, piece: &str, reading: TextKind) -> Result<Vec<u32>, TokenizerError> {
        match reading {
            TextKind::Exact => self.tokenizer.encode(piece),
            TextKind::Plain => self.tokenizer.encode_plain(piece),
            TextKind::Template => self.tokenizer.encode_with_special(piece),
        }
    }

    /// Refuses a piece that cannot fit, before it is cut: a bound costs a few steps a byte and no memory, and
    /// looks no further than the context. A piece of fewer bytes than there is room for tokens may always
    /// fit.
    fn check_piece(&self, piece: &str) -> Result<(), ApiError> {
        let Some(context) = self.context else {
            return Ok(());
        };
        let room = context.saturating_sub(self.tokens.len());
        if piece.len() < room {
            return Ok(());
        }
        self.check_room(context, self.tokens.len() + self.tokenizer.at_least(piece, room))
    }

    fn check_room(&self, context: usize, tokens: usize) -> Result<(), ApiError> {
        if tokens < context {
            return Ok(());
        }
        let noun = self.noun;
        let message = format!(
            "This model's maximum context length is {context} tokens, but the {noun} alone has at least {tokens} tokens."
        );
        Err(exceeded(self.param, message))
    }

    fn too_long_a_piece(&self) -> ApiError {
        let message = format!(
            "The text has a word that is too long to tokenize; the limit piece_bytes is {PIECE_BYTES}."
        );
        exceeded(self.param, message)
    }
}

fn exceeded(param: &str, message: String) -> ApiError {
    ApiError::invalid("context_length_exceeded", Some(param.to_owned()), message)
}
