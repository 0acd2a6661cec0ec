//! Stage 4: normal forms to a grammar.
//!
//! Each goal that arrays or objects take part in becomes a rule, named by its JSON pointer; goals of scalars are written in
//! place. Goals without a value have no rule: the optional property that would need one cannot be written, and a schema whose
//! root needs one is refused.

mod array;
mod automaton;
mod digits;
mod draft;
mod flat;
mod hir;
mod number;
mod numeral;
mod object;
mod repeated;
mod space;
mod string;
mod unique;

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};
use rustc_hash::FxHashMap;

use crate::error::{CompileError, Place, Problem, ProblemKind};
use crate::grammar::{Cfg, CfgBuilder, ExprId, Expression, Regular, RegularId, RuleId};
use crate::limits::{Account, Limits};
use crate::regex::Escapes;

use super::Options;
use super::findings::Findings;
use super::goal::GoalId;
use super::normal::{Normal, NormalForms, NumberShape};
use super::text::TextId;

use flat::{Flat, Style};
use space::Space;

pub(super) use number::leaves_spellings_out;

/// What a rule says of a goal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Piece {
    /// All its texts.
    Whole,
    /// Its arrays, behind the bracket.
    ArrayTails,
    /// Its arrays and objects.
    Structured,
}

/// Writes a grammar; see the module.
struct Writer<'a> {
    forms: &'a NormalForms,
    options: &'a Options,
    limits: &'a Limits,
    /// How characters of strings may be spelled.
    escapes: Escapes,
    builder: CfgBuilder,
    /// What each goal is written as, once asked for.
    exprs: Vec<Option<ExprId>>,
    /// What forms without arrays and objects are written as.
    scalars: FxHashMap<*const Normal, ExprId>,
    /// The rules of parts of goals, once asked for.
    pieces: HashMap<(GoalId, Piece), ExprId>,
    /// Rules without a body yet.
    open: Vec<(RuleId, GoalId, Piece)>,
    space: Space,
    numbers: HashMap<NumberShape, ExprId>,
    /// What stands before the values of named keys.
    names: HashMap<Rc<str>, ExprId>,
    /// The texts of keys with their quotes.
    quoted: HashMap<TextId, Expression>,
    /// The bytes of these.
    held: Account,
    any_string: Option<ExprId>,
    any_key: Option<RegularId>,
    problems: Findings,
    /// Goals as one regular language each, once asked for: many arrays of unique items share their parts.
    flats: HashMap<(GoalId, Style, u32), Option<Flat>>,
    /// The sizes of these languages together.
    flat_sizes: u64,
    /// The sizes of what tells unique items apart, so far.
    lead_sizes: u64,
    /// The states of automata for multiples, so far.
    multiple_states: usize,
    /// What is allowed less than the schema asks for.
    notes: Findings,
}

/// The grammar of the texts that satisfy the root of the normal forms, and what it leaves out of them.
pub(super) fn grammar(
    forms: &NormalForms,
    options: &Options,
    limits: &Limits,
) -> Result<(Cfg, Vec<Problem>), CompileError> {
    let mut builder = CfgBuilder::within(limits.cancel.account());
    let space = Space::new(&options.whitespace, &mut builder, limits)?;
    let mut writer = Writer {
        forms,
        options,
        limits,
        escapes: options.escapes,
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
    };
    if !forms.is_live(forms.root) {
        return Err(writer.unsatisfiable().into());
    }
    let start = writer.declare(forms.root);
    while let Some((rule, goal, piece)) = writer.open.pop() {
        let body = match piece {
            Piece::Whole => writer.body(goal),
            Piece::ArrayTails => writer.array_tails(goal),
            Piece::Structured => writer.structured(goal),
        };
        writer.builder.define(rule, body);
        if limits.cancel.is_asked() {
            break;
        }
        if writer.is_full() {
            let message = format!(
                "the grammar has too many expressions; the limit `exprs` is {}",
                limits.exprs
            );
            return Err(Problem::at_pointer(ProblemKind::Limit, "", message).into());
        }
    }
    if writer.problems.is_empty() {
        Ok((writer.builder.finish(start), writer.notes.into_list()))
    } else {
        Err(CompileError {
            problems: writer.problems.into_list(),
        })
    }
}

