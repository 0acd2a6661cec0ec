//! Tokenization of prompts within bounds: text that cannot fit is not tokenized.
//!
//! ```text
//!   bytes of the prompt ─► more than any prompt of this model has: refused, before it is rendered or copied
//!   text ─► piece ─► tokens ─► more than fit: refused, and the rest is not looked at
//!           └─ does anybody still wait?
//! ```
//!
//! Tokenization takes some hundred bytes of memory and some hundred nanoseconds per byte of text. A text that
//! cannot be split into pieces (blanks, a word of a million letters) is bounded as a whole.

use lexiform::vocab::{Tokenizer, TokenizerError};
use lexiform_chat::Prompt;

use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::wire::error::ApiError;

/// The bytes that a prompt may have for each token of the context, in addition to [`SPARE_BYTES`]: prose has
/// four or five, and few files of indented code have ten.
const BYTES_PER_TOKEN: usize = 16;
/// The bytes that a prompt may have in any case.
const SPARE_BYTES: usize = 64 << 10;
/// The maximum length of a text that is tokenized as one piece.
const PIECE_BYTES: usize = 256 << 10;

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// As text that the model itself would have to write.
    Exact,
    /// As a prompt from a stranger, in which nothing becomes a special token.
    Plain,
}

/// Splits the texts of one prompt into tokens.
pub struct PromptTokenizer<'a> {
    tokenizer: &'a Tokenizer,
    interest: &'a Interest,
    /// The context length of the model.
    context: usize,
    /// `true` if the prompt has to fit into the context.
    is_to_fit: bool,
    /// The field that contains the prompt.
    param: &'static str,
    /// The name of the text in errors.
    noun: &'static str,
    tokens: Vec<u32>,
}

impl<'a> PromptTokenizer<'a> {
    /// Creates a tokenizer of a prompt for this model.
    pub fn of_prompt(served: &'a ServedModel, param: &'static str, interest: &'a Interest) -> Self {
        Self {
            is_to_fit: true,
            ..Self::of_text(served, param, interest)
        }
    }

    /// Creates a tokenizer of a text that the answer is likely to repeat. A text that does not fit into the
    /// context cannot be repeated.
    pub fn of_prediction(served: &'a ServedModel, interest: &'a Interest) -> Self {
        Self {
            noun: "prediction",
            ..Self::of_prompt(served, "prediction.content", interest)
        }
    }

    /// Creates a tokenizer of a text whose tokens a client requests. It may have more tokens than the
    /// context, but not more bytes than a prompt.
    pub fn of_text(served: &'a ServedModel, param: &'static str, interest: &'a Interest) -> Self {
        Self {
            tokenizer: &served.text().tokenizer,
            interest,
            context: served.engine().max_context(),
            is_to_fit: false,
            param,
            noun: "prompt",
            tokens: Vec::new(),
        }
    }

    /// Appends tokens as they are.
    pub fn push(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Refuses a prompt that is too long, by its length alone.
    ///
    /// # Errors
    /// Fails if the prompt has more bytes than any prompt of this context.
    pub fn check_bytes(&self, bytes: usize) -> Result<(), ApiError> {
        let context = self.context;
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

    /// Appends the tokens of a text.
    ///
    /// # Errors
    /// Fails if the vocabulary cannot write the text, if it is too long, or if the interest was lost.
    pub fn text(&mut self, text: &str, reading: TextKind) -> Result<(), ApiError> {
        self.check_bytes(text.len())?;
        let tokenizer = self.tokenizer;
        tokenizer.pieces(text).try_for_each(|piece| {
            self.piece(piece, || match reading {
                TextKind::Exact => tokenizer.encode(piece),
                TextKind::Plain => tokenizer.encode_plain(piece),
            })
        })
    }

    /// Appends the tokens of a rendered conversation, in which the names of special tokens become these
    /// tokens where the template wrote them.
    ///
    /// # Errors
    /// As [`text`](Self::text) does.
    pub fn prompt(&mut self, prompt: &Prompt) -> Result<(), ApiError> {
        self.check_bytes(prompt.text().len())?;
        let tokenizer = self.tokenizer;
        prompt
            .pieces(tokenizer)
            .try_for_each(|(piece, trusted)| self.piece(piece, || tokenizer.encode_trusting(piece, &trusted)))
    }

    fn piece(
        &mut self,
        piece: &str,
        encode: impl FnOnce() -> Result<Vec<u32>, TokenizerError>,
    ) -> Result<(), ApiError> {
        if self.interest.is_lost() {
            return Err(ApiError::nobody_waits());
        }
        self.check_piece(piece)?;
        if piece.len() > PIECE_BYTES {
            return Err(self.too_long_a_piece());
        }
        let tokens = encode().map_err(|error| {
            ApiError::invalid("invalid_value", Some(self.param.to_owned()), error.to_string())
        })?;
        self.tokens.extend(tokens);
        self.check_room(self.tokens.len())
    }

    /// Returns all tokens.
    pub fn tokens(self) -> Vec<u32> {
        self.tokens
    }

    /// Refuses a piece that cannot fit, before it is tokenized: the bound takes a few steps per byte and no
    /// memory, and does not look beyond the context length. A piece with fewer bytes than there is room for
    /// tokens is not refused here.
    fn check_piece(&self, piece: &str) -> Result<(), ApiError> {
        if !self.is_to_fit {
            return Ok(());
        }
        let room = self.context.saturating_sub(self.tokens.len());
        if piece.len() < room {
            return Ok(());
        }
        self.check_room(self.tokens.len() + self.tokenizer.at_least(piece, room))
    }

    fn check_room(&self, tokens: usize) -> Result<(), ApiError> {
        if !self.is_to_fit || tokens < self.context {
            return Ok(());
        }
        let (context, noun) = (self.context, self.noun);
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
