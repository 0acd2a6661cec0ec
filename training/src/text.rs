//! Writes the text that the demo model learns from.
//!
//! ```text
//!  people, orders, events, …  ──scene──► text + facts ──ask──► schema + answer ──► Sample
//!      ▲                                                          │
//!  words, values, dates                                        sketch (lexiform::schema::sketch)
//! ```
//!
//! A sample is a prompt and its only right answer. The model never sees a schema, only its sketch. Everything follows
//! from a seed; samples for training and for measuring come from different seeds, and those of [`Words::Unseen`] hold
//! only names that training has never shown.

mod catalog;
mod chat;
mod dates;
mod events;
mod facts;
mod orders;
mod people;
mod scene;
mod tickets;
mod tools;
mod travel;
mod values;
mod words;

use lexiform::schema::sketch::sketch;
use scene::{Asked, KeyStyle, Questioner, Scene};
use serde_json::{Value, json};
use values::Values;
pub(crate) use values::Words;

/// A prompt and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// What the user writes.
    pub(crate) text: String,
    /// The JSON Schema of the answer; `None` where the answer is free.
    pub(crate) schema: Option<Value>,
    /// What the prompt shows of the schema.
    pub(crate) sketch: Option<String>,
    /// The answer.
    pub(crate) answer: String,
}

/// An endless source of samples.
pub(crate) struct Writer {
    values: Values,
}

type Domain = fn(&mut Values) -> Scene;

/// Every domain with its weight in the mix.
const DOMAINS: &[(usize, Domain)] = &[
    (16, people::person),
    (6, people::group),
    (11, orders::order),
    (4, orders::purchase),
    (11, events::event),
    (9, tickets::ticket),
    (6, tickets::review),
    (5, catalog::book),
    (5, catalog::product),
    (4, catalog::firm),
    (4, travel::reservation),
    (4, travel::journey),
    (4, travel::weather),
    (11, facts::labelled),
];

const REQUESTS: &[&str] = &[
    "Extract the data: ",
    "Extract the information. ",
    "Parse this text: ",
    "Extract as JSON: ",
    "Read this: ",
    "Convert to JSON: ",
    "Extract the details from this text: ",
    "Fill in the form: ",
    "Text: ",
];
const AFTERTHOUGHTS: &[&str] = &[
    " Answer in JSON.",
    " Return JSON.",
    " Give me the JSON.",
    " Answer as JSON.",
    " Extract the data.",
    " What are the facts?",
    "\nReply with a JSON object.",
];

impl Writer {
    /// A writer whose samples follow from `seed`.
    pub(crate) fn new(seed: u64, words: Words) -> Self {
        Self {
            values: Values::new(seed, words),
        }
    }

    /// The next sample; `ease` percent of the samples are the simplest that there are.
    pub(crate) fn sample(&mut self, ease: usize) -> Sample {
        if self.values.random.chance(ease) {
            return self.simple();
        }
        match self.values.random.below(100) {
            0..=1 => self.small_talk(),
            2..=4 => self.without_schema(),
            5..=6 => self.bare_answer(),
            7..=15 => {
                let (text, asked) = tools::tool_call(&mut self.values);
                self.finish(text, asked)
            }
            _ => self.of_any_domain(),
        }
    }

    fn simple(&mut self) -> Sample {
        let domain: Domain =
            *self
                .values
                .random
                .pick(&[facts::echo as Domain, facts::labelled, people::person]);
        self.of(domain)
    }

    fn of_any_domain(&mut self) -> Sample {
        let total = DOMAINS.iter().map(|domain| domain.0).sum();
        let mut ticket = self.values.random.below(total);
        for &(weight, domain) in DOMAINS {
            if ticket < weight {
                return self.of(domain);
            }
            ticket -= weight;
        }
        unreachable!("the ticket is below the sum of the weights")
    }

    fn of(&mut self, domain: Domain) -> Sample {
        let scene = domain(&mut self.values);
        let style = if self.values.random.chance(75) {
            KeyStyle::Snake
        } else {
            KeyStyle::Camel
        };
        let asked = Questioner {
            random: &mut self.values.random,
            style,
            plain: false,
        }
        .ask(&scene);
        self.finish(scene.text, asked)
    }

    fn finish(&mut self, text: String, asked: Asked) -> Sample {
        let text = self.framed(text, 15);
        let sketch = sketch(&asked.schema);
        Sample {
            text,
            sketch: Some(sketch),
            answer: asked.answer.to_string(),
            schema: Some(asked.schema),
        }
    }

