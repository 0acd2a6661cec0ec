//! The cost of attempts at the global law while they learn: attempts and rows for each sample of one prompt.
//!
//! ```sh
//! cargo run --release -p lexiform-engine --example attempts -- \
//!     --grammar FILE.ebnf --prompt FILE --samples 100 --tokens 64
//! ```
//!
//! The samples of one request share a trie, so later ones need fewer attempts. With `--alone`, each sample is
//! a separate request with its own trie, for comparison. A prompt that does not fit into the model's context
//! is cut from the left. The output is one line of JSON: attempts in the order in which the samples ended, by
//! tenths.

use lexiform::vocab::Tokenizer;
use lexiform::{Compiler, Options as CompileOptions, Source};
use lexiform_engine::{
    Draw, Engine, EngineConfig, Event, Fallback, Law, LoadOptions, ModelFiles, OnBudget, Request, Sampling,
    Sink, load,
};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

/// The maximum number of attempts of one sample.
const ATTEMPTS: u32 = 1 << 20;

struct Options(HashMap<String, String>);

impl Options {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut values = HashMap::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let name = argument
                .strip_prefix("--")
                .ok_or(format!("{argument:?} is no option"))?;
            let value = match name {
                "alone" => String::new(),
                _ => arguments.next().ok_or(format!("--{name} wants a value"))?,
            };
            values.insert(name.to_string(), value);
        }
        Ok(Options(values))
    }

    fn number(&self, name: &str, default: usize) -> Result<usize, Box<dyn Error>> {
        let parse = |value: &String| {
            value
                .parse()
                .map_err(|error| format!("--{name} {value}: {error}").into())
        };
        self.0.get(name).map_or(Ok(default), parse)
    }

    fn text(&self, name: &str) -> Result<String, Box<dyn Error>> {
        let file = self.0.get(name).ok_or(format!("--{name} FILE is missing"))?;
        Ok(std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?)
    }
}

/// The results of the requests.
#[derive(Default)]
struct Answers {
    /// The number of attempts of each sample, in the order in which the samples ended.
    attempts: Vec<usize>,
    /// The number of samples that gave up.
    failed: usize,
    tokens: usize,
}

fn answers(engine: &Engine, requests: Vec<Request>) -> Result<Answers, Box<dyn Error>> {
    let mut answers = Answers::default();
    for request in requests {
        let (sender, events) = channel();
        let sink = |_| -> Sink {
            let sender = sender.clone();
            Box::new(move |event| sender.send(event).is_ok())
        };
        let ticket = engine.submit_all(request.clone(), (0..request.task.answers()).map(sink).collect())?;
        drop(sender);
        for event in events {
            match event {
                Event::Token { .. } => answers.tokens += 1,
                Event::Done(outcome) => answers.attempts.push(outcome.attempts),
                Event::Failed(_) => answers.failed += 1,
            }
        }
        drop(ticket);
    }
    Ok(answers)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read()?;
    let folder = options.0.get("model").map_or("models/demo", String::as_str);
    let (samples, tokens) = (options.number("samples", 100)?, options.number("tokens", 64)?);
    let tokenizer = Tokenizer::from_bytes(&std::fs::read(format!("{folder}/tokenizer.json"))?)?;
    let model = load(&ModelFiles::folder(folder), &LoadOptions::default())?;
    let vocabulary = Arc::new(tokenizer.vocabulary_with_rows(&model.eos, model.config.vocab_size)?);
    let compile = CompileOptions::default();
    let compiler = Compiler::new(vocabulary.clone()).primed(&compile)?;
    let (grammar, _) = compiler.compile(Source::Ebnf(&options.text("grammar")?), &compile)?;
    let mut prompt = tokenizer.encode(&options.text("prompt")?)?;
    prompt.drain(..prompt.len().saturating_sub(model.config.max_positions - tokens));
    let config = EngineConfig {
        blocks: (samples + 1) * (model.config.max_positions / 16 + 1),
        max_running: options.number("running", 16)?,
        ..EngineConfig::default()
    };
    let engine = Engine::start(model.model, None, vocabulary, config)?;
    let request = |seed: usize, samples: usize| {
        Request::new(prompt.clone(), tokens)
            .task(Draw {
                law: Law::Global {
                    share_attempts: false,
                    max_attempts: ATTEMPTS,
                    fallback: Fallback::Fail,
                },
                answers: samples,
                ..Draw::default()
            })
            .grammar(Some(grammar.clone()))
            .sampling(Sampling::seeded(seed as u64))
            .on_budget(OnBudget::Complete)
    };
    let requests = match options.0.contains_key("alone") {
        true => (0..samples).map(|seed| request(seed, 1)).collect(),
        false => vec![request(0, samples)],
    };
    let begun = Instant::now();
    let found = answers(&engine, requests)?;
    let seconds = begun.elapsed().as_secs_f64();
    let count = found.attempts.len();
    let tenths: Vec<String> = found
        .attempts
        .chunks(count.div_ceil(10).max(1))
        .map(|tenth| format!("{:.1}", tenth.iter().sum::<usize>() as f64 / tenth.len() as f64))
        .collect();
    let stats = engine.stats();
    println!(
        "{{\"samples\": {count}, \"failed\": {}, \"tokens\": {}, \"attempts_of_each\": {:.2}, \"by_tenths\": [{}], \
         \"passes\": {}, \"seconds\": {seconds:.2}}}",
        found.failed,
        found.tokens,
        found.attempts.iter().sum::<usize>() as f64 / count.max(1) as f64,
        tenths.join(", "),
        stats.steps,
    );
    Ok(())
}
