//! Tool calls: a wish in words, some tools to choose from, and the call as `{"name": …, "arguments": {…}}`.

use super::dates::{Clock, Day};
use super::scene::{Asked, Fact, KeyStyle, Manner, Node, Questioner, Scene, compose, fact, integer, text};
use super::values::Values;
use super::words;
use serde_json::{Value, json};

/// What one tool does: its names, and the wishes that call it.
pub(crate) struct Tool {
    /// Its names.
    pub(crate) names: &'static [&'static str],
    /// Its description.
    pub(crate) purpose: &'static str,
    /// The wishes that call it.
    pub(crate) wishes: &'static [&'static str],
}

/// The tools that everybody writes first.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        names: &["get_weather", "weather", "current_weather", "get_current_weather"],
        purpose: "Get the current weather in a city.",
        wishes: &[
            "What is the weather in {city}?",
            "What's the weather like in {city} today?",
            "How is the weather in {city}?",
            "Show me the weather in {city} in {unit}.",
            "Weather for {city} on {date}",
            "Is it raining in {city}?",
        ],
    },
    Tool {
        names: &["send_email", "send_mail", "email", "compose_email"],
        purpose: "Send an email.",
        wishes: &[
            "Send an email to {to} with the subject {subject}.",
            "Write to {to} about {subject}.",
            "Email {to}: {body}.",
            "Mail {to} that {body}.",
        ],
    },
    Tool {
        names: &["create_event", "schedule_meeting", "add_event", "add_to_calendar"],
        purpose: "Create an event in the calendar.",
        wishes: &[
            "Schedule a {title} on {date} at {time}.",
            "Put a {title} in my calendar for {date}.",
            "Plan a {title} with {person} at {time}.",
            "Add the {title} on {date}.",
        ],
    },
    Tool {
        names: &["search_flights", "find_flights", "book_flight"],
        purpose: "Search for flights.",
        wishes: &[
            "Find flights from {city} to {goal} on {date}.",
            "I need a flight from {city} to {goal}.",
            "Book a flight to {goal} from {city} for {count} people.",
        ],
    },
    Tool {
        names: &["search", "web_search", "search_web", "lookup"],
        purpose: "Search the web.",
        wishes: &[
            "Search for {query}.",
            "Look up {query}.",
            "Find information about {query}.",
            "Google {query}.",
        ],
    },
    Tool {
        names: &["set_timer", "start_timer", "timer", "set_alarm"],
        purpose: "Set a timer.",
        wishes: &[
            "Set a timer for {count} minutes.",
            "Start a timer: {count} minutes.",
            "Wake me in {count} minutes.",
        ],
    },
    Tool {
        names: &["play_music", "play_song", "play"],
        purpose: "Play a song.",
        wishes: &[
            "Play {song} by {person}.",
            "Play some music by {person}.",
            "I want to hear {song}.",
        ],
    },
    Tool {
        names: &["convert_currency", "exchange", "currency_converter"],
        purpose: "Convert an amount from one currency to another.",
        wishes: &[
            "Convert {amount} {source} to {target}.",
            "How much is {amount} {source} in {target}?",
            "What are {amount} {source} in {target}?",
        ],
    },
    Tool {
        names: &["translate", "translate_text"],
        purpose: "Translate a text into another language.",
        wishes: &[
            "Translate {query} into {language}.",
            "How do you say {query} in {language}?",
        ],
    },
    Tool {
        names: &["create_task", "add_todo", "create_reminder", "remind_me"],
        purpose: "Create a task or a reminder.",
        wishes: &[
            "Remind me to buy a {thing} on {date}.",
            "Create a task for {person}: buy a {thing}.",
            "Add a {thing} to my list.",
        ],
    },
    Tool {
        names: &["order_item", "buy", "place_order", "add_to_cart"],
        purpose: "Order an item.",
        wishes: &[
            "Order {count} x {thing}.",
            "Buy {count} {thing} for {person}.",
            "Put {count} {thing} in my cart.",
        ],
    },
    Tool {
        names: &["get_user", "find_contact", "lookup_person", "call"],
        purpose: "Find a person in the contacts.",
        wishes: &[
            "Who is {person}?",
            "Find the contact of {person}.",
            "Call {person}.",
            "Ring {person} at {phone}.",
        ],
    },
    Tool {
        names: &["add", "add_numbers", "sum"],
        purpose: "Add two numbers.",
        wishes: &[
            "What is {x} + {y}?",
            "What is {x} plus {y}?",
            "Add {x} and {y}.",
            "How much is {x} plus {y}?",
        ],
    },
    Tool {
        names: &["multiply", "multiply_numbers", "product"],
        purpose: "Multiply two numbers.",
        wishes: &[
            "What is {x} times {y}?",
            "Multiply {x} by {y}.",
            "How much is {x} * {y}?",
            "Multiply {x} and {y}.",
        ],
    },
    Tool {
        names: &["calculate", "calculator", "evaluate", "math"],
        purpose: "Evaluate an expression.",
        wishes: &[
            "What is {expression}?",
            "Calculate {expression}.",
            "How much is {expression}?",
            "Work out {expression}.",
        ],
    },
    Tool {
        names: &["get_time", "current_time", "get_current_time", "clock"],
        purpose: "Get the current time in a city.",
        wishes: &[
            "What time is it in {city}?",
            "What's the time in {city}?",
            "How late is it in {city}?",
            "Tell me the time in {city}.",
        ],
    },
    Tool {
        names: &["get_stock_price", "stock_price", "get_price", "quote"],
        purpose: "Get the price of a stock.",
        wishes: &[
            "What is the stock price of {company}?",
            "How much is a share of {company}?",
            "Get the price of {company}.",
            "What does {company} trade at?",
        ],
    },
    Tool {
        names: &["get_directions", "route", "navigate", "find_route"],
        purpose: "Find the way from one place to another.",
        wishes: &[
            "How do I get from {city} to {goal}?",
            "Show me the way from {city} to {goal}.",
            "Directions to {goal} from {city}, please.",
            "What is the fastest route from {city} to {goal}?",
        ],
    },
];