    /// Now and then with a request around the text, as people write them.
    fn framed(&mut self, text: String, percent: usize) -> String {
        let random = &mut self.values.random;
        match random.chance(percent) {
            true if random.chance(60) => format!("{}{text}", random.pick(REQUESTS)),
            true => format!("{text}{}", random.pick(AFTERTHOUGHTS)),
            false => text,
        }
    }

    fn small_talk(&mut self) -> Sample {
        let (text, answer) = chat::chat(&mut self.values);
        Sample {
            text,
            schema: None,
            sketch: None,
            answer,
        }
    }

    /// The schema says no more than "an object", or there is none and the text asks for JSON.
    fn without_schema(&mut self) -> Sample {
        let domain: Domain =
            *self
                .values
                .random
                .pick(&[people::person as Domain, orders::order, events::event]);
        let scene = domain(&mut self.values);
        let asked = Questioner {
            random: &mut self.values.random,
            style: KeyStyle::Snake,
            plain: true,
        }
        .ask(&scene);
        let mut sample = self.finish(String::new(), asked);
        sample.text = self.framed(scene.text.clone(), 100);
        if self.values.random.chance(60) {
            let schema = json!({"type": "object"});
            sample.text = if self.values.random.chance(50) {
                scene.text
            } else {
                sample.text
            };
            sample.sketch = Some(sketch(&schema));
            sample.schema = Some(schema);
        } else {
            sample.schema = None;
            sample.sketch = None;
        }
        sample
    }

    /// An answer that is no object: one value of a scene, under the schema that the value has.
    fn bare_answer(&mut self) -> Sample {
        let domain: Domain =
            *self
                .values
                .random
                .pick(&[tickets::review as Domain, facts::echo, people::group]);
        let scene = domain(&mut self.values);
        let wanted = match &scene.said[..] {
            [_, mood, ..] if mood.slot == "mood" => mood.clone(),
            [first, ..] => first.clone(),
            [] => unreachable!("every scene says something"),
        };
        let scene = Scene {
            said: vec![wanted],
            ..scene
        };
        let asked = Questioner {
            random: &mut self.values.random,
            style: KeyStyle::Snake,
            plain: false,
        }
        .ask(&scene);
        let inner = |value: &Value| value.as_object().and_then(|map| map.values().next().cloned());
        match (inner(&asked.schema["properties"]), inner(&asked.answer)) {
            (Some(schema), Some(answer)) => self.finish(scene.text, Asked { schema, answer }),
            _ => self.finish(scene.text, asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Words, Writer};
    use serde_json::Value;

    #[test]
    fn a_seed_names_its_samples() {
        let answers = |seed| {
            (0..20)
                .map(|_| Writer::new(seed, Words::Seen).sample(0).answer)
                .collect::<Vec<_>>()
        };
        assert_eq!(answers(3), answers(3));
        assert_ne!(answers(3), answers(4));
    }

    #[test]
    fn answers_are_valid_under_their_schemas() {
        for (seed, words) in [(5, Words::Seen), (6, Words::Unseen)] {
            let mut writer = Writer::new(seed, words);
            for _ in 0..1500 {
                let sample = writer.sample(10);
                let Some(schema) = sample.schema else { continue };
                let answer: Value =
                    serde_json::from_str(&sample.answer).expect("an answer under a schema is JSON");
                assert!(
                    jsonschema::is_valid(&schema, &answer),
                    "{} under {schema}",
                    sample.answer
                );
            }
        }
    }

    #[test]
    fn free_strings_stand_in_the_text() {
        let mut writer = Writer::new(8, Words::Seen);
        for _ in 0..1500 {
            let sample = writer.sample(10);
            let Some(schema) = sample.schema else { continue };
            let answer: Value =
                serde_json::from_str(&sample.answer).expect("an answer under a schema is JSON");
            for value in copied(&schema, &answer) {
                assert!(
                    sample.text.contains(value) || spelled(value),
                    "{value} in {}",
                    sample.text
                );
            }
        }
    }

    /// The strings of `answer` for which `schema` names neither choices nor a format.
    fn copied<'a>(schema: &Value, answer: &'a Value) -> Vec<&'a str> {
        match answer {
            Value::String(text) if *schema == serde_json::json!({"type": "string"}) => vec![text],
            Value::Array(items) => items
                .iter()
                .flat_map(|item| copied(&schema["items"], item))
                .collect(),
            Value::Object(map) => map
                .iter()
                .flat_map(|(key, value)| copied(&schema["properties"][key], value))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Small counts may be written as words in the text.
    fn spelled(value: &str) -> bool {
        value.parse::<u32>().is_ok_and(|count| count <= 12)
    }
}
