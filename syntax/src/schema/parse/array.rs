//! Reads keywords for arrays. Two spellings of tuples become one: `items` with a list and `additionalItems`
//! until 2019-09, `prefixItems` and `items` since 2020-12.

use serde_json::Value;

use crate::schema::draft::Draft;
use crate::schema::node::Keyword;

use super::{Reader, Site, describe};

impl<'v> Reader<'v> {
    pub(super) fn array_keyword(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        match key {
            "minItems" | "maxItems" => self.item_count(site, key, value),
            "uniqueItems" => match value {
                Value::Bool(true) => self.push(site.id, "uniqueItems", Keyword::UniqueItems),
                Value::Bool(false) => {}
                _ => self.invalid(
                    site.id,
                    key,
                    format!("`uniqueItems` must be a boolean, not {}", describe(value)),
                ),
            },
            "contains" if site.since(Draft::D6) => self.contains(site, value),
            "minContains" | "maxContains" if site.since(Draft::D2019) => {
                // Read with `contains`; without it they have no effect.
                self.count(site, key, value);
            }
            "items" => self.items(site, value),
            "prefixItems" if site.since(Draft::D2020) => self.prefix_items(site, value),
            // Read with `items`, without which it has no effect.
            "additionalItems" if site.until(Draft::D2019) => {}
            "unevaluatedItems" if site.since(Draft::D2019) => self.unevaluated(site, key, value),
            _ => self.note_unknown(site.id, key),
        }
    }

    fn item_count(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        match self.count(site, key, value) {
            Some(count) if key == "minItems" => self.push(site.id, "minItems", Keyword::MinItems(count)),
            Some(count) => self.push(site.id, "maxItems", Keyword::MaxItems(count)),
            None => {}
        }
    }

    fn contains(&mut self, site: Site<'v>, value: &'v Value) {
        let item = self.child(site, "/contains", value);
        let bound = |key: &str| {
            site.map
                .get(key)
                .filter(|_| site.since(Draft::D2019))
                .and_then(super::decimal)
        };
        let min = bound("minContains").and_then(|count| count.to_u64()).unwrap_or(1);
        let max = bound("maxContains").and_then(|count| count.to_u64());
        let evaluates = site.since(Draft::D2020);
        let contains = Keyword::Contains {
            item,
            min,
            max,
            evaluates,
        };
        self.push(site.id, "contains", contains);
    }

    fn items(&mut self, site: Site<'v>, value: &'v Value) {
        if let Value::Array(list) = value {
            if !site.until(Draft::D2019) {
                return self.invalid(
                    site.id,
                    "items",
                    "`items` must be a schema, not an array; since draft 2020-12 an array of schemas belongs in `prefixItems`",
                );
            }
            let prefix = self.schemas(site, "items", list);
            let additional = site
                .map
                .get("additionalItems")
                .map(|value| self.child(site, "/additionalItems", value));
            return self.push(site.id, "items", Keyword::Items { prefix, additional });
        }
        if site.since(Draft::D2020) && site.map.contains_key("prefixItems") {
            // Read with `prefixItems`.
            return;
        }
        let additional = Some(self.child(site, "/items", value));
        self.push(
            site.id,
            "items",
            Keyword::Items {
                prefix: Vec::new(),
                additional,
            },
        );
    }

    fn prefix_items(&mut self, site: Site<'v>, value: &'v Value) {
        let Value::Array(list) = value else {
            let message = format!(
                "`prefixItems` must be an array of schemas, not {}",
                describe(value)
            );
            return self.invalid(site.id, "prefixItems", message);
        };
        let prefix = self.schemas(site, "prefixItems", list);
        let additional = site
            .map
            .get("items")
            .map(|value| self.child(site, "/items", value));
        self.push(site.id, "prefixItems", Keyword::Items { prefix, additional });
    }

    /// Reads `unevaluatedItems` and `unevaluatedProperties`.
    pub(super) fn unevaluated(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        let child = self.child(site, ["/", key].concat(), value);
        match key {
            "unevaluatedItems" => self.push(site.id, "unevaluatedItems", Keyword::UnevaluatedItems(child)),
            _ => self.push(
                site.id,
                "unevaluatedProperties",
                Keyword::UnevaluatedProperties(child),
            ),
        }
    }
}
