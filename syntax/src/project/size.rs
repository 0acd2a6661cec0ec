//! The size of a written schema, in the terms in which targets limit it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::profile::SizeLimits;

/// What a schema has of everything that is limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) properties: usize,
    /// How deep objects nest, through references that lead into no circle.
    pub(super) depth: usize,
    pub(super) enum_values: usize,
    pub(super) name_characters: usize,
    pub(super) optional: usize,
    pub(super) unions: usize,
    /// The number of values, and of characters, of each `enum` of strings.
    pub(super) enums: Vec<(usize, usize)>,
}

/// A limit that a schema exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Properties {
        by: usize,
    },
    Depth {
        limit: usize,
    },
    EnumValues {
        by: usize,
    },
    NameCharacters {
        by: usize,
    },
    LargeEnum,
    /// More bytes than a source may have.
    Bytes,
    Optional {
        by: usize,
    },
    Unions {
        by: usize,
    },
}

impl Size {
    /// Measures a schema.
    pub(super) fn of(schema: &Value) -> Size {
        let mut size = Size::default();
        let mut open = vec![schema];
        while let Some(next) = open.pop() {
            if let Value::Object(map) = next {
                size.count(map);
                open.extend(schemas_within(map).into_iter().map(|(_, schema)| schema));
            }
        }
        size.depth = depth(schema, schema, &mut HashMap::new(), 0);
        let (optional, unions) = expanded(schema, schema, &mut HashMap::new(), 0);
        (size.optional, size.unions) = (optional, unions);
        size
    }

    fn count(&mut self, map: &Map<String, Value>) {
        let length = |text: &str| text.chars().count();
        if let Some(Value::Object(properties)) = map.get("properties") {
            self.properties += properties.len();
            self.name_characters += properties.keys().map(|name| length(name)).sum::<usize>();
        }
        if let Some(Value::Object(definitions)) = map.get("$defs") {
            self.name_characters += definitions.keys().map(|name| length(name)).sum::<usize>();
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            let characters = values.iter().filter_map(Value::as_str).map(length).sum();
            self.enum_values += values.len();
            self.name_characters += characters;
            self.enums.push((values.len(), characters));
        }
        if let Some(Value::String(only)) = map.get("const") {
            self.name_characters += length(only);
        }
    }

    /// Returns the first limit that it exceeds.
    pub(super) fn excess(&self, limits: &SizeLimits) -> Option<Excess> {
        let by = |size: usize, limit: Option<usize>| size.checked_sub(limit?).filter(|by| *by > 0);
        let is_large = |&(values, characters): &(usize, usize)| {
            limits
                .large_enum
                .is_some_and(|large| values > large.values && characters > large.characters)
        };
        let depth = by(self.depth, limits.depth)
            .and(limits.depth)
            .map(|limit| Excess::Depth { limit });
        depth
            .or_else(|| by(self.optional, limits.optional).map(|by| Excess::Optional { by }))
            .or_else(|| by(self.properties, limits.properties).map(|by| Excess::Properties { by }))
            .or_else(|| by(self.unions, limits.unions).map(|by| Excess::Unions { by }))
            .or_else(|| by(self.enum_values, limits.enum_values).map(|by| Excess::EnumValues { by }))
            .or_else(|| self.enums.iter().any(is_large).then_some(Excess::LargeEnum))
            .or_else(|| {
                by(self.name_characters, limits.name_characters).map(|by| Excess::NameCharacters { by })
            })
    }
}

impl Excess {
    /// Describes it for people.
    pub(super) fn describe(&self, size: &Size, limits: &SizeLimits) -> String {
        let of = |what: &str, size: usize, limit: Option<usize>| {
            format!("{size} {what}; the target takes {}", limit.unwrap_or(0))
        };
        match self {
            Excess::Properties { .. } => of("properties", size.properties, limits.properties),
            Excess::Depth { .. } => of("levels of objects", size.depth, limits.depth),
            Excess::EnumValues { .. } => of("values in `enum`s", size.enum_values, limits.enum_values),
            Excess::NameCharacters { .. } => of(
                "characters of names and constants",
                size.name_characters,
                limits.name_characters,
            ),
            Excess::Optional { .. } => of("properties that are not required", size.optional, limits.optional),
            Excess::Unions { .. } => of("unions", size.unions, limits.unions),
            Excess::Bytes => "it is longer than a schema may be".to_owned(),
            Excess::LargeEnum => "an `enum` has too many characters for its number of values".to_owned(),
        }
    }
}

