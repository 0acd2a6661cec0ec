//! Prints the normal form of a schema as text, for people and for tests.
//!
//! ```text
//!   1 #
//!     object
//!       required "id": integer from 1
//!       optional "tags": 2
//!       other keys: any value
//!   2 #/properties/tags
//!     array of 0 to 5: any number of string
//! ```
//!
//! Forms that contain arrays or objects are numbered in the order in which the root reaches them; others are
//! written where they are used. The text is the same for the same schema and version.

use std::fmt::Write;

use foldhash::{HashMap, HashMapExt};

use crate::schema::forms::{Array, Bound, GoalId, NormalForms, NumberShape, Object, StringShape, Way};
use crate::schema::normal::normalise;
use crate::schema::options::Options;
use crate::schema::resolve::read;
use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::Demand;
use lexiform_automata::limits::Limits;

/// Returns the normal form of a schema, as text.
///
/// # Errors
/// Returns an error if the schema cannot be brought into normal form; see [`lower`](crate::schema::lower).
pub fn normal_form(text: &str, options: &Options, limits: &Limits) -> Result<String, CompileError> {
    let limits = &*limits.begin();
    let (parsed, _) = limits.cancel.unless(read(text, options, limits))?;
    let forms = limits.cancel.unless(normalise(parsed, options, limits))?;
    let mut shown = Shown {
        forms: &forms,
        numbers: HashMap::new(),
        order: Vec::new(),
        out: String::new(),
    };
    shown.number(forms.root);
    let mut next = 0;
    while let Some(&goal) = shown.order.get(next) {
        shown.form(goal, next + 1);
        next += 1;
    }
    Ok(shown.out)
}

struct Shown<'f> {
    forms: &'f NormalForms,
    numbers: HashMap<GoalId, usize>,
    order: Vec<GoalId>,
    out: String,
}

