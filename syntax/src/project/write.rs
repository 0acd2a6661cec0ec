//! Writes forms as JSON Schema: for the target, or with the meaning that its answers have once restored.

use serde_json::{Map, Value, json};

use lexiform_automata::limits::{Account, Cancel};

use super::form::{
    DefinitionId, Field, Form, FormId, Forms, Items, Keys, Notes, Number, Pattern, Presence, Reading, Rest,
    Text, WRAPPED, number_value,
};
use super::live::live;
use super::profile::{Profile, References};

/// The deepest nesting of forms that are written in place, where the target takes references.
const DEEPEST: usize = 40;

/// The deepest nesting of what is written in place in any case, and the most forms that are written: a
/// schema whose definitions double from one to the next would otherwise have no end.
const MOST_NESTED: usize = 100;
const MOST_WRITTEN: usize = 400_000;

/// The memory of a form that is written, besides its texts.
const WRITTEN_BYTES: usize = 400;

/// Writes a schema, or returns `None` if no value is left, if it would be too large, or if it is cancelled.
pub(super) fn write(forms: &Forms, profile: &Profile, reading: Reading, cancel: &Cancel) -> Option<Value> {
    let live = live(forms, reading, cancel);
    if !live[forms.root.index()] {
        return None;
    }
    let mut writing = Writing {
        forms,
        profile,
        reading,
        cancel,
        held: cancel.account(),
        live,
        in_place: in_place(forms, profile, reading),
        named: vec![false; forms.definitions.len()],
        open: Vec::new(),
        depth: 0,
        written: 0,
        is_over: false,
    };
    let mut root = writing.root();
    let mut definitions = Map::new();
    while let Some(next) = writing.open.pop() {
        let definition = &forms.definitions[next.index()];
        let schema = writing.schema(definition.form);
        definitions.insert(definition.name.clone(), schema);
    }
    if writing.is_over {
        return None;
    }
    definitions.sort_keys();
    if !definitions.is_empty() {
        match &mut root {
            Value::Object(map) => {
                map.insert("$defs".to_owned(), Value::Object(definitions));
            }
            other => *other = json!({"$defs": definitions}),
        }
    }
    Some(root)
}

/// Returns, for each definition, whether it is written where it is used: once, and not inside of itself.
fn in_place(forms: &Forms, profile: &Profile, reading: Reading) -> Vec<bool> {
    let mut uses = vec![0usize; forms.definitions.len()];
    let written = match reading {
        Reading::Target => forms.written(),
        Reading::Restored => (0..forms.list.len() as u32).map(FormId).collect(),
    };
    for id in written {
        if let Form::Definition(definition) = forms.get(id) {
            uses[definition.index()] += 1;
        }
    }
    let leaves = super::circles::leaves(forms, reading);
    let is_in_place = |(uses, is_leaf): (&usize, &bool)| match profile.references {
        References::None => true,
        References::Leaves => *uses <= 1 || !is_leaf,
        References::Acyclic | References::Recursive => *uses <= 1,
    };
    let mut in_place: Vec<bool> = uses.iter().zip(&leaves).map(is_in_place).collect();
    for definition in super::circles::within_themselves(forms, reading) {
        in_place[definition.index()] = false;
    }
    in_place
}

struct Writing<'f> {
    forms: &'f Forms,
    profile: &'f Profile,
    reading: Reading,
    cancel: &'f Cancel,
    /// The bytes of what has been written.
    held: Account,
    live: Vec<bool>,
    in_place: Vec<bool>,
    /// The definitions that have a name in the result.
    named: Vec<bool>,
    open: Vec<DefinitionId>,
    depth: usize,
    /// The number of forms that have been written.
    written: usize,
    /// `true` if it became too large or was cancelled.
    is_over: bool,
}

