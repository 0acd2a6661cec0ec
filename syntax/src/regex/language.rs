//! Languages under construction, with shared parts.

use std::rc::Rc;

use regex_syntax::hir::{Hir, Repetition};

use super::error::RegexError;
use super::node::Node;

/// The maximum depth of an expression; automata are built from it by recursion.
const EXPRESSION_DEPTH: u64 = 1_000;

/// A language under construction. It is shared, because the same texts lead to several places.
#[derive(Clone)]
pub(crate) struct Language(Rc<SharedLanguage>);

struct SharedLanguage {
    shape: Shape,
    size: u64,
    depth: u64,
}

enum Shape {
    Empty,
    Plain(Node),
    Concat(Language, Language),
    Union(Vec<Language>),
    Star(Language),
}

impl Language {
    fn new(shape: Shape, size: u64, depth: u64) -> Self {
        Language(Rc::new(SharedLanguage { shape, size, depth }))
    }

    /// Returns the language of the empty text.
    pub(crate) fn empty() -> Self {
        Language::new(Shape::Empty, 1, 1)
    }

    /// Returns the language of a plain node.
    pub(crate) fn of(node: &Node) -> Self {
        Language::new(Shape::Plain(node.clone()), node.unrolled_size(), 1)
    }

    /// Returns the concatenation of two languages.
    pub(crate) fn concat(first: &Language, second: &Language) -> Self {
        match (&first.0.shape, &second.0.shape) {
            (Shape::Empty, _) => second.clone(),
            (_, Shape::Empty) => first.clone(),
            _ => {
                let size = first.size().saturating_add(second.size());
                let depth = first.0.depth.max(second.0.depth) + 1;
                Language::new(Shape::Concat(first.clone(), second.clone()), size, depth)
            }
        }
    }

    /// Returns the union of the languages; the union of none is the empty language.
    pub(crate) fn union(languages: impl IntoIterator<Item = Language>) -> Self {
        let mut distinct: Vec<Language> = Vec::new();
        let mut add = |language: &Language| {
            if !distinct.iter().any(|known| known.is_same(language)) {
                distinct.push(language.clone());
            }
        };
        for language in languages {
            match &language.0.shape {
                Shape::Union(inner) => inner.iter().for_each(&mut add),
                _ => add(&language),
            }
        }
        if distinct.len() == 1 {
            return distinct.remove(0);
        }
        let size = distinct.iter().map(Language::size).fold(1, u64::saturating_add);
        let depth = distinct
            .iter()
            .map(|language| language.0.depth)
            .max()
            .unwrap_or(0)
            + 1;
        Language::new(Shape::Union(distinct), size, depth)
    }

    /// Returns any number of words of the language, one after another.
    pub(crate) fn star(&self) -> Self {
        match self.0.shape {
            Shape::Empty => self.clone(),
            _ => Language::new(
                Shape::Star(self.clone()),
                self.size().saturating_add(1),
                self.0.depth + 1,
            ),
        }
    }

    /// Returns `true` if the two are the same object, or both the empty text.
    pub(crate) fn is_same(&self, other: &Language) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
            || matches!((&self.0.shape, &other.0.shape), (Shape::Empty, Shape::Empty))
    }

    /// Returns the size of the expression after everything shared is copied.
    pub(crate) fn size(&self) -> u64 {
        self.0.size
    }

    /// Returns an error if the expression is too large to be written out.
    pub(crate) fn check(&self, size: u64) -> Result<(), RegexError> {
        if self.size() <= size && self.0.depth <= EXPRESSION_DEPTH {
            return Ok(());
        }
        let message =
            "the anchors and look-around make the expression too large; the limit is `regular_states`";
        Err(RegexError::limit(message))
    }

    /// Returns the expression, if it is not larger than `size`.
    pub(crate) fn to_hir(&self, size: u64) -> Result<Hir, RegexError> {
        self.check(size)?;
        Ok(self.written_out())
    }

    fn written_out(&self) -> Hir {
        match &self.0.shape {
            Shape::Empty => Hir::empty(),
            Shape::Plain(node) => node.to_hir(),
            Shape::Concat(first, second) => Hir::concat(vec![first.written_out(), second.written_out()]),
            Shape::Union(languages) => {
                Hir::alternation(languages.iter().map(Language::written_out).collect())
            }
            Shape::Star(body) => {
                let sub = Box::new(body.written_out());
                Hir::repetition(Repetition {
                    min: 0,
                    max: None,
                    greedy: true,
                    sub,
                })
            }
        }
    }
}
