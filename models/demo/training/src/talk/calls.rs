//! Tools to call or not: a wish that one of them fulfils, two wishes, a wish that none fulfils, and words
//! that want none.

use super::chatter;
use super::offers::{self, Offer, function};
use super::systems;
use crate::prompt::{Call, Prompt, Turn, written};
use crate::sample::{Kind, Sample};
use crate::text::values::Values;
use crate::text::{self, any_scene, asked};
use serde_json::Value;

/// What the assistant says where no tool fits.
pub(crate) const NONE_FITS: &str = "I'm sorry, none of my tools can do that.";

/// The answer that makes these calls.
pub(crate) fn answer(calls: &[Call]) -> String {
    written(calls, Value::to_string)
}

/// Some tools, and words that ask for a call of one, of two, or of none.
pub(crate) fn auto(values: &mut Values) -> Sample {
    let count = *values.random.pick(&[1, 1, 1, 2, 2, 2, 3, 3, 4, 5]);
    let mut offers = offers::several(values, count + 1);
    let other = offers.pop().expect("at least two were asked for");
    let (wish, answer) = match values.random.below(100) {
        0..=56 => (offers[0].wish.clone(), answer(&[offers[0].call.clone()])),
        57..=66 if count > 1 => {
            let calls = [offers[0].call.clone(), offers[1].call.clone()];
            (both(values, &offers[0].wish, &offers[1].wish), answer(&calls))
        }
        57..=80 => (other.wish, NONE_FITS.to_owned()),
        _ => chatter::remark(values),
    };
    values.random.shuffle(&mut offers);
    sample(values, offers, wish, answer)
}

fn sample(values: &mut Values, offers: Vec<Offer>, wish: String, answer: String) -> Sample {
    let mut turns = Vec::new();
    if values.random.chance(30) {
        turns.push(Turn::System(systems::system(values)));
    }
    turns.push(Turn::User(wish));
    Sample {
        kind: Kind::Auto,
        prompt: Prompt {
            tools: offers.into_iter().map(|offer| offer.tool).collect(),
            turns,
            sketch: None,
        },
        schema: None,
        answer,
    }
}

/// Two wishes in one message.
fn both(values: &mut Values, first: &str, second: &str) -> String {
    let end = |text: &str| text.trim_end_matches(['.', '?', '!']).to_owned();
    let small = |text: &str| {
        let mut letters = text.chars();
        let first: String = letters
            .next()
            .map(|letter| letter.to_lowercase().to_string())
            .unwrap_or_default();
        // "I" and names of services stay as they are.
        match letters.next() {
            Some(' ' | '\'') | None => text.to_owned(),
            Some(_) => first + &text[text.chars().next().map_or(0, char::len_utf8)..],
        }
    };
    match values.random.below(5) {
        0 => format!("{}. {second}", end(first)),
        1 => format!("{}, then {}", end(first), small(second)),
        2 => format!("{}. Also, {}", end(first), small(second)),
        _ => format!("{} and {}", end(first), small(second)),
    }
}

/// The names by which frameworks call the tool that takes the answer.
const OUTPUTS: &[&str] = &[
    "final_result",
    "final_result",
    "final_result",
    "final_answer",
    "output",
    "answer",
    "respond",
    "submit",
    "record",
    "save",
    "extract",
    "extract_data",
    "Person",
    "Order",
    "Event",
    "Data",
    "Result",
    "Answer",
    "Record",
    "Ticket",
    "Output",
];
const OUTPUT_PURPOSES: &[&str] = &[
    "The final response which ends this conversation",
    "The final response which ends this conversation",
    "The final response which ends this conversation",
    "",
    "Save the data.",
    "The data of the text.",
    "Record what the text says.",
];

/// A tool that takes an answer under this schema.
pub(crate) fn output_tool(values: &mut Values, schema: &Value) -> (String, Value) {
    let name = *values.random.pick(OUTPUTS);
    let purpose = *values.random.pick(OUTPUT_PURPOSES);
    (name.to_owned(), function(name, purpose, schema))
}

/// A text, and one tool that takes what it says.
pub(crate) fn output(values: &mut Values) -> Sample {
    let scene = any_scene(values);
    let asked = asked(values, &scene);
    let (name, tool) = output_tool(values, &asked.schema);
    let mut turns = Vec::new();
    if values.random.chance(30) {
        turns.push(Turn::System(systems::system(values)));
    }
    turns.push(Turn::User(text::framed(values, scene.text, 15)));
    let call = Call {
        name,
        arguments: asked.answer,
    };
    Sample {
        kind: Kind::Output,
        prompt: Prompt {
            tools: vec![tool],
            turns,
            sketch: None,
        },
        schema: None,
        answer: answer(&[call]),
    }
}
