//! Properties of the regular parts of a grammar that are known without building them.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::calls::{callees_first, parts};
use super::repetition;
use lexiform_automata::grammar::{Cfg, Expr, ExprId, RuleId};

/// The properties of a regular expression.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// The number of places and parts, with repetitions and rules unrolled.
    pub(super) places: u32,
    /// The nesting depth, including that of the rules.
    pub(super) depth: u32,
    pub(super) nullable: bool,
    /// `true` if it is a finite choice of texts that are written out.
    pub(super) words: bool,
    /// `true` if it takes many characters at some place.
    pub(super) wide: bool,
    /// The ASCII characters that it may begin with.
    first: u128,
}

/// The number of ASCII characters at one place up to which they are few: the digits and letters of
/// hexadecimal numbers are few.
const FEW_CHARACTERS: u32 = 24;

impl Shape {
    const EMPTY: Shape = Shape {
        places: 0,
        depth: 0,
        nullable: true,
        words: true,
        wide: false,
        first: 0,
    };

    /// Returns `true` if it begins with many characters.
    pub(super) fn opens_wide(&self) -> bool {
        self.first.count_ones() > FEW_CHARACTERS
    }

    fn text(bytes: &[u8]) -> Shape {
        let first = bytes
            .first()
            .map_or(0, |&byte| ascii(u32::from(byte), u32::from(byte)));
        Shape {
            places: bytes.len() as u32,
            nullable: bytes.is_empty(),
            first,
            ..Shape::EMPTY
        }
    }

    fn class(class: &Class) -> Shape {
        let first = match class {
            Class::Unicode(class) => (class.ranges().iter()).fold(0, |set, range| {
                set | ascii(range.start().into(), range.end().into())
            }),
            Class::Bytes(class) => (class.ranges().iter()).fold(0, |set, range| {
                set | ascii(range.start().into(), range.end().into())
            }),
        };
        let shape = Shape {
            places: 1,
            depth: 0,
            nullable: false,
            words: false,
            wide: false,
            first,
        };
        Shape {
            wide: shape.opens_wide(),
            ..shape
        }
    }

    fn then(self, next: Shape) -> Shape {
        Shape {
            places: self.places.saturating_add(next.places),
            depth: self.depth.max(next.depth),
            nullable: self.nullable && next.nullable,
            words: self.words && next.words,
            wide: self.wide || next.wide,
            first: self.first | if self.nullable { next.first } else { 0 },
        }
    }

    fn or(self, other: Shape) -> Shape {
        Shape {
            nullable: self.nullable || other.nullable,
            first: self.first | other.first,
            ..self.then(other)
        }
    }

    fn repeated(self, min: u32, max: Option<u32>) -> Shape {
        Shape {
            places: self.places.saturating_mul(max.unwrap_or(min).max(1)),
            nullable: self.nullable || min == 0,
            words: self.words && max.is_some(),
            ..self
        }
    }

    fn deeper(self) -> Shape {
        Shape {
            depth: self.depth + 1,
            // An empty part takes space, too, if it is written out a million times.
            places: self.places.saturating_add(1),
            ..self
        }
    }

    fn of_hir(hir: &Hir) -> Option<Shape> {
        let shape = match hir.kind() {
            HirKind::Empty => Shape::EMPTY,
            HirKind::Look(_) => return None,
            HirKind::Literal(literal) => Shape::text(&literal.0),
            HirKind::Class(class) => Shape::class(class),
            HirKind::Capture(capture) => Shape::of_hir(&capture.sub)?,
            HirKind::Repetition(it) => Shape::of_hir(&it.sub)?.repeated(it.min, it.max),
            HirKind::Concat(parts) => any_none(parts.iter().map(Shape::of_hir), Shape::then)?,
            HirKind::Alternation(parts) => any_none(parts.iter().map(Shape::of_hir), Shape::or)?,
        };
        // An expression does not count as a finite choice of texts, even where it is a text.
        Some(
            Shape {
                words: false,
                ..shape
            }
            .deeper(),
        )
    }
}

/// Returns the shape of parts in a row.
pub(super) fn row(parts: &[Shape]) -> Shape {
    parts.iter().copied().fold(Shape::EMPTY, Shape::then).deeper()
}

