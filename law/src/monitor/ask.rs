//! Constraints that are functions of the written text: the state is the text, and no host state is copied
//! with it.

use std::sync::Arc;

use super::{Failure, Monitor, MonitorState};
use lexiform_automata::vocab::{TokenKind, Vocabulary};

/// The question that a function answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// Can a text begin like this? The last character may be cut in the middle of its bytes.
    Prefix(&'a [u8]),
    /// Is this a whole text?
    Whole(&'a [u8]),
}

/// A constraint that a function of the text decides. For an end token the function decides whether the text
/// is whole; any other special token is not allowed.
#[derive(Clone, Debug)]
pub struct PerText<F> {
    vocabulary: Arc<Vocabulary>,
    function: Arc<F>,
}

impl<F: Fn(Written<'_>) -> Result<bool, Failure> + Send + Sync + 'static> PerText<F> {
    /// Creates the constraint of this function, for texts written in the tokens of a vocabulary.
    pub fn new(vocabulary: &Arc<Vocabulary>, function: F) -> Self {
        PerText {
            vocabulary: vocabulary.clone(),
            function: Arc::new(function),
        }
    }
}

/// A text, and the function that decides about it.
struct TextState<F> {
    vocabulary: Arc<Vocabulary>,
    function: Arc<F>,
    text: Vec<u8>,
}

impl<F> Monitor for PerText<F>
where
    F: Fn(Written<'_>) -> Result<bool, Failure> + Send + Sync + 'static,
{
    fn start(&self) -> Box<dyn MonitorState> {
        Box::new(TextState {
            vocabulary: self.vocabulary.clone(),
            function: self.function.clone(),
            text: Vec::new(),
        })
    }
}

impl<F> MonitorState for TextState<F>
where
    F: Fn(Written<'_>) -> Result<bool, Failure> + Send + Sync + 'static,
{
    fn fork(&self) -> Box<dyn MonitorState> {
        Box::new(TextState {
            vocabulary: self.vocabulary.clone(),
            function: self.function.clone(),
            text: self.text.clone(),
        })
    }

    fn allows(&mut self, token: u32, _left: Option<usize>) -> Result<bool, Failure> {
        if self.vocabulary.is_eos(token) {
            return (self.function)(Written::Whole(&self.text));
        }
        let bytes = match self.vocabulary.kind(token) {
            TokenKind::Text => self.vocabulary.bytes(token),
            TokenKind::Special | TokenKind::Mark | TokenKind::Unused => &[],
        };
        if bytes.is_empty() {
            return Ok(false);
        }
        let before = self.text.len();
        self.text.extend_from_slice(bytes);
        let answer = (self.function)(Written::Prefix(&self.text));
        self.text.truncate(before);
        answer
    }

    fn advance(&mut self, token: u32) -> Result<(), Failure> {
        if !self.vocabulary.is_eos(token) {
            self.text.extend_from_slice(self.vocabulary.bytes(token));
        }
        Ok(())
    }
}

/// A constraint that a function of the tokens decides: the tokens so far, and the one that may come next.
#[derive(Clone, Debug)]
pub struct PerToken<F> {
    function: Arc<F>,
}

impl<F: Fn(&[u32], u32) -> Result<bool, Failure> + Send + Sync + 'static> PerToken<F> {
    /// Creates the constraint of this function.
    pub fn new(function: F) -> Self {
        PerToken {
            function: Arc::new(function),
        }
    }
}

/// The tokens so far, and the function that decides about the next.
struct TokenState<F> {
    function: Arc<F>,
    tokens: Vec<u32>,
}

impl<F: Fn(&[u32], u32) -> Result<bool, Failure> + Send + Sync + 'static> Monitor for PerToken<F> {
    fn start(&self) -> Box<dyn MonitorState> {
        Box::new(TokenState {
            function: self.function.clone(),
            tokens: Vec::new(),
        })
    }
}

impl<F: Fn(&[u32], u32) -> Result<bool, Failure> + Send + Sync + 'static> MonitorState for TokenState<F> {
    fn fork(&self) -> Box<dyn MonitorState> {
        Box::new(TokenState {
            function: self.function.clone(),
            tokens: self.tokens.clone(),
        })
    }

    fn allows(&mut self, token: u32, _left: Option<usize>) -> Result<bool, Failure> {
        (self.function)(&self.tokens, token)
    }

    fn advance(&mut self, token: u32) -> Result<(), Failure> {
        self.tokens.push(token);
        Ok(())
    }
}
