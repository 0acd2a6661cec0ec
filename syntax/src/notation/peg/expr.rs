//! The expressions of PEGs: those of a grammar as it is written, and those of its rules when white space
//! between parts is written out.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// The deepest expression: all passes over it recurse.
pub(super) const DEEPEST: usize = 500;

/// A rule as it is written.
#[derive(Debug)]
pub(super) struct RuleItem {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) spacing: Spacing,
    pub(super) body: Expr,
}

/// Whether white space may stand between the parts of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// As in the rule that calls it: `{ … }` and `_{ … }`.
    Inherited,
    /// It may not: `@{ … }` and `${ … }`.
    Atomic,
    /// It may: `!{ … }`.
    Free,
}

/// A rule whose white space is written out.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) body: Expr,
}

/// A part of a rule.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) at: usize,
    /// The number of levels below.
    depth: usize,
    pub(super) kind: Kind,
}

/// What a part reads.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// This text.
    Text(String),
    /// This text with each letter of ASCII in either case.
    AnyCase(String),
    /// One character out of a set.
    Set(ClassUnicode),
    /// What the rule of this name reads.
    Name(String),
    /// Nothing, at the start of the text.
    Start,
    /// Nothing, at the end of the text.
    End,
    Seq(Vec<Expr>),
    /// What the first part reads that reads anything.
    Choice(Vec<Expr>),
    /// What any one of the parts reads.
    Either(Vec<Expr>),
    /// The part, as often as it can be read: at least and at most so many times.
    Repeat(Box<Expr>, u32, Option<u32>),
    /// Nothing, where the part can be read, or, if the flag is `false`, where it cannot.
    Ahead(Box<Expr>, bool),
}

impl Expr {
    pub(super) fn leaf(at: usize, kind: Kind) -> Expr {
        Expr { at, depth: 0, kind }
    }

    pub(super) fn empty(at: usize) -> Expr {
        Expr::leaf(at, Kind::Seq(Vec::new()))
    }

    pub(super) fn name(at: usize, name: impl Into<String>) -> Expr {
        Expr::leaf(at, Kind::Name(name.into()))
    }

    /// Returns the parts one after the other; those that are sequences are written out.
    pub(super) fn seq(at: usize, parts: Vec<Expr>) -> Expr {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part.kind {
                Kind::Seq(inner) => flat.extend(inner),
                _ => flat.push(part),
            }
        }
        match flat.len() {
            1 => flat.remove(0),
            _ => Expr::over(at, deepest(&flat), Kind::Seq(flat)),
        }
    }

    pub(super) fn choice(at: usize, mut parts: Vec<Expr>) -> Expr {
        match parts.len() {
            1 => parts.remove(0),
            _ => Expr::over(at, deepest(&parts), Kind::Choice(parts)),
        }
    }

    /// Returns a choice without order.
    pub(super) fn either(at: usize, mut parts: Vec<Expr>) -> Expr {
        match parts.len() {
            1 => parts.remove(0),
            _ => Expr::over(at, deepest(&parts), Kind::Either(parts)),
        }
    }

    pub(super) fn repeat(self, min: u32, max: Option<u32>, at: usize) -> Expr {
        match (min, max) {
            (1, Some(1)) => self,
            (_, Some(0)) => Expr::empty(at),
            _ => Expr::over(at, self.depth, Kind::Repeat(Box::new(self), min, max)),
        }
    }

    pub(super) fn ahead(self, is_there: bool, at: usize) -> Expr {
        Expr::over(at, self.depth, Kind::Ahead(Box::new(self), is_there))
    }

    fn over(at: usize, below: usize, kind: Kind) -> Expr {
        let depth = below + 1;
        Expr { at, depth, kind }
    }

    /// Returns the number of levels below this part.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the parts of this part.
    pub(super) fn parts(&self) -> &[Expr] {
        match &self.kind {
            Kind::Seq(parts) | Kind::Choice(parts) | Kind::Either(parts) => parts,
            Kind::Repeat(body, ..) | Kind::Ahead(body, _) => std::slice::from_ref(body),
            _ => &[],
        }
    }

    /// Returns about how many nodes a copy of the part takes.
    pub(super) fn size(&self) -> usize {
        let own = match &self.kind {
            Kind::Text(text) | Kind::AnyCase(text) | Kind::Name(text) => text.len() / 32,
            Kind::Set(set) => set.ranges().len() / 8,
            _ => 0,
        };
        let parts = self.parts().iter().map(Expr::size);
        parts.fold(own + 1, usize::saturating_add)
    }

    /// Calls a function for the name of each rule that the part calls, with its offset.
    pub(super) fn each_name<'e>(&'e self, found: &mut impl FnMut(&'e str, usize)) {
        if let Kind::Name(name) = &self.kind {
            found(name, self.at);
        }
        for part in self.parts() {
            part.each_name(found);
        }
    }
}

fn deepest(parts: &[Expr]) -> usize {
    parts.iter().map(Expr::depth).max().unwrap_or(0)
}

/// Returns the characters that a letter of a text in any case may be.
pub(super) fn cases(c: char) -> ClassUnicode {
    let cases = [c.to_ascii_lowercase(), c.to_ascii_uppercase()];
    ClassUnicode::new(cases.map(|c| ClassUnicodeRange::new(c, c)))
}
