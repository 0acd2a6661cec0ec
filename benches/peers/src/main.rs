//! Compares Lexiform with llguidance: the same schemas, tokenizer and tokens, in one process and one table.
//!
//! ```text
//!   schema ─┬─► Lexiform ───┐  compile, first mask, then for every token of every instance: step + mask;
//!           └─► llguidance ─┘  then all steps on the known grammar; the engines take turns at going first
//! ```
//!
//! A time is the smaller of the processor time of this thread and the wall-clock time, so that neither the
//! other work of the machine nor the cost of reading the processor time is counted.

mod cases;
mod classes;
#[path = "../../../cli/src/eval/clock.rs"]
mod clock;
mod compare;
mod engine;
mod guidance;
mod ours;
#[path = "../../../cli/src/eval/python_json.rs"]
mod python_json;
mod scan;
mod table;
mod threads;
mod variants;
mod walk;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use lexiform::schema::KeyOrder;
use lexiform::vocab::{Tokenizer, Vocabulary};

use cases::{Case, Choice};
use classes::Judge;
use compare::Comparison;
use engine::Engine;
use guidance::Guidance;
use ours::Ours;
use table::{Figures, Row};
use threads::Sums;
use walk::{Record, cold, warm};

/// Any error that stops the benchmark.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Lexiform and llguidance on the same schemas, tokenizer and tokens; prints one table.
#[derive(Debug, Parser)]
struct Args {
    /// The schemas with their instances, in MaskBench's form.
    #[arg(long, default_value = ".data/maskbench/dev.jsonl")]
    data: PathBuf,
    /// The `tokenizer.json` whose tokens are walked.
    #[arg(long, default_value = ".data/tokenizers/llama3_1/tokenizer.json")]
    tokenizer: PathBuf,
    /// The token that ends a sequence.
    #[arg(long, default_value = "<|eot_id|>")]
    eos: String,
    /// The number of schemas, spread evenly over the file.
    #[arg(long, default_value_t = 5568)]
    schemas: usize,
    /// The offset of the first schema of the spread.
    #[arg(long, default_value_t = 0)]
    seed: usize,
    /// The number of schemas that two threads walk as well, among those that both engines get right.
    #[arg(long, default_value_t = 40)]
    threaded: usize,
    /// Compare the masks of this many schemas from the top of the file bit by bit, and measure nothing.
    #[arg(long, value_name = "N")]
    compare: Option<usize>,
    /// With `--compare`: take schemas that are spread evenly over the file.
    #[arg(long)]
    spread: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Both engines, ready for the vocabulary.
struct Engines {
    ours: Ours,
    theirs: Guidance,
    vocabulary: Arc<Vocabulary>,
    eos: u32,
}

fn run(args: &Args) -> Result<(), Failure> {
    let file =
        std::fs::read(&args.tokenizer).map_err(|error| format!("{}: {error}", args.tokenizer.display()))?;
    let tokenizer = Tokenizer::from_bytes(&file)?;
    let mut engines = Engines::new(&file, &tokenizer, &args.eos)?;
    let choice = match args.compare {
        Some(schemas) if !args.spread => Choice::First(schemas),
        compared => Choice::Spread {
            schemas: compared.unwrap_or(args.schemas),
            seed: args.seed,
        },
    };
    let cases = cases::read(&args.data, &choice, &tokenizer)?;
    // A panic of an engine counts as its failure at that schema; the message would only break up the table.
    std::panic::set_hook(Box::new(|_| {}));
    if args.compare.is_some() {
        print!("{}", engines.compare(&cases)?.report());
        return Ok(());
    }
    let (figures, threads) = engines.measure(&cases, args.threaded);
    print!("{}", figures.table(&engines.more_rows(&threads)));
    Ok(())
}

impl Engines {
    fn new(file: &[u8], tokenizer: &Tokenizer, eos: &str) -> Result<Self, Failure> {
        let eos = tokenizer
            .special(eos)
            .ok_or_else(|| format!("there is no token {eos}"))?;
        let vocabulary = Arc::new(tokenizer.vocabulary(&[eos])?);
        Ok(Self {
            ours: Ours::new(vocabulary.clone(), KeyOrder::Any)?,
            theirs: Guidance::new(file, eos)?,
            vocabulary,
            eos,
        })
    }

