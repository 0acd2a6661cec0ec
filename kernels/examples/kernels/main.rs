//! The kernels on a card: whether they compute what loops in `f64` and the library's law say, and how fast.
//!
//! ```text
//! cargo run --release -p lexiform-kernels --example kernels -- [--nvrtc FOLDER] [--card N] [--json FILE] [--no-dependent-launch] [name | cases | check | times]
//! ```
//!
//! `name` says which card there is, `cases` runs the cases of `kernels/tests/kernels`, `check` these and
//! draws, and `times` times launches at the sizes of two models; without a word, all is done. The exit code
//! is 3 where there is no card that the kernels can run on, and 1 where something is wrong. With
//! `--no-dependent-launch` no kernel starts before the end of the one ahead. `--nvrtc` names the folder of
//! libnvrtc.so.13, where the system does not find it. Each time is the median over 21 rounds of ten launches;
//! weights and caches are taken in turn from copies that together are larger than the L2.

#[path = "../../tests/kernels/cases.rs"]
mod cases;
#[path = "../../tests/kernels/logits.rs"]
mod logits;
#[allow(dead_code, reason = "the tests on the processor use the rest")]
#[path = "../../tests/kernels/memory.rs"]
mod memory;
mod times;

use lexiform_kernels::SOURCES;
use lexiform_kernels::card::compiler::Compiler;
use lexiform_kernels::card::{Card, CardError, CardMemory};
use lexiform_kernels::node::Node;
use memory::{Chance, Memory};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Where there is no card for the kernels.
const NO_CARD: u8 = 3;

/// What was asked for.
#[derive(Default)]
struct Asked {
    nvrtc: Option<PathBuf>,
    card: usize,
    json: Option<PathBuf>,
    launches_alone: bool,
    part: Option<String>,
}

fn asked() -> Result<Asked, String> {
    let (mut asked, mut words) = (Asked::default(), std::env::args().skip(1));
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--nvrtc" => asked.nvrtc = Some(value()?.into()),
            "--json" => asked.json = Some(value()?.into()),
            "--no-dependent-launch" => asked.launches_alone = true,
            "--card" => asked.card = value()?.parse().map_err(|_| "--card needs a number")?,
            "name" | "cases" | "check" | "times" => asked.part = Some(word),
            _ => return Err(format!("{word}: expected an option, name, cases, check or times")),
        }
    }
    Ok(asked)
}

fn main() -> ExitCode {
    let asked = match asked() {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("kernels: {why}");
            return ExitCode::from(2);
        }
    };
    let card = match Card::open(asked.card) {
        Ok(card) => card.launching_ahead(!asked.launches_alone),
        Err(why) => {
            println!("no card: {why}");
            return ExitCode::from(NO_CARD);
        }
    };
    match run(card, &asked) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            println!("kernels: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is right.
fn run(mut card: Card, asked: &Asked) -> Result<bool, CardError> {
    println!("{}, {} multiprocessors", card.name(), card.multiprocessors());
    let is_asked = |part: &str| asked.part.as_deref().is_none_or(|asked| asked == part);
    if asked.part.as_deref() == Some("name") {
        return Ok(true);
    }
    let compiler = Compiler::open(asked.nvrtc.as_deref())?;
    for (source, time) in card.load(&compiler, &SOURCES.map(|(source, _)| source))? {
        println!("{source}: compiled in {:.1} s", time.as_secs_f64());
    }
    let (mut faults, mut measured) = (Vec::new(), Vec::new());
    if is_asked("cases") || is_asked("check") {
        for (source, _) in SOURCES {
            faults.extend(check(&card, source)?);
        }
        if is_asked("check") {
            faults.extend(check_draws(&card)?);
        }
        println!("{} faults", faults.len());
    }
    if is_asked("times") {
        measured = times::measure(&card)?;
    }
    if let Some(file) = &asked.json {
        let name = card.name();
        let all: Value = json!({"card": name, "faults": faults, "times": measured});
        if let Err(error) = std::fs::write(file, all.to_string()) {
            println!("could not write {}: {error}", file.display());
            return Ok(false);
        }
    }
    Ok(faults.is_empty())
}

/// What is wrong with the kernels of a source.
fn check(card: &Card, source: &str) -> Result<Vec<String>, CardError> {
    let mut faults = Vec::new();
    for case in cases::of(source) {
        let buffers = upload(card, &case.buffers)?;
        let mut found = Vec::new();
        for _ in 0..case.rounds {
            found = launch(card, &case.nodes, &buffers)?;
        }
        let of_case = case.faults(&found);
        println!(
            "{}: {}",
            if of_case.is_empty() { "ok" } else { "WRONG" },
            case.name
        );
        of_case.iter().for_each(|fault| println!("  {fault}"));
        faults.extend(of_case);
        buffers.into_iter().try_for_each(|memory| card.free(memory))?;
    }
    Ok(faults)
}

/// The rows whose draws are not those of the library.
fn check_draws(card: &Card) -> Result<Vec<String>, CardError> {
    let mut chance = Chance::new(1);
    let (mut faults, mut rows) = (Vec::new(), 0);
    for (width, count) in [(31, 3000), (2049, 3000), (20_011, 3000), (128_256, 1000)] {
        let mut random = logits::Rows::random(width, count, &mut chance);
        if width == 2049 {
            random.break_some(&mut chance);
        }
        let (nodes, buffers) = random.launches();
        let memory = upload(card, &buffers)?;
        let found = launch(card, &nodes, &memory)?;
        faults.extend(random.compare(&found[logits::OUT]).0);
        rows += count;
        memory.into_iter().try_for_each(|memory| card.free(memory))?;
    }
    println!("draws: {} of {rows} rows are not the library's", faults.len());
    faults.iter().take(5).for_each(|fault| println!("  {fault}"));
    Ok(faults)
}

fn upload(card: &Card, buffers: &[Memory]) -> Result<Vec<CardMemory>, CardError> {
    let memory = buffers.iter().map(|buffer| card.upload(&buffer.bytes()));
    memory.collect()
}

/// All buffers after these launches.
fn launch(card: &Card, nodes: &[Node<usize>], buffers: &[CardMemory]) -> Result<Vec<Memory>, CardError> {
    for node in nodes {
        card.launch(node, |&buffer| buffers[buffer].address)?;
    }
    let after = buffers.iter().map(|&buffer| card.download(buffer));
    after
        .map(|bytes| bytes.map(|bytes| Memory::of_bytes(&bytes)))
        .collect()
}
