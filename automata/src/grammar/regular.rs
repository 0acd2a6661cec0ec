//! Regular languages: intersections and complements of regular expressions, with counted units.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::expression::Expression;

/// A regular language: the intersection of all its parts.
///
/// Every [`Hir`](regex_syntax::hir::Hir) here is over bytes of UTF-8 or any bytes, anchored at both ends
/// (the whole word must match), and without look-around. With no parts, the language is that of all byte
/// strings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Regular {
    /// The languages to intersect.
    pub parts: Vec<Part>,
    /// Where words end, if not wherever they may.
    pub longest: Option<Longest>,
}

/// Where words end: not before a character with which the word would be one of `longer`.
///
/// This is how a lexer that takes the longest match splits a text into words: after a name, no letter. The
/// words stay the same, and only what may follow them changes. Whatever uses the language must ensure that
/// each of the `gaps`, such as a space, may follow each word without leading anywhere; a word that all of
/// them would make longer may be followed by anything. Counted languages have no such ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Longest {
    /// The words of the lexer that may begin where a word of this language does.
    pub longer: Expression,
    /// Bytes that may follow every word.
    pub gaps: Vec<u8>,
}

/// One operand of the intersection that makes a [`Regular`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Words that this expression matches as a whole.
    Match(Expression),
    /// Words that this expression does not match as a whole.
    Not(Expression),
    /// Words that are a sequence of at least `min` and at most `max` units.
    ///
    /// The unit must be a prefix code (no unit is a proper prefix of another and none is empty), such as
    /// "one JSON string character in its encoded form"; it is then counted by a register, so a bound of 10⁹
    /// costs no states.
    Units {
        /// One unit.
        unit: Expression,
        /// The smallest number of units.
        min: u64,
        /// The largest number of units; `None` if unbounded.
        max: Option<u64>,
    },
}

impl Regular {
    /// Returns the intersection of these languages, whose words may end anywhere.
    pub fn of(parts: Vec<Part>) -> Regular {
        Regular { parts, longest: None }
    }

    /// Returns the expression that is the whole language, if it is one whose words may end anywhere.
    pub fn single(&self) -> Option<&Expression> {
        match (&self.parts[..], &self.longest) {
            ([Part::Match(expression)], None) => Some(expression),
            _ => None,
        }
    }

    /// Returns a hash of the language; languages with equal parts have equal hashes. The hash depends on the
    /// structure alone, so it is the same in every process.
    pub fn structure_hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for part in &self.parts {
            match part {
                Part::Match(expression) => (1u8, expression.structure_hash()).hash(&mut hasher),
                Part::Not(expression) => (2u8, expression.structure_hash()).hash(&mut hasher),
                Part::Units { unit, min, max } => (min, max, unit.structure_hash()).hash(&mut hasher),
            }
        }
        if let Some(Longest { longer, gaps }) = &self.longest {
            (3u8, gaps, longer.structure_hash()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_structures_hash_alike_and_others_apart() {
        let of = |pattern: &str| {
            let hir = regex_syntax::parse(pattern).expect("the pattern is well formed");
            Regular::of(vec![Part::Match(hir.into())]).structure_hash()
        };
        assert_eq!(of("a[bc]{2,3}|d"), of("a[bc]{2,3}|d"));
        let all = ["a", "b", "ab", "a|b", "a*", "a+", "[a-c]", "[a-d]", "(a)"].map(of);
        let distinct: std::collections::HashSet<u64> = all.into_iter().collect();
        assert!(
            distinct.len() >= 8,
            "the patterns differ, so nearly all hashes should"
        );
    }
}