    fn compare(&self, cases: &[Case]) -> Result<Comparison, Failure> {
        let ordered = Ours::new(self.vocabulary.clone(), KeyOrder::Schema)?;
        let mut comparison = Comparison::default();
        for (index, case) in cases.iter().enumerate() {
            let (Ok(grammar), Ok(matcher)) = (self.ours.grammar(case).0, self.theirs.matcher(case).0) else {
                continue;
            };
            let plain = variants::without_formats(case).and_then(|plain| {
                let matcher = self.theirs.matcher(&plain).0.ok()?;
                Some((self.ours.grammar(&plain).0.ok()?, matcher))
            });
            let siblings = variants::with_siblings(case);
            let judge = Judge {
                grammar,
                ordered: ordered.grammar(case).0.ok(),
                matcher: matcher.deep_clone(),
                plain,
                siblings: siblings.and_then(|siblings| self.ours.grammar(&siblings).0.ok()),
            };
            comparison.add(case, judge, &matcher);
            if index % 50 == 49 {
                eprintln!("{} of {} schemas", index + 1, cases.len());
            }
        }
        Ok(comparison)
    }

    fn measure(&mut self, cases: &[Case], threaded: usize) -> (Figures, [Sums; 2]) {
        let mut figures = Figures::default();
        let mut sums = [Sums::default(), Sums::default()];
        let stride = cases.len().div_ceil(threaded.max(1));
        let mut owed = 0;
        for (index, case) in cases.iter().enumerate() {
            let (ours, theirs) = self.walk(case, index % 2 == 0);
            figures.add(case, &ours, &theirs);
            owed += usize::from(threaded > 0 && index % stride == 0);
            let both_right = ours.is_right(case) && theirs.is_right(case);
            let both = ours.compiled.as_deref().zip(theirs.compiled.as_deref());
            if let Some((ours, theirs)) = both.filter(|_| owed > 0 && both_right) {
                sums[0].add(ours, case);
                sums[1].add(theirs, case);
                owed -= 1;
            }
            if index % 500 == 499 {
                eprintln!("{} of {} schemas", index + 1, cases.len());
            }
        }
        (figures, sums)
    }

    /// Walks a schema with both engines. Each engine evicts the other's data from the processor's caches, so
    /// they take turns at going first.
    fn walk(&mut self, case: &Case, ours_first: bool) -> (Record, Record) {
        let eos = self.eos;
        let in_turn = |engine: &mut dyn Engine| {
            let mut record = cold(engine, case, eos);
            warm(&mut record, case, eos);
            record
        };
        if ours_first {
            let ours = in_turn(&mut self.ours);
            (ours, in_turn(&mut self.theirs))
        } else {
            let theirs = in_turn(&mut self.theirs);
            (in_turn(&mut self.ours), theirs)
        }
    }

    fn more_rows(&self, [ours, theirs]: &[Sums; 2]) -> Vec<Row> {
        let clock = clock_us();
        let shown = |sums: &Sums| match sums.schemas {
            0 => String::new(),
            _ => format!("{:.2}×", sums.throughput()),
        };
        vec![
            Row::new(
                &format!(
                    "two threads on one grammar, against one ({} schemas)",
                    ours.schemas
                ),
                [shown(ours), shown(theirs), String::new()],
            ),
            Row::times(
                "once per vocabulary, ms",
                self.ours.prime_us / 1000.0,
                self.theirs.prime_us / 1000.0,
            ),
            Row::new(
                "once per vocabulary, MB",
                [
                    format!("{:.1}", self.ours.bytes() as f64 / 1e6),
                    String::new(),
                    String::new(),
                ],
            ),
            Row::new(
                "of every sample, the clock itself, µs",
                [format!("{clock:.2}"), format!("{clock:.2}"), String::new()],
            ),
        ]
    }
}

/// Returns the cost of reading the clock twice in microseconds, as the mean of many readings.
fn clock_us() -> f64 {
    const LOOKS: u32 = 100_000;
    (0..LOOKS).map(|_| clock::timed(|| ()).1).sum::<f64>() / f64::from(LOOKS)
}
