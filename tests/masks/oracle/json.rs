//! Small JSON Schemas whose texts can be written out as a regular language.
//!
//! White space is compact, escapes are minimal, and there are no numbers: a value then has one spelling,
//! except for the order of keys.

use lexiform::schema::KeyOrder;
use proptest::prelude::*;

use super::regular::Re;

/// A schema.
#[derive(Clone, Debug)]
pub(crate) enum Schema {
    /// One of these values, as JSON texts.
    Enum(Vec<&'static str>),
    /// A string of up to so many of the letters `a` and `b`.
    Letters(u32),
    List {
        items: Box<Schema>,
        min: u32,
        more: u32,
    },
    /// Up to these items, at least `min` of them.
    Tuple {
        items: Vec<Schema>,
        min: usize,
    },
    /// Exactly these keys, each required or not.
    Object(Vec<(&'static str, Schema, bool)>),
    AnyOf(Vec<Schema>),
}

impl Schema {
    /// The schema as JSON text.
    pub(crate) fn source(&self) -> String {
        let all = |schemas: &[Schema]| schemas.iter().map(Schema::source).collect::<Vec<_>>().join(",");
        match self {
            Schema::Enum(values) => format!("{{\"enum\":[{}]}}", values.join(",")),
            Schema::Letters(max) => {
                format!("{{\"type\":\"string\",\"pattern\":\"^[ab]*$\",\"maxLength\":{max}}}")
            }
            Schema::List { items, min, more } => format!(
                "{{\"type\":\"array\",\"items\":{},\"minItems\":{min},\"maxItems\":{}}}",
                items.source(),
                min + more
            ),
            Schema::Tuple { items, min } => format!(
                "{{\"type\":\"array\",\"prefixItems\":[{}],\"items\":false,\"minItems\":{min}}}",
                all(items)
            ),
            Schema::Object(members) => {
                let properties: Vec<String> = members
                    .iter()
                    .map(|(key, schema, _)| format!("\"{key}\":{}", schema.source()))
                    .collect();
                let required = members.iter().filter(|(.., required)| *required);
                let required: Vec<String> = required.map(|(key, ..)| format!("\"{key}\"")).collect();
                format!(
                    "{{\"type\":\"object\",\"properties\":{{{}}},\"required\":[{}],\"additionalProperties\":false}}",
                    properties.join(","),
                    required.join(",")
                )
            }
            Schema::AnyOf(schemas) => format!("{{\"anyOf\":[{}]}}", all(schemas)),
        }
    }

    /// The texts that are valid.
    pub(crate) fn language(&self, order: KeyOrder) -> Re {
        match self {
            Schema::Enum(values) => Re::any(values.iter().map(|value| Re::text(value))),
            Schema::Letters(max) => {
                let letter = Re::any([Re::text("a"), Re::text("b")]);
                Re::all([Re::text("\""), Re::repeat(letter, 0, Some(*max)), Re::text("\"")])
            }
            Schema::List { items, min, more } => {
                let item = items.language(order);
                let lists = (*min..=min + more).map(|count| joined(vec![item.clone(); count as usize]));
                Re::all([Re::text("["), Re::any(lists), Re::text("]")])
            }
            Schema::Tuple { items, min } => {
                let items: Vec<Re> = items.iter().map(|item| item.language(order)).collect();
                let lists = (*min..=items.len()).map(|count| joined(items[..count].to_vec()));
                Re::all([Re::text("["), Re::any(lists), Re::text("]")])
            }
            Schema::Object(members) => {
                let member = |(key, schema, required): &(&str, Schema, bool)| {
                    (
                        Re::seq(Re::text(&format!("\"{key}\":")), schema.language(order)),
                        *required,
                    )
                };
                let members: Vec<(Re, bool)> = members.iter().map(member).collect();
                let written = choose(&members, order).into_iter().map(joined);
                Re::all([Re::text("{"), Re::any(written), Re::text("}")])
            }
            Schema::AnyOf(schemas) => Re::any(schemas.iter().map(|schema| schema.language(order))),
        }
    }
}

fn joined(items: Vec<Re>) -> Re {
    let with_comma = |(at, item)| Re::seq(Re::text(if at == 0 { "" } else { "," }), item);
    Re::all(items.into_iter().enumerate().map(with_comma))
}

/// All selections of members that have the required ones, in the orders that are allowed.
fn choose(members: &[(Re, bool)], order: KeyOrder) -> Vec<Vec<Re>> {
    let mut all = match members.iter().any(|(_, required)| *required) {
        true => Vec::new(),
        false => vec![Vec::new()],
    };
    for (at, (item, _)) in members.iter().enumerate() {
        let mut rest = members.to_vec();
        match order {
            KeyOrder::Any => drop(rest.remove(at)),
            KeyOrder::Schema if members[..at].iter().any(|(_, required)| *required) => continue,
            KeyOrder::Schema => drop(rest.drain(..=at)),
        }
        all.extend(
            choose(&rest, order)
                .into_iter()
                .map(|more| [vec![item.clone()], more].concat()),
        );
    }
    all
}

/// Random schemas.
pub(crate) fn schemas() -> impl Strategy<Value = Schema> {
    let values = vec![
        "null",
        "true",
        "false",
        "\"a\"",
        "\"ab\"",
        "\"\"",
        "[]",
        "{\"a\":null}",
        "\"é\"",
    ];
    let values = prop::sample::subsequence(values, 1..=3).prop_map(Schema::Enum);
    let leaf = prop_oneof![3 => values, 1 => (0u32..3).prop_map(Schema::Letters)];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let members = prop::collection::vec((inner.clone(), any::<bool>()), 0..=3);
        let members =
            (prop::sample::subsequence(vec!["a", "ab", "b"], 3), members).prop_map(|(keys, members)| {
                let pairs = keys.into_iter().zip(members);
                Schema::Object(
                    pairs
                        .map(|(key, (schema, required))| (key, schema, required))
                        .collect(),
                )
            });
        let tuple = (prop::collection::vec(inner.clone(), 1..=2), 0usize..=2);
        prop_oneof![
            3 => members,
            1 => (inner.clone(), 0u32..2, 0u32..2)
                .prop_map(|(items, min, more)| Schema::List { items: Box::new(items), min, more }),
            1 => tuple.prop_map(|(items, min)| Schema::Tuple { min: min.min(items.len()), items }),
            1 => prop::collection::vec(inner, 1..=3).prop_map(Schema::AnyOf),
        ]
    })
}
