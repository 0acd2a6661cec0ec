//! Makes forms small enough for a target that limits the size of schemas.
//!
//! The schema is written and measured, and what exceeds a limit is written in less space: what lies too deep,
//! or is one union too many, as JSON text; properties that may be absent, from the last one, as one JSON text
//! of an object; the longest list of constants as its type. This is repeated until all limits hold.

use serde_json::Value;

use lexiform_automata::limits::Limits;

use super::form::{Field, Form, FormId, Forms, Keys, Number, Presence, Reading, Text};
use super::loss::{Effect, Loss, Recoding, Toward};
use super::profile::Profile;
use super::size::{Excess, Size};
use super::write::write;

/// The most rounds; each writes the schema once.
const MOST_ROUNDS: usize = 64;

/// What was done to make forms small enough.
#[derive(Default)]
pub(super) struct Shrunk {
    pub(super) losses: Vec<Loss>,
    pub(super) recodings: Vec<Recoding>,
}

/// Makes forms small enough, as far as that is possible. If it is cancelled, the result is not used.
pub(super) fn shrink(forms: &mut Forms, profile: &Profile, toward: Toward, limits: &Limits) -> Shrunk {
    let mut shrunk = Shrunk::default();
    for _ in 0..MOST_ROUNDS {
        let Some(schema) = write(forms, profile, Reading::Target, &limits.cancel) else {
            break;
        };
        let excess = Size::of(&schema).excess(&profile.limits);
        let Some(excess) = excess.or_else(|| too_long(&schema, limits)) else {
            break;
        };
        if !shrunk.apply(forms, excess, toward) {
            break;
        }
    }
    shrunk
}

impl Shrunk {
    /// Gets rid of some of an excess; returns `false` if nothing is left to be done.
    fn apply(&mut self, forms: &mut Forms, excess: Excess, toward: Toward) -> bool {
        match excess {
            Excess::Depth { limit } => {
                let deep = too_deep(forms, limit);
                deep.iter()
                    .for_each(|&id| self.as_text(forms, id, "lies deeper than the target takes"));
                !deep.is_empty()
            }
            Excess::Optional { by } | Excess::Properties { by } => {
                self.pack(forms, by) || self.largest(forms, |form| matches!(form, Form::Object(_)))
            }
            Excess::Unions { .. } => self.largest(forms, |form| matches!(form, Form::Union(_))),
            Excess::EnumValues { by } | Excess::NameCharacters { by } => {
                self.shorten(forms, by, toward) || self.largest(forms, |form| matches!(form, Form::Object(_)))
            }
            Excess::LargeEnum => self.shorten(forms, 1, toward),
            Excess::Bytes => self.largest_half(forms),
        }
    }

    fn as_text(&mut self, forms: &mut Forms, id: FormId, why: &str) {
        let pointer = pointer_of(forms, id);
        forms.recode_as_text(id);
        self.recodings.push(Recoding {
            pointer,
            message: format!("a part is written as a string that holds its JSON text, since it {why}"),
            is_text: true,
        });
    }

    /// Packs the last properties that may be absent of the object that has most of them.
    fn pack(&mut self, forms: &mut Forms, by: usize) -> bool {
        let optional = |keys: &Keys| {
            keys.fields
                .iter()
                .filter(|field| field.presence != Presence::Required)
                .count()
        };
        let objects = forms.written().into_iter().filter_map(|id| match forms.get(id) {
            Form::Object(keys) => Some((optional(keys), id)),
            _ => None,
        });
        let Some((count, id)) = objects.max().filter(|(count, _)| *count > 1) else {
            return false;
        };
        let pointer = pointer_of(forms, id);
        let Form::Object(keys) = &mut forms.list[id.index()] else {
            return false;
        };
        // The last ones: those before `first_packed`, counted among the optional ones, stay.
        let first_packed = count - by.min(count);
        let mut passed = 0;
        let (stay, packed): (Vec<Field>, Vec<Field>) = keys.fields.drain(..).partition(|field| {
            let is_optional = field.presence != Presence::Required;
            passed += usize::from(is_optional);
            !is_optional || passed <= first_packed
        });
        keys.fields = stay;
        let mut packed: Vec<Field> = packed
            .into_iter()
            .map(|field| Field {
                presence: Presence::Optional,
                ..field
            })
            .collect();
        let name = keys.free_name("other_properties");
        let (name, mut known) = keys.packed.take().unwrap_or((name, Vec::new()));
        packed.append(&mut known);
        keys.packed = Some((name, packed));
        self.recodings.push(Recoding {
            pointer,
            message: "the last properties are written as a string that holds the JSON text of an object with them, since there are \
                      more than the target takes"
                .to_owned(),
            is_text: true,
        });
        true
    }

    /// Writes the largest form of a kind as JSON text. The root stays, and what it stands for.
    fn largest(&mut self, forms: &mut Forms, is_wanted: impl Fn(&Form) -> bool) -> bool {
        let weights = weights(forms);
        self.largest_of(forms, &weights, usize::MAX, is_wanted)
    }

    /// Writes the largest object that has at most half of everything as JSON text.
    fn largest_half(&mut self, forms: &mut Forms) -> bool {
        let weights = weights(forms);
        let half = weights[forms.root.index()] / 2;
        self.largest_of(forms, &weights, half, |form| matches!(form, Form::Object(_)))
    }

