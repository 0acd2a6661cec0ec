//! Words that want a sentence and no call: greetings, thanks, questions about the assistant, and what it
//! cannot know.

use super::systems;
use crate::prompt::{Prompt, Turn};
use crate::sample::{Kind, Sample};
use crate::text::chat::{self, ABOUT};
use crate::text::values::Values;
use crate::text::words;

const GREETINGS: &[&str] = &[
    "Hello",
    "Hi",
    "Hey",
    "Good morning",
    "Hello!",
    "Hi!",
    "Hi there",
    "Good evening",
    "Hello there!",
    "Good day",
    "hey there",
];
const THANKS: &[&str] = &[
    "Thanks!",
    "Thank you.",
    "Thank you very much!",
    "Great, thanks.",
    "Perfect, thank you!",
    "thanks a lot",
    "Thanks, that helps.",
];
const FAREWELLS: &[&str] = &[
    "Bye!",
    "Goodbye.",
    "See you later.",
    "That is all, bye.",
    "Good night!",
    "Have a nice day!",
];
const MOODS: &[&str] = &[
    "How are you?",
    "How are you doing?",
    "How is it going?",
    "Are you well?",
    "How do you do?",
];
const SELVES: &[&str] = &[
    "Who are you?",
    "What are you?",
    "What is your name?",
    "What's your name?",
    "Tell me about you.",
    "Introduce yourself.",
    "Who made you?",
    "Are you a robot?",
    "What can you do?",
    "Can you help me?",
    "Help",
    "How can you help me?",
];
const OPINIONS: &[&str] = &[
    "I like {topic}.",
    "I had {goods} today.",
    "I am tired.",
    "The weather was nice yesterday.",
    "I love {city}.",
    "My day was long.",
    "I am learning {topic}.",
    "{topic} is fun.",
    "What a day!",
    "I just came back from {city}.",
];
const UNKNOWN: &[&str] = &[
    "What is the capital of {country}?",
    "Who wrote {title}?",
    "Explain {topic}.",
    "Tell me a joke.",
    "Write a poem about {topic}.",
    "What is the meaning of life?",
    "Why is the sky blue?",
    "How old is {person}?",
    "Tell me a story about {goods}.",
    "What do you think of {topic}?",
    "Who invented the {goods}?",
    "How far is {city} from the moon?",
    "Write a text about {city}.",
];
/// What the assistant says to a question that it cannot answer.
const CANNOT: &str = "I'm sorry, I don't know that.";

/// A remark that wants no tool, and the reply of an assistant that has some.
pub(crate) fn remark(values: &mut Values) -> (String, String) {
    let (list, reply) = match values.random.below(12) {
        0..=2 => (GREETINGS, "Hello! How can I help you?"),
        3 | 4 => (THANKS, "You are welcome!"),
        5 => (FAREWELLS, "Goodbye!"),
        6 => (MOODS, "I am well, thank you. How can I help you?"),
        7 => (
            SELVES,
            "I am an assistant that can call tools. How can I help you?",
        ),
        8 => {
            let name = values.person();
            let greeting = values.random.pick(GREETINGS).trim_end_matches('!');
            return (
                format!("{greeting}, I am {name}."),
                format!("Hello, {name}! How can I help you?"),
            );
        }
        9 => (OPINIONS, "I see. How can I help you?"),
        _ => (UNKNOWN, CANNOT),
    };
    let line = *values.random.pick(list);
    (fill(values, line), reply.to_owned())
}

fn fill(values: &mut Values, line: &str) -> String {
    let title = format!(
        "The {}",
        crate::text::values::capital(&values.from(words::TOPICS))
    );
    line.replace("{topic}", &values.from(words::TOPICS))
        .replace("{goods}", &values.from(words::GOODS))
        .replace("{city}", &values.city())
        .replace("{country}", &values.country())
        .replace("{person}", &values.person())
        .replace("{title}", &title)
}

/// Small talk without tools, with or without a persona.
pub(crate) fn talk(values: &mut Values) -> Sample {
    let (mut turns, wish, answer) = match values.random.below(10) {
        0..=3 => {
            let (text, answer) = chat::chat(values);
            (Vec::new(), text, answer)
        }
        4..=7 => persona(values),
        _ => {
            let (text, answer) = plain(values);
            let system = values
                .random
                .chance(40)
                .then(|| Turn::System(systems::system(values)));
            (system.into_iter().collect(), text, answer)
        }
    };
    turns.push(Turn::User(wish));
    Sample {
        kind: Kind::Talk,
        prompt: Prompt {
            turns,
            ..Prompt::default()
        },
        schema: None,
        answer,
    }
}

fn plain(values: &mut Values) -> (String, String) {
    match values.random.below(4) {
        0 => (
            (*values.random.pick(THANKS)).to_owned(),
            "You are welcome!".to_owned(),
        ),
        1 => ((*values.random.pick(FAREWELLS)).to_owned(), "Goodbye!".to_owned()),
        2 => (
            (*values.random.pick(MOODS)).to_owned(),
            "I am well, thank you. How can I help you?".to_owned(),
        ),
        _ => {
            let line = *values.random.pick(UNKNOWN);
            (fill(values, line), ABOUT.to_owned())
        }
    }
}

/// A system message that gives the assistant a name and a place, and a question about them.
fn persona(values: &mut Values) -> (Vec<Turn>, String, String) {
    let (name, company, city) = (values.first(), values.company(), values.city());
    let job = values.from(words::JOBS);
    let (system, place) = match values.random.below(4) {
        0 => (
            format!("You are {name}, the assistant of {company}."),
            format!("the assistant of {company}"),
        ),
        1 => (
            format!("You are {name}, a {job} from {city}."),
            format!("a {job} from {city}"),
        ),
        2 => (
            format!("Your name is {name}. You are a {job}."),
            format!("a {job}"),
        ),
        _ => (
            format!("You are {name} from {company}."),
            format!("{name} from {company}"),
        ),
    };
    let rules = values.random.below(3);
    let more = systems::of_length(values, rules);
    let system = if values.random.chance(30) {
        format!("{system} {more}")
    } else {
        system
    };
    let (wish, answer) = match values.random.below(4) {
        0 => ("What is your name?".to_owned(), format!("My name is {name}.")),
        1 => (
            (*values.random.pick(GREETINGS)).to_owned(),
            format!("Hello! I am {name}. How can I help you?"),
        ),
        _ if place.starts_with(&name) => ("Who are you?".to_owned(), format!("I am {place}.")),
        _ => ("Who are you?".to_owned(), format!("I am {name}, {place}.")),
    };
    (vec![Turn::System(system)], wish, answer)
}
