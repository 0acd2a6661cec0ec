//! The evaluator: statements of a template, which append to a text that knows its origins.
//!
//! `minijinja` parses the template. Its machine is not used: its strings have no place for an origin, and a
//! string that is marked in some way compares, splits and trims differently from the one that it stands for.
//!
//! ```text
//!   source ─ minijinja's parser ─► statements ─► Evaluator ─► Text
//!                                   expressions: expressions.rs ─ operators.rs
//!                                   names:       filters.rs, methods.rs, predicates.rs, functions.rs
//! ```
//!
//! The semantics are those of Jinja in Python as `transformers` sets it up, without what chat templates do
//! not use: inheritance, imports, recursive loops. Whatever is unknown is an error, and so is a template that
//! takes too many steps, nests too deeply or writes too long a text.

mod arguments;
mod expressions;
mod filters;
mod functions;
mod methods;
mod operators;
mod predicates;

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use minijinja::machinery::ast::{Expr, ForLoop, Macro, Stmt};

use crate::text::Text;
use crate::value::{List, Loop, Value};

/// The maximum number of steps: a statement, an operation, sixteen bytes that are written. Honest templates
/// need a few thousand for each message.
const STEPS: u64 = 20_000_000;
/// The bytes that cost one step.
const BYTES_OF_STEP: usize = 16;
/// The steps that a character takes as a text of its own.
const CHARACTER_STEPS: u64 = 32;
/// The maximum depth of lists and mappings in a variable.
const VALUE_DEPTH: usize = 200;
/// The maximum length of a text, in bytes.
const TEXT_BYTES: usize = 64 << 20;
/// The maximum depth of statements, expressions and macros within each other.
const DEPTH: usize = 120;

/// The names of the functions that every template can call.
const FUNCTIONS: [&str; 5] = ["raise_exception", "strftime_now", "namespace", "dict", "range"];

/// The reason why a template stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) message: String,
    /// The line of the template.
    pub(crate) line: Option<u16>,
}

impl<T: Into<String>> From<T> for Fault {
    fn from(message: T) -> Self {
        Self {
            message: message.into(),
            line: None,
        }
    }
}

type Result<T> = std::result::Result<T, Fault>;

/// What happens after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The variables of a block.
type Scope = Vec<(String, Value)>;

/// Evaluates one template once.
pub(crate) struct Evaluator<'t> {
    out: Text,
    /// The variables that the caller gives, those of the template, and those of blocks.
    scopes: Vec<Scope>,
    /// The first scope of the macro that runs; the two above all others are visible everywhere.
    base: usize,
    macros: Vec<&'t Macro<'t>>,
    steps: u64,
    depth: usize,
    loops: usize,
    /// The time, in seconds since 1970.
    now: u64,
}

impl<'t> Evaluator<'t> {
    /// Creates an evaluator with these variables.
    pub(crate) fn new(variables: Vec<(String, Value)>, now: u64) -> Self {
        Self {
            out: Text::default(),
            scopes: vec![variables, Scope::new()],
            base: 2,
            macros: Vec::new(),
            steps: STEPS,
            depth: 0,
            loops: 0,
            now,
        }
    }

    /// Returns the text that a template writes.
    ///
    /// # Errors
    /// Fails if the template fails, or exceeds a limit.
    pub(crate) fn run(mut self, template: &'t Stmt<'t>) -> Result<Text> {
        self.statement(template)?;
        Ok(self.out)
    }

