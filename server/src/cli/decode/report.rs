//! The figures of all cells: medians of their runs, as JSON and as a table.

use std::fmt::Write as _;

use lexiform_engine::{Bandwidth, PassReads};
use serde_json::{Value, json};

use super::grid::Grid;
use super::machine::{self, Machine};
use super::run::{Decoding, Run};
use crate::cli::version::{COMMIT, LIBTORCH, VERSION};
use crate::model::served::ServedModel;

/// The figures of an arm for a number of answers, a prompt length and a temperature.
pub(super) struct Cell {
    pub(super) answers: usize,
    /// The number of tokens of a prompt.
    pub(super) prompt: usize,
    pub(super) temperature: f64,
    pub(super) arm: &'static str,
    /// The arm with which its speed is compared.
    pub(super) baseline: Option<&'static str>,
    /// One run for each round.
    pub(super) runs: Vec<Run>,
}

/// Returns the quantile of the values at this share: 0.5 is the median. Returns 0 if there are no values.
pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    // The nearest rank: the smallest value that at least this share of all values does not exceed.
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

/// Returns the median; for an even number of values, the mean of the middle two. Returns 0 if there are no
/// values.
pub(super) fn median(values: Vec<f64>) -> f64 {
    let upper = values.iter().map(|value| -value).collect();
    (quantile(values, 0.5) - quantile(upper, 0.5)) / 2.0
}

fn tokens_a_second(run: &Run) -> f64 {
    match run.seconds > 0.0 {
        true => run.tokens as f64 / run.seconds,
        false => 0.0,
    }
}

impl Cell {
    /// Returns the tokens per second of all answers together.
    pub(super) fn tokens_a_second(&self) -> f64 {
        median(self.runs.iter().map(tokens_a_second).collect())
    }

    /// Returns the time to the first token over all answers of all runs, in milliseconds, at this quantile.
    pub(super) fn first_ms(&self, share: f64) -> f64 {
        1e3 * quantile(
            self.runs.iter().flat_map(|run| run.firsts.clone()).collect(),
            share,
        )
    }

    /// Returns the median over the runs of a figure of decoding; `None` if no run has it.
    fn of_decoding(&self, of: impl Fn(&Decoding) -> Option<f64>) -> Option<f64> {
        let said = self.runs.iter().filter_map(|run| of(run.decoding.as_ref()?));
        let said: Vec<f64> = said.collect();
        (!said.is_empty()).then(|| median(said))
    }

    /// Returns the milliseconds from one pass to the next.
    pub(super) fn pass_ms(&self) -> Option<f64> {
        self.of_decoding(|decoding| Some(1e3 * decoding.seconds / decoding.passes))
    }

    fn model_ms(&self) -> Option<f64> {
        self.of_decoding(|decoding| Some(1e3 * decoding.model_seconds?))
    }

    fn bytes_a_pass(&self) -> Option<f64> {
        self.of_decoding(|decoding| Some(decoding.bytes / decoding.passes))
    }

    /// Returns the bytes that passes read per second, as a share of `of`.
    pub(super) fn share(&self, of: f64) -> Option<f64> {
        self.of_decoding(|decoding| Some(decoding.bytes / decoding.seconds / of))
    }

    /// Returns `true` if another cell differs in the arm only.
    pub(super) fn is_beside(&self, other: &Cell) -> bool {
        (self.answers, self.prompt) == (other.answers, other.prompt)
            && self.temperature.to_bits() == other.temperature.to_bits()
    }

    /// Returns the median over rounds of the speed relative to another cell in the same round.
    fn ratio(&self, to: &Cell) -> f64 {
        let pairs = self.runs.iter().zip(&to.runs);
        let ratios = pairs.map(|(run, to)| tokens_a_second(run) / tokens_a_second(to));
        median(ratios.filter(|ratio| ratio.is_finite()).collect())
    }
}

/// All measured figures.
pub(super) struct Report {
    pub(super) cells: Vec<Cell>,
    /// The memory bandwidth in each round that counts.
    pub(super) memory: Vec<Bandwidth>,
    machine: Value,
    machine_in_words: String,
    buffer_bytes: usize,
    model: Value,
    model_in_words: String,
    tokens: usize,
    rounds: usize,
    skipped: Vec<String>,
    load_after: Option<f64>,
}

