//! Reads `minimum`, `maximum`, their exclusive forms, and `multipleOf`.

use serde_json::Value;

use crate::schema::decimal::Decimal;
use crate::schema::draft::Draft;
use crate::schema::node::Keyword;

use super::{Reader, Site, decimal, describe};

/// The greatest distance of a digit from the point of a number in a schema. Numbers are compared by automata
/// whose size grows with this distance.
const PLACES: i64 = 2_000;

impl<'v> Reader<'v> {
    pub(super) fn number_keyword(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        if let Value::Bool(_) = value
            && key.starts_with("exclusive")
            && site.until(Draft::D4)
        {
            // In draft 4 this modifies the keyword beside it, where it is read.
            return;
        }
        let Some(number) = self.number(site, key, value) else {
            return;
        };
        let switched = |key: &str| site.until(Draft::D4) && site.map.get(key) == Some(&Value::Bool(true));
        match key {
            "minimum" => {
                let exclusive = switched("exclusiveMinimum");
                self.push(
                    site.id,
                    "minimum",
                    Keyword::Minimum {
                        value: number,
                        exclusive,
                    },
                );
            }
            "maximum" => {
                let exclusive = switched("exclusiveMaximum");
                self.push(
                    site.id,
                    "maximum",
                    Keyword::Maximum {
                        value: number,
                        exclusive,
                    },
                );
            }
            "exclusiveMinimum" => {
                self.push(
                    site.id,
                    "exclusiveMinimum",
                    Keyword::Minimum {
                        value: number,
                        exclusive: true,
                    },
                );
            }
            "exclusiveMaximum" => {
                self.push(
                    site.id,
                    "exclusiveMaximum",
                    Keyword::Maximum {
                        value: number,
                        exclusive: true,
                    },
                );
            }
            _ if number.is_zero() || number.is_negative() => {
                self.invalid(
                    site.id,
                    key,
                    format!("`multipleOf` must be greater than 0, not {number}"),
                );
            }
            _ => self.push(site.id, "multipleOf", Keyword::MultipleOf(number)),
        }
    }

    fn number(&mut self, site: Site<'v>, key: &str, value: &'v Value) -> Option<Decimal> {
        if !value.is_number() {
            self.invalid(
                site.id,
                key,
                format!("`{key}` must be a number, not {}", describe(value)),
            );
            return None;
        }
        let number = decimal(value).filter(|number| number.is_writable(PLACES));
        if number.is_none() {
            self.unsupported(
                site.id,
                key,
                format!("{value} has digits more than {PLACES} places from its decimal point, which is not supported"),
            );
        }
        number
    }
}
