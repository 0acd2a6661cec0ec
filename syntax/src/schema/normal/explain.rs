//! Explains why nothing satisfies a schema: finds the assertions that contradict each other.
//!
//! This runs only after a compilation has failed, so it may start over and try: first the innermost part that
//! is required and has no value, then each of its assertions alone, then each pair, then each pair together
//! with the `type`.

use std::rc::Rc;

use foldhash::{HashSet, HashSetExt};

use crate::schema::forms::productive::{needed_and_empty, productive};
use crate::schema::forms::{GoalId, Literal, Normal};
use crate::schema::node::{Keyword, Node, NodeId, escape_segment};
use crate::schema::parse::Parsed;
use lexiform_automata::error::{Problem, ProblemKind};
use lexiform_automata::limits::Limits;

use super::algebra::Algebra;

/// The most assertions of one schema that are tried in pairs.
const MOST_ASSERTIONS: usize = 60;

/// One assertion about a part: a keyword, or the denial of a schema.
struct Assertion {
    /// A schema that consists of this assertion only.
    literal: Literal,
    pointer: String,
    name: &'static str,
}

/// The message if only some alternatives were tried and no note says which keyword is to blame.
pub(crate) const TOO_MANY_WAYS: &str =
    "the schema's parts combine in too many ways: only some were tried, and none of those has a value";

/// Returns the problem of a schema of which nothing is left, at the keyword of the first note that says that
/// fewer values are tried than the keyword allows, or `None` if there is no such note.
pub(crate) fn nothing_left<'n>(notes: impl IntoIterator<Item = &'n Problem>) -> Option<Problem> {
    let mut notes = notes.into_iter();
    let note = notes.find(|note| note.kind == ProblemKind::Narrowed)?;
    let message = format!("nothing is left of the schema: {}", note.message);
    Some(Problem::new(ProblemKind::Limit, note.place.clone(), message))
}

/// Returns the problem of a schema that nothing satisfies, or `None` if no reason was found.
pub(crate) fn explain(parsed: Parsed, limits: &Limits) -> Option<Problem> {
    let root = parsed.root;
    let mut algebra = Algebra::new(parsed, limits);
    let goal = algebra.goals.intern(vec![Literal::yes(root)]);
    let (normals, live) = algebra.outcome(goal)?;
    if !algebra.truncated.is_empty() {
        let known = nothing_left(algebra.notes.iter());
        return Some(known.unwrap_or_else(|| Problem::at_pointer(ProblemKind::Limit, "", TOO_MANY_WAYS)));
    }
    if live[goal.index()] {
        return None;
    }
    let mut path = vec![goal];
    while let Some(next) =
        needed_and_empty(&normals[path[path.len() - 1].index()], &live).filter(|next| !path.contains(next))
    {
        path.push(next);
    }
    let at = *path.last()?;
    if needed_and_empty(&normals[at.index()], &live).is_some() {
        // Each part requires another without end; no two assertions are to blame.
        return None;
    }
    let assertions = algebra.assertions(at);
    let culprits = algebra.culprits(&assertions)?;
    let names: Vec<String> = culprits
        .iter()
        .map(|&at| format!("`{}` at #{}", assertions[at].name, assertions[at].pointer))
        .collect();
    let reason = match &names[..] {
        [one] => format!("nothing satisfies {one}"),
        [first, second] => format!("{first} and {second} contradict each other"),
        more => format!("{} contradict each other", more.join(", ")),
    };
    let place = algebra
        .goals
        .literals(at)
        .first()
        .map(|literal| algebra.tree.pointer(literal.node));
    let place = place.unwrap_or_default();
    let needed = match path.len() {
        1 => String::new(),
        _ => format!("#{place} is required, but "),
    };
    let message = format!("no value satisfies the schema: {needed}{reason}");
    Some(Problem::at_pointer(ProblemKind::Unsatisfiable, place, message))
}