/// Returns the numbers of properties that are not required and of unions, with every reference written out
/// except those into a circle.
fn expanded<'v>(
    schema: &'v Value,
    document: &'v Value,
    known: &mut HashMap<&'v str, (usize, usize)>,
    level: usize,
) -> (usize, usize) {
    let (mut optional, mut unions) = (0usize, 0usize);
    let mut open = vec![schema];
    while let Some(next) = open.pop() {
        let Value::Object(map) = next else { continue };
        let properties = map
            .get("properties")
            .and_then(Value::as_object)
            .map_or(0, Map::len);
        let required = map.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        let is_union = map.contains_key("anyOf") || map.get("type").is_some_and(Value::is_array);
        optional = optional.saturating_add(properties.saturating_sub(required));
        unions = unions.saturating_add(usize::from(is_union));
        if let Some(Value::String(reference)) = map.get("$ref") {
            if !known.contains_key(&**reference) && level < DEEPEST {
                known.insert(reference, (0, 0));
                let target = reference
                    .strip_prefix('#')
                    .and_then(|pointer| document.pointer(pointer));
                let counted = target.map_or((0, 0), |target| expanded(target, document, known, level + 1));
                known.insert(reference, counted);
            }
            let (more_optional, more_unions) = known.get(&**reference).copied().unwrap_or_default();
            optional = optional.saturating_add(more_optional);
            unions = unions.saturating_add(more_unions);
        }
        let within = schemas_within(map).into_iter();
        let within = within
            .filter(|(segment, _)| !segment.starts_with("/$defs/") && !segment.starts_with("/definitions/"));
        open.extend(within.map(|(_, inner)| inner));
    }
    (optional, unions)
}

/// Returns the schemas directly within a schema, with the segments of their JSON pointers.
pub(super) fn schemas_within(map: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let segment = |name: &str, key: &str| format!("/{name}/{}", crate::schema::escape_segment(key));
    for (name, value) in map {
        match (&**name, value) {
            (
                "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                Value::Object(inner),
            ) => {
                found.extend(inner.iter().map(|(key, schema)| (segment(name, key), schema)));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => {
                let list = list.iter().enumerate();
                found.extend(list.map(|(at, schema)| (format!("/{name}/{at}"), schema)));
            }
            (
                "items"
                | "additionalProperties"
                | "additionalItems"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                Value::Object(_),
            ) => found.push((format!("/{name}"), value)),
            _ => {}
        }
    }
    found
}

/// The deepest nesting, references included, that is measured.
const DEEPEST: usize = 200;

/// Returns how deep objects nest in a schema of a document. Each target of a reference is measured once.
fn depth<'v>(
    schema: &'v Value,
    document: &'v Value,
    known: &mut HashMap<&'v str, usize>,
    level: usize,
) -> usize {
    let Value::Object(map) = schema else { return 0 };
    if level > DEEPEST {
        return DEEPEST;
    }
    let mut below = 0;
    if let Some(Value::String(reference)) = map.get("$ref") {
        below = match known.get(&**reference) {
            Some(&measured) => measured,
            None => {
                // A reference into a circle adds nothing.
                known.insert(reference, 0);
                let target = reference
                    .strip_prefix('#')
                    .and_then(|pointer| document.pointer(pointer));
                let measured = target.map_or(0, |target| depth(target, document, known, level + 1));
                known.insert(reference, measured);
                measured
            }
        };
    }
    for (segment, inner) in schemas_within(map) {
        if !segment.starts_with("/$defs/") && !segment.starts_with("/definitions/") {
            below = below.max(depth(inner, document, known, level + 1));
        }
    }
    below + usize::from(map.contains_key("properties"))
}
