//! Objects: properties that may be absent, and keys without a name.

use serde_json::Value;

use crate::project::form::{Field, Form, FormId, Items, Keys, Notes, Presence, Rest, Text};
use crate::project::loss::{Effect, Loss, Toward};
use crate::project::profile::RestRule;
use crate::schema::{AdditionalClass, Array, GoalId, Object, StringShape};

use super::{Fitting, Recoded};

impl Fitting<'_> {
    pub(super) fn object(&mut self, object: &Object, goal: GoalId) -> Option<Form> {
        if object.demands > 0 {
            let keywords = ["minProperties", "propertyNames", "not", "dependentSchemas"];
            self.lose(
                goal,
                &keywords,
                "that some key without a name must be there is not enforced",
            )
            .then_some(())?;
        }
        let mut keys = Keys {
            fields: Vec::new(),
            rest: Rest::Closed,
            packed: None,
            min: object.min,
            max: object.max,
        };
        let mut is_open = true;
        for property in &object.properties {
            if self.cancel.is_asked() {
                return None;
            }
            let form = self.ways(&property.ways, goal);
            if property.ways.is_empty() || *self.forms.get(form) == Form::Never {
                is_open &= self.forbidden(object, &property.name, property.required, goal)?;
                continue;
            }
            keys.fields.push(Field {
                name: property.name.to_string(),
                presence: self.presence(form, property.required, goal),
                form,
            });
        }
        if is_open && !self.rest(object, &mut keys, goal) {
            return Some(self.free_form(goal));
        }
        self.key_counts(&mut keys, goal)?;
        Some(Form::Object(keys))
    }

    /// Handles a key that must not be there. Returns `false` if no other key may be there for its sake, and
    /// `None` if it has to be there.
    fn forbidden(&mut self, object: &Object, name: &str, is_required: bool, goal: GoalId) -> Option<bool> {
        if is_required {
            return None;
        }
        if object.additional.is_empty() {
            return Some(true);
        }
        let message = match self.toward {
            Toward::Wider => format!(
                "that the key {} is not allowed is not enforced",
                Value::from(name)
            ),
            Toward::Narrower => format!(
                "keys that are not listed are not allowed, so that {} is not",
                Value::from(name)
            ),
        };
        Some(self.lose(goal, &["properties", "not"], &message))
    }

    fn presence(&mut self, form: FormId, is_required: bool, goal: GoalId) -> Presence {
        if is_required {
            return Presence::Required;
        }
        if self.profile.object.optional {
            return Presence::Optional;
        }
        match self.allows_null(form) {
            true => {
                self.note_loss(Loss {
                    pointer: self.place(goal, &["properties"]),
                    effect: Effect::Narrower,
                    message: "properties that may be null or absent are always there, as null".to_owned(),
                    is_absence: true,
                });
                Presence::NullForBoth
            }
            false => {
                self.recode(
                    goal,
                    Recoded::Shape,
                    "properties that may be absent are always there, as null where they are absent",
                );
                Presence::NullIfAbsent
            }
        }
    }

    /// Returns `true` if a form has `null`; definitions are looked up in their normal forms.
    fn allows_null(&self, form: FormId) -> bool {
        match self.forms.get(form) {
            Form::Any => true,
            Form::Constants(values) => values.contains(&Value::Null),
            Form::Union(parts) => parts.iter().any(|&part| self.allows_null(part)),
            Form::Definition(definition) => self.normal.normals[self.goals[definition.index()].index()].null,
            _ => false,
        }
    }

    /// Puts the keys without a name into an object. Returns `false` if it is written as a whole in another
    /// shape, because it has no other keys.
    fn rest(&mut self, object: &Object, keys: &mut Keys, goal: GoalId) -> bool {
        if object.additional.is_empty() {
            return true;
        }
        let is_alone = keys.fields.is_empty();
        let is_plain = matches!(&object.additional[..], [class] if class.key.is_any());
        let is_taken = match self.profile.object.rest {
            RestRule::Never => false,
            RestRule::Alone => is_alone && is_plain,
            RestRule::Any => is_plain,
            RestRule::Patterns => true,
        };
        if is_taken {
            keys.rest = self.open_rest(&object.additional, goal);
            return true;
        }
        if self.toward == Toward::Narrower {
            self.lose(
                goal,
                &["additionalProperties", "patternProperties", "propertyNames"],
                "keys that are not listed are not allowed",
            );
            return true;
        }
        if is_alone && is_plain && self.is_any_rest(&object.additional[0]) {
            return false;
        }
        if object.additional.len() > 1 {
            let keywords = ["patternProperties", "propertyNames", "additionalProperties"];
            self.lose(goal, &keywords, "which keys have which values is not enforced");
        }
        self.recode(
            goal,
            Recoded::Shape,
            "keys that are not listed are written as a list of objects with `key` and `value`",
        );
        keys.rest = self.pairs(object, keys, goal);
        true
    }

    /// Returns the form of any object, as its JSON text.
    fn free_form(&mut self, goal: GoalId) -> Form {
        self.recode(
            goal,
            Recoded::Text,
            "any object is written as a string that holds its JSON text",
        );
        let any = self.forms.add(Form::Any, Notes::default());
        let keys = Keys {
            fields: Vec::new(),
            rest: Rest::Open {
                classes: Vec::new(),
                others: Some(any),
            },
            packed: None,
            min: 0,
            max: None,
        };
        Form::JsonText(self.forms.add(Form::Object(keys), Notes::default()))
    }

    fn is_any_rest(&self, class: &AdditionalClass) -> bool {
        matches!(&class.ways[..], [way] if self.is_any_goal(way.goal))
    }

    /// Returns other keys as `patternProperties` and `additionalProperties`.
    fn open_rest(&mut self, classes: &[AdditionalClass], goal: GoalId) -> Rest {
        let (mut by_pattern, mut others) = (Vec::new(), None);
        for class in classes {
            let value = match self.is_any_rest(class) {
                true => self.forms.add(Form::Any, Notes::default()),
                false => self.ways(&class.ways, goal),
            };
            let affirmed: Vec<_> = class
                .key
                .texts
                .iter()
                .filter(|(_, sign)| *sign)
                .copied()
                .collect();
            match (affirmed.len(), class.key.min > 0 || class.key.max.is_some()) {
                (0, false) => others = Some(value),
                // Keys that match two patterns follow from the two.
                (2.., false) if by_pattern.len() > 1 => {}
                _ => {
                    let shape = StringShape {
                        texts: affirmed,
                        except: Vec::new(),
                        ..class.key.clone()
                    };
                    match self.string(&shape, goal) {
                        Some(Form::String(Text {
                            patterns,
                            format: None,
                            min,
                            max,
                            ..
                        })) if patterns.len() <= 1 => {
                            let pattern = patterns.into_iter().next().map(|pattern| pattern.meant);
                            let lengths = (min > 0 || max.is_some())
                                .then(|| self.length_pattern(min, max))
                                .flatten();
                            by_pattern.push((pattern.or(lengths).unwrap_or_default(), value));
                        }
                        _ => {
                            self.lose(
                                goal,
                                &["patternProperties", "propertyNames"],
                                "the names of keys are not enforced",
                            );
                            others = Some(value);
                        }
                    }
                }
            }
        }
        Rest::Open {
            classes: by_pattern,
            others,
        }
    }

    fn length_pattern(&self, min: u64, max: Option<u64>) -> Option<String> {
        let rules = self.profile.string.pattern.as_ref()?;
        crate::project::pattern::printed_lengths(min, max, rules)
    }

    /// Returns other keys as a list of pairs.
    fn pairs(&mut self, object: &Object, keys: &mut Keys, goal: GoalId) -> Rest {
        let (mut entries, mut classes) = (Vec::new(), Vec::new());
        for class in &object.additional {
            let value = self.ways(&class.ways, goal);
            let affirmed: Vec<_> = class
                .key
                .texts
                .iter()
                .filter(|(_, sign)| *sign)
                .copied()
                .collect();
            let shape = StringShape {
                texts: affirmed,
                except: Vec::new(),
                ..class.key.clone()
            };
            let Some(key) = self.string(&shape, goal) else {
                continue;
            };
            classes.push((key_pattern(&key), value));
            let key = self.forms.add(key, Notes::default());
            let field = |name: &str, form| Field {
                name: name.to_owned(),
                form,
                presence: Presence::Required,
            };
            let entry = Form::Object(Keys {
                fields: vec![field("key", key), field("value", value)],
                rest: Rest::Closed,
                packed: None,
                min: 0,
                max: None,
            });
            entries.push(self.forms.add(entry, Notes::default()));
        }
        let entry = match entries[..] {
            [only] => only,
            _ => self.forms.add(Form::Union(entries), Notes::default()),
        };
        let list = Items {
            prefix: Vec::new(),
            rest: Some(entry),
            min: 0,
            max: None,
            is_unique: false,
        };
        let list = self.forms.add(Form::Array(list), Notes::default());
        let field = keys.free_name("additional_properties");
        Rest::Pairs {
            field,
            entries: list,
            classes,
        }
    }

    /// Leaves the counts of keys that the target takes, or that follow from the rest.
    fn key_counts(&mut self, keys: &mut Keys, goal: GoalId) -> Option<()> {
        let required = keys
            .fields
            .iter()
            .filter(|field| field.presence == Presence::Required)
            .count() as u64;
        let is_closed = keys.rest == Rest::Closed;
        if keys.min <= required {
            keys.min = 0;
        }
        if is_closed && keys.max.is_some_and(|max| max >= keys.fields.len() as u64) {
            keys.max = None;
        }
        if self.profile.object.counts {
            return Some(());
        }
        for (there, keyword) in [
            (keys.min > 0, "minProperties"),
            (keys.max.is_some(), "maxProperties"),
        ] {
            if there {
                let message = format!("`{keyword}` is not enforced");
                self.lose(goal, &[keyword, "properties"], &message)
                    .then_some(())?;
            }
        }
        (keys.min, keys.max) = (0, None);
        Some(())
    }

    pub(super) fn is_any_array(&self, array: &Array) -> bool {
        let is_any = matches!(&array.additional[..], [way] if self.is_any_goal(way.goal));
        let plain = Array {
            additional: array.additional.clone(),
            ..Array::default()
        };
        is_any && *array == plain
    }

    pub(super) fn is_any_object(&self, object: &Object) -> bool {
        let is_any =
            matches!(&object.additional[..], [class] if class.key.is_any() && self.is_any_rest(class));
        let is_free = object.properties.is_empty() && object.demands == 0;
        is_any && is_free && object.min == 0 && object.max.is_none()
    }
}

/// Returns the pattern of the keys of a class; `None` if all keys are allowed.
fn key_pattern(key: &Form) -> Option<String> {
    let Form::String(text) = key else {
        return None;
    };
    let pattern = text.patterns.first().map(|pattern| pattern.meant.clone());
    pattern.or_else(|| text.lengths.clone())
}
