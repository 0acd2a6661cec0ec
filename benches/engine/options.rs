//! Options weighed as one tree, and one by one: the seconds, the passes, and the difference of the
//! probabilities.
//!
//! ```sh
//! cargo run --release -p lexiform-engine --example options -- --options FILE --prompt FILE
//! ```
//!
//! The options are read from the file, one on each line; without a file they are `--count N` names of cities.
//! One by one, every option is a separate request, and all are submitted at once, so that they share passes
//! like requests of several clients; with `--in-turn`, each is submitted after the previous one has ended.
//! The prompt is read before anything is timed, and its keys and values are cached. The output is one line of
//! JSON.

use lexiform::vocab::Tokenizer;
use lexiform_engine::{
    Engine, EngineConfig, Event, LoadOptions, ModelFiles, Options, Reporting, Request, Sampling, Ticket,
    Weigh, Weighed, load,
};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

const PROMPT: &str = "Maria Keller is 34 years old and lives in ";
/// The parts of the names of cities.
const BEGINNINGS: [&str; 10] = [
    "Neu", "Alt", "Ober", "Unter", "Bad ", "Gross", "Klein", "Sankt ", "Hoch", "Nieder",
];
const MIDDLES: [&str; 10] = [
    "linden", "eichen", "wasser", "berg", "stein", "kirchen", "brunn", "wald", "mark", "feld",
];
const ENDS: [&str; 10] = [
    "burg", "dorf", "hausen", "stadt", "heim", "bach", "au", "ingen", "furt", "ried",
];

type Values = HashMap<String, String>;

fn values() -> Result<Values, Box<dyn Error>> {
    let mut values = HashMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let name = argument
            .strip_prefix("--")
            .ok_or(format!("{argument:?} is no option"))?;
        let value = match name {
            "in-turn" => String::new(),
            _ => arguments.next().ok_or(format!("--{name} wants a value"))?,
        };
        values.insert(name.to_string(), value);
    }
    Ok(values)
}

fn cities(count: usize) -> Vec<String> {
    let name = |number: usize| {
        let (beginning, middle, end) = (number % 10, number / 10 % 10, number / 100 % 10);
        let again = "-".repeat(number / 1000);
        format!("{}{}{}{again}", BEGINNINGS[beginning], MIDDLES[middle], ENDS[end])
    };
    (0..count).map(name).collect()
}

fn submit(engine: &Engine, request: Request) -> Result<(Receiver<Event>, Ticket), Box<dyn Error>> {
    let (sender, events) = channel();
    let ticket = engine.submit(request, Box::new(move |event| sender.send(event).is_ok()))?;
    Ok((events, ticket))
}

fn wait((events, _ticket): (Receiver<Event>, Ticket)) -> Result<Vec<Weighed>, Box<dyn Error>> {
    for event in events {
        match event {
            Event::Done(outcome) => return Ok(outcome.options.unwrap_or_default()),
            Event::Failed(error) => return Err(error.into()),
            Event::Token { .. } => (),
        }
    }
    Err("the engine has gone".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let values = values()?;
    let folder = values.get("model").map_or("models/demo", String::as_str);
    let tokenizer = Tokenizer::from_bytes(&std::fs::read(format!("{folder}/tokenizer.json"))?)?;
    let model = load(&ModelFiles::folder(folder), &LoadOptions::default())?;
    let vocabulary = Arc::new(tokenizer.vocabulary_with_rows(&model.eos, model.config.vocab_size)?);
    let prompt = match values.get("prompt") {
        Some(file) => std::fs::read_to_string(file)?,
        None => PROMPT.to_owned(),
    };
    let prompt = tokenizer.encode(&prompt)?;
    let texts: Vec<String> = match values.get("options") {
        Some(file) => std::fs::read_to_string(file)?
            .lines()
            .map(str::to_owned)
            .collect(),
        None => cities(values.get("count").map_or(Ok(1000), |count| count.parse())?),
    };
    let sequences: Result<Vec<Vec<u32>>, _> = texts.iter().map(|text| tokenizer.encode(text)).collect();
    let sequences = sequences?;
    let config = EngineConfig {
        max_waiting: texts.len() + 1,
        ..EngineConfig::default()
    };
    let engine = Engine::start(model.model, None, vocabulary, config)?;
    let request = |sequences: &[Vec<u32>]| -> Result<Request, Box<dyn Error>> {
        let options = Options::canonical(sequences)?;
        Ok(Request::new(prompt.clone(), options.longest() + 1)
            .task(Weigh {
                options: Arc::new(options),
                likeliest: None,
            })
            .sampling(Sampling::seeded(0))
            .reporting(Reporting {
                weigh_end: true,
                ..Reporting::default()
            }))
    };
    wait(submit(&engine, request(&sequences[..1])?)?)?;
    let before = engine.stats().steps;
    let begun = Instant::now();
    let together = wait(submit(&engine, request(&sequences)?)?)?;
    let (seconds, passes) = (begun.elapsed().as_secs_f64(), engine.stats().steps - before);
    let before = engine.stats().steps;
    let begun = Instant::now();
    let each = sequences
        .iter()
        .map(|tokens| submit(&engine, request(std::slice::from_ref(tokens))?));
    let alone: Result<Vec<Vec<Weighed>>, _> = match values.contains_key("in-turn") {
        true => each.map(|submitted| wait(submitted?)).collect(),
        false => {
            let submitted: Result<Vec<_>, _> = each.collect();
            submitted?.into_iter().map(wait).collect()
        }
    };
    let alone: Vec<Weighed> = alone?.concat();
    let (seconds_alone, passes_alone) = (begun.elapsed().as_secs_f64(), engine.stats().steps - before);
    let apart = together.iter().zip(&alone);
    let apart = apart.map(|(one, other)| (one.log_probability - other.log_probability).abs());
    println!(
        "{{\"options\": {}, \"tokens\": {}, \"of_the_tree\": {}, \"seconds\": {seconds:.4}, \"passes\": {passes}, \
         \"seconds_one_by_one\": {seconds_alone:.4}, \"passes_one_by_one\": {passes_alone}, \"times\": {:.1}, \"most_apart\": {:.1e}}}",
        texts.len(),
        sequences.iter().map(Vec::len).sum::<usize>(),
        Options::canonical(&sequences)?.tokens(),
        seconds_alone / seconds,
        apart.fold(0.0, f64::max),
    );
    Ok(())
}
