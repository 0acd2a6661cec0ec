//! The shapes of `POST /v1/completions`.

use crate::answer::parts::Part;
use crate::answer::writer::{Base, End, Piece, Stage, Whole, Writer, sse_event, told};
use crate::wire::generation::StreamOptions;
use crate::wire::response::{TextChoice, TextLogprobs, TokenLogprob, Usage};

/// Writes text completions.
pub struct TextWriter {
    base: Base,
    options: StreamOptions,
    logprobs: bool,
    /// The number of characters sent of each sample.
    offsets: Vec<usize>,
    /// The prompt of each sample, if answers begin with it; taken when it is sent.
    echoed: Vec<String>,
}

impl TextWriter {
    /// Creates the writer of this answer.
    pub fn new(base: Base, options: StreamOptions, logprobs: bool) -> Self {
        Self {
            base,
            options,
            logprobs,
            offsets: Vec::new(),
            echoed: Vec::new(),
        }
    }

    /// Lets each sample begin with its prompt.
    #[must_use]
    pub fn echoing(self, echoed: Vec<String>) -> Self {
        Self { echoed, ..self }
    }

    /// Returns the prompt that a sample begins with, unless it was sent.
    fn take_echo(&mut self, index: usize) -> String {
        self.echoed.get_mut(index).map(std::mem::take).unwrap_or_default()
    }

    fn encode(&self, stage: Stage, choices: Vec<TextChoice>, usage: Option<Usage>) -> String {
        self.base.encode(("text_completion", stage), choices, usage)
    }

    fn send(&self, stage: Stage, choices: Vec<TextChoice>, usage: Usage, out: &mut String) {
        let usage = self.options.continuous_usage.then_some(usage);
        sse_event(&self.encode(stage, choices, usage), out);
    }
}

impl Writer for TextWriter {
    fn opening(&mut self, samples: usize, _: &mut String) {
        self.offsets = vec![0; samples];
    }

    fn piece(&mut self, piece: Piece, out: &mut String) {
        let Part::Content(text) = piece.part else { return };
        let text = self.take_echo(piece.index) + &text;
        let offset = self.offsets[piece.index];
        let logprobs = self
            .logprobs
            .then(|| text_logprobs(&piece.since.logprobs, offset));
        self.offsets[piece.index] += text.chars().count();
        let choice = TextChoice {
            index: piece.index,
            text,
            logprobs,
            finish_reason: None,
            lexiform: None,
        };
        let stage = match offset {
            0 => Stage::Beginning,
            _ => Stage::Middle,
        };
        self.send(stage, vec![choice], piece.usage, out);
    }

    fn end(&mut self, end: End, out: &mut String) {
        let index = end.index;
        let rest =
            (!end.since.logprobs.is_empty()).then(|| text_logprobs(&end.since.logprobs, self.offsets[index]));
        let choice = TextChoice {
            index,
            text: self.take_echo(index),
            logprobs: rest,
            finish_reason: Some(end.ended.finish),
            lexiform: Some(told(&end.ended, end.findings)),
        };
        self.send(Stage::End, vec![choice], end.usage, out);
    }

    fn closing(&mut self, usage: Usage, out: &mut String) {
        if self.options.include_usage {
            sse_event(&self.encode(Stage::Middle, Vec::new(), Some(usage)), out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn whole(&self, samples: Vec<Whole>, usage: Usage) -> String {
        let choice = |sample: Whole| TextChoice {
            index: sample.index,
            text: self.echoed.get(sample.index).cloned().unwrap_or_default() + &sample.content,
            logprobs: self.logprobs.then(|| text_logprobs(&sample.logprobs, 0)),
            finish_reason: Some(sample.ended.finish),
            lexiform: Some(told(&sample.ended, sample.findings)),
        };
        let choices = samples.into_iter().map(choice).collect();
        self.encode(Stage::End, choices, Some(usage))
    }
}

fn text_logprobs(entries: &[TokenLogprob], mut offset: usize) -> TextLogprobs {
    let mut out = TextLogprobs::default();
    for entry in entries {
        out.text_offset.push(offset);
        offset += entry.token.chars().count();
        out.tokens.push(entry.token.clone());
        out.token_logprobs.push(entry.logprob);
        let top = entry
            .top_logprobs
            .iter()
            .map(|top| (top.token.clone(), top.logprob.into()));
        out.top_logprobs.push(top.collect());
    }
    out
}
