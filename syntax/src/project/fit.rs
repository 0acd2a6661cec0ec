//! From normal forms to forms that a target takes: the driver, and unions.
//!
//! Each goal becomes a form, and goals with arrays or objects become definitions, so that this is a loop over
//! a list like every pass of the compiler. What the profile does not take is written in another way if one
//! means the same, recoded if a recoding can be restored, and lost otherwise, to the side that the caller
//! wants.

mod array;
mod number;
mod object;
mod string;

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use lexiform_automata::limits::{Account, Cancel};

use crate::schema::{GoalId, Keyword, NodeId, Normal, NormalForms, Way, escape_segment};

use super::form::{Definition, DefinitionId, Form, FormId, Forms, Notes};
use super::loss::{Effect, Loss, Recoding, Toward};
use super::profile::Profile;

/// The result of fitting a schema to a profile.
pub(super) struct Fitted {
    pub(super) forms: Forms,
    pub(super) losses: Vec<Loss>,
    pub(super) recodings: Vec<Recoding>,
}

/// Fits normal forms to a profile. `source` is the text of the schema as JSON, for titles and descriptions.
/// If it is cancelled, the result is not used.
pub(super) fn fit(
    normal: &NormalForms,
    source: &Value,
    profile: &Profile,
    toward: Toward,
    cancel: &Cancel,
) -> Fitted {
    let forms = Forms {
        list: Vec::new(),
        notes: Vec::new(),
        definitions: Vec::new(),
        root: FormId(0),
        is_wrapped: false,
    };
    let mut fitting = Fitting {
        normal,
        source,
        profile,
        toward,
        cancel,
        held: cancel.account(),
        forms,
        known: HashMap::new(),
        numbers: HashMap::new(),
        open: Vec::new(),
        goals: Vec::new(),
        losses: Vec::new(),
        recodings: Vec::new(),
    };
    fitting.forms.root = fitting.goal(normal.root);
    while let Some((definition, goal)) = fitting.open.pop() {
        if cancel.is_asked() {
            break;
        }
        let form = fitting.body(goal);
        fitting.forms.definitions[definition.index()].form = form;
    }
    fitting.losses.sort();
    fitting.losses.dedup();
    fitting.recodings.sort();
    fitting.recodings.dedup();
    Fitted {
        forms: fitting.forms,
        losses: fitting.losses,
        recodings: fitting.recodings,
    }
}

/// How a part is recoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recoded {
    /// In another shape.
    Shape,
    /// As JSON text.
    Text,
}

/// What a definition is made of: a schema of the source, or any other goal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Meant {
    Node(NodeId),
    Goal(GoalId),
}

struct Fitting<'a> {
    normal: &'a NormalForms,
    source: &'a Value,
    profile: &'a Profile,
    toward: Toward,
    cancel: &'a Cancel,
    /// The bytes of the definitions, losses and recodings: pointers may be as long as the source.
    held: Account,
    forms: Forms,
    known: HashMap<Meant, DefinitionId>,
    /// The last number of each name of a definition, 0 for a name without one.
    numbers: HashMap<String, usize>,
    open: Vec<(DefinitionId, GoalId)>,
    /// The goal of each definition.
    goals: Vec<GoalId>,
    losses: Vec<Loss>,
    recodings: Vec<Recoding>,
}

