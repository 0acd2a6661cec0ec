//! The state of writing a grammar: the expressions written for goals, and the rules that have no body yet.
//!
//! The other files of this module use it to write the kinds of value. They call each other for the parts of
//! arrays and objects, which are values again, through the methods of [`Writer`].

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};
use regex_syntax::hir::Hir;
use rustc_hash::FxHashMap;

use crate::regex::Escapes;
use crate::schema::findings::Findings;
use crate::schema::forms::{GoalId, Normal, NormalForms, NumberShape};
use crate::schema::options::Options;
use crate::schema::text::{TextId, hir};
use lexiform_automata::error::{Place, Problem, ProblemKind};
use lexiform_automata::grammar::{CfgBuilder, ExprId, Expression, Regular, RegularId, RuleId};
use lexiform_automata::limits::{Account, Limits};

use super::flat::{Flat, Style};
use super::space::Space;

/// The part of a goal that a rule describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Piece {
    /// All texts of the goal.
    Whole,
    /// The arrays of the goal, after the opening bracket.
    ArrayTails,
    /// The objects of the goal, with each property in the frame of an argument.
    ArgumentObjects,
    /// The arrays of the goal, with each item in the frame of an argument.
    ArgumentArrays,
}

/// A grammar that is being written.
pub(super) struct Writer<'a> {
    pub(super) forms: &'a NormalForms,
    pub(super) options: &'a Options,
    pub(super) limits: &'a Limits,
    /// The allowed spellings of the characters of strings.
    pub(super) escapes: Escapes,
    /// The strings that contain an excluded text, if any text is excluded.
    pub(super) excluded: Option<Hir>,
    pub(super) builder: CfgBuilder,
    /// The expression of each goal, once it has been requested.
    pub(super) exprs: Vec<Option<ExprId>>,
    /// The expressions of forms without arrays and objects.
    pub(super) scalars: FxHashMap<*const Normal, ExprId>,
    /// The rules of parts of goals, once they have been requested.
    pub(super) pieces: HashMap<(GoalId, Piece), ExprId>,
    /// The rules that have no body yet.
    pub(super) open: Vec<(RuleId, GoalId, Piece)>,
    /// The white space of the rule that is being written.
    pub(super) space: Space,
    pub(super) numbers: HashMap<NumberShape, ExprId>,
    /// The texts before the values of named keys.
    pub(super) names: HashMap<Rc<str>, ExprId>,
    /// The texts of keys with their quotes.
    pub(super) quoted: HashMap<TextId, Expression>,
    /// The account of the memory of these.
    pub(super) held: Account,
    pub(super) any_string: Option<ExprId>,
    pub(super) any_key: Option<RegularId>,
    pub(super) problems: Findings,
    /// Goals as one regular language each, once they have been requested: many arrays of unique items share
    /// their parts.
    pub(super) flats: HashMap<(GoalId, Style, u32), Option<Flat>>,
    /// The total size of these languages.
    pub(super) flat_sizes: u64,
    /// The total size of the leads of unique items so far.
    pub(super) lead_sizes: u64,
    /// The number of states of the automata of multiples so far.
    pub(super) multiple_states: usize,
    /// Findings that fewer values are allowed than the schema says.
    pub(super) notes: Findings,
}

impl<'a> Writer<'a> {
    /// Returns a writer for the grammar of these forms, in which only the white space has been written.
    pub(super) fn new(
        forms: &'a NormalForms,
        options: &'a Options,
        limits: &'a Limits,
        builder: CfgBuilder,
        space: Space,
    ) -> Self {
        Writer {
            forms,
            options,
            limits,
            escapes: options.escapes,
            excluded: excluded(&options.excludes),
            builder,
            exprs: vec![None; forms.normals.len()],
            scalars: FxHashMap::default(),
            pieces: HashMap::new(),
            open: Vec::new(),
            space,
            numbers: HashMap::new(),
            names: HashMap::new(),
            quoted: HashMap::new(),
            held: limits.cancel.account(),
            any_string: None,
            any_key: None,
            problems: Findings::new(limits.cancel.account()),
            flats: HashMap::new(),
            flat_sizes: 0,
            lead_sizes: 0,
            multiple_states: 0,
            notes: Findings::new(limits.cancel.account()),
        }
    }
}

/// Returns the strings that contain one of these texts, or `None` if there is no text.
fn excluded(texts: &[String]) -> Option<Hir> {
    let texts: Vec<Hir> = texts
        .iter()
        .filter(|text| !text.is_empty())
        .map(hir::text)
        .collect();
    let any = || hir::own("(?s:.*)");
    (!texts.is_empty()).then(|| hir::concat([any(), hir::any(texts), any()]))
}

impl Writer<'_> {
    /// Returns the strings of a list that contain no excluded text.
    pub(super) fn not_excluded(&self, only: &[Rc<str>]) -> Vec<Rc<str>> {
        let excludes = &self.options.excludes;
        let is_excluded = |value: &str| {
            excludes
                .iter()
                .any(|text| !text.is_empty() && value.contains(&**text))
        };
        only.iter().filter(|value| !is_excluded(value)).cloned().collect()
    }

    /// Declares a rule for all texts of a goal, whose body is still to be written.
    pub(super) fn declare(&mut self, goal: GoalId) -> RuleId {
        let rule = self.builder.declare(self.name(goal));
        self.exprs[goal.index()] = Some(self.builder.rule(rule));
        self.open.push((rule, goal, Piece::Whole));
        rule
    }

    /// Returns the rule of a part of a goal. Arrays that compare their items are written inside each other,
    /// and may nest without end, so each part is a rule.
    pub(super) fn piece(&mut self, goal: GoalId, piece: Piece) -> ExprId {
        if let Some(&known) = self.pieces.get(&(goal, piece)) {
            return known;
        }
        let rule = self.builder.declare(self.name(goal));
        let expr = self.builder.rule(rule);
        self.pieces.insert((goal, piece), expr);
        self.open.push((rule, goal, piece));
        expr
    }

    /// Returns `true` if there are more expressions than the limit allows.
    pub(super) fn is_full(&self) -> bool {
        self.builder.len() > self.limits.exprs
    }

    /// Returns `true` if the compilation ends in an error whatever else is written.
    pub(super) fn is_over(&self) -> bool {
        self.is_full() || self.limits.cancel.is_asked()
    }

    /// Returns the JSON pointers of a goal's schemas.
    pub(super) fn name(&self, goal: GoalId) -> String {
        self.forms.goal_name(goal)
    }

    /// Returns the place of the first schema of a goal.
    pub(super) fn place(&self, goal: GoalId) -> Place {
        let first = self.forms.goals.literals(goal).first();
        Place::Pointer(first.map_or(String::new(), |literal| self.forms.tree.pointer(literal.node)))
    }

    /// Reports a problem that stops the compilation, once.
    pub(super) fn problem(&mut self, kind: ProblemKind, goal: GoalId, message: impl Into<String>) {
        let problem = Problem::new(kind, self.place(goal), message);
        self.problems.add(problem);
    }

    /// Adds the finding that fewer values are allowed than a goal says.
    pub(super) fn narrowed(&mut self, goal: GoalId, message: &str) {
        let note = Problem::new(ProblemKind::Narrowed, self.place(goal), message);
        self.notes.add(note);
    }

    /// Returns a regular language as an expression of the grammar.
    pub(super) fn regular(&mut self, regular: Regular) -> ExprId {
        let id = self.builder.add_regular(regular);
        self.builder.regular(id)
    }
}