    fn block(&mut self, statements: &'t [Stmt<'t>]) -> Result<Flow> {
        for statement in statements {
            let flow = self.statement(statement)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &'t Stmt<'t>) -> Result<Flow> {
        self.enter()?;
        let flow = self.do_statement(statement);
        self.depth -= 1;
        flow
    }

    fn do_statement(&mut self, statement: &'t Stmt<'t>) -> Result<Flow> {
        match statement {
            Stmt::Template(template) => return self.block(&template.children),
            Stmt::EmitRaw(raw) => self.write(&Text::of_template(raw.raw))?,
            Stmt::EmitExpr(emit) => {
                let text = self.expression(&emit.expr)?.display();
                self.write(&text)?;
            }
            Stmt::ForLoop(spanned) => {
                let line = spanned.span().start_line;
                self.for_loop(spanned).map_err(|fault| at(fault, line))?;
            }
            Stmt::IfCond(condition) => {
                let holds = self.expression(&condition.expr)?.is_true();
                let body = if holds {
                    &condition.true_body
                } else {
                    &condition.false_body
                };
                return self.block(body);
            }
            Stmt::WithBlock(with) => {
                let mut scope = Scope::new();
                for (target, value) in &with.assignments {
                    let value = self.expression(value)?;
                    bind(target, value, &mut scope)?;
                }
                return self.within(scope, |this| this.block(&with.body));
            }
            Stmt::Set(set) => {
                let value = self.expression(&set.expr)?;
                self.assign(&set.target, value)?;
            }
            Stmt::SetBlock(set) => {
                let text = self.captured(&set.body)?;
                let text = self.filtered(set.filter.as_ref(), text)?;
                self.assign(&set.target, text)?;
            }
            Stmt::FilterBlock(block) => {
                let text = self.captured(&block.body)?;
                let text = self.filtered(Some(&block.filter), text)?;
                self.write(&text.display())?;
            }
            Stmt::AutoEscape(block) => return self.block(&block.body),
            Stmt::Block(block) => return self.block(&block.body),
            Stmt::Macro(spanned) => {
                let value = self.defined(spanned);
                self.set(spanned.name, value);
            }
            Stmt::CallBlock(block) => {
                let caller = self.defined(&block.macro_decl);
                let text = self.call(&block.call, Some(caller))?.display();
                self.write(&text)?;
            }
            Stmt::Continue(_) => return Ok(Flow::Continue),
            Stmt::Break(_) => return Ok(Flow::Break),
            Stmt::Do(spanned) => {
                self.call(&spanned.call, None)?;
            }
            Stmt::Import(_) | Stmt::FromImport(_) | Stmt::Extends(_) | Stmt::Include(_) => {
                return Err("a chat template cannot use other templates".into());
            }
        }
        Ok(Flow::Next)
    }

    fn for_loop(&mut self, statement: &'t ForLoop<'t>) -> Result<()> {
        if statement.recursive {
            return Err("recursive loops are not supported".into());
        }
        let over = self.expression(&statement.iter)?;
        let items = self.items(&over)?;
        let items = items.ok_or_else(|| format!("{} cannot be iterated over", over.kind()))?;
        let items = match &statement.filter_expr {
            None => items,
            Some(filter) => {
                let chosen = Value::list(self.chosen(&items, &statement.target, filter)?);
                chosen.items().unwrap_or_default()
            }
        };
        if items.is_empty() {
            self.block(&statement.else_body)?;
            return Ok(());
        }
        self.loops += 1;
        let seen = Rc::new(RefCell::new(None));
        for (index, item) in items.iter().enumerate() {
            let pass = Loop {
                items: Rc::clone(&items),
                index,
                depth: self.loops,
                seen: Rc::clone(&seen),
            };
            let mut scope = vec![("loop".to_owned(), Value::Loop(Rc::new(pass)))];
            bind(&statement.target, item.clone(), &mut scope)?;
            let flow = self.within(scope, |this| this.block(&statement.body))?;
            if flow == Flow::Break {
                break;
            }
        }
        self.loops -= 1;
        Ok(())
    }

    /// Returns the items of a loop for which its condition holds.
    fn chosen(
        &mut self,
        items: &[Value],
        target: &'t Expr<'t>,
        condition: &'t Expr<'t>,
    ) -> Result<Vec<Value>> {
        let mut chosen = Vec::new();
        for item in items {
            let mut scope = Scope::new();
            bind(target, item.clone(), &mut scope)?;
            if self.within(scope, |this| this.expression(condition))?.is_true() {
                chosen.push(item.clone());
            }
        }
        Ok(chosen)
    }

    fn within<R>(&mut self, scope: Scope, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.scopes.push(scope);
        let result = body(self);
        self.scopes.pop();
        result
    }

    /// Returns what a block writes.
    fn captured(&mut self, body: &'t [Stmt<'t>]) -> Result<Value> {
        let before = mem::take(&mut self.out);
        let flow = self.block(body);
        let text = mem::replace(&mut self.out, before);
        flow?;
        Ok(Value::text(text))
    }

    fn filtered(&mut self, filter: Option<&'t Expr<'t>>, value: Value) -> Result<Value> {
        match filter {
            None => Ok(value),
            Some(Expr::Filter(filter)) => {
                let value = self.filtered(filter.expr.as_ref(), value)?;
                let arguments = self.arguments(&filter.args)?;
                self.filter(filter.name, value, arguments)
            }
            Some(_) => Err("expected a filter".into()),
        }
    }

    fn defined(&mut self, spanned: &'t Macro<'t>) -> Value {
        self.macros.push(spanned);
        Value::Macro(self.macros.len() - 1)
    }

    fn assign(&mut self, target: &'t Expr<'t>, value: Value) -> Result<()> {
        if let Expr::GetAttr(attribute) = target {
            let Value::Namespace(map) = self.expression(&attribute.expr)? else {
                return Err("only attributes of a namespace can be set".into());
            };
            check_depth(&value)?;
            map.borrow_mut().set(Text::of_template(attribute.name), value);
            return Ok(());
        }
        if !matches!(value, Value::Namespace(_)) {
            check_depth(&value)?;
        }
        let mut bound = Scope::new();
        bind(target, value, &mut bound)?;
        for (name, value) in bound {
            self.set(&name, value);
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: Value) {
        // The lowest scope belongs to the caller.
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        match scope.iter_mut().find(|(known, _)| known == name) {
            Some(variable) => variable.1 = value,
            None => scope.push((name.to_owned(), value)),
        }
    }

    /// Returns the value of a variable, or the function of this name.
    fn variable(&self, name: &str) -> Value {
        let own = self.scopes.get(self.base..).unwrap_or_default();
        let shared = &self.scopes[..self.scopes.len().min(2)];
        let mut scopes = own.iter().rev().chain(shared.iter().rev());
        let found = scopes.find_map(|scope| scope.iter().find(|(known, _)| known == name));
        let function = FUNCTIONS.iter().find(|known| **known == name);
        match (found, function) {
            (Some((_, value)), _) => value.clone(),
            (None, Some(function)) => Value::Function(function),
            (None, None) => Value::Undefined,
        }
    }

    fn write(&mut self, text: &Text) -> Result<()> {
        self.pay(self.out.len(), text.len())?;
        self.out.push(text);
        Ok(())
    }

    /// Counts the work of writing this many bytes after others.
    fn pay(&mut self, before: usize, bytes: usize) -> Result<()> {
        if before.saturating_add(bytes) > TEXT_BYTES {
            return Err(format!("a text is longer than {TEXT_BYTES} bytes").into());
        }
        self.step((bytes / BYTES_OF_STEP) as u64)
    }

    /// Returns what a loop over a value sees; the characters of a text take many times its memory.
    fn items(&mut self, value: &Value) -> Result<Option<Rc<List>>> {
        if let Value::Text(text) = value {
            self.step(CHARACTER_STEPS.saturating_mul(text.len() as u64))?;
        }
        Ok(value.items())
    }

    /// Counts the work of reading a value, if it is a text.
    fn read(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Text(text) => self.pay(0, text.len()),
            _ => Ok(()),
        }
    }

    fn step(&mut self, steps: u64) -> Result<()> {
        let left = self.steps.checked_sub(steps + 1);
        self.steps = left.ok_or_else(|| format!("the template takes more than {STEPS} steps"))?;
        Ok(())
    }

    fn enter(&mut self) -> Result<()> {
        self.step(0)?;
        if self.depth >= DEPTH {
            return Err(format!("the template nests deeper than {DEPTH}").into());
        }
        self.depth += 1;
        Ok(())
    }
}

