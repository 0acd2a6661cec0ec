//! Goals: the constraints on a value, as a set of schemas of the source, each affirmed or denied.
//!
//! A goal is the unit of the algebra. The intersection of two goals is the union of their sets, and there are
//! finitely many sets, so a recursive schema has finitely many goals and every later stage is a loop over a
//! list.

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};

use crate::schema::node::NodeId;
use lexiform_automata::limits::Account;

/// A schema, affirmed or denied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Literal {
    pub(crate) node: NodeId,
    pub(crate) sign: bool,
}

impl Literal {
    pub(crate) fn yes(node: NodeId) -> Literal {
        Literal { node, sign: true }
    }

    pub(crate) fn new(node: NodeId, sign: bool) -> Literal {
        Literal { node, sign }
    }

    /// Returns the opposite literal.
    pub(crate) fn denied(self) -> Literal {
        Literal::new(self.node, !self.sign)
    }
}

/// A conjunction of literals, sorted and without repetition.
pub(crate) type Literals = Vec<Literal>;

/// The number of an interned set of literals.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct GoalId(pub(crate) u32);

impl GoalId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All goals that have been interned.
#[derive(Debug)]
pub(crate) struct Goals {
    goals: Vec<Rc<[Literal]>>,
    known: HashMap<Rc<[Literal]>, GoalId>,
    /// The interned goals of a single affirmed schema, by its number. Most goals are of this kind.
    alone: Vec<Option<GoalId>>,
    /// The account of the memory of these.
    held: Account,
}

/// The approximate number of bytes of a goal and of its entries in the tables, without its literals.
const GOAL_BYTES: usize = 96;

impl Goals {
    pub(crate) fn new(held: Account) -> Goals {
        let mut goals = Goals {
            held,
            goals: Vec::new(),
            known: HashMap::new(),
            alone: Vec::new(),
        };
        goals.intern(Vec::new());
        goals
    }

    /// Returns the goal of a set of literals, given in any order.
    pub(crate) fn intern(&mut self, mut literals: Literals) -> GoalId {
        literals.sort_unstable();
        literals.dedup();
        match literals[..] {
            [only] if only.sign => self.alone(only.node),
            _ => match self.known.get(&literals[..]) {
                Some(&known) => known,
                None => {
                    self.held.grow(GOAL_BYTES + size_of_val(&literals[..]));
                    let id = GoalId(self.goals.len() as u32);
                    let literals: Rc<[Literal]> = literals.into();
                    self.goals.push(literals.clone());
                    self.known.insert(literals, id);
                    id
                }
            },
        }
    }

    /// Returns the goal of one affirmed schema, which is looked up by its number.
    pub(crate) fn alone(&mut self, node: NodeId) -> GoalId {
        if let Some(&Some(known)) = self.alone.get(node.index()) {
            return known;
        }
        if self.alone.len() <= node.index() {
            self.alone.resize(node.index() + 1, None);
        }
        self.held.grow(GOAL_BYTES);
        let id = GoalId(self.goals.len() as u32);
        self.goals.push(Rc::new([Literal::yes(node)]));
        self.alone[node.index()] = Some(id);
        id
    }

    pub(crate) fn literals(&self, id: GoalId) -> &Rc<[Literal]> {
        &self.goals[id.index()]
    }

    pub(crate) fn len(&self) -> usize {
        self.goals.len()
    }
}
