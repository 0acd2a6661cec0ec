//! The tree between the parsers and [`Hir`]: a regular expression over characters, with look-around.
//!
//! The parsers return a [`Node`]; [`whole`](super::whole) removes its look-around. All functions here recurse
//! at most as deep as the expression nests, which the parsers bound.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition};

/// An expression over Unicode scalar values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// The empty string.
    Empty,
    /// One character out of a set; the empty set never matches.
    Set(ClassUnicode),
    /// All of these, one after the other.
    Concat(Vec<Node>),
    /// Any one of these; if there are none, the node never matches.
    Alt(Vec<Node>),
    /// The body, repeated between `min` and `max` times.
    Repeat {
        body: Box<Node>,
        min: u32,
        max: Option<u32>,
    },
    /// An anchor or a word boundary.
    Look(Look),
    /// A test of one adjacent character, or of the edge of the text.
    Test(Test),
    /// A lookahead or a lookbehind.
    Around(Around),
}

/// A condition on the character before or after a position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Test {
    /// `true` to test the next character, `false` to test the one before.
    pub(crate) ahead: bool,
    /// The characters that satisfy the condition.
    pub(crate) set: ClassUnicode,
    /// `true` if the edge of the text satisfies the condition.
    pub(crate) edge: bool,
}

/// A lookahead or lookbehind over more than one character.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Around {
    /// `true` for a lookahead, `false` for a lookbehind.
    pub(crate) ahead: bool,
    /// `true` if the body must not match.
    pub(crate) negative: bool,
    /// The expression that is looked for.
    pub(crate) body: Box<Node>,
    /// The column at which it begins, for messages.
    pub(crate) column: usize,
}

/// Returns the set of all characters.
pub(crate) fn any_set() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

/// Returns the set of one character.
pub(crate) fn char_set(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}

/// Returns the characters that are in both sets.
pub(crate) fn intersection(a: &ClassUnicode, b: &ClassUnicode) -> ClassUnicode {
    let mut both = a.clone();
    both.intersect(b);
    both
}

/// Returns the characters of `a` that are not in `b`.
pub(crate) fn difference(a: &ClassUnicode, b: &ClassUnicode) -> ClassUnicode {
    let mut rest = a.clone();
    rest.difference(b);
    rest
}

/// Returns the characters of a set and those that differ from one of them in case only.
pub(crate) fn either_case(mut set: ClassUnicode) -> ClassUnicode {
    // Fails only where regex-syntax was built without its tables.
    drop(set.try_case_fold_simple());
    set
}

/// Returns `true` if the set has no characters.
pub(crate) fn is_empty(set: &ClassUnicode) -> bool {
    set.ranges().is_empty()
}

impl Node {
    /// Returns a node that never matches.
    pub(crate) fn never() -> Node {
        Node::Alt(Vec::new())
    }

    /// Returns a node that matches one character.
    pub(crate) fn char(c: char) -> Node {
        Node::Set(char_set(c))
    }

    /// Returns a node that matches any text.
    pub(crate) fn anything() -> Node {
        Node::Repeat {
            body: Box::new(Node::Set(any_set())),
            min: 0,
            max: None,
        }
    }

