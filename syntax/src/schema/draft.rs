//! The drafts of JSON Schema.

use std::fmt;

/// A draft of JSON Schema, in the order of publication.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Draft {
    /// draft-04.
    D4,
    /// draft-06.
    D6,
    /// draft-07.
    D7,
    /// 2019-09.
    D2019,
    /// 2020-12.
    D2020,
}

impl Draft {
    /// Returns the draft that a `$schema` names.
    pub(crate) fn named(uri: &str) -> Option<Draft> {
        let uri = uri.trim_end_matches('#').trim_end_matches('/');
        let name = uri
            .strip_prefix("http://")
            .or_else(|| uri.strip_prefix("https://"))?;
        Some(match name.strip_prefix("json-schema.org/")? {
            "draft-04/schema" => Draft::D4,
            "draft-06/schema" => Draft::D6,
            "draft-07/schema" => Draft::D7,
            "draft/2019-09/schema" => Draft::D2019,
            "draft/2020-12/schema" | "schema" => Draft::D2020,
            _ => return None,
        })
    }
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Draft::D4 => "draft 4",
            Draft::D6 => "draft 6",
            Draft::D7 => "draft 7",
            Draft::D2019 => "draft 2019-09",
            Draft::D2020 => "draft 2020-12",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_schemes_and_an_empty_fragment_are_the_same_draft() {
        assert_eq!(
            Draft::named("http://json-schema.org/draft-07/schema#"),
            Some(Draft::D7)
        );
        assert_eq!(
            Draft::named("https://json-schema.org/draft-07/schema"),
            Some(Draft::D7)
        );
        assert_eq!(
            Draft::named("https://json-schema.org/draft/2020-12/schema"),
            Some(Draft::D2020)
        );
        assert_eq!(Draft::named("https://example.com/schema"), None);
    }
}