impl Report {
    pub(super) fn new(machine: &Machine, served: &ServedModel, reads: &PassReads, grid: &Grid) -> Self {
        let weights = reads.weights(1.0);
        let cache = reads.cache(1);
        let fits = weights < machine.cache_bytes as f64 && machine.card.is_none();
        let note = if fits {
            ", which fit into the caches of the processor"
        } else {
            ""
        };
        Report {
            cells: Vec::new(),
            memory: Vec::new(),
            machine: machine.json(),
            machine_in_words: machine.in_words(),
            buffer_bytes: machine.buffer_bytes,
            model: json!({
                "name": served.name(),
                "weight_bytes_a_pass": weights,
                "cache_bytes_a_token": cache,
                "fits_in_caches": fits,
            }),
            model_in_words: format!(
                "{}: a pass of one token reads {:.1} MB of weights{note}, and {:.1} KB for each token of the text",
                served.name(),
                weights / 1e6,
                cache / 1e3
            ),
            tokens: grid.tokens,
            rounds: grid.rounds,
            skipped: grid.skipped.clone(),
            load_after: None,
        }
    }

    /// Ends the measurement by recording the load.
    pub(super) fn end(&mut self) {
        self.load_after = machine::load();
    }

    /// Returns the memory bandwidth in bytes per second: the larger of the read speed and the copy speed.
    pub(super) fn limit(&self) -> f64 {
        let (read, copy) = self.speeds();
        read.max(copy)
    }

    fn speeds(&self) -> (f64, f64) {
        let of = |speed: fn(&Bandwidth) -> f64| median(self.memory.iter().map(speed).collect());
        (of(|memory| memory.read), of(|memory| memory.copy))
    }

    /// Returns the cell with which another is compared.
    fn baseline(&self, cell: &Cell) -> Option<&Cell> {
        let name = cell.baseline?;
        let mut beside = self.cells.iter().filter(|other| other.is_beside(cell));
        beside.find(|other| other.arm == name)
    }

    /// Returns the speed of a cell relative to its baseline, if that was measured.
    pub(super) fn ratio(&self, cell: &Cell) -> Option<f64> {
        self.baseline(cell).map(|baseline| cell.ratio(baseline))
    }

    /// Describes what was measured, in several lines.
    pub(super) fn subject(&self) -> Vec<String> {
        let (read, copy) = self.speeds();
        vec![
            format!("lexiform {VERSION}, commit {COMMIT}, libtorch {LIBTORCH}"),
            self.machine_in_words.clone(),
            self.model_in_words.clone(),
            format!(
                "Memory: {:.1} GB/s read, {:.1} GB/s copied (read and written); the limit is the larger",
                read / 1e9,
                copy / 1e9
            ),
            format!(
                "Answers of {} tokens; medians of {} rounds, after one that does not count",
                self.tokens,
                self.rounds - 1
            ),
        ]
    }

    fn cell_json(&self, cell: &Cell) -> Value {
        let (_, copy) = self.speeds();
        let total = |of: fn(&Run) -> usize| cell.runs.iter().map(of).sum::<usize>();
        let first = json!({"median": cell.first_ms(0.5), "p95": cell.first_ms(0.95)});
        json!({
            "answers": cell.answers,
            "prompt_tokens": cell.prompt,
            "temperature": cell.temperature,
            "arm": cell.arm,
            "tokens": total(|run| run.tokens),
            "tokens_a_second": cell.tokens_a_second(),
            "first_token_ms": first,
            "pass_ms": cell.pass_ms(),
            "model_ms": cell.model_ms(),
            "bytes_a_pass": cell.bytes_a_pass(),
            "share": cell.share(self.limit()),
            "share_of_copy": cell.share(copy),
            "baseline": cell.baseline,
            "ratio": self.ratio(cell),
            "attempts": total(|run| run.attempts),
            "drafted": total(|run| run.drafted),
        })
    }

    pub(super) fn json(&self) -> Value {
        let (read, copy) = self.speeds();
        let mut machine = self.machine.clone();
        machine["load_after"] = json!(self.load_after);
        json!({
            "version": VERSION,
            "commit": COMMIT,
            "libtorch": LIBTORCH,
            "command": std::env::args().collect::<Vec<_>>(),
            "machine": machine,
            "model": self.model,
            "memory": {
                "read_bytes_a_second": read,
                "copy_bytes_a_second": copy,
                "buffer_bytes": self.buffer_bytes,
                "measurements": self.memory.len(),
            },
            "answer_tokens": self.tokens,
            "rounds": self.rounds - 1,
            "skipped": self.skipped,
            "cells": self.cells.iter().map(|cell| self.cell_json(cell)).collect::<Vec<_>>(),
        })
    }

