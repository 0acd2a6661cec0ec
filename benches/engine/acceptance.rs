//! The share of a draft model's tokens that are accepted, and the share that could be.
//!
//! ```text
//! cargo run --release -p lexiform-engine --example acceptance -- --temperature 1
//! cargo run --release -p lexiform-engine --example acceptance -- \
//!     --schema benches/engine/throughput.schema.json
//! ```
//!
//! Writes answers with one token drafted in each pass, verified by the residual rule and by drawing once, and
//! prints the shares that were accepted. Beside them it prints the bound that no rule can exceed for a single
//! token: the mean of `1 − TV(p, q)` over the positions at which the residual rule verified a draft, with
//! both rows under the same warping and mask. Options: `--model FOLDER` (models/demo), `--draft FOLDER` (its
//! folder `draft`), `--tokens N` for each answer (128), `--answers N` (16), `--top-p P`, and `--schema FILE`
//! with a JSON Schema.

use lexiform::vocab::{TokenKind, Tokenizer, Vocabulary};
use lexiform::{Compiler, Grammar, Options as CompileOptions, Source};
use lexiform_engine::{
    Engine, EngineConfig, Event, Feed, LoadOptions, LoadedModel, Logits, ModelFiles, OnBudget, Origin,
    Request, Sampling, Speculation, Verification, load,
};
use lexiform_law::{Allowed, History, Law, Part, Row, Warper, Warping};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;

const PROMPTS: [&str; 4] = [
    "Order 4711 by Ada Lovelace from 12 March 2024: three lamps at 19.90 each, to be sent to 5 Mill Road, Cambridge.",
    "The printer on the second floor has been jammed since Monday, says Grace Hopper. It is urgent.",
    "Team meeting on 3 May 2025 at 10:30 in room Turing; Alan, Katherine and Edsger take part.",
    "Please book a table for four at Luigi's tomorrow at seven, outside if the weather is good.",
];

/// The options, each of which has a value.
struct Options(HashMap<String, String>);

impl Options {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut values = HashMap::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let name = argument
                .strip_prefix("--")
                .ok_or_else(|| format!("{argument}: expected an option"))?;
            let value = arguments
                .next()
                .ok_or_else(|| format!("{argument} needs a value"))?;
            values.insert(name.to_string(), value);
        }
        Ok(Options(values))
    }

    fn get<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T, Box<dyn Error>>
    where
        T::Err: std::fmt::Display,
    {
        match self.0.get(name) {
            None => Ok(default),
            Some(value) => value
                .parse()
                .map_err(|error| format!("--{name} {value}: {error}").into()),
        }
    }
}

/// The settings that all answers share.
struct Setting {
    model: String,
    draft: String,
    vocabulary: Arc<Vocabulary>,
    prompts: Vec<Vec<u32>>,
    tokens: usize,
    sampling: Sampling,
    grammar: Option<Grammar>,
}

/// The answers that were written under one kind of verification.
struct Written {
    /// The answers, each with the positions at which a draft was verified.
    answers: Vec<(Vec<u32>, Vec<usize>)>,
    /// The share of the drafts that were accepted.
    accepted: f64,
}

/// Returns the positions at which a draft of one token was verified: the first token comes without a draft,
/// an accepted draft brings one more token unless it is an end token, and the last token of an answer that is
/// cut has no draft.
fn judged(written: &[(u32, Origin)], tokens: usize, vocabulary: &Vocabulary) -> Vec<usize> {
    let mut positions = Vec::new();
    let mut at = 1;
    while at < written.len().min(tokens - 1) {
        positions.push(at);
        let (token, origin) = written[at];
        at += 1 + usize::from(origin == Origin::Drafted && !vocabulary.is_eos(token));
    }
    positions
}

fn open(folder: &str) -> Result<LoadedModel, Box<dyn Error>> {
    let options = LoadOptions {
        threads: 2,
        ..LoadOptions::default()
    };
    Ok(load(&ModelFiles::folder(folder), &options)?)
}

impl Setting {
    fn request(&self, number: usize, verification: Verification) -> Request {
        Request::new(self.prompts[number].clone(), self.tokens)
            .grammar(self.grammar.clone())
            .sampling(Sampling {
                seed: number as u64,
                ..self.sampling.clone()
            })
            .speculation(Speculation {
                model: true,
                max_draft: 1,
                verification,
                ..Speculation::none()
            })
            .on_budget(OnBudget::Cut)
            .ignore_eos(self.grammar.is_none())
    }

    /// Writes all answers.
    fn write(&self, verification: Verification) -> Result<Written, Box<dyn Error>> {
        let (model, draft) = (open(&self.model)?.model, open(&self.draft)?.model);
        let config = EngineConfig {
            // A slow mask on a busy machine must not prevent drafts.
            mask_grace: std::time::Duration::from_millis(200),
            ..EngineConfig::default()
        };
        let engine = Engine::start(model, Some(draft), self.vocabulary.clone(), config)?;
        let mut answers = Vec::new();
        let (mut drafted, mut accepted) = (0, 0);
        for number in 0..self.prompts.len() {
            let (sender, events) = channel();
            let request = self.request(number, verification);
            let _ticket = engine.submit(request, Box::new(move |event| sender.send(event).is_ok()))?;
            let mut answer = Vec::new();
            for event in events {
                match event {
                    Event::Token { token, origin, .. } => answer.push((token, origin)),
                    Event::Done(outcome) => {
                        drafted += outcome.drafted;
                        accepted += outcome.accepted;
                    }
                    Event::Failed(error) => return Err(error.into()),
                }
            }
            let judged = judged(&answer, self.tokens, &self.vocabulary);
            answers.push((answer.into_iter().map(|(token, _)| token).collect(), judged));
        }
        Ok(Written {
            answers,
            accepted: accepted as f64 / drafted as f64,
        })
    }