    fn largest_of(
        &mut self,
        forms: &mut Forms,
        weights: &[usize],
        most: usize,
        is_wanted: impl Fn(&Form) -> bool,
    ) -> bool {
        let root = forms.resolved(forms.root);
        let candidates = forms
            .written()
            .into_iter()
            .filter(|&id| id != root && id != forms.root);
        let wanted = candidates.filter(|&id| is_wanted(forms.get(id)) && weights[id.index()] <= most);
        let Some(largest) = wanted.max_by_key(|&id| weights[id.index()]) else {
            return false;
        };
        self.as_text(forms, largest, "is larger than the target takes");
        true
    }

    /// Shortens the longest list of constants.
    fn shorten(&mut self, forms: &mut Forms, by: usize, toward: Toward) -> bool {
        let lists = forms.written().into_iter().filter_map(|id| match forms.get(id) {
            Form::Constants(values) if values.len() > 1 && !values[0].is_boolean() => {
                Some((values.len(), id))
            }
            _ => None,
        });
        let Some((_, id)) = lists.max() else {
            return false;
        };
        let pointer = pointer_of(forms, id);
        let Form::Constants(values) = &mut forms.list[id.index()] else {
            return false;
        };
        let (effect, message) = match toward {
            Toward::Narrower => {
                values.truncate(values.len().saturating_sub(by.max(values.len() / 2)).max(1));
                (
                    Effect::Narrower,
                    "the end of a list of values is left out, since it is longer than the target takes",
                )
            }
            Toward::Wider => {
                let form = match values.iter().all(Value::is_number) {
                    true => Form::Number(Number::default()),
                    false => Form::String(Text::default()),
                };
                forms.list[id.index()] = form;
                (
                    Effect::Wider,
                    "a list of values is not enforced, since it is longer than the target takes",
                )
            }
        };
        self.losses.push(Loss {
            pointer,
            effect,
            message: message.to_owned(),
            is_absence: false,
        });
        true
    }
}

/// Returns the excess of a schema that is longer than a source may be: nobody could read it. Definitions that
/// are written wherever they are used make such schemas.
fn too_long(schema: &Value, limits: &Limits) -> Option<Excess> {
    (schema.to_string().len() > limits.source_bytes).then_some(Excess::Bytes)
}

/// Returns the pointer of the definition that a form stands in.
fn pointer_of(forms: &Forms, id: FormId) -> String {
    let within = forms.definitions.iter().find(|definition| {
        let mut open = vec![definition.form];
        let mut seen = std::collections::HashSet::new();
        while let Some(next) = open.pop() {
            if next == id {
                return true;
            }
            if seen.insert(next) && !matches!(forms.get(next), Form::Definition(_)) {
                open.extend(forms.parts(next));
            }
        }
        false
    });
    within.map_or_else(String::new, |definition| definition.pointer.clone())
}

/// Returns how much is written for each form, with every definition written out but those in a circle.
fn weights(forms: &Forms) -> Vec<usize> {
    let mut weights: Vec<Option<usize>> = vec![None; forms.list.len()];
    let mut open = vec![(forms.root, false)];
    while let Some((id, are_parts_weighed)) = open.pop() {
        let parts = forms.parts(id);
        if are_parts_weighed {
            let own = match forms.get(id) {
                Form::Constants(values) => 1 + values.len(),
                _ => 1,
            };
            let parts = parts.iter().map(|part| weights[part.index()].unwrap_or(0));
            weights[id.index()] = Some(parts.fold(own, usize::saturating_add));
        } else if weights[id.index()].is_none() {
            weights[id.index()] = Some(0);
            open.push((id, true));
            open.extend(parts.into_iter().map(|part| (part, false)));
        }
    }
    weights.into_iter().map(Option::unwrap_or_default).collect()
}

/// The deepest nesting of forms that is looked into; what lies deeper counts as too deep.
const DEEPEST: usize = 200;

/// Returns the forms of objects that lie deeper than a limit, as they are referred to there.
fn too_deep(forms: &Forms, limit: usize) -> Vec<FormId> {
    let mut deep = Vec::new();
    let mut deepest = vec![0; forms.list.len()];
    let mut path = Vec::new();
    descend(
        forms,
        forms.root,
        1 + usize::from(forms.is_wrapped),
        limit,
        &mut deepest,
        &mut path,
        &mut deep,
    );
    deep.sort();
    deep.dedup();
    deep
}

/// Visits a form whose objects would be at a level. Forms that were visited at this level or deeper are not
/// visited again, so that this ends after `limit` visits of each.
fn descend(
    forms: &Forms,
    id: FormId,
    level: usize,
    limit: usize,
    deepest: &mut [usize],
    path: &mut Vec<FormId>,
    deep: &mut Vec<FormId>,
) {
    if deepest[id.index()] >= level || path.contains(&id) {
        return;
    }
    deepest[id.index()] = level;
    let is_object = matches!(forms.get(forms.resolved(id)), Form::Object(_));
    if is_object && level > limit || path.len() > DEEPEST {
        deep.push(id);
        return;
    }
    path.push(id);
    let below = level + usize::from(matches!(forms.get(id), Form::Object(_)));
    for part in forms.parts(id) {
        descend(forms, part, below, limit, deepest, path, deep);
    }
    path.pop();
}
