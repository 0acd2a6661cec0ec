//! How XGrammar writes the characters of texts and of classes.

use crate::notation::reading::spelling::{Escapes, Spelling};

const LETTERS: &[(char, char)] = &[
    ('n', '\n'),
    ('r', '\r'),
    ('t', '\t'),
    ('b', '\u{8}'),
    ('f', '\u{c}'),
    ('a', '\u{7}'),
    ('v', '\u{b}'),
    ('0', '\0'),
    ('e', '\u{1b}'),
];

/// How texts in quotes are written.
pub(super) const TEXT: Spelling = Spelling {
    escapes: Some(Escapes {
        letters: LETTERS,
        is_plain: |c| "\"\\/'?".contains(c),
        hex_digits: None,
        has_wide: false,
    }),
    has_points: false,
};

/// How classes are written.
pub(super) const CLASS: Spelling = Spelling {
    escapes: Some(Escapes {
        letters: LETTERS,
        is_plain: |c| "\"\\/'?^$.*+()[]{}|-".contains(c),
        hex_digits: None,
        has_wide: false,
    }),
    has_points: false,
};
