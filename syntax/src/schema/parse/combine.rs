//! Reads keywords that combine schemas: `allOf`, `anyOf`, `oneOf`, `not`, `if`.

use serde_json::Value;

use crate::schema::draft::Draft;
use crate::schema::node::{Keyword, NodeId};

use super::{Reader, Site, describe};

impl<'v> Reader<'v> {
    pub(super) fn combinator(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        match key {
            "not" => {
                let child = self.child(site, "/not", value);
                self.push(site.id, "not", Keyword::Not(child));
            }
            "if" | "then" | "else" if !site.since(Draft::D7) => self.note_unknown(site.id, key),
            "if" => self.condition(site, value),
            "then" | "else" => {
                // Read with `if`. Without it they have no effect, but references may lead into them.
                if !site.map.contains_key("if") {
                    self.child(site, ["/", key].concat(), value);
                }
            }
            _ => self.list(site, key, value),
        }
    }

    fn list(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        let Some(list) = value.as_array().filter(|list| !list.is_empty()) else {
            let message = match value {
                Value::Array(_) => format!("`{key}` must contain at least one schema"),
                _ => format!("`{key}` must be an array of schemas, not {}", describe(value)),
            };
            return self.invalid(site.id, key, message);
        };
        let schemas = self.schemas(site, key, list);
        match key {
            "allOf" => self.push(site.id, "allOf", Keyword::AllOf(schemas)),
            "anyOf" => self.push(site.id, "anyOf", Keyword::AnyOf(schemas)),
            _ => self.push(site.id, "oneOf", Keyword::OneOf(schemas)),
        }
    }

    fn condition(&mut self, site: Site<'v>, value: &'v Value) {
        let condition = self.child(site, "/if", value);
        let then = site.map.get("then").map(|value| self.child(site, "/then", value));
        let otherwise = site.map.get("else").map(|value| self.child(site, "/else", value));
        // Alone it constrains nothing, but what it evaluates counts as evaluated.
        if then.is_some() || otherwise.is_some() || site.since(Draft::D2019) {
            self.push(
                site.id,
                "if",
                Keyword::If {
                    condition,
                    then,
                    otherwise,
                },
            );
        }
    }

    /// Adds the schemas of a list.
    pub(super) fn schemas(&mut self, site: Site<'v>, key: &str, list: &'v [Value]) -> Vec<NodeId> {
        let children = list.iter().enumerate();
        children
            .map(|(at, value)| self.child(site, format!("/{key}/{at}"), value))
            .collect()
    }
}
