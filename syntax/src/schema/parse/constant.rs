//! Reads `enum` and `const`.
//!
//! A scalar constant is kept as a value. An array or object becomes a schema that allows nothing else, so
//! that the algebra needs no second way to handle it: `[1, 2]` is "an array of two items, the first 1, the
//! second 2".

use std::rc::Rc;

use foldhash::{HashSet, HashSetExt};
use serde_json::Value;

use crate::schema::draft::Draft;
use crate::schema::node::{KeyMap, Keyword, Kind, NodeId, Types, Values, Whole, escape_segment};

use super::{NAME_BYTES, Reader, Site, decimal, describe};

impl<'v> Reader<'v> {
    pub(super) fn values(&mut self, site: Site<'v>, key: &'v str, value: &'v Value) {
        if key == "const" {
            if !site.since(Draft::D6) {
                return self.note_unknown(site.id, key);
            }
            let values = self.constants(site.id, |_| "/const".to_owned(), [value]);
            return self.push(site.id, "const", Keyword::Values(values));
        }
        let Some(list) = value.as_array() else {
            return self.invalid(
                site.id,
                key,
                format!("`enum` must be an array of values, not {}", describe(value)),
            );
        };
        let values = self.constants(site.id, |at| format!("/enum/{at}"), list);
        self.push(site.id, "enum", Keyword::Values(values));
    }

    /// Reads the values of a list. Their pointers are created only for the few that need one.
    fn constants(
        &mut self,
        id: NodeId,
        segment: impl Fn(usize) -> String,
        list: impl IntoIterator<Item = &'v Value>,
    ) -> Rc<Values> {
        let mut values = Values::default();
        let list = list.into_iter();
        self.held
            .grow(list.size_hint().0 * NAME_BYTES + size_of::<Values>());
        let (mut strings, mut numbers) = (HashSet::new(), HashSet::new());
        for (at, value) in list.enumerate() {
            match value {
                Value::Null => values.null = true,
                Value::Bool(false) => values.no = true,
                Value::Bool(true) => values.yes = true,
                Value::String(text) if strings.insert(text.as_str()) => {
                    values.strings.push(text.as_str().into())
                }
                Value::String(_) => {}
                Value::Number(number) => match decimal(value).filter(|number| number.is_writable(2_000)) {
                    Some(number) if numbers.insert(number.clone()) => values.numbers.push(number),
                    Some(_) => {}
                    None => self.unsupported(
                        id,
                        &segment(at)[1..],
                        format!("the number {number} has too many digits, which is not supported"),
                    ),
                },
                Value::Array(_) => values.arrays.push(self.constant(id, segment(at), value)),
                Value::Object(_) => values.objects.push(self.constant(id, segment(at), value)),
            }
        }
        Rc::new(values)
    }

    fn constant(&mut self, parent: NodeId, segment: String, value: &'v Value) -> NodeId {
        let scope = self.scope_of[parent.index()];
        self.add(Some(parent), segment, value, scope, true)
    }

    /// Fills a node so that it allows exactly one value.
    pub(super) fn read_constant(&mut self, id: NodeId, value: &'v Value) {
        match value {
            Value::Array(list) => self.read_constant_array(id, list),
            Value::Object(map) => {
                let mut keys = KeyMap::default();
                self.held.grow(map.len() * (NAME_BYTES + NAME_BYTES / 2));
                for (key, value) in map {
                    let name: Rc<str> = key.as_str().into();
                    let child = self.constant(id, ["/", &escape_segment(key)].concat(), value);
                    keys.named.push((name.clone(), child));
                    keys.index.insert(name, child);
                }
                let required = keys.named.iter().map(|(name, _)| name.clone()).collect();
                keys.additional = Some(self.never(id));
                self.push(
                    id,
                    "",
                    Keyword::Type {
                        types: Types::only(Kind::Object),
                        whole: Whole::Value,
                    },
                );
                self.push(id, "", Keyword::Required(required));
                self.push(id, "", Keyword::Properties(Rc::new(keys)));
            }
            scalar => {
                let values = self.constants(id, |_| String::from("/"), [scalar]);
                self.push(id, "", Keyword::Values(values));
            }
        }
    }

    fn read_constant_array(&mut self, id: NodeId, list: &'v [Value]) {
        let items = list.iter().enumerate();
        let prefix = items
            .map(|(at, value)| self.constant(id, format!("/{at}"), value))
            .collect();
        self.push(
            id,
            "",
            Keyword::Type {
                types: Types::only(Kind::Array),
                whole: Whole::Value,
            },
        );
        self.push(id, "", Keyword::MinItems(list.len() as u64));
        self.push(id, "", Keyword::MaxItems(list.len() as u64));
        self.push(
            id,
            "",
            Keyword::Items {
                prefix,
                additional: None,
            },
        );
    }

    /// Adds a node that allows nothing.
    pub(super) fn never(&mut self, parent: NodeId) -> NodeId {
        let scope = self.scope_of[parent.index()];
        const NEVER: &Value = &Value::Bool(false);
        self.add(Some(parent), "", NEVER, scope, false)
    }
}
