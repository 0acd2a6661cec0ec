//! Forms: a schema without its combinators, as it is written for a target.
//!
//! ```text
//!   schema ─normal forms─► fit ─► forms ─┬─ write ──► the schema of the target
//!                          (profile)     ├─ write ──► what it means, as a schema of its own
//!                                        └─ restore ► from an answer of the target to a value
//! ```
//!
//! Every form describes values of one kind, or is a union of such forms. A few forms say that a value is
//! *recoded*: written in another shape because the target has no schema for its own, and restored afterwards.

use serde_json::{Number as JsonNumber, Value};

use crate::schema::Decimal;

/// The index of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FormId(pub(super) u32);

impl FormId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The index of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct DefinitionId(pub(super) u32);

impl DefinitionId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of values, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// No value.
    Never,
    /// Any value.
    Any,
    Constants(Vec<Value>),
    Number(Number),
    String(Text),
    Array(Items),
    Object(Keys),
    Union(Vec<FormId>),
    Definition(DefinitionId),
    /// Recoded: a string that holds the JSON text of a value of this form.
    JsonText(FormId),
}

/// A set of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Number {
    pub(super) is_integer: bool,
    pub(super) lower: Option<End>,
    pub(super) upper: Option<End>,
    pub(super) step: Option<Decimal>,
    pub(super) not_steps: Vec<Decimal>,
    pub(super) except: Vec<Value>,
}

/// An end of an interval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) value: Decimal,
    pub(super) is_exclusive: bool,
}

/// A set of strings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Text {
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    /// The pattern that says the lengths where the target does not take them as such.
    pub(super) lengths: Option<String>,
    pub(super) format: Option<String>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) except: Vec<Value>,
}

/// A pattern that strings match, or do not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    /// As the target reads it.
    pub(super) written: String,
    /// As JSON Schema reads it.
    pub(super) meant: String,
    pub(super) is_affirmed: bool,
}

/// A set of arrays.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Items {
    pub(super) prefix: Vec<FormId>,
    /// The items after the prefix; `None` if there are none.
    pub(super) rest: Option<FormId>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    pub(super) is_unique: bool,
}

/// A set of objects.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Keys {
    pub(super) fields: Vec<Field>,
    pub(super) rest: Rest,
    /// Recoded: the name of a field with the JSON text of an object, and the fields that this object may
    /// have, which belong to this one.
    pub(super) packed: Option<(String, Vec<Field>)>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// A property.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) form: FormId,
    pub(super) presence: Presence,
}

/// Whether a property is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
    /// Recoded: it is written as `null` where it is not there.
    NullIfAbsent,
    /// It is always there, since its values have null already, which stands for its absence, too.
    NullForBoth,
}

/// The keys that are no properties.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rest {
    Closed,
    /// Classes of keys, by pattern, and the values of all others.
    Open {
        classes: Vec<(String, FormId)>,
        others: Option<FormId>,
    },
    /// Recoded: a field holds them as a list of objects with `key` and `value`.
    Pairs {
        field: String,
        entries: FormId,
        /// The classes of keys, by pattern (`None` for any key), and their values.
        classes: Vec<(Option<String>, FormId)>,
    },
}

/// What people wrote about a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Notes {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
}

/// A form that others refer to by name.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    /// The JSON pointer of what it defines.
    pub(super) pointer: String,
    pub(super) form: FormId,
}

/// All forms of a schema.
#[derive(Clone, Debug)]
pub(super) struct Forms {
    pub(super) list: Vec<Form>,
    pub(super) notes: Vec<Notes>,
    pub(super) definitions: Vec<Definition>,
    pub(super) root: FormId,
    /// `true` if the root stands in a field `value` of an object, because the target takes nothing else.
    pub(super) is_wrapped: bool,
}

/// The name of the field that holds a root that is no object.
pub(super) const WRAPPED: &str = "value";

impl Forms {
    pub(super) fn get(&self, id: FormId) -> &Form {
        &self.list[id.index()]
    }

    pub(super) fn add(&mut self, form: Form, notes: Notes) -> FormId {
        let id = FormId(self.list.len() as u32);
        self.list.push(form);
        self.notes.push(notes);
        id
    }

    /// Returns the form that a form stands for, through definitions.
    pub(super) fn resolved(&self, mut id: FormId) -> FormId {
        // Definitions of definitions form no circle, since a schema that only refers to itself is refused.
        for _ in 0..self.definitions.len() {
            match self.get(id) {
                Form::Definition(definition) => id = self.definitions[definition.index()].form,
                _ => break,
            }
        }
        id
    }

    /// Writes a form as JSON text from now on.
    pub(super) fn recode_as_text(&mut self, id: FormId) {
        let form = self.list[id.index()].clone();
        if !matches!(form, Form::JsonText(_)) {
            let inner = self.add(form, Notes::default());
            self.list[id.index()] = Form::JsonText(inner);
        }
    }

    /// Returns the forms that are written inside of a form. What is written as JSON text has none.
    pub(super) fn parts(&self, id: FormId) -> Vec<FormId> {
        match self.get(id) {
            Form::Array(items) => items.prefix.iter().copied().chain(items.rest).collect(),
            Form::Object(keys) => keys.parts().collect(),
            Form::Union(forms) => forms.clone(),
            Form::Definition(definition) => vec![self.definitions[definition.index()].form],
            _ => Vec::new(),
        }
    }

    /// Returns the forms inside of what is recoded, which only the restored value has.
    pub(super) fn hidden_parts(&self, id: FormId) -> Vec<FormId> {
        match self.get(id) {
            Form::JsonText(inner) => vec![*inner],
            Form::Object(keys) => {
                let packed = keys
                    .packed
                    .iter()
                    .flat_map(|(_, fields)| fields)
                    .map(|field| field.form);
                let classes = match &keys.rest {
                    Rest::Pairs { classes, .. } => classes.iter().map(|(_, form)| *form).collect(),
                    _ => Vec::new(),
                };
                packed.chain(classes).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the forms that are written, the root first, each once.
    pub(super) fn written(&self) -> Vec<FormId> {
        let mut seen = vec![false; self.list.len()];
        let mut order = vec![self.root];
        seen[self.root.index()] = true;
        let mut next = 0;
        while let Some(&id) = order.get(next) {
            for part in self.parts(id) {
                if !std::mem::replace(&mut seen[part.index()], true) {
                    order.push(part);
                }
            }
            next += 1;
        }
        order
    }
}

impl Keys {
    /// Returns the forms of what is written: the fields, and the other keys.
    pub(super) fn parts(&self) -> impl Iterator<Item = FormId> {
        let fields = self.fields.iter().map(|field| field.form);
        let rest: Vec<FormId> = match &self.rest {
            Rest::Closed => Vec::new(),
            Rest::Open { classes, others } => classes.iter().map(|(_, form)| *form).chain(*others).collect(),
            Rest::Pairs { entries, .. } => vec![*entries],
        };
        fields.chain(rest)
    }

    /// Returns a name for a further field, which none has yet.
    pub(super) fn free_name(&self, wish: &str) -> String {
        let is_taken = |name: &str| self.fields.iter().any(|field| field.name == name);
        let mut name = wish.to_owned();
        while is_taken(&name) {
            name.push('_');
        }
        name
    }
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// What the target gets.
    Target,
    /// The values that its answers are restored to.
    Restored,
}

/// Returns a number as JSON, with all its digits.
pub(super) fn number_value(number: &Decimal) -> Value {
    let text = number.to_string();
    serde_json::from_str::<JsonNumber>(&text).map_or_else(|_| Value::from(text), Value::Number)
}
