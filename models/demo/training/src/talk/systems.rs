//! System messages: what an assistant is, what it shall do, and much that does not matter for the answer.

use crate::text::values::Values;
use crate::text::words;

const ROLES: &[&str] = &[
    "You are a helpful assistant.",
    "You are a helpful AI assistant.",
    "You are an assistant for {company}.",
    "You are {name}, an assistant of {company}.",
    "You work for {company}, which sells {goods}.",
    "You are an expert in {topic}.",
    "You are a {adjective} assistant that helps with {topic}.",
    "You are an information extraction system.",
    "You are a data entry assistant.",
    "You help the staff of {company} in {city}.",
    "Act as a {job}.",
];
const TASKS: &[&str] = &[
    "Extract the data from the text of the user.",
    "Extract the requested information.",
    "Read the text and fill in the fields.",
    "Answer with JSON only.",
    "Your answer must be valid JSON.",
    "Do not add anything that is not in the text.",
    "Return the values exactly as they are written.",
    "Use the tools when they fit.",
    "Use null where the text says nothing.",
];
const RULES: &[&str] = &[
    "Be brief.",
    "Be polite and precise.",
    "Answer in English.",
    "Never make up facts.",
    "Do not explain your answer.",
    "Think about {topic} before you answer.",
    "Today is {weekday}.",
    "Customers of {company} come first.",
    "If something is unclear, do what is most likely.",
    "The user lives in {city}.",
    "Prices are in dollars.",
    "Do not talk about {topic} or {goods}.",
    "{company} was founded in {city} by {person}.",
    "The office of {company} is in {city}; it opens at nine.",
    "Write names as they are written in the text.",
    "Keep all {topic} data confidential.",
    "The manager is {person}.",
    "Requests about {goods} go to {person}.",
];

/// A system message of one to some sentences; about one in ten is as long as the instructions of a real
/// service.
pub(crate) fn system(values: &mut Values) -> String {
    let rules = match values.random.below(10) {
        0 => 2 + values.random.below(12),
        1 | 2 => 1 + values.random.below(3),
        _ => 0,
    };
    of_length(values, rules)
}

/// A system message with that many rules in it.
pub(crate) fn of_length(values: &mut Values, rules: usize) -> String {
    let mut sentences = Vec::new();
    if values.random.chance(75) {
        sentences.push(*values.random.pick(ROLES));
    }
    if sentences.is_empty() || values.random.chance(60) {
        sentences.push(*values.random.pick(TASKS));
    }
    for _ in 0..rules {
        sentences.push(*values.random.pick(RULES));
    }
    let separator = *values.random.pick(&[" ", " ", "\n", "\n- "]);
    let filled: Vec<String> = sentences
        .into_iter()
        .map(|sentence| fill(values, sentence))
        .collect();
    filled.join(separator)
}

fn fill(values: &mut Values, sentence: &str) -> String {
    let mut out = sentence.to_owned();
    for (slot, draw) in SLOTS {
        if out.contains(slot) {
            out = out.replace(slot, &draw(values));
        }
    }
    out
}

type Draw = fn(&mut Values) -> String;

const SLOTS: &[(&str, Draw)] = &[
    ("{company}", Values::company),
    ("{name}", Values::first),
    ("{person}", Values::person),
    ("{city}", Values::city),
    ("{goods}", |values| values.from(words::GOODS)),
    ("{topic}", |values| values.from(words::TOPICS)),
    ("{adjective}", |values| {
        values.from("friendly|careful|quick|patient|formal|cheerful|concise")
    }),
    ("{job}", |values| values.from(words::JOBS)),
    ("{weekday}", |values| {
        values.from("Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday")
    }),
];
