//! Tools with a wish that each fulfils: those that everybody writes first, and any number of invented ones.

use super::nouns::{NOUNS, VERBS, Verb};
use super::slots;
use crate::prompt::Call;
use crate::text::scene::{Fact, KeyStyle, Manner, Questioner};
use crate::text::tools::{self, TOOLS};
use crate::text::values::{Values, Words, capital};
use crate::text::words;
use serde_json::{Value, json};

/// A tool, a wish in words, and the call that fulfils it.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The tool as the API has it.
    pub(crate) tool: Value,
    /// What the user says.
    pub(crate) wish: String,
    /// What the assistant calls.
    pub(crate) call: Call,
    /// What the tool is about; two tools about the same could fulfil the same wish.
    pub(crate) about: String,
}

/// Any tool.
pub(crate) fn any(values: &mut Values) -> Offer {
    // Nothing about the known ones is kept from training.
    if values.words == Words::Seen && values.random.chance(35) {
        known(values)
    } else {
        invented(values)
    }
}

/// `count` tools, no two of which could fulfil the same wish.
pub(crate) fn several(values: &mut Values, count: usize) -> Vec<Offer> {
    let mut offers: Vec<Offer> = Vec::new();
    while offers.len() < count {
        let offer = any(values);
        let name = |offer: &Offer| offer.call.name.clone();
        if !offers
            .iter()
            .any(|other| other.about == offer.about || name(other) == name(&offer))
        {
            offers.push(offer);
        }
    }
    offers
}

/// Writes a tool as the API has it.
pub(crate) fn function(name: &str, description: &str, parameters: &Value) -> Value {
    let mut function = json!({"name": name});
    if !description.is_empty() {
        function["description"] = json!(description);
    }
    function["parameters"] = parameters.clone();
    json!({"type": "function", "function": function})
}

/// How the keys of a tool are written.
fn style(values: &mut Values) -> KeyStyle {
    if values.random.chance(80) {
        KeyStyle::Snake
    } else {
        KeyStyle::Camel
    }
}

/// A tool out of the list that the extraction of calls uses, too.
fn known(values: &mut Values) -> Offer {
    let number = values.random.below(TOOLS.len());
    let tool = &TOOLS[number];
    let scene = tools::wish(values, tool);
    let style = style(values);
    let extra = *values.random.pick(&[0, 0, 0, 1]);
    let unsaid: Vec<Fact> = slots::draw(values, extra)
        .into_iter()
        .map(|slot| slot.0)
        .collect();
    let asked = Questioner {
        random: &mut values.random,
        style,
        manner: Manner::Free,
    }
    .arguments(&scene.said, &unsaid);
    let key = *values.random.pick(tool.names);
    let name = style.write(key);
    let description = match values.random.below(10) {
        0 => String::new(),
        1 => tool.purpose.trim_end_matches('.').to_owned(),
        _ => tool.purpose.to_owned(),
    };
    Offer {
        tool: function(&name, &description, &asked.schema),
        wish: scene.text,
        call: Call {
            name,
            arguments: asked.answer,
        },
        about: tool.names[0].to_owned(),
    }
}

/// A tool that no list has.
fn invented(values: &mut Values) -> Offer {
    let number = values.random.below(VERBS.len());
    let verb = &VERBS[number];
    let noun = noun(values);
    let said = *values.random.pick(&[0, 1, 1, 1, 1, 2, 2, 2, 3]);
    let unsaid = *values.random.pick(&[0, 0, 0, 0, 1, 1]);
    let mut slots = slots::draw(values, said + unsaid);
    let unsaid: Vec<Fact> = slots.split_off(said).into_iter().map(|slot| slot.0).collect();
    let mut phrases: Vec<String> = slots
        .iter()
        .map(|(fact, way)| way.replace("{}", &fact.words))
        .collect();
    values.random.shuffle(&mut phrases);
    let wish = wish(values, verb, &noun, &phrases.concat());
    let style = style(values);
    let facts: Vec<Fact> = slots.into_iter().map(|slot| slot.0).collect();
    let asked = Questioner {
        random: &mut values.random,
        style,
        manner: Manner::Free,
    }
    .arguments(&facts, &unsaid);
    let name = name(values, verb, &noun, style);
    let description = description(values, verb, &noun);
    Offer {
        tool: function(&name, &description, &asked.schema),
        wish,
        call: Call {
            name,
            arguments: asked.answer,
        },
        about: format!("{number} {noun}"),
    }
}

fn noun(values: &mut Values) -> String {
    match values.random.below(10) {
        0 => values.from(words::GOODS),
        1 => format!("{} {}", values.from(words::TOPICS), values.from(NOUNS)),
        _ => values.from(NOUNS),
    }
}

fn name(values: &mut Values, verb: &Verb, noun: &str, style: KeyStyle) -> String {
    let verbs: Vec<&str> = verb.names.split('|').collect();
    let verb = *values.random.pick(&verbs);
    let noun = noun.to_lowercase().replace(' ', "_");
    let snake = if values.random.chance(8) {
        format!("{noun}_{verb}")
    } else {
        format!("{verb}_{noun}")
    };
    match values.random.below(20) {
        0 => snake.replace('_', "-"),
        _ => style.write(&snake),
    }
}

fn description(values: &mut Values, verb: &Verb, noun: &str) -> String {
    let verb = verb.names.split('|').next().unwrap_or_default().replace('_', " ");
    let article = if "aeiou".contains(noun.chars().next().unwrap_or('x')) {
        "an"
    } else {
        "a"
    };
    match values.random.below(8) {
        0 => String::new(),
        1 => format!("{} {article} {noun}", capital(&verb)),
        2 => format!("{} the {noun}.", capital(&verb)),
        3 => format!("Use this to {verb} {article} {noun}."),
        4 => format!("Tool to {verb} {article} {noun} of the user."),
        5 => format!("{} {article} {noun} in {}.", capital(&verb), values.company()),
        _ => format!("{} {article} {noun}.", capital(&verb)),
    }
}

fn wish(values: &mut Values, verb: &Verb, noun: &str, rest: &str) -> String {
    let asked = *values.random.pick(verb.wishes);
    let asked = match noun.chars().next() {
        Some('a' | 'e' | 'i' | 'o') if asked.ends_with(" a") => format!("{asked}n {noun}{rest}"),
        _ => format!("{asked} {noun}{rest}"),
    };
    match values.random.below(12) {
        0 => format!("Please {asked}."),
        1 => format!("Can you {asked}?"),
        2 => format!("Could you please {asked}?"),
        3 => format!("I want you to {asked}."),
        4 => format!("{}, please.", capital(&asked)),
        5 => format!("Hi, {asked}."),
        6 => asked,
        7 => format!("I need you to {asked}."),
        8 => capital(&asked),
        _ => format!("{}.", capital(&asked)),
    }
}