    /// Returns the sequence of the parts, flattened.
    pub(crate) fn concat(parts: impl IntoIterator<Item = Node>) -> Node {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Node::Empty => {}
                Node::Concat(inner) => flat.extend(inner),
                part if part.is_never() => return Node::never(),
                part => flat.push(part),
            }
        }
        match flat.len() {
            0 => Node::Empty,
            1 => flat.remove(0),
            _ => Node::Concat(flat),
        }
    }

    /// Returns the choice between the alternatives, flattened; those that never match are dropped.
    pub(crate) fn alt(alternatives: impl IntoIterator<Item = Node>) -> Node {
        let mut flat = Vec::new();
        for alternative in alternatives {
            match alternative {
                Node::Alt(inner) => flat.extend(inner),
                one if one.is_never() => {}
                one => flat.push(one),
            }
        }
        if flat.len() == 1 {
            flat.remove(0)
        } else {
            Node::Alt(flat)
        }
    }

    /// Returns the body repeated between `min` and `max` times, with trivial counts resolved.
    pub(crate) fn repeat(body: Node, min: u32, max: Option<u32>) -> Node {
        match (min, max) {
            (_, Some(0)) => Node::Empty,
            (1, Some(1)) => body,
            _ if body == Node::Empty => Node::Empty,
            (0, _) if body.is_never() => Node::Empty,
            _ if body.is_never() => Node::never(),
            _ => Node::Repeat {
                body: Box::new(body),
                min,
                max,
            },
        }
    }

    /// Returns `true` if the node obviously never matches.
    pub(crate) fn is_never(&self) -> bool {
        match self {
            Node::Alt(alternatives) => alternatives.is_empty(),
            Node::Set(set) => is_empty(set),
            _ => false,
        }
    }

    /// Returns `true` if the node depends on nothing but the characters that it consumes.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Node::Empty | Node::Set(_) => true,
            Node::Concat(parts) | Node::Alt(parts) => parts.iter().all(Node::is_plain),
            Node::Repeat { body, .. } => body.is_plain(),
            Node::Look(_) | Node::Test(_) | Node::Around(_) => false,
        }
    }

    /// Returns the first lookahead or lookbehind over more than one character, if there is one.
    pub(crate) fn around(&self) -> Option<&Around> {
        match self {
            Node::Concat(parts) | Node::Alt(parts) => parts.iter().find_map(Node::around),
            Node::Repeat { body, .. } => body.around(),
            Node::Around(around) => Some(around),
            Node::Empty | Node::Set(_) | Node::Look(_) | Node::Test(_) => None,
        }
    }

    /// Checks whether the node can match the empty string somewhere; look-around counts as satisfied.
    pub(crate) fn is_nullable(&self) -> bool {
        self.lengths().0 == 0
    }

    /// Returns the least and the greatest number of characters that the node consumes; look-around counts as
    /// satisfied.
    pub(crate) fn lengths(&self) -> (u64, Option<u64>) {
        match self {
            Node::Empty | Node::Look(_) | Node::Test(_) | Node::Around(_) => (0, Some(0)),
            Node::Set(_) => (1, Some(1)),
            Node::Concat(parts) => parts.iter().map(Node::lengths).fold((0, Some(0)), add_lengths),
            Node::Alt(parts) => {
                let lengths = parts.iter().map(Node::lengths);
                lengths.reduce(either_length).unwrap_or((0, Some(0)))
            }
            Node::Repeat { body, min, max } => {
                let (least, most) = body.lengths();
                let most = match (most, max) {
                    (Some(0), _) => Some(0),
                    (Some(most), Some(max)) => Some(most.saturating_mul(u64::from(*max))),
                    _ => None,
                };
                (least.saturating_mul(u64::from(*min)), most)
            }
        }
    }

    /// Returns the number of characters in the expression after every counted repetition is unrolled.
    pub(crate) fn unrolled_size(&self) -> u64 {
        match self {
            Node::Empty | Node::Look(_) | Node::Test(_) | Node::Set(_) => 1,
            Node::Around(around) => around.body.unrolled_size(),
            Node::Concat(parts) | Node::Alt(parts) => {
                parts.iter().map(Node::unrolled_size).fold(1, u64::saturating_add)
            }
            Node::Repeat { body, min, max } => {
                let copies = u64::from(max.unwrap_or(*min).max(1));
                body.unrolled_size().saturating_mul(copies).saturating_add(1)
            }
        }
    }

    /// Converts a plain node to an expression.
    pub(crate) fn to_hir(&self) -> Hir {
        match self {
            Node::Empty | Node::Look(_) | Node::Test(_) | Node::Around(_) => Hir::empty(),
            Node::Set(set) => Hir::class(Class::Unicode(set.clone())),
            Node::Concat(parts) => Hir::concat(parts.iter().map(Node::to_hir).collect()),
            Node::Alt(parts) => Hir::alternation(parts.iter().map(Node::to_hir).collect()),
            Node::Repeat { body, min, max } => {
                let sub = Box::new(body.to_hir());
                Hir::repetition(Repetition {
                    min: *min,
                    max: *max,
                    greedy: true,
                    sub,
                })
            }
        }
    }
}

fn add_lengths(a: (u64, Option<u64>), b: (u64, Option<u64>)) -> (u64, Option<u64>) {
    (
        a.0.saturating_add(b.0),
        a.1.zip(b.1).map(|(a, b)| a.saturating_add(b)),
    )
}

fn either_length(a: (u64, Option<u64>), b: (u64, Option<u64>)) -> (u64, Option<u64>) {
    (a.0.min(b.0), a.1.zip(b.1).map(|(a, b)| a.max(b)))
}
