//! Rendered prompts: a text, the writer of each of its bytes, and its tokens.

use std::ops::Range;

use lexiform_automata::vocab::{Tokenizer, TokenizerError};

use crate::text::{Origin, Text};

/// A rendered conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    text: Text,
    /// The JSON pointers of the request by origin.
    pointers: Vec<String>,
    messages: usize,
}

/// A part of a prompt with one writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span<'p> {
    /// The place in the text, in bytes.
    pub range: Range<usize>,
    /// The writer.
    pub writer: Writer<'p>,
}

/// The writer of a part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer<'p> {
    /// The template. Control tokens are recognised here.
    Template,
    /// The request, at this JSON pointer, such as `/messages/0/content`. The pointer is empty for text of
    /// which only the amount comes from the request, such as the brackets of its lists.
    Request(&'p str),
}

impl Prompt {
    /// Creates a prompt; `pointers` are those of the origins after [`Origin::TEMPLATE`].
    pub(crate) fn new(text: Text, pointers: Vec<String>, messages: usize) -> Self {
        Self {
            text,
            pointers,
            messages,
        }
    }

    /// Returns the number of messages of the conversation.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the parts of the text in order, each with its writer; adjacent parts differ in it.
    pub fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        self.text.runs().map(|(range, origin)| Span {
            range,
            writer: match origin {
                Origin::TEMPLATE => Writer::Template,
                Origin(place) => {
                    let pointer = self.pointers.get(place as usize - 1);
                    Writer::Request(pointer.map_or("", String::as_str))
                }
            },
        })
    }

    /// Returns the parts of the text that the template wrote.
    pub fn trusted(&self) -> Vec<Range<usize>> {
        let runs = self.text.runs().filter(|(_, origin)| *origin == Origin::TEMPLATE);
        runs.map(|(range, _)| range).collect()
    }

    /// Returns the text at the end of the prompt that the template wrote; empty if the request wrote the end.
    pub fn ending(&self) -> &str {
        match self.text.runs().last() {
            Some((range, Origin::TEMPLATE)) => &self.text()[range],
            _ => "",
        }
    }

    /// Returns pieces of the text, each with the parts of it that the template wrote. The tokens of the
    /// pieces ([`Tokenizer::encode_trusting`]), concatenated, are the tokens of the prompt.
    pub fn pieces<'p>(
        &'p self,
        tokenizer: &Tokenizer,
    ) -> impl Iterator<Item = (&'p str, Vec<Range<usize>>)> + use<'p> {
        let trusted = self.trusted();
        let mut start = 0;
        let pieces: Vec<&str> = tokenizer.pieces(self.text()).collect();
        pieces.into_iter().map(move |piece| {
            let end = start + piece.len();
            let first = trusted.partition_point(|part| part.end <= start);
            let inside = trusted[first..].iter().take_while(|part| part.start < end);
            let cut = |part: &Range<usize>| part.start.max(start) - start..part.end.min(end) - start;
            let inside = inside.map(cut).collect();
            start = end;
            (piece, inside)
        })
    }

    /// Returns the tokens. For messages that spell no added token, these are the tokens of the whole text.
    ///
    /// # Errors
    /// Fails if the vocabulary cannot write the text.
    pub fn encode(&self, tokenizer: &Tokenizer) -> Result<Vec<u32>, TokenizerError> {
        let mut tokens = Vec::new();
        for (piece, trusted) in self.pieces(tokenizer) {
            tokens.extend(tokenizer.encode_trusting(piece, &trusted)?);
        }
        Ok(tokens)
    }
}
