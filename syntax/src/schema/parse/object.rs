//! Reads keywords for objects.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::schema::draft::Draft;
use crate::schema::node::{Dependency, KeyMap, Keyword, escape_segment};
use lexiform_automata::error::ProblemKind;

use super::{NAME_BYTES, Reader, Site, describe};

impl<'v> Reader<'v> {
    pub(super) fn object_keyword(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        match key {
            "properties" | "patternProperties" | "additionalProperties" => self.key_map_once(site, key),
            "required" => {
                if let Some(names) = self.names(site, "required", value) {
                    self.push(site.id, "required", Keyword::Required(names));
                }
            }
            "minProperties" => {
                if let Some(count) = self.count(site, key, value) {
                    self.push(site.id, "minProperties", Keyword::MinProperties(count));
                }
            }
            "maxProperties" => {
                if let Some(count) = self.count(site, key, value) {
                    self.push(site.id, "maxProperties", Keyword::MaxProperties(count));
                }
            }
            "propertyNames" if site.since(Draft::D6) => {
                let names = self.child(site, "/propertyNames", value);
                self.push(site.id, "propertyNames", Keyword::PropertyNames(names));
            }
            // 2019-09 split this keyword in two, and asks implementations to keep supporting it.
            "dependencies" => self.dependencies(site, "dependencies", value),
            "dependentRequired" if site.since(Draft::D2019) => {
                self.dependencies(site, "dependentRequired", value)
            }
            "dependentSchemas" if site.since(Draft::D2019) => {
                self.dependencies(site, "dependentSchemas", value)
            }
            "unevaluatedProperties" if site.since(Draft::D2019) => self.unevaluated(site, key, value),
            _ => self.note_unknown(site.id, key),
        }
    }

    /// Reads the three keywords that divide the keys among them, when the first of them is encountered.
    fn key_map_once(&mut self, site: Site<'v>, key: &str) {
        const GROUP: [&str; 3] = ["properties", "patternProperties", "additionalProperties"];
        let first = site.map.keys().find(|name| GROUP.contains(&name.as_str()));
        if first.is_none_or(|first| first != key) {
            return;
        }
        let mut keys = KeyMap::default();
        let properties = self.object_of_schemas(site, "properties");
        let count = properties.map_or(0, Map::len);
        let length: usize = properties.into_iter().flatten().map(|(name, _)| name.len()).sum();
        self.held.grow(count * NAME_BYTES + length);
        keys.named.reserve_exact(count);
        keys.index.reserve(count);
        for (name, value) in properties.into_iter().flatten() {
            let child = self.child(site, ["/properties/", &escape_segment(name)].concat(), value);
            let name: Rc<str> = name.as_str().into();
            keys.named.push((name.clone(), child));
            keys.index.insert(name, child);
        }
        for (pattern, value) in self
            .object_of_schemas(site, "patternProperties")
            .into_iter()
            .flatten()
        {
            let segment = ["/patternProperties/", &escape_segment(pattern)].concat();
            let child = self.child(site, segment, value);
            match self.texts.pattern(pattern, self.limits) {
                Ok(text) => keys.patterns.push((text, child)),
                Err(error) => {
                    let kind = if error.kind == ProblemKind::Syntax {
                        ProblemKind::Invalid
                    } else {
                        error.kind
                    };
                    let name = format!("patternProperties/{}", escape_segment(pattern));
                    let message = format!("pattern {pattern:?}: {error}");
                    self.problem_at(kind, site.id, Some(&name), message);
                }
            }
        }
        let additional = site.map.get("additionalProperties");
        keys.additional = additional.map(|value| self.child(site, "/additionalProperties", value));
        keys.listed_by = properties.map(|_| site.id);
        self.push(site.id, "properties", Keyword::Properties(Rc::new(keys)));
    }

    fn object_of_schemas(&mut self, site: Site<'v>, key: &str) -> Option<&'v Map<String, Value>> {
        let value = site.map.get(key)?;
        if !value.is_object() {
            self.invalid(
                site.id,
                key,
                format!("`{key}` must be an object of schemas, not {}", describe(value)),
            );
        }
        value.as_object()
    }

    fn names(&mut self, site: Site<'v>, key: &str, value: &'v Value) -> Option<Rc<[Rc<str>]>> {
        let list = value.as_array();
        self.held.grow(list.map_or(0, Vec::len) * NAME_BYTES / 2);
        let names: Option<Rc<[Rc<str>]>> =
            list.and_then(|list| list.iter().map(|name| name.as_str().map(Rc::from)).collect());
        if names.is_none() {
            let not_a_name = list.and_then(|list| list.iter().find(|name| !name.is_string()));
            let message = match not_a_name {
                Some(other) => format!(
                    "`{key}` must contain only property names, not {}",
                    describe(other)
                ),
                None => format!(
                    "`{key}` must be an array of property names, not {}",
                    describe(value)
                ),
            };
            self.invalid(site.id, key, message);
        }
        names
    }

    fn dependencies(&mut self, site: Site<'v>, key: &'static str, value: &'v Value) {
        let Some(map) = value.as_object() else {
            return self.invalid(
                site.id,
                key,
                format!("`{key}` must be an object, not {}", describe(value)),
            );
        };
        for (name, value) in map {
            let then = match value {
                Value::Array(_) if key != "dependentSchemas" => match self.names(site, key, value) {
                    Some(names) => Dependency::Keys(names),
                    None => continue,
                },
                Value::Object(_) | Value::Bool(_) if key != "dependentRequired" => {
                    let segment = ["/", key, "/", &escape_segment(name)].concat();
                    Dependency::Schema(self.child(site, segment, value))
                }
                _ => {
                    let expected = match key {
                        "dependentRequired" => "an array of property names",
                        "dependentSchemas" => "a schema",
                        _ => "a schema or an array of property names",
                    };
                    let message = format!("{name:?} in `{key}` must be {expected}, not {}", describe(value));
                    self.invalid(site.id, key, message);
                    continue;
                }
            };
            self.push(
                site.id,
                key,
                Keyword::Dependent {
                    key: name.as_str().into(),
                    then,
                },
            );
        }
    }
}
