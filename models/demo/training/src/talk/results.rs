//! Results of tools: told in a sentence, or handed on to the tool that ends the conversation.

use super::calls::{answer, output_tool};
use super::offers;
use super::systems;
use crate::prompt::{Call, Prompt, Turn, python};
use crate::sample::{Kind, Sample};
use crate::text::facts;
use crate::text::people::listed;
use crate::text::scene::{Fact, KeyStyle, Manner, Questioner};
use crate::text::values::{Values, capital};
use crate::text::words;
use crate::text::{any_scene, asked};
use serde_json::{Map, Value, json};

/// A wish, the call that was made for it, and what came of it.
pub(crate) fn result(values: &mut Values) -> Sample {
    if values.random.chance(30) {
        return handed_on(values);
    }
    let count = 1 + values.random.below(3);
    let offers = offers::several(values, count);
    let (content, said) = outcome(values);
    let mut turns = opening(values);
    turns.push(Turn::User(offers[0].wish.clone()));
    turns.push(Turn::Calls(vec![offers[0].call.clone()]));
    turns.push(Turn::Tool(content));
    let mut tools: Vec<Value> = offers.into_iter().map(|offer| offer.tool).collect();
    values.random.shuffle(&mut tools);
    finish(tools, turns, said)
}

/// With a tool for the final answer among the tools: the wish is not fulfilled before that one is called.
fn handed_on(values: &mut Values) -> Sample {
    let count = 1 + values.random.below(3);
    let offers = offers::several(values, count);
    let mut turns = opening(values);
    turns.push(Turn::User(offers[0].wish.clone()));
    let scene = any_scene(values);
    let asked = asked(values, &scene);
    let (name, output) = output_tool(values, &asked.schema);
    let call = match values.random.chance(35) {
        true => offers[0].call.clone(),
        false => {
            turns.push(Turn::Calls(vec![offers[0].call.clone()]));
            turns.push(Turn::Tool(scene.text));
            Call {
                name,
                arguments: asked.answer,
            }
        }
    };
    let mut tools: Vec<Value> = offers.into_iter().map(|offer| offer.tool).collect();
    values.random.shuffle(&mut tools);
    // Frameworks list it last.
    tools.push(output);
    finish(tools, turns, answer(&[call]))
}

fn opening(values: &mut Values) -> Vec<Turn> {
    match values.random.chance(25) {
        true => vec![Turn::System(systems::system(values))],
        false => Vec::new(),
    }
}

fn finish(tools: Vec<Value>, turns: Vec<Turn>, answer: String) -> Sample {
    Sample {
        kind: Kind::Result,
        prompt: Prompt {
            tools,
            turns,
            sketch: None,
        },
        schema: None,
        answer,
    }
}

/// What a tool gave back, and the sentence that tells it.
fn outcome(values: &mut Values) -> (String, String) {
    match values.random.below(12) {
        0..=4 => object(values),
        5 => {
            let number = values.amount();
            (number.clone(), format!("The result is {number}."))
        }
        6 => {
            let done = [
                "ok",
                "done",
                "OK",
                "Done.",
                "success",
                "true",
                "null",
                r#"{"status": "ok"}"#,
                r#"{"ok": true}"#,
                r#"{"success": true}"#,
                r#"{"status":"success"}"#,
                r#"{"status": "done"}"#,
            ];
            ((*values.random.pick(&done)).to_owned(), "Done.".to_owned())
        }
        7 => {
            let trouble = values.from(words::TROUBLES);
            let content = match values.random.below(3) {
                0 => format!("Error: {trouble}"),
                1 => json!({"error": trouble}).to_string(),
                _ => python(&json!({"error": trouble})),
            };
            (content, format!("That did not work: {trouble}."))
        }
        8 => several(values),
        _ => {
            // A sentence is passed on as it is.
            let scene = any_scene(values);
            let text = scene.text.replace('\n', " ");
            let told = if text.ends_with(['.', '!', '?']) {
                text.clone()
            } else {
                format!("{text}.")
            };
            (text, told)
        }
    }
}

/// An object of labelled values: "The serial number is X7 and the size is 12."
fn object(values: &mut Values) -> (String, String) {
    let mut scene = facts::labelled(values);
    scene.said.truncate(4);
    let parts: Vec<String> = scene
        .said
        .iter()
        .map(|fact| format!("the {} is {}", fact.keys[0].replace('_', " "), fact.words))
        .collect();
    let mut content = Map::new();
    for fact in &scene.said {
        content.insert(fact.keys[0].to_owned(), as_written(values, fact));
    }
    let content = Value::Object(content);
    let content = match values.random.chance(50) {
        true => content.to_string(),
        false => python(&content),
    };
    (content, format!("{}.", capital(&listed(&parts))))
}

/// The value of a fact, as the text has it.
fn as_written(values: &mut Values, fact: &Fact) -> Value {
    let asked = Questioner {
        random: &mut values.random,
        style: KeyStyle::Snake,
        manner: Manner::Plain,
    }
    .all(std::slice::from_ref(fact));
    asked
        .answer
        .as_object()
        .and_then(|map| map.values().next().cloned())
        .unwrap_or_default()
}

/// A list of names or things, which may be empty.
fn several(values: &mut Values) -> (String, String) {
    let people = values.random.chance(50);
    let mut items: Vec<String> = Vec::new();
    for _ in 0..values.random.below(4) {
        items.push(if people { values.person() } else { values.goods() });
    }
    let content = match values.random.chance(50) {
        true => json!(items).to_string(),
        false => python(&json!(items)),
    };
    let said = match items.is_empty() {
        true => "I found nothing.".to_owned(),
        false => format!("I found {}.", listed(&items)),
    };
    (content, said)
}