impl Fitting<'_> {
    /// Returns the form of a goal: scalars in place, others as a definition.
    fn goal(&mut self, goal: GoalId) -> FormId {
        let normal = Rc::clone(&self.normal.normals[goal.index()]);
        if !self.normal.is_live(goal) {
            return self.add(Form::Never, goal);
        }
        if self.is_anything(&normal) {
            return self.anything(goal);
        }
        if normal.arrays.is_empty() && normal.objects.is_empty() {
            return self.body(goal);
        }
        let meant = self.meant(goal);
        let definition = match self.known.get(&meant) {
            Some(&known) => known,
            None => self.define(meant, goal),
        };
        let notes = self.notes(goal);
        self.forms.add(Form::Definition(definition), notes)
    }

    fn define(&mut self, meant: Meant, goal: GoalId) -> DefinitionId {
        let id = DefinitionId(self.forms.definitions.len() as u32);
        let pointer = self.pointer(goal);
        let name = self.free_name(&pointer);
        self.held
            .grow(size_of::<Definition>() + pointer.len() + 2 * name.len());
        self.forms.definitions.push(Definition {
            name,
            pointer,
            form: FormId(0),
        });
        self.known.insert(meant, id);
        self.goals.push(goal);
        self.open.push((id, goal));
        id
    }

    /// Returns a name for a definition, which none has yet: the last segment of its pointer that is no
    /// keyword.
    fn free_name(&mut self, pointer: &str) -> String {
        let segment = pointer
            .rsplit('/')
            .find(|segment| !segment.is_empty() && !is_keyword(segment));
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '_'
            }
        };
        let name: String = segment.unwrap_or("root").chars().take(48).map(plain).collect();
        let mut numbered = name.clone();
        while self.numbers.contains_key(&numbered) {
            let number = self.numbers.entry(name.clone()).or_default();
            *number = (*number).max(1) + 1;
            numbered = format!("{name}_{number}");
        }
        self.numbers.insert(numbered.clone(), 0);
        numbered
    }

    /// Returns the schema that a goal consists of, through references, or the goal.
    fn meant(&self, goal: GoalId) -> Meant {
        let [literal] = self.normal.goals.literals(goal)[..] else {
            return Meant::Goal(goal);
        };
        if !literal.sign {
            return Meant::Goal(goal);
        }
        Meant::Node(self.target(literal.node))
    }

    /// Follows the references of schemas that consist of one, alone or in an `allOf`.
    fn target(&self, mut node: NodeId) -> NodeId {
        let tree = &self.normal.tree;
        // References form no circle without a keyword between them.
        loop {
            node = match &tree.node(node).keywords[..] {
                [(_, Keyword::Ref(reference))] => tree.target(*reference),
                [(_, Keyword::AllOf(list))] if list.len() == 1 => list[0],
                _ => return node,
            };
        }
    }

    /// Returns the form of all values of a goal.
    fn body(&mut self, goal: GoalId) -> FormId {
        let normal = Rc::clone(&self.normal.normals[goal.index()]);
        let mut constants = Vec::new();
        let mut ways = Vec::new();
        if normal.null {
            constants.push(Value::Null);
        }
        constants.extend(
            [(normal.no, false), (normal.yes, true)]
                .iter()
                .filter(|(there, _)| *there)
                .map(|(_, value)| Value::Bool(*value)),
        );
        ways.extend(normal.numbers.iter().filter_map(|shape| self.number(shape, goal)));
        ways.extend(self.strings(&normal, goal));
        for array in &normal.arrays {
            ways.extend(self.array(array, goal));
        }
        for object in &normal.objects {
            ways.extend(self.object(object, goal));
        }
        let notes = self.notes(goal);
        self.union(constants, ways, notes, goal)
    }

    /// Returns the union of constants and forms.
    fn union(&mut self, mut constants: Vec<Value>, ways: Vec<Form>, notes: Notes, goal: GoalId) -> FormId {
        let mut others = Vec::new();
        for way in ways {
            match way {
                Form::Constants(more) => constants.extend(more),
                Form::Never => {}
                other if !others.contains(&other) => others.push(other),
                _ => {}
            }
        }
        others.splice(0..0, self.constants(constants, goal));
        match others.len() {
            0 => self.forms.add(Form::Never, notes),
            1 => {
                let only = others.remove(0);
                self.forms.add(only, notes)
            }
            _ => {
                let parts = others
                    .into_iter()
                    .map(|form| self.forms.add(form, Notes::default()));
                let parts = parts.collect();
                self.forms.add(Form::Union(parts), notes)
            }
        }
    }

    /// Returns forms of constants, each of one kind, except that all of them stay together if the profile
    /// takes them so.
    fn constants(&mut self, constants: Vec<Value>, goal: GoalId) -> Vec<Form> {
        let kinds = self.profile.constants.kinds.clone();
        let mut groups: Vec<(u8, Vec<Value>)> = Vec::new();
        for constant in constants {
            let group = match &constant {
                Value::Null => 0,
                Value::Bool(_) => 1,
                Value::Number(_) => 2,
                _ => 3,
            };
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, list)) => list.push(constant),
                None => groups.push((group, vec![constant])),
            }
        }
        let mut forms = Vec::new();
        for (group, list) in groups {
            let is_type = group == 0 || group == 1 && list.len() == 2;
            let is_taken = |value: &Value| kinds.contains(&super::profile::ConstantKind::of(value));
            match is_type || list.iter().all(is_taken) {
                true => forms.push(Form::Constants(list)),
                // Only booleans are left: both are the type.
                false if self.lose(goal, &["const", "enum"], "this target has no boolean constants") => {
                    forms.push(Form::Constants(vec![Value::Bool(false), Value::Bool(true)]));
                }
                false => {}
            }
        }
        forms
    }

    /// Returns the form of any value.
    fn anything(&mut self, goal: GoalId) -> FormId {
        match self.profile.any {
            true => self.add(Form::Any, goal),
            false => {
                self.recode(
                    goal,
                    Recoded::Text,
                    "any value is written as a string that holds its JSON text",
                );
                let text = self.any_text();
                self.forms.notes[text.index()] = self.notes(goal);
                text
            }
        }
    }

    fn any_text(&mut self) -> FormId {
        let inner = self.forms.add(Form::Any, Notes::default());
        self.forms.add(Form::JsonText(inner), Notes::default())
    }

    /// Returns the form of a part with several ways: the ways that are not within another one.
    fn ways(&mut self, ways: &[Way], goal: GoalId) -> FormId {
        let literals = |way: &Way| Rc::clone(self.normal.goals.literals(way.goal));
        let is_within = |inner: &Way, outer: &Way| {
            let (inner_literals, outer_literals) = (literals(inner), literals(outer));
            inner.goal != outer.goal
                && outer_literals
                    .iter()
                    .all(|literal| inner_literals.contains(literal))
        };
        let mut goals: Vec<GoalId> = Vec::new();
        for way in ways {
            if !ways.iter().any(|other| is_within(way, other)) && !goals.contains(&way.goal) {
                goals.push(way.goal);
            }
        }
        match goals[..] {
            [] => self.forms.add(Form::Never, Notes::default()),
            [only] => self.goal(only),
            _ => {
                let parts: Vec<FormId> = goals.into_iter().map(|goal| self.goal(goal)).collect();
                self.add(Form::Union(parts), goal)
            }
        }
    }

    fn add(&mut self, form: Form, goal: GoalId) -> FormId {
        let notes = self.notes(goal);
        self.forms.add(form, notes)
    }

    /// Returns `true` if a normal form allows every value.
    fn is_anything(&self, normal: &Normal) -> bool {
        let is_plain = normal.null && normal.no && normal.yes;
        let numbers = matches!(&normal.numbers[..], [shape] if *shape == Default::default());
        let strings = matches!(&normal.strings[..], [shape] if shape.is_any());
        let arrays = matches!(&normal.arrays[..], [array] if self.is_any_array(array));
        let objects = matches!(&normal.objects[..], [object] if self.is_any_object(object));
        is_plain && numbers && strings && arrays && objects
    }

    fn is_any_goal(&self, goal: GoalId) -> bool {
        self.normal.goals.literals(goal).is_empty() || {
            let literals = self.normal.goals.literals(goal);
            literals.iter().all(|literal| {
                literal.sign
                    && self
                        .normal
                        .tree
                        .node(self.target(literal.node))
                        .keywords
                        .is_empty()
            })
        }
    }

    /// Returns what people wrote about a goal: where it stands, or where the reference there leads.
    fn notes(&self, goal: GoalId) -> Notes {
        let mut notes = Notes::default();
        let Some(literal) = self
            .normal
            .goals
            .literals(goal)
            .first()
            .filter(|literal| literal.sign)
        else {
            return notes;
        };
        for node in [literal.node, self.target(literal.node)] {
            let at = self.source.pointer(&self.normal.tree.pointer(node));
            let text = |name: &str| Some(at?.get(name)?.as_str()?.to_owned());
            notes.title = notes.title.or_else(|| text("title"));
            notes.description = notes.description.or_else(|| text("description"));
        }
        notes
    }

    /// Returns the JSON pointer of a goal.
    fn pointer(&self, goal: GoalId) -> String {
        let literals = self.normal.goals.literals(goal);
        match literals.first() {
            Some(literal) => self.normal.tree.pointer(self.target(literal.node)),
            None => String::new(),
        }
    }

    /// Returns the JSON pointer of one of these keywords at a goal, or of the goal if it has none of them.
    fn place(&self, goal: GoalId, keywords: &[&str]) -> String {
        let tree = &self.normal.tree;
        let literals = self.normal.goals.literals(goal);
        let mut nodes: Vec<NodeId> = literals.iter().map(|literal| literal.node).collect();
        let mut next = 0;
        while let Some(&node) = nodes.get(next) {
            let mut names = tree.node(node).keywords.iter().map(|(name, _)| *name);
            if let Some(name) = names.find(|name| keywords.contains(name)) {
                return tree.keyword_pointer(node, &escape_segment(name));
            }
            for further in tree.beside(node) {
                if nodes.len() < MOST_SEARCHED && !nodes.contains(&further) {
                    nodes.push(further);
                }
            }
            next += 1;
        }
        self.pointer(goal)
    }

    /// Notes a constraint that the target cannot have. Returns `true` if it is left out, and `false` if what
    /// it is about is.
    fn lose(&mut self, goal: GoalId, keywords: &[&str], message: &str) -> bool {
        let effect = match self.toward {
            Toward::Wider => Effect::Wider,
            Toward::Narrower => Effect::Narrower,
        };
        self.note_loss(Loss {
            pointer: self.place(goal, keywords),
            effect,
            message: message.to_owned(),
            is_absence: false,
        });
        effect == Effect::Wider
    }

    fn note_loss(&mut self, loss: Loss) {
        let is_known = self.losses.last() == Some(&loss);
        if !is_known
            && self
                .held
                .grow(size_of::<Loss>() + loss.pointer.len() + loss.message.len())
        {
            self.losses.push(loss);
        }
    }

    /// Returns `true` if the target takes counts of this size.
    fn takes_counts(&self, min: u64, max: Option<u64>) -> bool {
        let most = self.profile.limits.counts.unwrap_or(u64::MAX);
        min <= most && max.is_none_or(|max| max <= most)
    }

    fn recode(&mut self, goal: GoalId, as_what: Recoded, message: &str) {
        let recoding = Recoding {
            pointer: self.pointer(goal),
            message: message.to_owned(),
            is_text: as_what == Recoded::Text,
        };
        let bytes = size_of::<Recoding>() + recoding.pointer.len() + message.len();
        if self.recodings.last() != Some(&recoding) && self.held.grow(bytes) {
            self.recodings.push(recoding);
        }
    }
}

/// The most schemas that are searched for a keyword.
const MOST_SEARCHED: usize = 64;

/// Returns `true` for segments of pointers that do not name what is there.
fn is_keyword(segment: &str) -> bool {
    let is_number = segment.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        || matches!(
            segment,
            "properties"
                | "items"
                | "prefixItems"
                | "anyOf"
                | "oneOf"
                | "allOf"
                | "$defs"
                | "definitions"
                | "additionalProperties"
                | "then"
                | "else"
                | "not"
        )
}
