//! Text whose every byte has an origin: the template, or a place in the request.
//!
//! ```text
//!   <|im_start|>user\nhello<|im_end|>
//!   ├── template ───┤├─ 2 ┤├template┤      runs: (16, template) (21, /messages/0/content) (31, template)
//! ```
//!
//! All operations keep the origins: a part of a text has the origins of its bytes, a changed character has
//! the origin of the character that it replaces. Nothing here knows what a control token is.

use std::ops::Range;

/// The origin of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin(pub(crate) u32);

impl Origin {
    /// The source of the template, and the names of tokens that the model's files give it.
    pub(crate) const TEMPLATE: Origin = Origin(0);
    /// The request, at a place that is not known: the punctuation of JSON, the digits of numbers.
    pub(crate) const REQUEST: Origin = Origin(1);
}

/// A run of bytes of one origin, which begins where the run before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    end: usize,
    origin: Origin,
}

/// A text with the origin of each byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    text: String,
    /// Adjacent runs differ in their origin, none is empty, and the last ends with the text.
    runs: Vec<Run>,
}

impl Text {
    /// Creates a text of one origin.
    pub(crate) fn new(text: impl Into<String>, origin: Origin) -> Self {
        let text = text.into();
        let runs = match text.is_empty() {
            true => Vec::new(),
            false => vec![Run {
                end: text.len(),
                origin,
            }],
        };
        Self { text, runs }
    }

    /// Creates a text that the template wrote.
    pub(crate) fn of_template(text: impl Into<String>) -> Self {
        Self::new(text, Origin::TEMPLATE)
    }

    /// Returns the text without its origins.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns `true` if there are no bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the runs in order, each with its origin.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Range<usize>, Origin)> {
        let starts = std::iter::once(0).chain(self.runs.iter().map(|run| run.end));
        let runs = starts.zip(&self.runs);
        runs.map(|(start, run)| (start..run.end, run.origin))
    }

    /// Appends bytes of one origin.
    pub(crate) fn push_str(&mut self, text: &str, origin: Origin) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let end = self.text.len();
        match self.runs.last_mut() {
            Some(last) if last.origin == origin => last.end = end,
            _ => self.runs.push(Run { end, origin }),
        }
    }

    /// Appends a text.
    pub(crate) fn push(&mut self, other: &Text) {
        self.push_part(other, 0..other.len());
    }

    /// Appends a part of a text.
    fn push_part(&mut self, other: &Text, part: Range<usize>) {
        let first = other.runs.partition_point(|run| run.end <= part.start);
        let mut start = part.start;
        for run in &other.runs[first..] {
            let end = run.end.min(part.end);
            if start >= end {
                return;
            }
            self.push_str(&other.text[start..end], run.origin);
            start = end;
        }
    }

    /// Returns a part of the text; the bounds are between characters.
    pub(crate) fn part(&self, part: Range<usize>) -> Text {
        let mut out = Text::default();
        out.push_part(self, part);
        out
    }

    /// Returns the part that is left when these characters are removed from the ends.
    pub(crate) fn trimmed(&self, ends: Ends, is_removed: impl Fn(char) -> bool) -> Text {
        let mut rest = self.text.as_str();
        let mut start = 0;
        if ends.left {
            rest = rest.trim_start_matches(&is_removed);
            start = self.len() - rest.len();
        }
        if ends.right {
            rest = rest.trim_end_matches(&is_removed);
        }
        self.part(start..start + rest.len())
    }

    /// Returns the text with each character replaced by what `write` appends for it.
    pub(crate) fn rewritten(&self, mut write: impl FnMut(char, &mut String)) -> Text {
        let mut out = Text::default();
        let mut written = String::new();
        for (range, origin) in self.runs() {
            written.clear();
            self.text[range].chars().for_each(|c| write(c, &mut written));
            out.push_str(&written, origin);
        }
        out
    }

    /// Returns the text with the first occurrences of `old`, `most` at most, replaced by `new`.
    pub(crate) fn replaced(&self, old: &str, new: &Text, most: usize) -> Text {
        let mut out = Text::default();
        let mut done = 0;
        for (at, found) in self.text.match_indices(old).take(most) {
            out.push_part(self, done..at);
            out.push(new);
            done = at + found.len();
        }
        out.push_part(self, done..self.len());
        out
    }

    /// Returns the parts between the occurrences of a separator that is not empty, split `most` times at
    /// most.
    pub(crate) fn split(&self, separator: &str, most: usize) -> Vec<Text> {
        let mut parts = Vec::new();
        let mut done = 0;
        for (at, found) in self.text.match_indices(separator).take(most) {
            parts.push(self.part(done..at));
            done = at + found.len();
        }
        parts.push(self.part(done..self.len()));
        parts
    }

    /// Returns the words between runs of whitespace, split `most` times at most.
    pub(crate) fn words(&self, most: usize) -> Vec<Text> {
        let mut words = Vec::new();
        let mut rest = self.text.trim_start();
        while !rest.is_empty() {
            let start = self.len() - rest.len();
            let end = rest.find(char::is_whitespace).filter(|_| words.len() < most);
            let len = end.unwrap_or(rest.len());
            words.push(self.part(start..start + len));
            rest = rest[len..].trim_start();
        }
        words
    }

    /// Returns the characters as texts.
    pub(crate) fn chars(&self) -> impl Iterator<Item = Text> {
        self.text
            .char_indices()
            .map(|(at, c)| self.part(at..at + c.len_utf8()))
    }
}

