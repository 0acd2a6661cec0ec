//! The shapes of facts: as a JSON Schema, and in words for those who are not shown the schema.

use serde_json::{Map, Value, json};

/// The type of a fact, as a schema and in words.
pub(super) enum Shape {
    Text,
    Whole,
    Number,
    Date,
    Time,
    Flag,
    OneOf(&'static [&'static str]),
    List(Box<Shape>),
    Object(Vec<Field>),
    OrNull(Box<Shape>),
}

/// A field: its name, what it is, and its type.
pub(super) type Field = (&'static str, &'static str, Shape);

/// A text, the fields that are to be found in it, and what they are.
pub(super) struct Document {
    pub(super) text: String,
    pub(super) fields: Vec<Field>,
    pub(super) facts: Value,
}

/// Returns a list of these.
pub(super) fn list(shape: Shape) -> Shape {
    Shape::List(Box::new(shape))
}

/// Returns something that may be unknown.
pub(super) fn or_null(shape: Shape) -> Shape {
    Shape::OrNull(Box::new(shape))
}

impl Shape {
    /// Returns the JSON Schema of the shape.
    pub(super) fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Whole => json!({"type": "integer"}),
            Self::Number => json!({"type": "number"}),
            Self::Date => json!({"type": "string", "format": "date"}),
            Self::Time => json!({"type": "string", "pattern": "^\\d\\d:\\d\\d$"}),
            Self::Flag => json!({"type": "boolean"}),
            Self::OneOf(values) => json!({"enum": values}),
            Self::List(item) => json!({"type": "array", "items": item.schema()}),
            Self::OrNull(shape) => or_null_schema(shape.schema()),
            Self::Object(fields) => {
                let properties = fields.iter().map(|it| (it.0.to_owned(), it.2.schema()));
                let required: Vec<&str> = fields.iter().map(|it| it.0).collect();
                json!({
                    "type": "object",
                    "properties": properties.collect::<Map<_, _>>(),
                    "required": required,
                    "additionalProperties": false,
                })
            }
        }
    }

    /// Returns the shape in words, for those who are not shown the schema.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Text => String::new(),
            Self::Whole => "a whole number".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Date => "YYYY-MM-DD".to_owned(),
            Self::Time => "HH:MM".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::OneOf(values) => values.join(" or "),
            Self::OrNull(shape) => shape.words(),
            Self::List(item) => match &**item {
                Self::Object(_) => format!("a list of objects with {}", item.words()),
                item if item.words().is_empty() => "a list".to_owned(),
                item => format!("a list of {}", item.words()),
            },
            Self::Object(fields) => {
                let told = |(name, about, shape): &Field| {
                    let shape = match shape {
                        Self::OrNull(inner) => inner,
                        shape => shape,
                    };
                    let words = match shape {
                        Self::Object(_) => format!("an object with {}", shape.words()),
                        shape => shape.words(),
                    };
                    let parts: Vec<&str> = [*about, &words].into_iter().filter(|it| !it.is_empty()).collect();
                    match parts.is_empty() {
                        true => (*name).to_owned(),
                        false => format!("{name} ({})", parts.join(", ")),
                    }
                };
                fields.iter().map(told).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Returns a schema with null; a type becomes a list of two types.
fn or_null_schema(schema: Value) -> Value {
    match schema {
        Value::Object(mut members) if members.get("type").is_some_and(Value::is_string) => {
            let kind = members["type"].take();
            members.insert("type".to_owned(), json!([kind, "null"]));
            Value::Object(members)
        }
        schema => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_told_in_words() {
        let shape = Shape::Object(vec![
            ("name", "", Shape::Text),
            ("born", "", Shape::Date),
            (
                "posts",
                "",
                list(Shape::Object(vec![
                    ("job", "", Shape::Text),
                    ("from", "a year", Shape::Whole),
                ])),
            ),
            (
                "hotel",
                "",
                or_null(Shape::Object(vec![("nights", "", Shape::Whole)])),
            ),
            ("fee", "in euros", or_null(Shape::Number)),
        ]);
        assert_eq!(
            shape.words(),
            "name, born (YYYY-MM-DD), posts (a list of objects with job, from (a year, a whole number)), \
             hotel (an object with nights (a whole number)), fee (in euros, a number)"
        );
        assert_eq!(
            shape.schema()["required"],
            json!(["name", "born", "posts", "hotel", "fee"])
        );
    }
}
