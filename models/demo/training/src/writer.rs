//! The mix of all samples, for training and for measuring.
//!
//! Everything follows from a seed. Samples for training and for measuring come from different seeds, and
//! those of [`Words::Unseen`] hold only names, and only tools, that training has never shown.

use crate::prompt::Turn;
use crate::sample::{Kind, Sample};
use crate::talk::{self, systems};
use crate::text::values::Values;
use crate::text::{self, Words};

/// An endless source of samples.
pub(crate) struct Writer {
    values: Values,
}

/// Every kind with its weight in the mix.
const MIX: &[(usize, Kind)] = &[
    (40, Kind::Extraction),
    (8, Kind::Output),
    (24, Kind::Auto),
    (5, Kind::Result),
    (8, Kind::Keys),
    (7, Kind::Prompted),
    (5, Kind::Turns),
    (3, Kind::Talk),
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
            return text::simple(&mut self.values);
        }
        let mut ticket = self.values.random.below(MIX.iter().map(|part| part.0).sum());
        for &(weight, kind) in MIX {
            if ticket < weight {
                return self.of(kind);
            }
            ticket -= weight;
        }
        unreachable!("the ticket is below the sum of the weights")
    }

    /// The next sample of one kind.
    pub(crate) fn of(&mut self, kind: Kind) -> Sample {
        let mut sample = talk::sample(&mut self.values, kind);
        if kind == Kind::Extraction && self.values.random.chance(20) {
            let system = systems::system(&mut self.values);
            sample.prompt.turns.insert(0, Turn::System(system));
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::{Words, Writer};
    use crate::sample::{Kind, Sample};
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

    /// What an answer calls: names and arguments.
    fn calls(answer: &str) -> Vec<Value> {
        let parts = answer.split("<tool_call>").skip(1);
        parts
            .map(|part| {
                let inner = part.split("</tool_call>").next().expect("a call is closed");
                serde_json::from_str(inner).expect("a call is JSON")
            })
            .collect()
    }

    fn check(sample: &Sample) {
        for call in calls(&sample.answer) {
            let tools = sample.prompt.tools.iter().map(|tool| &tool["function"]);
            let named: Vec<&Value> = tools.filter(|tool| tool["name"] == call["name"]).collect();
            let [tool] = named[..] else {
                panic!(
                    "{} names {} of {:?}",
                    sample.answer,
                    named.len(),
                    sample.prompt.tools
                )
            };
            assert!(
                jsonschema::is_valid(&tool["parameters"], &call["arguments"]),
                "{call} for {tool}"
            );
        }
        if let Some(schema) = &sample.schema {
            let answer: Value =
                serde_json::from_str(&sample.answer).expect("an answer under a schema is JSON");
            assert!(
                jsonschema::is_valid(schema, &answer),
                "{} under {schema}",
                sample.answer
            );
        }
    }

    #[test]
    fn answers_are_valid_under_their_schemas_and_calls_under_their_tools() {
        for (seed, words) in [(5, Words::Seen), (6, Words::Unseen)] {
            let mut writer = Writer::new(seed, words);
            for _ in 0..1500 {
                check(&writer.sample(10));
            }
        }
    }

    #[test]
    fn conversations_with_tools_call_some_and_answer_others() {
        let mut writer = Writer::new(7, Words::Seen);
        let samples: Vec<Sample> = (0..300).map(|_| writer.of(Kind::Auto)).collect();
        let count = |wanted: usize| {
            let calls = samples.iter().map(|sample| calls(&sample.answer).len());
            calls.filter(|&calls| calls == wanted).count()
        };
        assert!(count(0) > 60 && count(1) > 100 && count(2) > 8);
        assert_eq!(count(0) + count(1) + count(2), samples.len());
    }

    #[test]
    fn unseen_tools_are_of_unseen_things() {
        let names = |words| -> std::collections::BTreeSet<String> {
            let mut writer = Writer::new(9, words);
            let samples = (0..600).map(|_| writer.of(Kind::Auto));
            let tools = samples.flat_map(|sample| sample.prompt.tools);
            tools.map(|tool| tool["function"]["name"].to_string()).collect()
        };
        let (seen, unseen) = (names(Words::Seen), names(Words::Unseen));
        assert!(unseen.len() > 200, "{}", unseen.len());
        assert!(
            seen.is_disjoint(&unseen),
            "{:?}",
            seen.intersection(&unseen).collect::<Vec<_>>()
        );
    }

    #[test]
    fn free_strings_stand_in_the_text() {
        let mut writer = Writer::new(8, Words::Seen);
        for _ in 0..1500 {
            let sample = writer.of(Kind::Extraction);
            let text = sample.prompt.render();
            let Some(schema) = sample.schema else { continue };
            let answer: Value =
                serde_json::from_str(&sample.answer).expect("an answer under a schema is JSON");
            for value in copied(&schema, &answer) {
                assert!(text.contains(value) || spelled(value), "{value} in {text}");
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