/// Returns, for each part, whether it begins with many characters, together with the regular parts after it.
pub(super) fn open_wide(parts: &[Option<Shape>]) -> Vec<bool> {
    let mut after = Shape::default();
    let wide = parts.iter().rev().map(|part| {
        after = part.map_or(Shape::default(), |part| part.then(after));
        after.opens_wide()
    });
    let mut wide: Vec<bool> = wide.collect();
    wide.reverse();
    wide
}

/// Combines all of these, or returns `None` if one is not regular.
fn any_none(
    mut parts: impl Iterator<Item = Option<Shape>>,
    together: impl Fn(Shape, Shape) -> Shape,
) -> Option<Shape> {
    let first = parts.next()??;
    parts.try_fold(first, |all, part| Some(together(all, part?)))
}

/// Returns the ASCII characters from `first` to `last`.
fn ascii(first: u32, last: u32) -> u128 {
    (first..=last.min(127)).fold(0, |set, byte| set | 1 << byte)
}

/// The shapes of all expressions and rules that are regular.
pub(super) struct Shapes {
    exprs: Vec<Option<Shape>>,
    rules: Vec<Option<Shape>>,
}

impl Shapes {
    /// Finds the shapes, callees first, and rewrites rules that are repetitions of themselves.
    pub(super) fn find(cfg: &mut Cfg) -> Shapes {
        let mut shapes = Shapes {
            exprs: Vec::new(),
            rules: vec![None; cfg.rules.len()],
        };
        let mut found = vec![None; cfg.exprs.len()];
        for rule in callees_first(cfg) {
            let written = cfg.rules[rule.index()].body;
            if let Some(looped) = repetition::of(cfg, rule) {
                cfg.rules[rule.index()].body = looped;
            }
            let body = cfg.rules[rule.index()].body;
            shapes.visit(cfg, body, &mut found);
            shapes.rules[rule.index()] = found[body.index()].flatten().map(Shape::deeper);
            if shapes.rules[rule.index()].is_none() {
                cfg.rules[rule.index()].body = written;
            }
        }
        for rule in 0..cfg.rules.len() {
            shapes.visit(cfg, cfg.rules[rule].body, &mut found);
        }
        shapes.exprs = found.into_iter().map(Option::flatten).collect();
        shapes
    }

    pub(super) fn of(&self, id: ExprId) -> Option<Shape> {
        self.exprs[id.index()]
    }

    pub(super) fn of_rule(&self, rule: RuleId) -> Option<Shape> {
        self.rules[rule.index()]
    }

    /// Finds the shapes of an expression and of everything in it, parts first.
    fn visit(&self, cfg: &Cfg, id: ExprId, found: &mut Vec<Option<Option<Shape>>>) {
        found.resize(cfg.exprs.len(), None);
        let mut open = vec![id];
        while let Some(&id) = open.last() {
            let known = found[id.index()].is_some();
            let before = open.len();
            if !known {
                let parts = parts(cfg, id).iter();
                open.extend(parts.filter(|part| found[part.index()].is_none()));
            }
            if open.len() > before {
                continue;
            }
            open.pop();
            if !known {
                found[id.index()] = Some(self.shape(cfg, id, found).map(Shape::deeper));
            }
        }
    }

    /// Returns the shape of an expression whose parts have theirs.
    fn shape(&self, cfg: &Cfg, id: ExprId, found: &[Option<Option<Shape>>]) -> Option<Shape> {
        let known = |id: &ExprId| found[id.index()].flatten();
        match cfg.expr(id) {
            Expr::Never
            | Expr::Special(_)
            | Expr::Tokens(_)
            | Expr::Marked(_)
            | Expr::Validated(_)
            | Expr::ObjectList(_) => None,
            Expr::Empty => Some(Shape::EMPTY),
            Expr::Bytes(bytes) => Some(Shape::text(bytes)),
            Expr::Seq(parts) => any_none(parts.iter().map(known), Shape::then),
            Expr::Choice(parts) => any_none(parts.iter().map(known), Shape::or),
            Expr::Repeat { body, min, max } => known(body).map(|body| body.repeated(*min, *max)),
            Expr::Rule(rule) => self.rules[rule.index()],
            Expr::Regular(regular) => {
                let single = cfg.regulars[regular.index()].single();
                single.and_then(|expression| Shape::of_hir(expression))
            }
        }
    }
}
