//! Sets of strings: a length, texts with signs, and finite sets that are allowed or excluded.

use std::rc::Rc;

use crate::schema::text::TextId;

/// A conjunction of demands on a string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StringShape {
    /// The least number of characters.
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) texts: Vec<(TextId, bool)>,
    /// The string is one of these.
    pub(crate) only: Option<Rc<[Rc<str>]>>,
    pub(crate) except: Vec<Rc<str>>,
}

impl StringShape {
    /// Returns `true` if every string is allowed.
    pub(crate) fn is_any(&self) -> bool {
        *self == StringShape::default()
    }
}
