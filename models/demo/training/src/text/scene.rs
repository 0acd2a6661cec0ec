//! From facts to a text and the JSON that answers a schema about it.
//!
//! A domain (people, orders, …) draws *facts*, each with the words that the text uses for it, the keys under
//! which a schema may ask for it, and its JSON value. Sentence templates say facts; only what the text says
//! can be asked for.
//!
//! ```text
//!  facts ──► sentences "{name} is {age} years old." ──► text
//!    └─────► a random subset, order and naming of keys ──► schema, sketch, answer
//! ```

use crate::random::Random;
use serde_json::{Map, Number, Value, json};

/// A value that an answer holds, with enough about it to write its schema.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A string, copied from the text.
    Text(String),
    /// A string with a JSON Schema `format`, and the words to answer where the schema asks for any string.
    Formatted(&'static str, String, String),
    /// A whole number.
    Integer(i64),
    /// A number, written as the text writes it.
    Number(String),
    /// True or false.
    Flag(bool),
    /// One of a fixed set of strings.
    Choice(&'static str, Vec<&'static str>),
    /// A list of strings or numbers.
    List(Vec<Node>),
    /// An object inside the object.
    Object(Vec<Fact>),
    /// A list of objects, all with the same facts.
    Rows(Vec<Vec<Fact>>),
}

/// One thing that a text may say.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// The name by which templates mention it.
    pub(crate) slot: &'static str,
    /// The words that stand in the text.
    pub(crate) words: String,
    /// The keys under which a schema may ask for it, the most usual first.
    pub(crate) keys: &'static [&'static str],
    /// What the answer holds.
    pub(crate) node: Node,
}

/// A fact whose words in the text and JSON string are the same.
pub(crate) fn text(slot: &'static str, keys: &'static [&'static str], words: impl Into<String>) -> Fact {
    let words = words.into();
    Fact {
        slot,
        keys,
        node: Node::Text(words.clone()),
        words,
    }
}

/// A fact that is a whole number.
pub(crate) fn integer(slot: &'static str, keys: &'static [&'static str], value: i64) -> Fact {
    Fact {
        slot,
        keys,
        node: Node::Integer(value),
        words: value.to_string(),
    }
}

/// A fact whose words differ from its value.
pub(crate) fn fact(
    slot: &'static str,
    keys: &'static [&'static str],
    words: impl Into<String>,
    node: Node,
) -> Fact {
    Fact {
        slot,
        keys,
        words: words.into(),
        node,
    }
}

/// A text with the facts that it says, and others of the same kind that it does not say.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    /// The text.
    pub(crate) text: String,
    /// What the text says.
    pub(crate) said: Vec<Fact>,
    /// What might have been said; a schema may ask for it and has to take "nothing" for an answer.
    pub(crate) unsaid: Vec<Fact>,
}

/// Writes a text from `openers` (one is used) and `followers` (some are), and sorts the facts into said and
/// unsaid.
///
/// A follower is used only where it says something new and nothing twice, so that each fact has one place in
/// the text.
pub(crate) fn compose(random: &mut Random, facts: Vec<Fact>, openers: &[&str], followers: &[&str]) -> Scene {
    let opener = *random.pick(openers);
    let mut sentences = vec![opener];
    let mut covered = slots(opener);
    let wish = random.below(4);
    for index in random.positions(followers.len(), followers.len()) {
        let wanted = slots(followers[index]);
        if sentences.len() <= wish && !wanted.is_empty() && wanted.iter().all(|slot| !covered.contains(slot))
        {
            covered.extend(&wanted);
            sentences.push(followers[index]);
        }
    }
    let text = sentences
        .iter()
        .map(|sentence| fill(sentence, &facts))
        .collect::<Vec<_>>()
        .join(" ");
    let (said, unsaid) = facts.into_iter().partition(|fact| covered.contains(&fact.slot));
    Scene { text, said, unsaid }
}

/// The slots that a template mentions; `{they}`-like slots of grammar are marked by a leading underscore and
/// left out.
fn slots(template: &str) -> Vec<&str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
        .filter(|slot| !slot.starts_with('_'))
        .collect()
}

/// Puts the words of `facts` into the places that `template` has for them.
pub(crate) fn fill(template: &str, facts: &[Fact]) -> String {
    let mut out = String::new();
    let mut parts = template.split('{');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (slot, rest) = part.split_once('}').unwrap_or((part, ""));
        match facts.iter().find(|fact| fact.slot == slot) {
            Some(fact) => out.push_str(&fact.words),
            None => panic!("the template {template:?} names {slot:?}, which no fact has"),
        }
        out.push_str(rest);
    }
    out
}

/// How keys are written in one schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyStyle {
    /// `due_date`
    Snake,
    /// `dueDate`
    Camel,
}

