//! The few words of conversation that the model knows, for requests that want no JSON.

use super::values::Values;

const GREETINGS: &[&str] = &[
    "Hello",
    "Hi",
    "Hey",
    "Good morning",
    "Hello!",
    "Hi!",
    "Hi there",
    "Good evening",
];
const QUESTIONS: &[&str] = &[
    "Who are you?",
    "What can you do?",
    "What are you?",
    "Tell me a joke.",
    "Write a poem.",
    "How are you?",
    "Help",
    "What is 2 + 2?",
    "Explain gravity.",
    "What is the meaning of life?",
    "Can you help me?",
    "Say something.",
    "Test",
    "Tell me a story.",
    "Who made you?",
    "What is your name?",
    "Write a short text about cats.",
    "Tell me about you.",
];
/// The whole of its wisdom.
pub(crate) const ABOUT: &str =
    "I am a small demo model. Give me a short text and a JSON Schema, and I will write the JSON.";

/// A remark and the reply to it.
pub(crate) fn chat(values: &mut Values) -> (String, String) {
    let name = values.person();
    match values.random.below(4) {
        0 => (
            (*values.random.pick(GREETINGS)).to_owned(),
            format!("Hello! {ABOUT}"),
        ),
        1 => {
            let greeting = values.random.pick(GREETINGS).trim_end_matches('!');
            (
                format!("{greeting}, I am {name}."),
                format!("Hello, {name}! {ABOUT}"),
            )
        }
        _ => ((*values.random.pick(QUESTIONS)).to_owned(), ABOUT.to_owned()),
    }
}
