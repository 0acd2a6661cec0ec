//! Several turns: earlier texts with their answers, earlier calls with their results, and then what is asked
//! now.

use super::calls;
use super::chatter;
use super::offers::{self, Offer};
use super::systems;
use crate::prompt::{Prompt, Turn};
use crate::sample::{Kind, Sample};
use crate::text::scene::Scene;
use crate::text::values::Values;
use crate::text::{any_scene, asked, framed};
use lexiform_syntax::schema::sketch::sketch;
use serde_json::Value;

/// A conversation that has gone on for a while.
pub(crate) fn turns(values: &mut Values) -> Sample {
    match values.random.below(10) {
        0..=3 => of_texts(values),
        4 | 5 => asked_afterwards(values),
        _ => of_calls(values),
    }
}

fn opening(values: &mut Values) -> Vec<Turn> {
    match values.random.chance(40) {
        true => vec![Turn::System(systems::system(values))],
        false => Vec::new(),
    }
}

/// Texts and their answers, then another text.
fn of_texts(values: &mut Values) -> Sample {
    let mut turns = opening(values);
    for _ in 0..1 + values.random.below(2) {
        let scene = any_scene(values);
        let answer = asked(values, &scene).answer;
        turns.push(Turn::User(framed(values, scene.text, 15)));
        turns.push(Turn::Assistant(answer.to_string()));
    }
    let scene = any_scene(values);
    let text = framed(values, scene.text.clone(), 15);
    about(values, turns, &scene, text)
}

/// A text that was only acknowledged, and the question for it in the next message.
fn asked_afterwards(values: &mut Values) -> Sample {
    let scene = any_scene(values);
    let mut turns = opening(values);
    turns.push(Turn::User(scene.text.clone()));
    let replies = [
        "I see. How can I help you?",
        "Thank you.",
        "OK.",
        "Understood.",
        "What shall I do with it?",
    ];
    turns.push(Turn::Assistant((*values.random.pick(&replies)).to_owned()));
    let asks = [
        "Extract the data.",
        "As JSON, please.",
        "Give me the JSON.",
        "Fill in the form.",
        "Now extract the fields.",
        "Return it as JSON.",
    ];
    let ask = (*values.random.pick(&asks)).to_owned();
    about(values, turns, &scene, ask)
}

fn about(values: &mut Values, mut turns: Vec<Turn>, scene: &Scene, text: String) -> Sample {
    let asked = asked(values, scene);
    turns.push(Turn::User(text));
    Sample {
        kind: Kind::Turns,
        prompt: Prompt {
            tools: Vec::new(),
            turns,
            sketch: Some(sketch(&asked.schema)),
        },
        answer: asked.answer.to_string(),
        schema: Some(asked.schema),
    }
}

/// A call with its result and what was said about it, then another wish, or thanks.
fn of_calls(values: &mut Values) -> Sample {
    let count = 2 + values.random.below(3);
    let mut offers: Vec<Offer> = offers::several(values, count);
    let mut turns = opening(values);
    turns.push(Turn::User(offers[0].wish.clone()));
    turns.push(Turn::Calls(vec![offers[0].call.clone()]));
    turns.push(Turn::Tool("done".to_owned()));
    turns.push(Turn::Assistant("Done.".to_owned()));
    let (wish, answer) = match values.random.below(10) {
        0..=6 => (offers[1].wish.clone(), calls::answer(&[offers[1].call.clone()])),
        7 => {
            let other = offers.pop().expect("at least two were asked for");
            (other.wish, calls::NONE_FITS.to_owned())
        }
        _ => chatter::remark(values),
    };
    turns.push(Turn::User(wish));
    let mut tools: Vec<Value> = offers.into_iter().map(|offer| offer.tool).collect();
    values.random.shuffle(&mut tools);
    Sample {
        kind: Kind::Turns,
        prompt: Prompt {
            tools,
            turns,
            sketch: None,
        },
        schema: None,
        answer,
    }
}