/// Refuses values that are too deep to be compared, written and dropped.
fn check_depth(value: &Value) -> Result<()> {
    match value.depth() <= VALUE_DEPTH {
        true => Ok(()),
        false => Err(format!("a value nests deeper than {VALUE_DEPTH}, or has a namespace in it").into()),
    }
}

/// Adds the line to a fault that has none.
fn at(fault: Fault, line: u16) -> Fault {
    Fault {
        line: fault.line.or(Some(line)),
        ..fault
    }
}

/// Adds the variables of an assignment's target to a scope.
fn bind(target: &Expr<'_>, value: Value, scope: &mut Scope) -> Result<()> {
    match target {
        Expr::Var(variable) => {
            scope.retain(|(known, _)| known != variable.id);
            scope.push((variable.id.to_owned(), value));
            Ok(())
        }
        Expr::List(list) => {
            let items = value.items().unwrap_or_default();
            if items.len() != list.items.len() {
                let (found, wanted) = (items.len(), list.items.len());
                return Err(format!("{found} values cannot be assigned to {wanted} variables").into());
            }
            let mut pairs = list.items.iter().zip(items.iter());
            pairs.try_for_each(|(target, item)| bind(target, item.clone(), scope))
        }
        _ => Err("this cannot be assigned to".into()),
    }
}