    pub(super) fn table(&self) -> String {
        let mut table = self.subject().join("\n");
        let _ = writeln!(
            table,
            "\n\n{:>7} {:>6} {:>4} {:<12} {:>9} {:>7} {:>9} {:>9} {:>8} {:>8} {:>6}",
            "answers", "prompt", "T", "arm", "tokens/s", "", "first ms", "p95", "pass ms", "model", "limit"
        );
        let number = |figure: Option<f64>| figure.map_or("-".to_owned(), |figure| format!("{figure:.2}"));
        for cell in &self.cells {
            let ratio = self
                .ratio(cell)
                .map_or(String::new(), |ratio| format!("{ratio:.2}x"));
            let share = cell.share(self.limit());
            let _ = writeln!(
                table,
                "{:>7} {:>6} {:>4} {:<12} {:>9.1} {ratio:>7} {:>9.1} {:>9.1} {:>8} {:>8} {:>6}",
                cell.answers,
                cell.prompt,
                cell.temperature,
                cell.arm,
                cell.tokens_a_second(),
                cell.first_ms(0.5),
                cell.first_ms(0.95),
                number(cell.pass_ms()),
                number(cell.model_ms()),
                share.map_or("-".to_owned(), |share| format!("{:.0}%", 100.0 * share)),
            );
        }
        let mut baselines: Vec<String> = Vec::new();
        for cell in self.cells.iter().filter(|cell| self.ratio(cell).is_some()) {
            let pair = format!("{} to {}", cell.arm, cell.baseline.unwrap_or_default());
            if !baselines.contains(&pair) {
                baselines.push(pair);
            }
        }
        table.push_str(
            "\npass: milliseconds from one pass to the next; model: of them until its rows are in memory; limit: the bytes that \
             passes read a second, of what memory moves.\n",
        );
        if !baselines.is_empty() {
            let _ = writeln!(table, "x: {}.", baselines.join(", "));
        }
        for skipped in &self.skipped {
            let _ = writeln!(table, "Not measured: {skipped}.");
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_nearest_rank_and_medians_lie_in_the_middle() {
        let values = || vec![4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            [0.25, 0.5, 0.75, 0.95].map(|share| quantile(values(), share)),
            [1.0, 2.0, 3.0, 4.0]
        );
        assert_eq!(median(values()), 2.5);
        assert_eq!(median(vec![5.0, 1.0, 3.0]), 3.0);
        assert_eq!((median(Vec::new()), quantile(Vec::new(), 0.95)), (0.0, 0.0));
    }

    fn cell(arm: &'static str, baseline: Option<&'static str>, seconds: [f64; 3]) -> Cell {
        let run = |seconds| Run {
            tokens: 12,
            seconds,
            firsts: vec![0.25, 0.5],
            attempts: 2,
            drafted: 0,
            decoding: Some(Decoding {
                seconds: seconds / 2.0,
                passes: 6.0,
                model_seconds: Some(0.25),
                bytes: 600.0,
            }),
        };
        Cell {
            answers: 2,
            prompt: 3,
            temperature: 1.0,
            arm,
            baseline,
            runs: seconds.map(run).to_vec(),
        }
    }

    /// The machine becomes half as fast with each round, and the second arm is always half as fast as the
    /// first.
    #[test]
    fn a_ratio_is_of_the_same_round() {
        let (free, schema) = (
            cell("free", None, [1.0, 2.0, 4.0]),
            cell("schema", Some("free"), [2.0, 4.0, 8.0]),
        );
        assert_eq!((free.tokens_a_second(), schema.tokens_a_second()), (6.0, 3.0));
        assert_eq!(schema.ratio(&free), 0.5);
        assert_eq!((free.first_ms(0.5), free.first_ms(0.95)), (250.0, 500.0));
        assert_eq!((free.pass_ms(), free.model_ms()), (Some(1e3 / 6.0), Some(250.0)));
        // 600 bytes per second, of 1200.
        assert_eq!(free.share(1200.0), Some(0.5));
        assert!(free.is_beside(&schema));
    }
}
