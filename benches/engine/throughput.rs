//! The tokens per second of the decode loop on a model folder, and the parts of the time of a pass.
//!
//! ```text
//! cargo run --release -p lexiform-engine --example throughput -- --model models/demo --batch 8 --tokens 256
//! ```
//!
//! `lexiform bench decode` measures the settings that an operator can choose, with medians, the memory
//! bandwidth, and a comparison with `transformers`. This example is a single run for those who change the
//! engine: it has switches for the parts of the engine, and prints the time of each.
//!
//! It reads prompts (`--prompts FILE`, one on each line, used in turn), and times from the first prompt token
//! to the last generated one. `--speculate` lets the loop draft when it pays: by lookup, with `--draft
//! FOLDER` also by a draft model, and with `--always` as much as it can. At temperature 0 the tokens stay the
//! same, which `--print` shows. `--by-torch` leaves the small steps between matrix products to torch, and
//! `--device-draws` draws tokens on the model's device, as on a card. `--weights int8` or `fp8` keeps the
//! matrices in eight bits, and `--batch-invariant` gives a row the same bits in any batch.
//!
//! `--device cuda` runs on a graphics card; with `--no-dependent-launch`, no kernel starts there before the
//! end of the previous one. `--schema FILE` constrains every answer to a JSON Schema (which should require
//! more than `--tokens`, since answers are cut there), and `--temperature 1` draws instead of taking the most
//! likely token. `--top-p P` filters the rows. `--samples N` requests that many answers to each prompt, and
//! `--prompt-tokens N` repeats each prompt up to that length: `first` is the seconds until all answers had a
//! token, and `prefilled` the prompt tokens that were computed. `--global` draws from the global law (of
//! answers of at most `--tokens`), and prints the `attempts` of all answers; `--draw-threads N` bounds the
//! threads that draw. Before the measurement, it generates `--warm-tokens` for each prompt: some hundred
//! tokens are needed to measure an engine that has learned the cost of passes. `random_model.py` in this
//! folder writes a model of any size with random weights, for figures that do not depend on the generated
//! text. `pass`, `draw` and `mask` are mean milliseconds: of the model until its logits have arrived, of
//! drawing all tokens of the pass, and of one mask; `mask_wait` is the time that a pass waited for masks
//! after the model was done.

use lexiform::vocab::{Tokenizer, Vocabulary};
use lexiform::{Compiler, Grammar, Options as CompileOptions, Source};
use lexiform_engine::{
    Device, Drafting, Draw, Dtype, Engine, EngineConfig, Event, Fallback, Histogram, Law, LoadOptions,
    LoadedModel, ModelFiles, OnBudget, Request, Sampling, Sink, Speculation, WeightFormat, load,
};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const PROMPTS: [&str; 4] = [
    "Order 4711 by Ada Lovelace from 12 March 2024: three lamps at 19.90 each, to be sent to 5 Mill Road, Cambridge.",
    "The printer on the second floor has been jammed since Monday, says Grace Hopper. It is urgent.",
    "Team meeting on 3 May 2025 at 10:30 in room Turing; Alan, Katherine and Edsger take part.",
    "Please book a table for four at Luigi's tomorrow at seven, outside if the weather is good.",
];

/// The options, each of which has a value, and the flags.
struct Options {
    values: HashMap<String, String>,
    flags: Vec<String>,
}

impl Options {
    fn read() -> Result<Self, Box<dyn Error>> {
        let (mut values, mut flags) = (HashMap::new(), Vec::new());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument
                .strip_prefix("--")
                .ok_or_else(|| format!("{argument}: expected an option"))?
            {
                flag @ ("speculate"
                | "always"
                | "print"
                | "by-torch"
                | "device-draws"
                | "batch-invariant"
                | "no-dependent-launch"
                | "global") => flags.push(flag.to_string()),
                name => {
                    let value = arguments
                        .next()
                        .ok_or_else(|| format!("--{name} needs a value"))?;
                    values.insert(name.to_string(), value);
                }
            }
        }
        Ok(Options { values, flags })
    }

    fn get<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T, Box<dyn Error>>
    where
        T::Err: std::fmt::Display,
    {
        match self.values.get(name) {
            None => Ok(default),
            Some(value) => value
                .parse()
                .map_err(|error| format!("--{name} {value}: {error}").into()),
        }
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }
}