impl Algebra<'_> {
    /// Returns the normal forms that a goal reaches, without empty sets of strings, and which goals have a
    /// value.
    fn outcome(&mut self, goal: GoalId) -> Option<(Vec<Rc<Normal>>, Vec<bool>)> {
        let reached = self.reach(goal);
        if !self.problems.is_empty() {
            return None;
        }
        let empty = Rc::new(Normal::default());
        let mut normals: Vec<Rc<Normal>> = vec![empty; self.goals.len()];
        for &goal in &reached {
            let mut normal = (*self.normal(goal)).clone();
            normal
                .strings
                .retain(|shape| !self.texts.is_surely_empty(&shape.texts, shape.min, shape.max));
            normals[goal.index()] = Rc::new(normal);
        }
        let live = productive(&normals, &reached, &self.limits.cancel);
        Some((normals, live))
    }

    fn is_without_value(&mut self, literals: Vec<Literal>) -> bool {
        if self.limits.cancel.is_asked() {
            return false;
        }
        let goal = self.goals.intern(literals);
        self.outcome(goal).is_some_and(|(_, live)| !live[goal.index()])
    }

    /// Returns the assertions that a goal makes together, through references and `allOf`.
    fn assertions(&mut self, goal: GoalId) -> Vec<Assertion> {
        let mut open: Vec<Literal> = self.goals.literals(goal).iter().rev().copied().collect();
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        while let Some(literal) = open.pop() {
            if !seen.insert(literal) || found.len() >= MOST_ASSERTIONS {
                continue;
            }
            if !literal.sign {
                let pointer = self.tree.pointer(literal.node);
                let name = "not";
                found.push(Assertion {
                    literal,
                    pointer,
                    name,
                });
                continue;
            }
            let mut below = Vec::new();
            let keywords = self.tree.node(literal.node).keywords.clone();
            for (name, keyword) in keywords.iter() {
                match keyword {
                    Keyword::Ref(reference) => below.push(Literal::yes(self.tree.target(*reference))),
                    Keyword::AllOf(list) => below.extend(list.iter().copied().map(Literal::yes)),
                    _ => found.push(self.single(literal.node, name, keyword.clone())),
                }
            }
            open.extend(below.into_iter().rev());
        }
        found
    }

    /// Returns a keyword of a schema as a separate schema.
    fn single(&mut self, node: NodeId, name: &'static str, keyword: Keyword) -> Assertion {
        let pointer = match name {
            "" => self.tree.pointer(node),
            _ => self.tree.keyword_pointer(node, &escape_segment(name)),
        };
        let whole = matches!(
            keyword,
            Keyword::UnevaluatedItems(_) | Keyword::UnevaluatedProperties(_)
        );
        let id = match whole {
            // Such a keyword applies to what the keywords beside it do not evaluate, and has no meaning
            // without them.
            true => node,
            false => {
                self.tree.nodes.push(Node {
                    parent: Some(node),
                    segment: "".into(),
                    keywords: Rc::new(vec![(name, keyword)]),
                });
                NodeId(self.tree.nodes.len() as u32 - 1)
            }
        };
        let name = if name.is_empty() { "false" } else { name };
        let literal = Literal::yes(id);
        Assertion {
            literal,
            pointer,
            name,
        }
    }

    /// Returns the smallest set of assertions that contradict each other, by their indices in the list.
    fn culprits(&mut self, assertions: &[Assertion]) -> Option<Vec<usize>> {
        let count = assertions.len();
        for (at, assertion) in assertions.iter().enumerate() {
            if self.is_without_value(vec![assertion.literal]) {
                return Some(vec![at]);
            }
        }
        let types: Vec<usize> = (0..count).filter(|&at| assertions[at].name == "type").collect();
        for context in [&[][..], &types[..]] {
            for second in 1..count {
                for first in 0..second {
                    let mut places = vec![first, second];
                    places.extend(context.iter().filter(|&at| ![first, second].contains(at)));
                    let literals = places.iter().map(|&at| assertions[at].literal).collect();
                    if self.is_without_value(literals) {
                        return Some(vec![first, second]);
                    }
                }
            }
        }
        None
    }
}
