//! Classifies keywords without effect: most are remarks, some were meant to assert something.
//!
//! To the specification, every keyword that a draft does not define is a remark, and schemas are full of
//! them: `nullable`, `discriminator`, `x-order`. But `minContains` beside `"$schema": "…/draft-07/schema#"`,
//! `divisibleBy`, and `maxLenght` are assertions to their author, who would be surprised by an answer that
//! violates them.

use std::sync::LazyLock;

use crate::suggest;
use lexiform_automata::error::{Problem, ProblemKind};

/// The assertions and applicators of all drafts, and of the vocabulary that validators in JavaScript add.
const ASSERTIONS: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "allRequired",
    "anyOf",
    "anyRequired",
    "const",
    "contains",
    "deepRequired",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "disallow",
    "divisibleBy",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "exclusiveRange",
    "extends",
    "formatExclusiveMaximum",
    "formatExclusiveMinimum",
    "formatMaximum",
    "formatMinimum",
    "if",
    "items",
    "maxContains",
    "maximum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minContains",
    "minimum",
    "minItems",
    "minLength",
    "minProperties",
    "multipleOf",
    "not",
    "oneOf",
    "oneRequired",
    "pattern",
    "patternProperties",
    "patternRequired",
    "prefixItems",
    "prohibited",
    "properties",
    "propertyNames",
    "range",
    "regexp",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItemProperties",
    "uniqueItems",
];

/// The length below which a word has too many neighbours to be taken for a misspelling.
const SHORTEST_MISSPELT: usize = 6;

/// Returns `true` if a keyword that has no effect was most likely meant to have one: it is an assertion of
/// some draft or of a common vocabulary, in any case and with any separators between its words, or one typing
/// error away from such an assertion.
///
/// ```
/// use lexiform_syntax::schema::is_meant_to_assert;
/// assert!(["divisibleBy", "max_length", "maxLenght"].iter().all(|keyword| is_meant_to_assert(keyword)));
/// assert!(!["nullable", "discriminator", "x-order"].iter().any(|keyword| is_meant_to_assert(keyword)));
/// ```
pub fn is_meant_to_assert(keyword: &str) -> bool {
    meant(keyword).is_some()
}

/// Returns `true` if a finding concerns a keyword without effect that was meant to have one, which `strict`
/// and `--strict` refuse. Unknown formats are not included, since to JSON Schema a format is a remark.
pub fn is_lost_assertion(finding: &Problem) -> bool {
    let ignored = !matches!(finding.kind, ProblemKind::Narrowed | ProblemKind::Closed);
    ignored
        && match finding.keyword() {
            Some("$schema") => true,
            Some("format") | None => false,
            Some(keyword) => is_meant_to_assert(keyword),
        }
}

/// Returns `true` if a finding concerns a `format` that has no effect because it is unknown.
pub fn is_unknown_format(finding: &Problem) -> bool {
    finding.kind != ProblemKind::Narrowed && finding.keyword() == Some("format")
}

/// Returns the assertion that a keyword without effect was most likely meant to be.
///
/// Schemas have hundreds of such keywords, so nothing is allocated for each assertion, and words are compared
/// in one pass over their letters: with the distance of arbitrary words, a remark took 19 µs
/// (`benches/record/2026-11-27-unknown-keywords.md`).
pub(super) fn meant(keyword: &str) -> Option<&'static str> {
    static PLAIN: LazyLock<Vec<(String, &str)>> = LazyLock::new(|| {
        let plain = |&assertion| (suggest::plain(assertion), assertion);
        ASSERTIONS.iter().map(plain).collect()
    });
    let longest = 2 * "unevaluatedProperties".len();
    if keyword.len() > longest {
        return None;
    }
    let word = suggest::plain(keyword);
    let near = PLAIN.iter().filter_map(|(plain, assertion)| {
        let distance = suggest::slip(&word, plain)?;
        (distance == 0 || assertion.len() >= SHORTEST_MISSPELT).then_some((distance, *assertion))
    });
    near.min().map(|(_, assertion)| assertion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_told_from_remarks() {
        let meant = [
            "minContains",
            "MinLength",
            "exclusive_minimum",
            "reqired",
            "requried",
            "requiredd",
            "formatMinimum",
            "not",
        ];
        let remarks = [
            "",
            "nullable",
            "discriminator",
            "propertyOrdering",
            "enumNames",
            "markdownDescription",
            "errorMessage",
            "x-minimum-note",
            "xml",
            "units",
            "order",
            "tip",
            "minimum and maximum are those of the physical device",
        ];
        for keyword in meant {
            assert!(is_meant_to_assert(keyword), "{keyword}");
        }
        for keyword in remarks {
            assert!(!is_meant_to_assert(keyword), "{keyword}");
        }
    }
}