fn open(folder: &str, options: &Options) -> Result<LoadedModel, Box<dyn Error>> {
    let defaults = LoadOptions::default();
    let load_options = LoadOptions {
        device: options.get("device", Device::Cpu)?,
        dtype: options.get("dtype", Dtype::Auto)?,
        weights: options.get("weights", WeightFormat::Stored)?,
        threads: options.get("threads", 2)?,
        fused: !options.has("by-torch"),
        batch_invariant: options.has("batch-invariant"),
        draws: options.has("device-draws").then_some(true),
        kernels: defaults.kernels && !options.has("by-torch"),
        dependent_launch: !options.has("no-dependent-launch"),
        tell: |message| eprintln!("{message}"),
        ..defaults
    };
    Ok(load(&ModelFiles::folder(folder), &load_options)?)
}

/// The settings that all requests of a run share.
struct Run {
    tokens: usize,
    speculation: Speculation,
    temperature: f32,
    top_p: f32,
    samples: usize,
    law: Law,
    grammar: Option<Grammar>,
}

impl Run {
    fn request(&self, prompt: &[u32], seed: u64) -> Request {
        Request::new(prompt.to_vec(), self.tokens)
            .task(Draw {
                law: self.law,
                answers: self.samples,
                ..Draw::default()
            })
            .grammar(self.grammar.clone())
            .sampling(Sampling {
                temperature: self.temperature,
                top_p: self.top_p,
                seed,
                ..Sampling::default()
            })
            .speculation(self.speculation)
            .on_budget(match self.law {
                Law::Local => OnBudget::Cut,
                _ => OnBudget::Complete,
            })
            .ignore_eos(self.grammar.is_none())
    }

    /// Generates for all prompts at once. Returns the tokens of each answer, the attempts of all, and the
    /// time until each of them had its first token.
    fn answers(&self, engine: &Engine, prompts: &[Vec<u32>]) -> (Vec<Vec<u32>>, usize, Duration) {
        let begun = Instant::now();
        let (sender, events) = channel();
        let tickets: Vec<_> = prompts
            .iter()
            .enumerate()
            .map(|(index, prompt)| {
                let sink = |sample| -> Sink {
                    let (sender, number) = (sender.clone(), index * self.samples + sample);
                    Box::new(move |event| sender.send((number, event)).is_ok())
                };
                let sinks = (0..self.samples).map(sink).collect();
                engine.submit_all(self.request(prompt, index as u64), sinks)
            })
            .collect();
        drop(sender);
        let mut answers = vec![Vec::new(); prompts.len() * self.samples];
        let (mut attempts, mut first) = (0, Duration::ZERO);
        for (index, event) in events {
            match event {
                Event::Token { token, .. } => {
                    if answers[index].is_empty() {
                        first = begun.elapsed();
                    }
                    answers[index].push(token);
                }
                Event::Done(outcome) => attempts += outcome.attempts,
                Event::Failed(error) => eprintln!("error: {error}"),
            }
        }
        for refusal in tickets.iter().filter_map(|ticket| ticket.as_ref().err()) {
            eprintln!("error: {refusal}");
        }
        (answers, attempts, first)
    }
}

fn grammar(options: &Options, vocabulary: &Arc<Vocabulary>) -> Result<Option<Grammar>, Box<dyn Error>> {
    let Some(file) = options.values.get("schema") else {
        return Ok(None);
    };
    let (text, compile) = (std::fs::read_to_string(file)?, CompileOptions::default());
    let compiler = Compiler::new(vocabulary.clone()).primed(&compile)?;
    let (grammar, _) = compiler.compile(Source::JsonSchema(&text), &compile)?;
    Ok(Some(grammar))
}

/// Returns the sums and counts that the engine has measured, so that those of a warm-up run can be
/// subtracted.
fn measured(engine: &Engine) -> Vec<(&'static str, f64, u64)> {
    let meters = engine.meters();
    let figure = |name, histogram: &Histogram| (name, histogram.sum(), histogram.count());
    vec![
        figure("pass", &meters.passes),
        figure("draw", &meters.draws),
        figure("mask", &meters.masks),
        figure("mask_wait", &meters.mask_waits),
    ]
}

/// Returns the tokens of this many prompts, each of the requested length.
fn prompts(options: &Options, tokenizer: &Tokenizer, batch: usize) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    let texts: Vec<String> = match options.values.get("prompts") {
        Some(file) => std::fs::read_to_string(file)?
            .lines()
            .map(ToString::to_string)
            .collect(),
        None => PROMPTS.map(ToString::to_string).to_vec(),
    };
    let encode = |text: &String| tokenizer.encode(text);
    let mut prompts: Vec<Vec<u32>> = texts
        .iter()
        .cycle()
        .take(batch)
        .map(encode)
        .collect::<Result<_, _>>()?;
    let prompt_tokens: usize = options.get("prompt-tokens", 0)?;
    for prompt in prompts.iter_mut().filter(|_| prompt_tokens > 0) {
        let repeated = prompt.iter().copied().cycle().take(prompt_tokens);
        *prompt = repeated.collect();
    }
    Ok(prompts)
}