impl Shown<'_> {
    fn number(&mut self, goal: GoalId) -> usize {
        if let Some(&known) = self.numbers.get(&goal) {
            return known;
        }
        self.order.push(goal);
        self.numbers.insert(goal, self.order.len());
        self.order.len()
    }

    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{:1$}{text}", "", depth * 2);
    }

    fn form(&mut self, goal: GoalId, number: usize) {
        let name = self.forms.goal_name(goal);
        self.line(0, &format!("{number} {name}"));
        let normal = self.forms.normals[goal.index()].clone();
        if !self.forms.is_live(goal) {
            self.line(1, "nothing");
        }
        for scalar in self.scalars(goal) {
            self.line(1, &scalar);
        }
        for array in &normal.arrays {
            self.array(array);
        }
        for object in &normal.objects {
            self.object(object);
        }
    }

    fn scalars(&self, goal: GoalId) -> Vec<String> {
        let normal = &self.forms.normals[goal.index()];
        let constants = [(normal.null, "null"), (normal.no, "false"), (normal.yes, "true")];
        let there = constants.iter().filter(|(there, _)| *there);
        let mut lines: Vec<String> = there.map(|(_, name)| (*name).to_owned()).collect();
        lines.extend(normal.numbers.iter().map(number));
        lines.extend(normal.strings.iter().map(|shape| self.string("string", shape)));
        lines
    }

    /// Returns the text of a part: any value, scalars in place, or the number of a form.
    fn part(&mut self, goal: GoalId) -> String {
        if self.forms.goals.literals(goal).is_empty() {
            return "any value".to_owned();
        }
        let normal = &self.forms.normals[goal.index()];
        if !normal.arrays.is_empty() || !normal.objects.is_empty() {
            return self.number(goal).to_string();
        }
        let scalars = self.scalars(goal);
        match scalars.is_empty() {
            true => "nothing".to_owned(),
            false => scalars.join(" | "),
        }
    }

    fn ways(&mut self, ways: &[Way]) -> String {
        let mut parts = Vec::new();
        for way in ways {
            let part = self.part(way.goal);
            let bits = (0..u32::BITS).filter(|bit| way.meets >> bit & 1 == 1);
            let met: String = bits.map(|bit| format!(" (meets {})", bit + 1)).collect();
            parts.push(format!("{part}{met}"));
        }
        match parts.is_empty() {
            true => "nothing".to_owned(),
            false => parts.join(" | "),
        }
    }

    fn array(&mut self, array: &Array) {
        self.line(1, &format!("array of {}", range(array.min, array.max)));
        for place in &array.prefix {
            let ways = self.ways(place);
            self.line(2, &format!("then {ways}"));
        }
        for &goal in &array.distinct {
            let part = self.part(goal);
            self.line(2, &format!("at most once {part}"));
        }
        if array.distinct.is_empty() {
            let ways = self.ways(&array.additional);
            self.line(2, &format!("any number of {ways}"));
        }
        if array.unique.is_some() {
            self.line(2, "no two items equal");
        }
        for (bit, Demand { min, max }) in array.demands.iter().enumerate() {
            self.line(2, &format!("{} items meet {}", range(*min, *max), bit + 1));
        }
    }

    fn object(&mut self, object: &Object) {
        let counted = object.min > 0 || object.max.is_some();
        let count = if counted {
            format!(" of {} keys", range(object.min, object.max))
        } else {
            String::new()
        };
        self.line(1, &format!("object{count}"));
        for property in &object.properties {
            let ways = self.ways(&property.ways);
            let needed = if property.required { "required" } else { "optional" };
            let name = serde_json::Value::from(&*property.name);
            self.line(2, &format!("{needed} {name}: {ways}"));
        }
        for class in &object.additional {
            let ways = self.ways(&class.ways);
            let keys = self.string("other keys", &class.key);
            self.line(2, &format!("{keys}: {ways}"));
        }
        for bit in 0..object.demands {
            self.line(2, &format!("some key meets {}", bit + 1));
        }
    }

    fn string(&self, what: &str, shape: &StringShape) -> String {
        let quoted = |value: &std::rc::Rc<str>| serde_json::Value::from(&**value).to_string();
        if let Some(only) = &shape.only {
            return only.iter().map(quoted).collect::<Vec<_>>().join(" | ");
        }
        let mut text = what.to_owned();
        if shape.min > 0 || shape.max.is_some() {
            let _ = write!(text, " of {} characters", range(shape.min, shape.max));
        }
        for &(id, sign) in &shape.texts {
            let verb = if sign { "in" } else { "not in" };
            let _ = write!(text, " {verb} {}", self.forms.texts.name(id));
        }
        if !shape.except.is_empty() {
            let _ = write!(
                text,
                " but not {}",
                shape.except.iter().map(quoted).collect::<Vec<_>>().join(", ")
            );
        }
        text
    }
}

fn range(min: u64, max: Option<u64>) -> String {
    match max {
        Some(max) if max == min => min.to_string(),
        Some(max) => format!("{min} to {max}"),
        None => format!("{min} or more"),
    }
}

fn number(shape: &NumberShape) -> String {
    if let Some(only) = &shape.only {
        return only
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" | ");
    }
    let whole = shape.plain == Some(true) || shape.step.as_ref().is_some_and(|step| step.to_string() == "1");
    let mut text = if whole { "integer" } else { "number" }.to_owned();
    let mut bound = |bound: &Option<Bound>, at: &str, beyond: &str| {
        if let Some(Bound { value, exclusive }) = bound {
            let _ = write!(text, " {} {value}", if *exclusive { beyond } else { at });
        }
    };
    bound(&shape.lower, "from", "above");
    bound(&shape.upper, "to", "below");
    if let Some(step) = shape.step.as_ref().filter(|step| step.to_string() != "1") {
        let _ = write!(text, " in steps of {step}");
    }
    for step in &shape.not_steps {
        let _ = write!(text, " not in steps of {step}");
    }
    for value in &shape.except {
        let _ = write!(text, " not {value}");
    }
    if shape.plain == Some(false) {
        text.push_str(" with a point or an exponent");
    }
    text
}
