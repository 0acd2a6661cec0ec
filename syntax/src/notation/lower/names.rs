//! Names of rules.

/// Which names denote the same rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Equal ones.
    AsWritten,
    /// Those that differ in case only, too.
    AnyCase,
}

impl Names {
    /// Returns what is equal for names of the same rule.
    pub(crate) fn key(self, name: &str) -> String {
        match self {
            Names::AsWritten => name.to_owned(),
            Names::AnyCase => name.to_ascii_lowercase(),
        }
    }
}
