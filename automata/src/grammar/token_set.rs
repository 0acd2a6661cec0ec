//! Sets of tokens that stand in a grammar themselves, whatever their texts are.

use std::fmt;

/// A set of tokens, given by their ids and by the names of special tokens.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TokenSet {
    /// The ids, as ranges that include both ends.
    pub ids: Vec<(u32, u32)>,
    /// The names of special tokens.
    pub names: Vec<Box<str>>,
    /// `true` if the set holds all other tokens of the vocabulary, except for its end tokens.
    pub is_complement: bool,
}

impl TokenSet {
    /// Returns the set of all tokens but the end tokens.
    pub fn any() -> TokenSet {
        TokenSet {
            is_complement: true,
            ..TokenSet::default()
        }
    }

    /// Returns about how many bytes the set takes.
    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| name.len() + 16).sum();
        8 * self.ids.len() + names
    }
}

impl fmt::Display for TokenSet {
    /// Writes the set as grammars do: `<[5]>`, `<[5,7-9]>`, `<|end|>`, with a `!` before a complement.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_complement {
            f.write_str("!")?;
        }
        let range = |&(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        let ids: Vec<String> = self.ids.iter().map(range).collect();
        let mut parts: Vec<&str> = self.names.iter().map(|name| &**name).collect();
        let ids = format!("<[{}]>", ids.join(","));
        if !self.ids.is_empty() || self.names.is_empty() {
            parts.push(&ids);
        }
        f.write_str(&parts.join("|"))
    }
}

/// What an edge that is not a byte reads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TokenSymbol {
    /// The special token of this name.
    Name(Box<str>),
    /// One token out of a set.
    Set(TokenSet),
}

impl fmt::Display for TokenSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSymbol::Name(name) => f.write_str(name),
            TokenSymbol::Set(set) => set.fmt(f),
        }
    }
}
