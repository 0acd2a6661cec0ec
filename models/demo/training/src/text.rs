//! Writes texts, questions about them, and the answers.
//!
//! ```text
//!  people, orders, events, …  ──scene──► text + facts ──ask──► schema + answer ──► Sample
//!      ▲                                                          │
//!  words, values, dates                                        sketch (lexiform_syntax::schema::sketch)
//! ```
//!
//! The model never sees a schema here, only its sketch. Texts of [`Words::Unseen`] hold only names that
//! training has never shown.

mod catalog;
pub(crate) mod chat;
pub(crate) mod dates;
mod events;
pub(crate) mod facts;
mod orders;
pub(crate) mod people;
pub(crate) mod scene;
mod tickets;
pub(crate) mod tools;
mod travel;
pub(crate) mod values;
pub(crate) mod words;

use crate::prompt::Prompt;
use crate::sample::{Kind, Sample};
use lexiform_syntax::schema::sketch::sketch;
use scene::{Asked, KeyStyle, Manner, Questioner, Scene};
use serde_json::{Value, json};
use values::Values;
pub(crate) use values::Words;

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

/// One of the simplest samples that there are.
pub(crate) fn simple(values: &mut Values) -> Sample {
    let domain: Domain = *values
        .random
        .pick(&[facts::echo as Domain, facts::labelled, people::person]);
    let scene = domain(values);
    let asked = asked(values, &scene);
    finish(values, scene.text, asked)
}

/// A text and a schema, of any domain.
pub(crate) fn extraction(values: &mut Values) -> Sample {
    match values.random.below(100) {
        0..=3 => without_schema(values),
        4..=5 => bare_answer(values),
        6..=10 => {
            let (text, asked) = tools::tool_call(values);
            finish(values, text, asked)
        }
        _ => {
            let scene = any_scene(values);
            let asked = asked(values, &scene);
            finish(values, scene.text, asked)
        }
    }
}

/// A text with its facts, of any domain.
pub(crate) fn any_scene(values: &mut Values) -> Scene {
    let total = DOMAINS.iter().map(|domain| domain.0).sum();
    let mut ticket = values.random.below(total);
    for &(weight, domain) in DOMAINS {
        if ticket < weight {
            return domain(values);
        }
        ticket -= weight;
    }
    unreachable!("the ticket is below the sum of the weights")
}

/// A question about a scene.
pub(crate) fn asked(values: &mut Values, scene: &Scene) -> Asked {
    let style = if values.random.chance(75) {
        KeyStyle::Snake
    } else {
        KeyStyle::Camel
    };
    Questioner {
        random: &mut values.random,
        style,
        manner: Manner::Free,
    }
    .ask(scene)
}

fn finish(values: &mut Values, text: String, asked: Asked) -> Sample {
    let text = framed(values, text, 15);
    Sample {
        kind: Kind::Extraction,
        prompt: Prompt::of(text, Some(sketch(&asked.schema))),
        answer: asked.answer.to_string(),
        schema: Some(asked.schema),
    }
}

/// Now and then with a request around the text, as people write them.
pub(crate) fn framed(values: &mut Values, text: String, percent: usize) -> String {
    let random = &mut values.random;
    match random.chance(percent) {
        true if random.chance(60) => format!("{}{text}", random.pick(REQUESTS)),
        true => format!("{text}{}", random.pick(AFTERTHOUGHTS)),
        false => text,
    }
}

/// The schema says no more than "an object", or there is none and the text asks for JSON.
fn without_schema(values: &mut Values) -> Sample {
    let domain: Domain = *values
        .random
        .pick(&[people::person as Domain, orders::order, events::event]);
    let scene = domain(values);
    let asked = Questioner {
        random: &mut values.random,
        style: KeyStyle::Snake,
        manner: Manner::Plain,
    }
    .ask(&scene);
    let schema = values.random.chance(60).then(|| json!({"type": "object"}));
    let text = match schema.is_some() && values.random.chance(50) {
        true => scene.text,
        false => framed(values, scene.text, 100),
    };
    Sample {
        kind: Kind::Extraction,
        prompt: Prompt::of(text, schema.as_ref().map(sketch)),
        answer: asked.answer.to_string(),
        schema,
    }
}

/// An answer that is no object: one value of a scene, under the schema that the value has.
fn bare_answer(values: &mut Values) -> Sample {
    let domain: Domain = *values
        .random
        .pick(&[tickets::review as Domain, facts::echo, people::group]);
    let scene = domain(values);
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
        random: &mut values.random,
        style: KeyStyle::Snake,
        manner: Manner::Free,
    }
    .ask(&scene);
    let inner = |value: &Value| value.as_object().and_then(|map| map.values().next().cloned());
    match (inner(&asked.schema["properties"]), inner(&asked.answer)) {
        (Some(schema), Some(answer)) => finish(values, scene.text, Asked { schema, answer }),
        _ => finish(values, scene.text, asked),
    }
}
