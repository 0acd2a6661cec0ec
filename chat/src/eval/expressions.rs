//! Expressions of a template.

use minijinja::machinery::ast::{BinOp, BinOpKind, Call, CallArg, CallType, Expr, Slice, UnaryOpKind};
use minijinja::value::ValueKind;

use super::arguments::Arguments;
use super::{Evaluator, Result, Scope, at, operators};
use crate::text::Text;
use crate::value::{Map, Value};

impl<'t> Evaluator<'t> {
    /// Returns the value of an expression.
    pub(super) fn expression(&mut self, expression: &'t Expr<'t>) -> Result<Value> {
        self.enter()?;
        let value = self.value_of(expression);
        self.depth -= 1;
        value.map_err(|fault| at(fault, expression.span().start_line))
    }

    fn value_of(&mut self, expression: &'t Expr<'t>) -> Result<Value> {
        match expression {
            Expr::Var(variable) => Ok(self.variable(variable.id)),
            Expr::Const(constant) => constant_of(&constant.value),
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(unary) => {
                let value = self.expression(&unary.expr)?;
                match unary.op {
                    UnaryOpKind::Not => Ok(Value::Bool(!value.is_true())),
                    UnaryOpKind::Neg => operators::negated(&value),
                }
            }
            Expr::BinOp(operation) => self.operation(operation),
            Expr::Compare(comparison) => {
                let mut left = self.expression(&comparison.expr)?;
                for operation in &comparison.ops {
                    let right = self.expression(&operation.expr)?;
                    self.read(&right)?;
                    if !operators::compared(operation.op, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            Expr::IfExpr(choice) => match self.expression(&choice.test_expr)?.is_true() {
                true => self.expression(&choice.true_expr),
                false => match &choice.false_expr {
                    Some(other) => self.expression(other),
                    None => Ok(Value::Undefined),
                },
            },
            Expr::Filter(filter) => {
                let Some(input) = &filter.expr else {
                    return Err("a filter needs a value".into());
                };
                let value = self.expression(input)?;
                let arguments = self.arguments(&filter.args)?;
                self.filter(filter.name, value, arguments)
            }
            Expr::Test(test) => {
                let value = self.expression(&test.expr)?;
                let arguments = self.arguments(&test.args)?;
                self.holds(test.name, &value, arguments).map(Value::Bool)
            }
            Expr::GetAttr(attribute) => {
                let value = self.expression(&attribute.expr)?;
                operators::attribute(&value, attribute.name)
            }
            Expr::GetItem(item) => {
                let value = self.expression(&item.expr)?;
                let key = self.expression(&item.subscript_expr)?;
                self.read(&value)?;
                operators::item(&value, &key)
            }
            Expr::Call(call) => self.call(call, None),
            Expr::List(list) => {
                let items = list.items.iter().map(|item| self.expression(item));
                items.collect::<Result<Vec<_>>>().map(Value::list)
            }
            Expr::Map(map) => {
                let mut entries = Map::default();
                for (key, value) in map.keys.iter().zip(&map.values) {
                    let key = self.expression(key)?.display();
                    entries.set(key, self.expression(value)?);
                }
                Ok(Value::map(entries))
            }
        }
    }

    /// A long sum leans to the left in the tree: its terms are listed first, so that its length is no depth.
    fn operation(&mut self, operation: &'t BinOp<'t>) -> Result<Value> {
        let mut rest = vec![operation];
        while let Some(Expr::BinOp(left)) = rest.last().map(|last| &last.left) {
            rest.push(left);
        }
        let mut value = match rest.last() {
            Some(first) => self.expression(&first.left)?,
            None => return Ok(Value::Undefined),
        };
        for operation in rest.into_iter().rev() {
            self.step(0)?;
            value = match operation.op {
                BinOpKind::ScAnd if !value.is_true() => value,
                BinOpKind::ScOr if value.is_true() => value,
                BinOpKind::ScAnd | BinOpKind::ScOr => self.expression(&operation.right)?,
                _ => {
                    let right = self.expression(&operation.right)?;
                    self.read(&right)?;
                    self.combined(operation.op, &value, &right)?
                }
            };
        }
        Ok(value)
    }

    fn combined(&mut self, operator: BinOpKind, left: &Value, right: &Value) -> Result<Value> {
        match (operator, left, right) {
            (BinOpKind::Concat, ..) => self.joined(&left.display(), &right.display()),
            (BinOpKind::Add, Value::Text(left), Value::Text(right)) => self.joined(left, right),
            (BinOpKind::Add, Value::List(left), Value::List(right)) => {
                self.step((left.len() + right.len()) as u64)?;
                Ok(Value::list([&left[..], &right[..]].concat()))
            }
            (BinOpKind::Mul, Value::Text(text), times) | (BinOpKind::Mul, times, Value::Text(text)) => {
                let wrong = || "a string can be multiplied by a whole number only".to_owned();
                let times = usize::try_from(times.as_int().ok_or_else(wrong)?.max(0));
                let times = times.unwrap_or(usize::MAX);
                self.pay(0, text.len().saturating_mul(times))?;
                self.step(times.min(u64::MAX as usize / 2) as u64)?;
                let mut out = Text::default();
                (0..times).for_each(|_| out.push(text));
                Ok(Value::text(out))
            }
            _ => operators::calculated(operator, left, right),
        }
    }

    fn joined(&mut self, left: &Text, right: &Text) -> Result<Value> {
        self.pay(0, left.len() + right.len())?;
        let mut text = left.clone();
        text.push(right);
        Ok(Value::text(text))
    }

    fn slice(&mut self, slice: &'t Slice<'t>) -> Result<Value> {
        let value = self.expression(&slice.expr)?;
        self.read(&value)?;
        let mut bounds = [None; 3];
        for (bound, given) in bounds.iter_mut().zip([&slice.start, &slice.stop, &slice.step]) {
            let Some(given) = given else {
                continue;
            };
            *bound = match self.expression(given)? {
                Value::None => None,
                value => Some(
                    value
                        .as_int()
                        .ok_or("the bounds of a slice have to be whole numbers")?,
                ),
            };
        }
        operators::slice(&value, bounds)
    }

    /// Returns the values of the arguments of a call.
    pub(super) fn arguments(&mut self, given: &'t [CallArg<'t>]) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        for argument in given {
            match argument {
                CallArg::Pos(value) => arguments.placed.push(self.expression(value)?),
                CallArg::Kwarg(name, value) => {
                    let value = self.expression(value)?;
                    arguments.named.push(((*name).to_owned(), value));
                }
                CallArg::PosSplat(values) => {
                    let values = self.expression(values)?.items();
                    arguments
                        .placed
                        .extend(values.ok_or("only a list can be unpacked")?.iter().cloned());
                }
                CallArg::KwargSplat(values) => {
                    let Value::Map(map) = self.expression(values)? else {
                        return Err("only a mapping can be unpacked".into());
                    };
                    let named = map
                        .entries()
                        .iter()
                        .map(|(key, value)| (key.as_str().to_owned(), value.clone()));
                    arguments.named.extend(named);
                }
            }
        }
        Ok(arguments)
    }

    /// Calls a function, a macro or a method; `caller` is the block that is given to it.
    pub(super) fn call(&mut self, call: &'t Call<'t>, caller: Option<Value>) -> Result<Value> {
        match call.identify_call() {
            CallType::Function(name) => {
                let arguments = self.arguments(&call.args)?;
                match self.variable(name) {
                    Value::Macro(index) => self.call_macro(index, arguments, caller),
                    Value::Function(name) => self.function(name, arguments),
                    Value::Undefined => Err(format!("there is no function `{name}`").into()),
                    other => Err(format!("{} cannot be called", other.kind()).into()),
                }
            }
            CallType::Method(object, name) => {
                let object = self.expression(object)?;
                let arguments = self.arguments(&call.args)?;
                if let Value::Namespace(map) = &object
                    && let Some(Value::Macro(index)) = map.borrow().get(name).cloned()
                {
                    return self.call_macro(index, arguments, caller);
                }
                self.read(&object)?;
                self.method(&object, name, arguments)
            }
            CallType::Object(object) => match self.expression(object)? {
                Value::Macro(index) => {
                    let arguments = self.arguments(&call.args)?;
                    self.call_macro(index, arguments, caller)
                }
                other => Err(format!("{} cannot be called", other.kind()).into()),
            },
            CallType::Block(_) => Err("a chat template cannot use other templates".into()),
        }
    }

    fn call_macro(&mut self, index: usize, mut given: Arguments, caller: Option<Value>) -> Result<Value> {
        let Some(&called) = self.macros.get(index) else {
            return Ok(Value::Undefined);
        };
        let base = std::mem::replace(&mut self.base, self.scopes.len());
        self.scopes.push(Scope::new());
        let result = self.bind_parameters(called, &mut given, caller).and_then(|()| {
            given.finish()?;
            self.captured(&called.body)
        });
        self.scopes.truncate(self.base);
        self.base = base;
        result
    }

    fn bind_parameters(
        &mut self,
        called: &'t minijinja::machinery::ast::Macro<'t>,
        given: &mut Arguments,
        caller: Option<Value>,
    ) -> Result<()> {
        let without_default = called.args.len().saturating_sub(called.defaults.len());
        for (place, parameter) in called.args.iter().enumerate() {
            let Expr::Var(parameter) = parameter else {
                return Err("a macro has an unnamed parameter".into());
            };
            let value = match given.take(parameter.id) {
                Some(value) => value,
                None => match place
                    .checked_sub(without_default)
                    .and_then(|at| called.defaults.get(at))
                {
                    Some(default) => self.expression(default)?,
                    None => Value::Undefined,
                },
            };
            self.set(parameter.id, value);
        }
        if let Some(caller) = caller {
            self.set("caller", caller);
        }
        Ok(())
    }
}

/// Converts a constant of the template.
fn constant_of(value: &minijinja::Value) -> Result<Value> {
    Ok(match value.kind() {
        ValueKind::Undefined => Value::Undefined,
        ValueKind::None => Value::None,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => match i128::try_from(value.clone()) {
            Ok(whole) if value.is_integer() => Value::Int(whole),
            _ => Value::Float(f64::try_from(value.clone()).map_err(|error| error.to_string())?),
        },
        ValueKind::String => Value::of_template(value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            let items = value.try_iter().map_err(|error| error.to_string())?;
            let items = items.map(|item| constant_of(&item));
            Value::list(items.collect::<Result<_>>()?)
        }
        kind => return Err(format!("a constant of the kind {kind} is not supported").into()),
    })
}
