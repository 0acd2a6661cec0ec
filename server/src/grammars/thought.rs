//! How an answer begins: with or without a thought.
//!
//! ```text
//!   end of the prompt   `auto`                       `on`        `off`
//!   …<think>            Begun                        Begun       Skipped: the mark that ends it comes at
//! once
//!   …</think>           None                         Required    Refused
//!   anything else       Possible: the model chooses  Required    Refused
//! ```

use lexiform::vocab::Vocabulary;
use lexiform_engine::Preamble;
use lexiform_syntax::tags::{ThoughtMarks, shown_thought_marks, thought_marks};

use crate::grammars::tool_format::ToolFormat;
use crate::wire::chat::reasoning::Thinking;

/// How an answer begins: with or without a thought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Thought {
    /// The answer begins without a thought.
    #[default]
    None,
    /// The same, because the request asks for none: free text does not contain the mark that opens one.
    Refused,
    /// The answer may begin with a thought.
    Possible,
    /// The answer begins with a thought.
    Required,
    /// The prompt has already opened the thought.
    Begun,
    /// The prompt has opened a thought that the request does not ask for; the answer closes it at once.
    Skipped,
}

impl Thought {
    /// Returns how an answer begins after a prompt that its template ended like this.
    pub fn after(ending: &str, marks: &ThoughtMarks, thinking: Thinking) -> Self {
        let end = ending.trim_end();
        let is_open = end.ends_with(marks.open.trim_end());
        match (is_open, thinking) {
            (true, Thinking::Off) => Thought::Skipped,
            (true, Thinking::Auto | Thinking::On) => Thought::Begun,
            (false, Thinking::Off) => Thought::Refused,
            (false, Thinking::On) => Thought::Required,
            (false, Thinking::Auto) if end.ends_with(marks.close()) => Thought::None,
            (false, Thinking::Auto) => Thought::Possible,
        }
    }

    /// Returns `true` if the prompt has opened the thought.
    pub fn is_open(self) -> bool {
        matches!(self, Thought::Begun | Thought::Skipped)
    }

    /// Returns `true` if no answer has a thought.
    pub fn is_absent(self) -> bool {
        matches!(self, Thought::None | Thought::Refused)
    }

    /// Returns the thought between these marks as text before an answer; `None` if no answer has one.
    pub fn preamble(self, marks: ThoughtMarks) -> Option<Preamble> {
        (!self.is_absent()).then(|| Preamble {
            open: marks.open,
            close: marks.ends,
            is_open: self.is_open(),
        })
    }

    /// Returns `true` if the request decides about the thought, whatever the model would write.
    pub fn is_imposed(self) -> bool {
        matches!(self, Thought::Refused | Thought::Required | Thought::Skipped)
    }
}

/// Returns the marks of thoughts of a model with this format of calls and this template: the first of those
/// of the format, of the template and of most models whose tokens the vocabulary has; `None` if it has none.
pub fn marks(format: ToolFormat, template: Option<&str>, vocabulary: &Vocabulary) -> Option<ThoughtMarks> {
    let of_format = match format {
        ToolFormat::Any => None,
        ToolFormat::Of(name) => thought_marks(name).ok().flatten(),
    };
    let shown = template.and_then(shown_thought_marks);
    let mut all = of_format
        .into_iter()
        .chain(shown)
        .chain([ThoughtMarks::default()]);
    all.find(|marks| {
        [marks.open, marks.close()]
            .iter()
            .all(|mark| is_known(vocabulary, mark))
    })
}

/// Returns `true` if a mark is a token, or begins with special tokens.
fn is_known(vocabulary: &Vocabulary, mark: &str) -> bool {
    let is_token = |name: &str| {
        let token = vocabulary.token_of(name.as_bytes());
        token.or_else(|| vocabulary.special(name)).is_some()
    };
    let first = mark.split_inclusive('>').next();
    is_token(mark) || first.is_some_and(is_token)
}

/// Returns the special tokens in these marks, which the reader of an answer must see.
pub fn tokens(marks: &ThoughtMarks, vocabulary: &Vocabulary) -> Vec<u32> {
    let texts = marks.ends.iter().chain([&marks.open]);
    let pieces = texts.flat_map(|text| text.split_inclusive('>'));
    let names = pieces.filter_map(|piece| piece.find('<').map(|at| &piece[at..]));
    let mut tokens: Vec<u32> = names.filter_map(|name| vocabulary.special(name)).collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_prompt_and_the_request_decide() {
        let marks = ThoughtMarks::default();
        let ends = ["assistant\n<think>\n", "<think>\n\n</think>\n\n", "assistant\n"];
        let thoughts = [Thinking::Auto, Thinking::On, Thinking::Off]
            .map(|thinking| ends.map(|end| Thought::after(end, &marks, thinking)));
        let expected = [
            [Thought::Begun, Thought::None, Thought::Possible],
            [Thought::Begun, Thought::Required, Thought::Required],
            [Thought::Skipped, Thought::Refused, Thought::Refused],
        ];
        assert_eq!(thoughts, expected);
    }
}