fn facts(values: &mut Values) -> Vec<Fact> {
    let person = values.person();
    let amount = values.amount();
    let coins = vec!["EUR", "USD", "GBP", "JPY"];
    let (source, target) = (*values.random.pick(&coins), *values.random.pick(&coins));
    let units = vec!["celsius", "fahrenheit"];
    let unit = *values.random.pick(&units);
    let day = Day::any(values, 2022, 2030);
    let time = Clock::any(values, 7, 22);
    let song = format!("{} {}", values.invented(), values.first());
    let languages = "French|German|Spanish|Italian|Dutch|Polish|Japanese|Chinese|Swedish|Turkish|English";
    vec![
        text("city", &["city", "location", "from", "origin"], values.city()),
        text("goal", &["to", "destination", "arrival"], values.city()),
        text("to", &["to", "recipient", "address"], values.email(&person)),
        text("subject", &["subject", "title", "topic"], values.gathering()),
        text(
            "body",
            &["body", "text", "message", "content"],
            values.from(words::TROUBLES),
        ),
        text("title", &["title", "name", "event"], values.gathering()),
        text("query", &["query", "q", "text", "term"], values.goods()),
        integer("x", &["a", "x", "first", "left"], values.random.between(0, 999)),
        integer("y", &["b", "y", "second", "right"], values.random.between(0, 999)),
        text(
            "expression",
            &["expression", "formula", "input", "query"],
            expression(values),
        ),
        text(
            "company",
            &["company", "symbol", "ticker", "name"],
            values.company(),
        ),
        text("song", &["song", "title", "track"], song),
        text("thing", &["item", "product", "thing", "name"], values.goods()),
        text("phone", &["phone", "number"], values.phone()),
        text(
            "language",
            &["language", "target_language", "to"],
            values.from(languages),
        ),
        integer(
            "count",
            &["count", "quantity", "number", "amount"],
            values.random.between(2, 60),
        ),
        fact(
            "amount",
            &["amount", "value"],
            amount.clone(),
            Node::Number(amount),
        ),
        fact(
            "source",
            &["from", "source", "from_currency"],
            source,
            Node::Choice(source, coins.clone()),
        ),
        fact(
            "target",
            &["to", "target", "to_currency"],
            target,
            Node::Choice(target, coins),
        ),
        fact("unit", &["unit", "units"], unit, Node::Choice(unit, units)),
        day.fact(values, "date", &["date", "day", "when"]),
        time.fact(values, "time", &["time", "at", "start"]),
        text("person", &["person", "name", "with", "who"], person),
    ]
}

/// A sum or a product of a few numbers, in figures.
fn expression(values: &mut Values) -> String {
    let mut out = values.random.between(1, 99).to_string();
    for _ in 0..1 + values.random.below(2) {
        let sign = *values.random.pick(&["+", "-", "*", "/"]);
        out += &format!(" {sign} {}", values.random.between(1, 99));
    }
    out
}

/// A wish for a tool, with the facts that it says.
pub(crate) fn wish(values: &mut Values, tool: &Tool) -> Scene {
    let facts = facts(values);
    let mut scene = compose(&mut values.random, facts, tool.wishes, &[]);
    scene.unsaid.clear();
    scene
}

fn call(values: &mut Values, tool: &Tool, style: KeyStyle) -> (Scene, Asked) {
    let scene = wish(values, tool);
    let name = *values.random.pick(tool.names);
    let inner = Questioner {
        random: &mut values.random,
        style,
        manner: Manner::Free,
    }
    .all(&scene.said);
    let schema = json!({
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": inner.schema},
        "required": ["name", "arguments"],
        "additionalProperties": false,
    });
    (
        scene,
        Asked {
            schema,
            answer: json!({"name": name, "arguments": inner.answer}),
        },
    )
}

/// A wish, and a schema that admits a call of any of one to four tools.
pub(crate) fn tool_call(values: &mut Values) -> (String, Asked) {
    let style = if values.random.chance(80) {
        KeyStyle::Snake
    } else {
        KeyStyle::Camel
    };
    let others = *values.random.pick(&[0, 1, 1, 2, 3]);
    let order = values.random.positions(TOOLS.len(), others + 1);
    let (scene, asked) = call(values, &TOOLS[order[0]], style);
    let mut schemas = vec![asked.schema];
    for &other in &order[1..] {
        schemas.push(call(values, &TOOLS[other], style).1.schema);
    }
    values.random.shuffle(&mut schemas);
    let schema = if schemas.len() == 1 {
        schemas.remove(0)
    } else {
        json!({"anyOf": Value::Array(schemas)})
    };
    (
        scene.text,
        Asked {
            schema,
            answer: asked.answer,
        },
    )
}
