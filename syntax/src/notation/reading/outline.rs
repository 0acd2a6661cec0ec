//! Facts about a source that are needed before a parser runs: how deep its brackets nest, and about how much
//! memory its syntax tree takes.

/// The size in bytes of a token and of the parser's pairs that lead to it.
pub(crate) const TOKEN_BYTES: usize = 320;

/// What is known about a source before it is parsed.
#[derive(Debug, PartialEq)]
pub(crate) struct Outline {
    /// The offset of the first bracket that is nested too deeply.
    pub(crate) too_deep: Option<usize>,
    /// The approximate size in bytes of the syntax tree.
    pub(crate) bytes_of_tree: usize,
}

/// The quotes, comments and brackets of a notation.
pub(crate) struct Lexis {
    /// The texts within which brackets do not count. Of two that begin alike, the longer one comes first.
    pub(crate) spans: &'static [Span],
    /// The brackets that open a part.
    pub(crate) open: &'static [u8],
    /// The brackets that close one.
    pub(crate) close: &'static [u8],
}

/// A text within which brackets do not count: in quotes, a class of characters or a comment.
pub(crate) struct Span {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
    /// `true` if a backslash within it takes away the meaning of the character after it.
    pub(crate) has_escapes: bool,
}

impl Span {
    /// Returns a span without escapes.
    pub(crate) const fn plain(open: &'static str, close: &'static str) -> Span {
        Span {
            open,
            close,
            has_escapes: false,
        }
    }

    /// Returns a span with escapes.
    pub(crate) const fn escaped(open: &'static str, close: &'static str) -> Span {
        Span {
            open,
            close,
            has_escapes: true,
        }
    }

    /// Returns the length of the span at the beginning of `text`, if there is one, and whether it is closed.
    /// One that is not closed extends to the end of the text.
    fn length(&self, text: &[u8]) -> Option<(usize, bool)> {
        let inside = text.strip_prefix(self.open.as_bytes())?;
        let mut at = 0;
        while at < inside.len() {
            match inside[at] {
                b'\\' if self.has_escapes => at += 2,
                _ if inside[at..].starts_with(self.close.as_bytes()) => {
                    return Some((self.open.len() + at + self.close.len(), true));
                }
                _ => at += 1,
            }
        }
        Some((text.len(), false))
    }
}

impl Lexis {
    /// Returns the outline of a text whose brackets may nest `deepest` deep.
    pub(crate) fn outline(&self, text: &str, deepest: usize) -> Outline {
        let bytes = text.as_bytes();
        let (mut at, mut depth, mut tokens) = (0, 0_usize, 0_usize);
        let mut too_deep = None;
        while at < bytes.len() && too_deep.is_none() {
            let rest = &bytes[at..];
            let mut length = 1;
            if let Some((span, _)) = self.spans.iter().find_map(|span| span.length(rest)) {
                length = span;
            } else if is_name(rest[0]) {
                length = rest.iter().take_while(|&&byte| is_name(byte)).count();
            } else if self.open.contains(&rest[0]) {
                depth += 1;
            } else if self.close.contains(&rest[0]) {
                depth = depth.saturating_sub(1);
            }
            tokens += usize::from(!rest[0].is_ascii_whitespace());
            too_deep = (depth > deepest).then_some(at);
            at += length;
        }
        Outline {
            too_deep,
            bytes_of_tree: tokens.saturating_mul(TOKEN_BYTES),
        }
    }

    /// Returns the message for a quote or a class that begins at an offset and is never closed.
    pub(crate) fn unclosed(&self, text: &str, offset: usize) -> Option<String> {
        let rest = text.get(offset..)?.as_bytes();
        let mut spans = self.spans.iter();
        let (span, is_closed) = spans.find_map(|span| Some((span, span.length(rest)?.1)))?;
        (!is_closed).then(|| format!("this `{}` is never closed", span.open))
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEXIS: Lexis = Lexis {
        spans: &[
            Span::plain("#", "\n"),
            Span::escaped("\"", "\""),
            Span::plain("(*", "*)"),
        ],
        open: b"([",
        close: b")]",
    };

    #[test]
    fn brackets_count_outside_of_quotes_and_comments() {
        let too_deep = |text: &str| LEXIS.outline(text, 2).too_deep;
        assert_eq!(too_deep("(a) [b (c)] (d)"), None);
        assert_eq!(too_deep("a (b [c ("), Some(8));
        assert_eq!(too_deep("( \"((\\\"((\" # (((\n (* ((( *) ( )"), None);
        assert_eq!(too_deep("\"(((((\\"), None);
        assert_eq!(too_deep(") ) ( ( ("), Some(8));
    }

    #[test]
    fn tokens_are_names_quotes_and_signs() {
        let tokens = |text: &str| LEXIS.outline(text, 9).bytes_of_tree / TOKEN_BYTES;
        assert_eq!(tokens("list ::= item (\"a b\" item)*"), 10);
        assert_eq!(tokens(""), 0);
    }
}
