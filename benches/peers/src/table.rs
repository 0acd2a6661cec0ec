//! The table that is printed at the end.
//!
//! Figures are compared only for work that both engines did: the schemas that both compiled, and the tokens
//! of each instance that both accepted. The figures of everything that an engine did are in separate columns.

use std::fmt::Write;

use crate::cases::Case;
use crate::walk::{Record, Walked};

/// The microseconds of one measurement, for both engines on the same work, and for each on all of its work.
#[derive(Default)]
pub struct Series {
    ours: Vec<f32>,
    theirs: Vec<f32>,
    ours_all: Vec<f32>,
    theirs_all: Vec<f32>,
}

/// The results of one engine as numbers of schemas.
#[derive(Default)]
pub struct Counts {
    compiled: usize,
    right: usize,
    refused_valid: usize,
    let_through: usize,
}

/// All figures of the table about masks and compiles.
#[derive(Default)]
pub struct Figures {
    schemas: usize,
    ours: Counts,
    theirs: Counts,
    compile: Series,
    first: Series,
    cold: Series,
    warm: Series,
}

impl Figures {
    /// Adds the results of both engines for a schema.
    pub fn add(&mut self, case: &Case, ours: &Record, theirs: &Record) {
        self.schemas += 1;
        self.ours.add(case, ours);
        self.theirs.add(case, theirs);
        self.compile.add_one(ours, theirs, |it| it.compile_us);
        self.first.add_one(ours, theirs, |it| it.compile_us + it.first_us);
        self.cold.add_one(ours, theirs, |it| it.first_us);
        self.cold.add_walks(&ours.cold, &theirs.cold);
        self.warm.add_walks(&ours.warm, &theirs.warm);
    }

    /// Returns the table; `more` are rows that were measured elsewhere.
    pub fn table(&self, more: &[Row]) -> String {
        let mut rows = self.count_rows();
        rows.extend(self.compile.rows("compile"));
        rows.extend(self.first.rows("compile + first mask"));
        rows.extend(self.cold.rows("mask, cold"));
        rows.extend(self.warm.rows("mask, warm"));
        let mut text = String::from(
            "| | Lexiform | llguidance | ratio | Lexiform, all its own | llguidance, all its own |\n|---|--:|--:|--:|--:|--:|\n",
        );
        for row in rows.iter().chain(more) {
            let _ = writeln!(text, "| {} | {} |", row.name, row.cells.join(" | "));
        }
        text
    }

    fn count_rows(&self) -> Vec<Row> {
        let row = |name: &str, count: fn(&Counts) -> usize| {
            let (ours, theirs) = (count(&self.ours), count(&self.theirs));
            Row::new(name, [ours.to_string(), theirs.to_string(), String::new()])
        };
        vec![
            row(&format!("schemas compiled, of {}", self.schemas), |it| {
                it.compiled
            }),
            row("schemas right on every instance", |it| it.right),
            row("compiled, but a valid instance refused", |it| it.refused_valid),
            row("an invalid instance accepted", |it| it.let_through),
        ]
    }
}

impl Counts {
    fn add(&mut self, case: &Case, record: &Record) {
        let compiled = record.refusal.is_none();
        self.compiled += usize::from(compiled);
        self.right += usize::from(record.is_right(case));
        self.let_through += usize::from(record.let_through(case));
        let refused = compiled && !record.is_right(case) && !record.let_through(case);
        self.refused_valid += usize::from(refused);
    }
}

impl Series {
    fn add_one(&mut self, ours: &Record, theirs: &Record, figure: fn(&Record) -> f64) {
        let (our, their) = (figure(ours) as f32, figure(theirs) as f32);
        if ours.refusal.is_none() {
            self.ours_all.push(our);
        }
        if theirs.refusal.is_none() {
            self.theirs_all.push(their);
        }
        if ours.refusal.is_none() && theirs.refusal.is_none() {
            self.ours.push(our);
            self.theirs.push(their);
        }
    }