/// Returns the configuration of the options, with room for all answers.
fn config(options: &Options, prompts: &[Vec<u32>], tokens: usize) -> Result<EngineConfig, Box<dyn Error>> {
    let longest =
        prompts.iter().map(Vec::len).max().unwrap_or(0) + tokens.max(options.get("warm-tokens", 8)?);
    let defaults = EngineConfig::default();
    let sequences = prompts.len() * options.get("samples", 1)?;
    Ok(EngineConfig {
        blocks: sequences * (longest.div_ceil(16) + 1),
        max_running: sequences.max(defaults.max_running),
        draw_threads: options.get("draw-threads", defaults.draw_threads)?,
        mask_threads: options.get("mask-threads", defaults.mask_threads)?,
        drafting: match options.has("always") {
            true => Drafting::Always,
            false => Drafting::Measured,
        },
        ..defaults
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read()?;
    let folder: String = options.get("model", "models/demo".to_string())?;
    let (batch, tokens) = (options.get("batch", 1)?, options.get("tokens", 256)?);
    let tokenizer = Tokenizer::from_bytes(&std::fs::read(format!("{folder}/tokenizer.json"))?)?;
    let prompts = prompts(&options, &tokenizer, batch)?;
    let model = open(&folder, &options)?;
    let draft = options
        .values
        .get("draft")
        .map(|folder| open(folder, &options))
        .transpose()?;
    let vocabulary = Arc::new(tokenizer.vocabulary_with_rows(&model.eos, model.config.vocab_size)?);
    let config = config(&options, &prompts, tokens)?;
    let run = Run {
        tokens,
        speculation: match options.has("speculate") {
            true => Speculation::all(),
            false => Speculation::none(),
        },
        temperature: options.get("temperature", 0.0)?,
        top_p: options.get("top-p", 1.0)?,
        samples: options.get("samples", 1)?,
        law: match options.has("global") {
            true => Law::Global {
                share_attempts: false,
                max_attempts: 1 << 20,
                fallback: Fallback::Fail,
            },
            false => Law::Local,
        },
        grammar: grammar(&options, &vocabulary)?,
    };
    let engine = Engine::start(model.model, draft.map(|draft| draft.model), vocabulary, config)?;

    // The warm-up uses other prompts than the timed run, so that none of the timed ones is cached.
    let warm = Run {
        tokens: options.get("warm-tokens", 8)?,
        ..run
    };
    warm.answers(&engine, &vec![vec![1; 8]; batch]);
    let run = Run { tokens, ..warm };
    let (before, measured_before) = (engine.stats(), measured(&engine));
    let begun = Instant::now();
    let (answers, attempts, first) = run.answers(&engine, &prompts);
    let seconds = begun.elapsed().as_secs_f64();
    let count: usize = answers.iter().map(Vec::len).sum();
    let stats = engine.stats();
    let times = measured(&engine).into_iter().zip(measured_before);
    let times: Vec<String> = times
        .filter(|((_, _, now), (_, _, before))| now > before)
        .map(|((name, sum, count), (_, sum_before, count_before))| {
            let mean = 1e3 * (sum - sum_before) / (count - count_before) as f64;
            format!("\"{name}\": {mean:.4}")
        })
        .collect();
    println!(
        "{{\"tool\": \"lexiform\", \"batch\": {batch}, \"tokens\": {count}, \"seconds\": {seconds:.3}, \
         \"tokens_per_second\": {:.1}, \"first\": {:.4}, \"prefilled\": {}, \"attempts\": {attempts}, \"passes\": {}, \
         \"drafted\": {}, \"accepted\": {}, {}}}",
        count as f64 / seconds,
        first.as_secs_f64(),
        stats.prefilled_tokens - before.prefilled_tokens,
        stats.steps - before.steps,
        stats.drafted - before.drafted,
        stats.accepted - before.accepted,
        times.join(", ")
    );
    if options.has("print") {
        answers
            .iter()
            .for_each(|answer| println!("{:?}", tokenizer.decode(answer)));
    }
    Ok(())
}
