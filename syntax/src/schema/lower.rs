//! Stage 4: lowers normal forms to a grammar.
//!
//! Each goal that contains arrays or objects becomes a rule, named by its JSON pointer; goals of scalars are
//! written in place. Goals without a value have no rule: an optional property that would need one cannot be
//! written, and a schema whose root needs one is refused.

mod arguments;
mod array;
mod automaton;
mod digits;
mod draft;
mod flat;
mod flatten;
pub(crate) mod frame;
mod number;
mod numeral;
mod object;
mod space;
mod string;
mod unique;
mod writer;

use std::rc::Rc;

use lexiform_automata::error::{CompileError, Problem, ProblemKind};
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId};
use lexiform_automata::limits::Limits;

use super::forms::{GoalId, NormalForms};
use super::normal::{TOO_MANY_WAYS, nothing_left};
use super::options::{ArgumentStyle, Options};

use space::Spaces;
use writer::{Piece, Writer};

pub(super) use number::leaves_spellings_out;

/// Returns the grammar of the texts that satisfy the root of the normal forms, and findings about what it
/// leaves out.
pub(super) fn grammar(
    forms: &NormalForms,
    options: &Options,
    limits: &Limits,
) -> Result<(Cfg, Vec<Problem>), CompileError> {
    let mut builder = CfgBuilder::within(limits.cancel.account());
    let spaces = Spaces::new(&options.whitespace, forms, &mut builder, limits)?;
    let mut writer = Writer::new(forms, options, limits, builder, spaces.of(forms.root));
    if !forms.is_live(forms.root) {
        return Err(writer.unsatisfiable().into());
    }
    let start = match options.arguments {
        ArgumentStyle::Json => writer.declare(forms.root),
        _ => writer.arguments(),
    };
    while let Some((rule, goal, piece)) = writer.open.pop() {
        writer.space = spaces.of(goal);
        let body = match piece {
            Piece::Whole => writer.body(goal),
            Piece::ArrayTails => writer.array_tails(goal),
            Piece::ArgumentObjects => writer.argument_objects(goal),
            Piece::ArgumentArrays => writer.argument_arrays(goal),
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
    /// Returns the expression of a goal: in place, or a call of its rule.
    fn goal(&mut self, goal: GoalId) -> ExprId {
        if let Some(known) = self.exprs[goal.index()] {
            return known;
        }
        if self.is_over() {
            // The compilation ends in an error in any case, and one rule may have thousands of parts.
            return self.builder.never();
        }
        let normal = &self.forms.normals[goal.index()];
        let expr = if !self.forms.is_live(goal) {
            self.builder.never()
        } else if normal.arrays.is_empty() && normal.objects.is_empty() {
            // Equivalent goals share their form.
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

    /// Returns the expression for all texts of a goal.
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

    /// Returns the expression for the texts of a goal's arrays and objects.
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

    /// Returns the reason why the root has no value: the innermost part that is required but has no value.
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
            return nothing_left(&self.forms.notes)
                .unwrap_or_else(|| Problem::new(ProblemKind::Limit, self.place(at), TOO_MANY_WAYS));
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