    fn add_walks(&mut self, ours: &[Walked], theirs: &[Walked]) {
        ours.iter()
            .for_each(|it| self.ours_all.extend_from_slice(&it.mask_us));
        theirs
            .iter()
            .for_each(|it| self.theirs_all.extend_from_slice(&it.mask_us));
        for (our, their) in ours.iter().zip(theirs) {
            let shared = our.mask_us.len().min(their.mask_us.len());
            self.ours.extend_from_slice(&our.mask_us[..shared]);
            self.theirs.extend_from_slice(&their.mask_us[..shared]);
        }
    }

    fn rows(&self, what: &str) -> Vec<Row> {
        let all = [&self.ours, &self.theirs, &self.ours_all, &self.theirs_all];
        let [ours, theirs, ours_all, theirs_all] = all.map(|samples| Statistics::of(samples));
        let figures = ours.0.into_iter().zip(theirs.0);
        let all_figures = ours_all.0.into_iter().zip(theirs_all.0);
        let mut rows: Vec<Row> = Statistics::NAMES
            .iter()
            .zip(figures.zip(all_figures))
            .map(|(name, ((our, their), (our_all, their_all)))| Row {
                name: format!("{what}, µs: {name}"),
                cells: [
                    shown(our),
                    shown(their),
                    ratio(our, their),
                    shown(our_all),
                    shown(their_all),
                ],
            })
            .collect();
        rows.push(Row {
            name: format!("{what}: samples"),
            cells: [
                self.ours.len().to_string(),
                self.theirs.len().to_string(),
                String::new(),
                self.ours_all.len().to_string(),
                self.theirs_all.len().to_string(),
            ],
        });
        rows
    }
}

/// A row of the table.
pub struct Row {
    name: String,
    cells: [String; 5],
}

impl Row {
    /// Creates a row without figures for all schemas that an engine compiles.
    pub fn new(name: &str, [ours, theirs, ratio]: [String; 3]) -> Self {
        Self {
            name: name.to_owned(),
            cells: [ours, theirs, ratio, String::new(), String::new()],
        }
    }

    /// Creates a row of two figures of which the smaller one is better.
    pub fn times(name: &str, ours: f64, theirs: f64) -> Self {
        Self::new(name, [shown(ours), shown(theirs), ratio(ours, theirs)])
    }
}

/// Mean, percentiles (nearest rank) and maximum.
struct Statistics([f64; 6]);

impl Statistics {
    const NAMES: [&str; 6] = ["mean", "p50", "p90", "p99", "p99.9", "max"];

    fn of(samples: &[f32]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f32::total_cmp);
        let sum: f64 = sorted.iter().map(|it| f64::from(*it)).sum();
        let rank = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.max(1) - 1).map_or(f64::NAN, |it| f64::from(*it))
        };
        let mean = sum / sorted.len() as f64;
        Self([mean, rank(0.5), rank(0.9), rank(0.99), rank(0.999), rank(1.0)])
    }
}

fn shown(figure: f64) -> String {
    match figure {
        none if none.is_nan() => String::new(),
        small if small < 100.0 => format!("{small:.2}"),
        large => format!("{large:.0}"),
    }
}

/// Returns how many times as long theirs takes.
fn ratio(ours: f64, theirs: f64) -> String {
    let ratio = theirs / ours;
    if ratio.is_finite() {
        format!("{ratio:.1}×")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(mask_us: &[f32]) -> Vec<Walked> {
        vec![Walked {
            mask_us: mask_us.to_vec(),
            accepted: true,
        }]
    }

    #[test]
    fn only_what_both_engines_walked_is_compared() {
        let mut series = Series::default();
        series.add_walks(&walked(&[1.0, 2.0, 300.0]), &walked(&[10.0, 30.0]));
        assert_eq!(
            (series.ours.as_slice(), series.theirs.as_slice()),
            (&[1.0, 2.0][..], &[10.0, 30.0][..])
        );
        let rows = series.rows("mask");
        assert_eq!(rows[0].cells, ["1.50", "20.00", "13.3×", "101", "20.00"]);
        assert_eq!(rows[6].cells, ["2", "2", "", "3", "2"]);
    }

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<f32> = (1..=1000).rev().map(|it| it as f32).collect();
        assert_eq!(
            Statistics::of(&samples).0,
            [500.5, 500.0, 900.0, 990.0, 999.0, 1000.0]
        );
    }
}