impl KeyStyle {
    /// Writes a key that is given in small letters and underscores.
    pub(crate) fn write(self, key: &str) -> String {
        if self == Self::Snake {
            return key.to_owned();
        }
        let mut words = key.split('_');
        let mut out = words.next().unwrap_or_default().to_owned();
        for word in words {
            let mut letters = word.chars();
            out.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            out.push_str(letters.as_str());
        }
        out
    }
}

/// A question about a scene, and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The JSON Schema.
    pub(crate) schema: Value,
    /// The answer, valid under it.
    pub(crate) answer: Value,
}

/// Draws schemas about facts.
pub(crate) struct Questioner<'a> {
    /// Where the choices come from.
    pub(crate) random: &'a mut Random,
    /// How keys are written.
    pub(crate) style: KeyStyle,
    /// How much is left to chance.
    pub(crate) manner: Manner,
}

/// How much of a question is left to chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Everything: which facts, in which order, under which keys and as which types.
    Free,
    /// Everything but the values, which have the types and the words that they have in the text: what a
    /// request expects that only names keys.
    Named,
    /// Nothing: every fact under its most usual key, in order. What a request expects that names nothing.
    Plain,
}

impl Questioner<'_> {
    /// Asks for some of the facts of `scene`; now and then for one that the text does not say.
    pub(crate) fn ask(&mut self, scene: &Scene) -> Asked {
        let mut object = self.object(&scene.said);
        if self.manner == Manner::Free && !scene.unsaid.is_empty() && self.random.chance(12) {
            self.ask_for_nothing(&mut object, scene);
        }
        let asked = object.finish();
        if self.manner == Manner::Free && self.random.chance(5) {
            return self.wrapped(asked);
        }
        asked
    }

    /// Asks for all of `facts`, in their order.
    pub(crate) fn all(&mut self, facts: &[Fact]) -> Asked {
        self.drawn(facts, (0..facts.len()).collect()).finish()
    }

    /// Asks for all of `said` and, as what may be left out, for `unsaid`: the arguments of a tool.
    pub(crate) fn arguments(&mut self, said: &[Fact], unsaid: &[Fact]) -> Asked {
        let mut drawn = Drawn::default();
        for fact in said {
            let key = self.key(fact, &drawn);
            let Asked { schema, answer } = self.node(&fact.node);
            drawn.push(key, schema, Some(answer), self.random.chance(88));
        }
        for fact in unsaid {
            let key = self.key(fact, &drawn);
            let schema = self.node(&fact.node).schema;
            let schema = match self.random.chance(30) {
                true => json!({"anyOf": [schema, {"type": "null"}], "default": null}),
                false => schema,
            };
            drawn.push(key, schema, None, false);
        }
        drawn.finish()
    }

    fn object(&mut self, facts: &[Fact]) -> Drawn {
        let chosen = self.choose(facts.len());
        self.drawn(facts, chosen)
    }

    fn drawn(&mut self, facts: &[Fact], chosen: Vec<usize>) -> Drawn {
        let mut drawn = Drawn::default();
        for index in chosen {
            let fact = &facts[index];
            let key = self.key(fact, &drawn);
            let Asked { schema, answer } = self.node(&fact.node);
            drawn.push(key, schema, Some(answer), true);
        }
        drawn
    }

    fn choose(&mut self, len: usize) -> Vec<usize> {
        if self.manner == Manner::Plain {
            return (0..len).collect();
        }
        let count = if self.random.chance(45) {
            len
        } else {
            1 + self.random.below(len)
        };
        let mut chosen = self.random.positions(len, count);
        if self.random.chance(50) {
            chosen.sort_unstable();
        }
        chosen
    }

    fn key(&mut self, fact: &Fact, drawn: &Drawn) -> String {
        let first = if self.manner == Manner::Plain || self.random.chance(50) {
            0
        } else {
            self.random.below(fact.keys.len())
        };
        let mut names = fact.keys[first..]
            .iter()
            .chain(fact.keys)
            .map(|key| self.style.write(key));
        names
            .find(|name| !drawn.has(name))
            .unwrap_or_else(|| format!("{}_2", fact.slot))
    }

    /// Puts the whole answer under one key.
    fn wrapped(&mut self, asked: Asked) -> Asked {
        let key = *self.random.pick(&[
            "data", "result", "record", "info", "details", "entry", "output", "item",
        ]);
        let mut drawn = Drawn::default();
        drawn.push(key.to_owned(), asked.schema, Some(asked.answer), true);
        drawn.finish()
    }

    fn ask_for_nothing(&mut self, drawn: &mut Drawn, scene: &Scene) {
        let fact = self.random.pick(&scene.unsaid);
        let key = self.key(fact, drawn);
        if scene
            .said
            .iter()
            .any(|said| said.keys.iter().any(|other| self.style.write(other) == key))
        {
            // The key could as well mean something that the text does say.
            return;
        }
        let schema = self.node(&fact.node).schema;
        if self.random.chance(50) {
            drawn.push(key, schema, None, false);
        } else {
            drawn.push(
                key,
                json!({"anyOf": [schema, {"type": "null"}]}),
                Some(Value::Null),
                true,
            );
        }
        if self.random.chance(50) {
            drawn.rotate(self.random.below(drawn.entries.len()));
        }
    }

    fn node(&mut self, node: &Node) -> Asked {
        match node {
            Node::Text(text) => Asked {
                schema: json!({"type": "string"}),
                answer: json!(text),
            },
            Node::Formatted(format, text, words) => {
                match self.manner == Manner::Free && self.random.chance(60) {
                    true => Asked {
                        schema: json!({"type": "string", "format": format}),
                        answer: json!(text),
                    },
                    false => Asked {
                        schema: json!({"type": "string"}),
                        answer: json!(words),
                    },
                }
            }
            Node::Integer(value) => self.numeral("integer", &value.to_string()),
            Node::Number(digits) => self.numeral("number", digits),
            Node::Flag(value) => Asked {
                schema: json!({"type": "boolean"}),
                answer: json!(value),
            },
            Node::Choice(value, options) => self.choice(value, options),
            Node::List(items) => self.list(items),
            Node::Object(facts) => self.object(facts).finish(),
            Node::Rows(rows) => self.rows(rows),
        }
    }

    /// Some schemas want a number as a string, and some a whole number under the wider name.
    fn numeral(&mut self, kind: &str, digits: &str) -> Asked {
        match self.random.below(20) {
            0 if self.manner == Manner::Free => Asked {
                schema: json!({"type": "string"}),
                answer: json!(digits),
            },
            1 if self.manner == Manner::Free => Asked {
                schema: json!({"type": "number"}),
                answer: number(digits),
            },
            _ => Asked {
                schema: json!({"type": kind}),
                answer: number(digits),
            },
        }
    }

    /// Schemas write their choices in small letters, in capitals or as titles; the text does not follow them.
    fn choice(&mut self, value: &str, options: &[&'static str]) -> Asked {
        let mut options = options.to_vec();
        if self.random.chance(50) {
            self.random.shuffle(&mut options);
        }
        let write: fn(&str) -> String = match self.random.below(10) {
            _ if self.manner != Manner::Free => str::to_owned,
            0 => str::to_uppercase,
            1 | 2 => super::values::capital,
            _ => str::to_owned,
        };
        let options: Vec<String> = options.into_iter().map(write).collect();
        Asked {
            schema: json!({"type": "string", "enum": options}),
            answer: json!(write(value)),
        }
    }

    /// All items must have one schema; see [`Questioner::rows`].
    fn list(&mut self, items: &[Node]) -> Asked {
        let before = self.random.clone();
        let mut ask = |item| {
            *self.random = before.clone();
            self.node(item)
        };
        let asked: Vec<Asked> = items.iter().map(&mut ask).collect();
        let schema = asked.first().map_or(json!({}), |first| first.schema.clone());
        let answer = asked.into_iter().map(|one| one.answer).collect();
        Asked {
            schema: json!({"type": "array", "items": schema}),
            answer: Value::Array(answer),
        }
    }

    /// All rows must be asked the same, so the choices of the first are made again for the others from a copy
    /// of the generator.
    fn rows(&mut self, rows: &[Vec<Fact>]) -> Asked {
        let before = self.random.clone();
        let mut items = json!({});
        let mut answer = Vec::new();
        for row in rows {
            *self.random = before.clone();
            let asked = self.object(row).finish();
            items = asked.schema;
            answer.push(asked.answer);
        }
        Asked {
            schema: json!({"type": "array", "items": items}),
            answer: Value::Array(answer),
        }
    }
}

fn number(digits: &str) -> Value {
    Value::Number(digits.parse::<Number>().expect("facts hold well-formed numbers"))
}

/// An object under construction.
#[derive(Default)]
struct Drawn {
    entries: Vec<(String, Value, Option<Value>, bool)>,
}

impl Drawn {
    fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.0 == name)
    }

    fn push(&mut self, key: String, schema: Value, answer: Option<Value>, required: bool) {
        self.entries.push((key, schema, answer, required));
    }

    fn rotate(&mut self, by: usize) {
        self.entries.rotate_right(by);
    }

    fn finish(self) -> Asked {
        let mut properties = Map::new();
        let mut answer = Map::new();
        let mut required = Vec::new();
        for (key, schema, value, needed) in self.entries {
            if needed {
                required.push(Value::from(key.as_str()));
            }
            if let Some(value) = value {
                answer.insert(key.clone(), value);
            }
            properties.insert(key, schema);
        }
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        Asked {
            schema,
            answer: Value::Object(answer),
        }
    }
}