impl Writing<'_> {
    fn root(&mut self) -> Value {
        if self.forms.is_wrapped && self.reading == Reading::Target {
            let value = self.schema(self.forms.root);
            return json!({"type": "object", "properties": {WRAPPED: value}, "required": [WRAPPED], "additionalProperties": false});
        }
        // The root stands in place even where its definition is also referred to.
        let body = self.forms.resolved(self.forms.root);
        let schema = self.body(body);
        self.noted(schema, self.forms.root)
    }

    /// Returns the schema of a form, with what people wrote about it.
    fn schema(&mut self, id: FormId) -> Value {
        self.written += 1;
        let is_large = self.depth > MOST_NESTED || self.written > MOST_WRITTEN;
        self.is_over |= is_large || !self.held.grow(WRITTEN_BYTES) || self.cancel.is_asked();
        if self.is_over {
            return Value::Bool(false);
        }
        self.depth += 1;
        let schema = self.body(id);
        self.depth -= 1;
        self.noted(schema, id)
    }

    fn noted(&mut self, schema: Value, id: FormId) -> Value {
        let Notes { title, description } = &self.forms.notes[id.index()];
        let texts = [title, description].into_iter().flatten();
        self.held.grow(texts.map(String::len).sum());
        let Value::Object(map) = schema else {
            return schema;
        };
        if map.contains_key("$ref") && !self.profile.beside_reference {
            return Value::Object(map);
        }
        let mut noted = Map::new();
        let outer = [("title", title), ("description", description)];
        for (name, text) in outer {
            if let Some(text) = text {
                noted.insert(name.to_owned(), text.clone().into());
            }
        }
        for (name, value) in map {
            if name == "description" && noted.contains_key("description") && self.is_text(id) {
                let own = noted["description"].as_str().unwrap_or_default();
                let both = format!("{own} ({})", value.as_str().unwrap_or_default());
                noted.insert(name, both.into());
            } else {
                noted.entry(name).or_insert(value);
            }
        }
        Value::Object(noted)
    }

    fn is_text(&self, id: FormId) -> bool {
        self.reading == Reading::Target && matches!(self.forms.get(id), Form::JsonText(_))
    }

    fn body(&mut self, id: FormId) -> Value {
        match self.forms.get(id) {
            Form::Never => json!({"not": {}}),
            Form::Any => json!({}),
            Form::Constants(values) => self.constants(values),
            Form::Number(number) => self.number(number),
            Form::String(text) => self.string(text),
            Form::Array(items) => self.array(items),
            Form::Object(keys) => self.object(keys),
            Form::Union(parts) => self.union(parts),
            Form::Definition(definition) => self.definition(*definition),
            Form::JsonText(inner) => match self.reading {
                Reading::Target => json!({"type": "string", "description": self.text_note(*inner)}),
                Reading::Restored => self.schema(*inner),
            },
        }
    }

    fn text_note(&self, inner: FormId) -> &'static str {
        match self.forms.get(self.forms.resolved(inner)) {
            Form::Object(_) => "JSON text of an object",
            Form::Array(_) => "JSON text of an array",
            _ => "JSON text of the value",
        }
    }

    fn definition(&mut self, id: DefinitionId) -> Value {
        let definition = &self.forms.definitions[id.index()];
        let is_deep = self.depth > DEEPEST && self.profile.references > References::Leaves;
        if self.in_place[id.index()] && !is_deep {
            return self.schema(definition.form);
        }
        if !std::mem::replace(&mut self.named[id.index()], true) {
            self.open.push(id);
        }
        json!({"$ref": format!("#/$defs/{}", definition.name)})
    }

    fn union(&mut self, parts: &[FormId]) -> Value {
        let parts: Vec<FormId> = parts
            .iter()
            .copied()
            .filter(|part| self.live[part.index()])
            .collect();
        let schemas: Vec<Value> = parts.into_iter().map(|part| self.schema(part)).collect();
        self.any_of(schemas)
    }

    /// Returns the union of schemas: a list of types where they are nothing else.
    fn any_of(&self, mut schemas: Vec<Value>) -> Value {
        if schemas.len() == 1 {
            return schemas.remove(0);
        }
        if self.profile.types {
            let types: Vec<Value> = schemas.iter().filter_map(only_type).collect();
            if types.len() == schemas.len() {
                return json!({"type": types});
            }
            let (nulls, others): (Vec<&Value>, Vec<&Value>) =
                schemas.iter().partition(|schema| is_null(schema));
            if let (1, [other]) = (nulls.len(), &others[..])
                && let Some(nullable) = with_null(other)
            {
                return nullable;
            }
        }
        json!({"anyOf": schemas})
    }

    fn constants(&self, values: &[Value]) -> Value {
        let name = |value: &Value| match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if is_integer(number) => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let mut kinds: Vec<&str> = values.iter().map(name).collect();
        if kinds.contains(&"number") {
            kinds
                .iter_mut()
                .filter(|kind| **kind == "integer")
                .for_each(|kind| *kind = "number");
        }
        kinds.dedup();
        match (&kinds[..], values) {
            (["null"], _) => json!({"type": "null"}),
            (["boolean"], [_, _]) => json!({"type": "boolean"}),
            ([kind], [only]) if self.profile.constants.r#const => json!({"type": kind, "const": only}),
            ([kind], _) => json!({"type": kind, "enum": values}),
            _ => json!({"enum": values}),
        }
    }

    fn number(&self, number: &Number) -> Value {
        let mut map = Map::new();
        map.insert(
            "type".to_owned(),
            if number.is_integer { "integer" } else { "number" }.into(),
        );
        let ends = [
            (&number.lower, "minimum", "exclusiveMinimum"),
            (&number.upper, "maximum", "exclusiveMaximum"),
        ];
        for (end, inclusive, exclusive) in ends {
            if let Some(end) = end {
                let name = if end.is_exclusive { exclusive } else { inclusive };
                map.insert(name.to_owned(), number_value(&end.value));
            }
        }
        if let Some(step) = &number.step {
            map.insert("multipleOf".to_owned(), number_value(step));
        }
        let steps = number
            .not_steps
            .iter()
            .map(|step| json!({"multipleOf": number_value(step)}));
        let mut denied: Vec<Value> = steps.collect();
        if !number.except.is_empty() {
            denied.push(json!({"enum": number.except}));
        }
        deny(&mut map, denied);
        Value::Object(map)
    }

    fn string(&self, text: &Text) -> Value {
        let mut map = Map::new();
        map.insert("type".to_owned(), "string".into());
        if let Some(format) = &text.format {
            map.insert("format".to_owned(), format.clone().into());
        }
        match &text.lengths {
            Some(pattern) if self.reading == Reading::Target => {
                map.insert("pattern".to_owned(), pattern.clone().into());
            }
            _ => lengths(&mut map, text),
        }
        let shown = |pattern: &Pattern| match self.reading {
            Reading::Target => pattern.written.clone(),
            Reading::Restored => pattern.meant.clone(),
        };
        let affirmed = text.patterns.iter().filter(|pattern| pattern.is_affirmed);
        let affirmed: Vec<String> = affirmed.map(shown).collect();
        match &affirmed[..] {
            [] => {}
            [only] => {
                map.insert("pattern".to_owned(), only.as_str().into());
            }
            several => {
                let all: Vec<Value> = several
                    .iter()
                    .map(|pattern| json!({"pattern": pattern}))
                    .collect();
                map.insert("allOf".to_owned(), all.into());
            }
        }
        let denied = text.patterns.iter().filter(|pattern| !pattern.is_affirmed);
        let mut denied: Vec<Value> = denied.map(|pattern| json!({"pattern": shown(pattern)})).collect();
        if !text.except.is_empty() {
            denied.push(json!({"enum": text.except}));
        }
        deny(&mut map, denied);
        Value::Object(map)
    }

    fn array(&mut self, items: &Items) -> Value {
        let mut map = Map::new();
        map.insert("type".to_owned(), "array".into());
        let is_live = |id: &FormId| self.live[id.index()];
        let reached: Vec<FormId> = items
            .prefix
            .iter()
            .copied()
            .take_while(|id| is_live(id))
            .collect();
        let rest = items
            .rest
            .filter(|rest| self.live[rest.index()] && reached.len() == items.prefix.len());
        let mut max = items.max;
        if rest.is_none() && max.is_none_or(|max| max > reached.len() as u64) {
            let most = reached.len() as u64;
            max = Some(max.map_or(most, |max| max.min(most)));
        }
        if !reached.is_empty() {
            let prefix: Vec<Value> = reached.iter().map(|&place| self.schema(place)).collect();
            map.insert("prefixItems".to_owned(), prefix.into());
        }
        match rest {
            // Without `items`, some targets read an array as empty.
            Some(rest) if *self.forms.get(rest) != Form::Any || self.reading == Reading::Target => {
                let schema = self.schema(rest);
                map.insert("items".to_owned(), schema);
            }
            _ => {}
        }
        if items.min > 0 {
            map.insert("minItems".to_owned(), items.min.into());
        }
        if let Some(max) = max {
            map.insert("maxItems".to_owned(), max.into());
        }
        if items.is_unique {
            map.insert("uniqueItems".to_owned(), true.into());
        }
        Value::Object(map)
    }

    fn object(&mut self, keys: &Keys) -> Value {
        let mut map = Map::new();
        map.insert("type".to_owned(), "object".into());
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let packed = keys.packed.iter().flat_map(|(_, fields)| fields);
        let is_target = self.reading == Reading::Target;
        let fields: Vec<&Field> = match is_target {
            true => keys.fields.iter().collect(),
            false => keys.fields.iter().chain(packed).collect(),
        };
        for field in fields {
            self.field(field, &mut properties, &mut required);
        }
        if let (Some((name, _)), true) = (&keys.packed, is_target) {
            let note = "JSON text of an object with the other properties, {} if there are none";
            properties.insert(name.clone(), json!({"type": "string", "description": note}));
            required.push(name.clone().into());
        }
        let rest = self.rest(keys, &mut properties, &mut required);
        if !properties.is_empty() || !is_target || rest.is_none() {
            map.insert("properties".to_owned(), properties.into());
        }
        if !required.is_empty() || !self.profile.object.optional {
            map.insert("required".to_owned(), required.into());
        }
        map.extend(
            rest.unwrap_or_else(|| Map::from_iter([("additionalProperties".to_owned(), false.into())])),
        );
        if keys.min > 0 {
            map.insert("minProperties".to_owned(), keys.min.into());
        }
        if let Some(max) = keys.max {
            map.insert("maxProperties".to_owned(), max.into());
        }
        Value::Object(map)
    }

    fn field(&mut self, field: &Field, properties: &mut Map<String, Value>, required: &mut Vec<Value>) {
        let is_live = self.live[field.form.index()];
        if !is_live && (self.reading == Reading::Restored || field.presence != Presence::NullIfAbsent) {
            return;
        }
        let schema = match is_live {
            true => self.schema(field.form),
            false => json!({"type": "null"}),
        };
        let schema = match (field.presence, self.reading) {
            (Presence::NullIfAbsent, Reading::Target) if is_live => self.nullable(schema),
            _ => schema,
        };
        let is_required = match field.presence {
            Presence::Required => true,
            Presence::Optional => false,
            Presence::NullIfAbsent | Presence::NullForBoth => self.reading == Reading::Target,
        };
        self.held.grow(field.name.len());
        properties.insert(field.name.clone(), schema);
        if is_required {
            required.push(field.name.clone().into());
        }
    }

    /// Returns a schema that also allows null, with what people wrote about it outside.
    fn nullable(&self, schema: Value) -> Value {
        let Value::Object(mut map) = schema else {
            return schema;
        };
        let mut outer = Map::new();
        for name in ["title", "description"] {
            outer.extend(map.shift_remove_entry(name));
        }
        let mut schema = match map.len() {
            1 if map.contains_key("anyOf") => Value::Object(map),
            _ => self.any_of(vec![Value::Object(map), json!({"type": "null"})]),
        };
        if let Some(Value::Array(list)) = schema.get_mut("anyOf")
            && list.last().is_none_or(|last| *last != json!({"type": "null"}))
        {
            list.push(json!({"type": "null"}));
        }
        if let Value::Object(map) = schema {
            outer.extend(map);
        }
        Value::Object(outer)
    }

    /// Returns the keywords for the keys that are no properties, or `None` if there are no such keys.
    fn rest(
        &mut self,
        keys: &Keys,
        properties: &mut Map<String, Value>,
        required: &mut Vec<Value>,
    ) -> Option<Map<String, Value>> {
        // A property without a value must not come back as another key.
        let is_missing = keys.fields.iter().any(|field| !self.live[field.form.index()]);
        let (classes, others) = match &keys.rest {
            Rest::Closed => return None,
            Rest::Open { .. } if is_missing => return None,
            Rest::Open { classes, others } => (classes.clone(), *others),
            Rest::Pairs { field, entries, .. } if self.reading == Reading::Target => {
                let schema = self.schema(*entries);
                properties.insert(field.clone(), schema);
                required.push(field.clone().into());
                return None;
            }
            Rest::Pairs { classes, .. } => match &classes[..] {
                [(Some(pattern), form)] => (vec![(pattern.clone(), *form)], None),
                [(None, form)] => (Vec::new(), Some(*form)),
                // A list of pairs does not say which keys have which values.
                several => return Some(self.any_value_of(several)),
            },
        };
        let mut map = Map::new();
        if !classes.is_empty() {
            let patterns = classes
                .iter()
                .map(|(pattern, form)| (pattern.clone(), self.value(*form)));
            let patterns: Map<String, Value> = patterns.collect();
            map.insert("patternProperties".to_owned(), patterns.into());
        }
        let others = others.map_or(Value::Bool(false), |form| self.value(form));
        map.insert("additionalProperties".to_owned(), others);
        Some(map)
    }

    /// Returns the keywords for keys that have the values of any of these classes.
    fn any_value_of(&mut self, classes: &[(Option<String>, FormId)]) -> Map<String, Value> {
        let schemas: Vec<Value> = classes.iter().map(|(_, form)| self.value(*form)).collect();
        let value = match schemas.contains(&Value::Bool(true)) {
            true => Value::Bool(true),
            false => json!({"anyOf": schemas}),
        };
        Map::from_iter([("additionalProperties".to_owned(), value)])
    }

    /// Returns the schema of the values of keys, `true` for any value and `false` for none.
    fn value(&mut self, form: FormId) -> Value {
        match self.forms.get(form) {
            Form::Any => Value::Bool(true),
            _ if !self.live[form.index()] => Value::Bool(false),
            _ => self.schema(form),
        }
    }
}