impl Writer<'_> {
    fn declare(&mut self, goal: GoalId) -> RuleId {
        let rule = self.builder.declare(self.name(goal));
        self.exprs[goal.index()] = Some(self.builder.rule(rule));
        self.open.push((rule, goal, Piece::Whole));
        rule
    }

    /// What stands for a part of a goal. It is a rule, because arrays that compare their items are written one inside the
    /// other, and may be so without end.
    fn piece(&mut self, goal: GoalId, piece: Piece) -> ExprId {
        if let Some(&known) = self.pieces.get(&(goal, piece)) {
            return known;
        }
        let rule = self.builder.declare(self.name(goal));
        let expr = self.builder.rule(rule);
        self.pieces.insert((goal, piece), expr);
        self.open.push((rule, goal, piece));
        expr
    }

    /// Whether there are more expressions than there may be.
    fn is_full(&self) -> bool {
        self.builder.len() > self.limits.exprs
    }

    /// Whether whatever is written ends in an error in any case.
    fn is_over(&self) -> bool {
        self.is_full() || self.limits.cancel.is_asked()
    }

    /// What stands for a goal in a grammar.
    fn goal(&mut self, goal: GoalId) -> ExprId {
        if let Some(known) = self.exprs[goal.index()] {
            return known;
        }
        if self.is_over() {
            // Ends in an error in any case, and one rule may have thousands of parts.
            return self.builder.never();
        }
        let normal = &self.forms.normals[goal.index()];
        let expr = if !self.forms.is_live(goal) {
            self.builder.never()
        } else if normal.arrays.is_empty() && normal.objects.is_empty() {
            // Goals that say the same share their form.
            let form = Rc::as_ptr(normal);
            let known = self.scalars.get(&form).copied();
            let expr = known.unwrap_or_else(|| self.body(goal));
            self.scalars.insert(form, expr);
            expr
        } else {
            let rule = self.declare(goal);
            self.builder.rule(rule)
        };
        self.exprs[goal.index()] = Some(expr);
        expr
    }

    /// All texts of a goal.
    fn body(&mut self, goal: GoalId) -> ExprId {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        let mut ways = Vec::new();
        for (there, text) in [(normal.null, "null"), (normal.yes, "true"), (normal.no, "false")] {
            if there {
                ways.push(self.builder.bytes(text));
            }
        }
        let over = |writer: &Self| {
            let place = || writer.place(goal);
            writer.limits.cancel.note_place(place);
            writer.is_over()
        };
        for shape in normal.numbers.iter() {
            if over(self) {
                break;
            }
            ways.push(self.number(shape, goal));
        }
        for shape in &normal.strings {
            if over(self) {
                break;
            }
            ways.push(self.string(shape, goal));
        }
        ways.push(self.structured(goal));
        self.builder.choice(ways)
    }

    /// The texts of a goal's arrays and objects.
    fn structured(&mut self, goal: GoalId) -> ExprId {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        let mut ways = Vec::new();
        for array in &normal.arrays {
            if self.is_over() {
                break;
            }
            ways.push(self.array(array));
        }
        for object in &normal.objects {
            if self.is_over() {
                self.limits.cancel.note_place(|| self.place(goal));
                break;
            }
            ways.push(self.object(object, goal));
        }
        self.builder.choice(ways)
    }

    /// The JSON pointers of a goal's schemas.
    fn name(&self, goal: GoalId) -> String {
        self.forms.goal_name(goal)
    }

    fn place(&self, goal: GoalId) -> Place {
        let first = self.forms.goals.literals(goal).first();
        Place::Pointer(first.map_or(String::new(), |literal| self.forms.tree.pointer(literal.node)))
    }

    fn problem(&mut self, kind: ProblemKind, goal: GoalId, message: impl Into<String>) {
        let problem = Problem::new(kind, self.place(goal), message);
        self.problems.add(problem);
    }

    /// Notes that less is allowed than a goal asks for.
    fn narrowed(&mut self, goal: GoalId, message: &str) {
        let note = Problem::new(ProblemKind::Narrowed, self.place(goal), message);
        self.notes.add(note);
    }

    fn regular(&mut self, regular: Regular) -> ExprId {
        let id = self.builder.add_regular(regular);
        self.builder.regular(id)
    }

    /// Says why the root has no value: the innermost part that has none although it is needed.
    fn unsatisfiable(&self) -> Problem {
        let mut at = self.forms.root;
        let mut path = vec![at];
        while let Some(next) = self
            .forms
            .needed_and_empty(at)
            .filter(|next| !path.contains(next))
        {
            path.push(next);
            at = next;
        }
        let again = self.forms.needed_and_empty(at).is_some();
        if self.forms.truncated {
            let message = "the schema's parts combine in too many ways: only some were tried, and none of those has a value";
            return Problem::new(ProblemKind::Limit, self.place(at), message);
        }
        let message = if again {
            let names: Vec<String> = path.iter().map(|&goal| self.name(goal)).collect();
            format!(
                "no finite value satisfies the schema: each part requires the next: {}",
                names.join(" -> ")
            )
        } else if path.len() > 1 {
            format!(
                "no value satisfies the schema: {} is required, but nothing satisfies it",
                self.name(at)
            )
        } else {
            "no value satisfies the schema: its keywords contradict each other".to_owned()
        };
        Problem::new(ProblemKind::Unsatisfiable, self.place(at), message)
    }
}