/// The ends of a text from which characters are removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

impl Ends {
    pub(crate) const BOTH: Ends = Ends {
        left: true,
        right: true,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = Text> {
        prop::collection::vec(("[ab \\n<é]{0,4}", 0..3u32), 0..5).prop_map(|parts| {
            let mut text = Text::default();
            for (part, origin) in parts {
                text.push_str(&part, Origin(origin));
            }
            text
        })
    }

    /// The slow definition: an origin for each character.
    fn letters(text: &Text) -> Vec<(char, Origin)> {
        let letters = text
            .runs()
            .map(|(range, origin)| (text.as_str()[range].chars(), origin));
        letters
            .flat_map(|(chars, origin)| chars.map(move |c| (c, origin)).collect::<Vec<_>>())
            .collect()
    }

    fn is_well_formed(text: &Text) -> bool {
        let runs: Vec<_> = text.runs().collect();
        let differ = runs.windows(2).all(|two| two[0].1 != two[1].1);
        differ
            && runs.iter().all(|(range, _)| !range.is_empty())
            && runs.last().map_or(0, |(range, _)| range.end) == text.len()
    }

    proptest! {
        #[test]
        fn origins_follow_their_characters(one in text(), two in text(), most in 0usize..4) {
            let mut joined = one.clone();
            joined.push(&two);
            prop_assert!(is_well_formed(&joined));
            prop_assert_eq!(letters(&joined), [letters(&one), letters(&two)].concat());

            let trimmed = joined.trimmed(Ends::BOTH, char::is_whitespace);
            prop_assert_eq!(trimmed.as_str(), joined.as_str().trim());
            let skipped = joined.as_str().chars().take_while(|c| c.is_whitespace()).count();
            let kept = trimmed.as_str().chars().count();
            let expected: Vec<_> = letters(&joined).into_iter().skip(skipped).take(kept).collect();
            prop_assert_eq!(letters(&trimmed), expected);

            let parts = joined.split("a", most);
            let texts: Vec<&str> = parts.iter().map(Text::as_str).collect();
            prop_assert_eq!(texts, joined.as_str().splitn(most + 1, 'a').collect::<Vec<_>>());
            prop_assert!(parts.iter().all(is_well_formed));
            let separator = Text::new("--", Origin(9));
            let mut rejoined = Text::default();
            for (index, part) in parts.iter().enumerate() {
                if index > 0 { rejoined.push(&separator); }
                rejoined.push(part);
            }
            prop_assert_eq!(rejoined, joined.replaced("a", &separator, most));

            let doubled = joined.rewritten(|c, out| out.extend([c, c]));
            let expected: Vec<_> = letters(&joined).into_iter().flat_map(|letter| [letter, letter]).collect();
            prop_assert_eq!(letters(&doubled), expected);
            let words: Vec<_> = joined.words(usize::MAX).iter().map(|w| w.as_str().to_owned()).collect();
            prop_assert_eq!(words, joined.as_str().split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        }
    }
}