fn lengths(map: &mut Map<String, Value>, text: &Text) {
    if text.min > 0 {
        map.insert("minLength".to_owned(), text.min.into());
    }
    if let Some(max) = text.max {
        map.insert("maxLength".to_owned(), max.into());
    }
}

/// Adds what must not hold.
fn deny(map: &mut Map<String, Value>, mut denied: Vec<Value>) {
    match denied.len() {
        0 => {}
        1 => {
            map.insert("not".to_owned(), denied.remove(0));
        }
        _ => {
            map.insert("not".to_owned(), json!({"anyOf": denied}));
        }
    }
}

/// Returns the type of a schema that says nothing else.
fn only_type(schema: &Value) -> Option<Value> {
    let map = schema.as_object().filter(|map| map.len() == 1)?;
    map.get("type").filter(|name| name.is_string()).cloned()
}

fn is_null(schema: &Value) -> bool {
    only_type(schema).is_some_and(|name| name == "null")
}

/// Returns a schema of one scalar type with null beside it.
fn with_null(schema: &Value) -> Option<Value> {
    let mut map = schema.as_object()?.clone();
    let name = map.get("type")?.as_str()?.to_owned();
    let is_plain = !map.contains_key("enum") && !map.contains_key("const") && map.len() < 6;
    let is_scalar = matches!(&*name, "string" | "number" | "integer" | "boolean");
    if !is_plain || !is_scalar {
        return None;
    }
    map.insert("type".to_owned(), json!([name, "null"]));
    Some(Value::Object(map))
}

fn is_integer(number: &serde_json::Number) -> bool {
    let text = number.to_string();
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}
