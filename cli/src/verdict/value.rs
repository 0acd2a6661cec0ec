//! Checks whether the JSON value of a text is allowed although its spelling is not: in a schema keys may come
//! in any order and white space is free, while a grammar writes one order and little white space.

use lexiform::Grammar;

use super::judge;

/// The difference between a text of an allowed value and the texts that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// The order of its keys.
    KeyOrder,
    /// Its white space.
    WhiteSpace,
    /// Both.
    Both,
}

impl Unwritten {
    /// Returns why a text that does not belong is never written; `None` if its value is not allowed either.
    /// `any_order` creates the grammar of the same schema with the keys in any order.
    pub fn of(text: &[u8], grammar: &Grammar, any_order: impl FnOnce() -> Option<Grammar>) -> Option<Self> {
        let compact = without_white_space(text);
        let belongs = |grammar: &Grammar, text: &[u8]| judge(grammar, text, true).belongs();
        if belongs(grammar, &compact) {
            return Some(Self::WhiteSpace);
        }
        let any_order = any_order()?;
        if belongs(&any_order, text) {
            return Some(Self::KeyOrder);
        }
        belongs(&any_order, &compact).then_some(Self::Both)
    }

    /// Returns the difference in words, with the flag that allows it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::KeyOrder => "order of keys: --key-order any",
            Self::WhiteSpace => "white space",
            Self::Both => "order of keys: --key-order any; white space",
        }
    }

    /// Returns the names for programs.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::KeyOrder => &["key_order"],
            Self::WhiteSpace => &["whitespace"],
            Self::Both => &["key_order", "whitespace"],
        }
    }
}

/// Returns a JSON text without the white space between its tokens.
fn without_white_space(text: &[u8]) -> Vec<u8> {
    let (mut in_string, mut escaped) = (false, false);
    let keeps = |byte: &&u8| {
        let is_blank = !in_string && matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        in_string ^= **byte == b'"' && !escaped;
        escaped = in_string && **byte == b'\\' && !escaped;
        !is_blank
    };
    text.iter().filter(keeps).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_in_strings_stays() {
        let text = b"{ \"a \\\" b\" :\r\n [1 ,\t\"\\\\\" , \" \" ] }";
        assert_eq!(without_white_space(text), b"{\"a \\\" b\":[1,\"\\\\\",\" \"]}");
    }
}