    /// Returns `Σ min(p, q)` at every position of an answer, from the rows of both models.
    fn overlaps(
        &self,
        number: usize,
        answer: &[u32],
        rows: &mut [Rows; 2],
    ) -> Result<Vec<f64>, Box<dyn Error>> {
        let Sampling {
            temperature, top_p, ..
        } = self.sampling;
        let warping = Warping {
            temperature,
            top_p,
            ..Warping::default()
        };
        let warper = Warper::new(warping, Law::Local)?;
        let [target, draft] = rows;
        let (target, draft) = (
            target.of(&self.prompts[number], answer)?,
            draft.of(&self.prompts[number], answer)?,
        );
        let mut state = self.grammar.as_ref().map(Grammar::start);
        let mut overlaps = Vec::new();
        for (at, &token) in answer.iter().enumerate() {
            let mask = self
                .grammar
                .as_ref()
                .zip(state)
                .map(|(grammar, state)| grammar.mask(state));
            let words = self.tokens_of(mask.as_ref().map(|mask| mask.words()));
            let shares = |logits: &Logits| -> Result<Vec<f64>, Box<dyn Error>> {
                let row = &logits.row(at)[..self.vocabulary.len()];
                let row = warper.row(row, History::default())?;
                Ok(row.part(Allowed::Words(&words)).shares())
            };
            let (p, q) = (shares(&target)?, shares(&draft)?);
            overlaps.push(p.iter().zip(q).map(|(p, q)| p.min(q)).sum());
            state = self
                .grammar
                .as_ref()
                .zip(state)
                .and_then(|(grammar, state)| grammar.step(state, token));
        }
        Ok(overlaps)
    }

    /// Returns the bits of a mask that are tokens.
    fn tokens_of(&self, mask: Option<&[u32]>) -> Vec<u32> {
        let unused: Vec<u32> = (0..self.vocabulary.len() as u32)
            .filter(|&token| self.vocabulary.kind(token) == TokenKind::Unused)
            .collect();
        mask.map_or(Allowed::All, Allowed::Words)
            .without(&unused, self.vocabulary.len())
    }
}

/// A model that computes the rows of whole answers.
struct Rows(LoadedModel);

impl Rows {
    fn open(folder: &str) -> Result<Self, Box<dyn Error>> {
        let mut model = open(folder)?;
        model.model.create_cache(1, 4096)?;
        Ok(Rows(model))
    }

    fn of(&mut self, prompt: &[u32], answer: &[u32]) -> Result<Logits, Box<dyn Error>> {
        let tokens = [prompt, &answer[..answer.len().saturating_sub(1)]].concat();
        let feed = Feed {
            tokens: &tokens,
            start: 0,
            table: &[0],
            rows: answer.len(),
            parents: None,
            scale: 1.0,
        };
        Ok(self.0.model.forward(&[feed])?)
    }
}

fn grammar(options: &Options, vocabulary: &Arc<Vocabulary>) -> Result<Option<Grammar>, Box<dyn Error>> {
    let Some(file) = options.0.get("schema") else {
        return Ok(None);
    };
    let (text, compile) = (std::fs::read_to_string(file)?, CompileOptions::default());
    let compiler = Compiler::new(vocabulary.clone()).primed(&compile)?;
    Ok(Some(compiler.compile(Source::JsonSchema(&text), &compile)?.0))
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read()?;
    let model: String = options.get("model", "models/demo".to_string())?;
    let draft = options.get("draft", format!("{model}/draft"))?;
    let tokenizer = Tokenizer::from_bytes(&std::fs::read(format!("{model}/tokenizer.json"))?)?;
    let mut rows = [Rows::open(&model)?, Rows::open(&draft)?];
    let vocabulary = Arc::new(tokenizer.vocabulary_with_rows(&rows[0].0.eos, rows[0].0.config.vocab_size)?);
    let count = options.get("answers", 16)?;
    let prompts = PROMPTS.iter().cycle().take(count);
    let setting = Setting {
        prompts: prompts
            .map(|text| tokenizer.encode(text))
            .collect::<Result<_, _>>()?,
        tokens: options.get("tokens", 128)?,
        sampling: Sampling {
            temperature: options.get("temperature", 1.0)?,
            top_p: options.get("top-p", 1.0)?,
            ..Sampling::default()
        },
        grammar: grammar(&options, &vocabulary)?,
        model,
        draft,
        vocabulary,
    };
    let residual = setting.write(Verification::Residual)?;
    let draw_once = setting.write(Verification::DrawOnce)?.accepted;
    let mut overlaps: Vec<f64> = Vec::new();
    for (number, (answer, judged)) in residual.answers.iter().enumerate() {
        let all = setting.overlaps(number, answer, &mut rows)?;
        overlaps.extend(judged.iter().map(|&at| all[at]));
    }
    let residual = residual.accepted;
    let best = overlaps.iter().sum::<f64>() / overlaps.len() as f64;
    println!(
        "{{\"positions\": {}, \"residual\": {residual:.4}, \"draw_once\": {draw_once:.4}, \"one_minus_tv\": {best:.4}}}",
        overlaps.len()
    );
    Ok(())
}
