//! `cargo xtask check kernels`: compiles the kernels for sm_90, and compares their resource use with a table.
//!
//! ```text
//!   kernels/sources/*.cu ─ NVRTC ─► machine code ─► registers, stack, spills ─┬─► needs.txt
//!                                               └─► fused operations of f64 ──┘    none in draw.cu
//! ```
//!
//! NVRTC needs no card and no driver. A fused multiply-add in `draw.cu` would draw other tokens than the
//! library does.

use crate::process::{Failure, root};
use crate::setup;
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

/// Prints the resources of each kernel.
const SCRIPT: &str = include_str!("kernels.py");
const FOLDER: &str = "kernels/sources";
/// The resources of a multiprocessor of an H100.
const REGISTERS: u32 = 65_536;
const SHARED: u32 = 228 * 1024;
/// The shared memory that the system reserves for each block.
const RESERVED: u32 = 1024;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needs {
    threads: u32,
    registers: u32,
    shared: u32,
    blocks: u32,
}

/// The compiler's report on a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundUse {
    source: String,
    kernel: String,
    registers: u32,
    stack: u32,
    spilled: u32,
    shared: u32,
    fused: u32,
}

pub(crate) fn run() -> Result<ExitCode, Failure> {
    check().map(Tally::close)
}

/// Checks the kernels; skipped if NVRTC is missing and cannot be fetched.
pub(crate) fn check() -> Result<Tally, Failure> {
    let libraries = match setup::nvrtc() {
        Ok(libraries) => libraries,
        Err(why) => {
            println!("skipped: kernels for sm_90: {why}");
            return Ok(Tally::SKIPPED);
        }
    };
    let folder = root().join(FOLDER);
    let table = folder.join("needs.txt");
    let table =
        std::fs::read_to_string(&table).map_err(|error| Failure::io("could not read", &table, &error))?;
    let mut compile = Command::new("python3");
    compile.args(["-c", SCRIPT]).arg(&libraries).arg(&folder);
    let output = compile
        .output()
        .map_err(|error| Failure::new(format!("could not run python3: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        println!("the kernels do not compile for sm_90:\n{said}");
        return Ok(Tally::FAILED);
    }
    let found: Vec<FoundUse> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(found)
        .collect();
    let problems = problems(&needs(&table), &found);
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(Tally::from(problems.is_empty()))
}

/// Parses the lines of the table.
fn needs(table: &str) -> BTreeMap<&str, Needs> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'_ str| -> Option<Needs> {
        let mut numbers = line.split_whitespace().skip(1).map(|word| word.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Needs {
            threads: next()?,
            registers: next()?,
            shared: next()?,
            blocks: next()?,
        })
    };
    let named = lines.filter_map(|line| Some((line.split_whitespace().next()?, read(line)?)));
    named.collect()
}

/// Parses a line of the script's output.
fn found(line: &str) -> Option<FoundUse> {
    let mut words = line.split_whitespace();
    let (source, kernel) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut next = || words.next()?.parse().ok();
    Some(FoundUse {
        source,
        kernel,
        registers: next()?,
        stack: next()?,
        spilled: next()?,
        shared: next()?,
        fused: next()?,
    })
}

/// Returns all violations of the table.
fn problems(needs: &BTreeMap<&str, Needs>, found: &[FoundUse]) -> Vec<String> {
    let (controls, kernels): (Vec<&FoundUse>, Vec<&FoundUse>) =
        found.iter().partition(|found| found.source == "control");
    let mut problems = Vec::new();
    if !controls.iter().any(|control| control.fused > 0) {
        problems.push("the fused operation of the control was not seen".to_owned());
    }
    for (kernel, needs) in needs {
        if !kernels.iter().any(|found| found.kernel == *kernel) {
            problems.push(format!("{kernel} stands in the table and in no source"));
        }
        let registers = needs.blocks * needs.threads * needs.registers.next_multiple_of(8);
        let shared = needs.blocks * (needs.shared + RESERVED);
        if registers > REGISTERS || shared > SHARED {
            let blocks = needs.blocks;
            problems.push(format!(
                "{kernel}: {blocks} blocks need {registers} registers and {shared} bytes; there are {REGISTERS} and {SHARED}"
            ));
        }
    }
    problems.extend(kernels.iter().flat_map(|found| found.problems(needs)));
    problems
}

impl FoundUse {
    fn problems(&self, needs: &BTreeMap<&str, Needs>) -> Vec<String> {
        let Some(needs) = needs.get(self.kernel.as_str()) else {
            return vec![format!(
                "{}: {} has no line in the table",
                self.source, self.kernel
            )];
        };
        let mut problems = Vec::new();
        let mut must = |holds: bool, what: String| {
            if !holds {
                problems.push(format!("{}: {} {what}", self.source, self.kernel));
            }
        };
        must(
            self.registers <= needs.registers,
            format!(
                "takes {} registers, more than {}",
                self.registers, needs.registers
            ),
        );
        must(
            self.spilled == 0 && self.stack == 0,
            format!("spills {} bytes, and has {} of stack", self.spilled, self.stack),
        );
        must(
            self.shared == 0,
            format!(
                "declares {} bytes of shared memory; it is to ask for all at the launch",
                self.shared
            ),
        );
        must(
            self.source != "draw.cu" || self.fused == 0,
            format!("has {} fused multiply-adds of f64", self.fused),
        );
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "# kernel threads registers shared blocks\ndraw 128 48 2048 8\ngone 128 32 0 1\nlarge 1024 128 0 1\n";

    fn lines(text: &str) -> Vec<FoundUse> {
        text.lines().filter_map(found).collect()
    }

    #[test]
    fn what_does_not_hold_is_named() {
        let found = lines(
            "draw.cu draw 50 8 16 4 2\nlarge.cu large 128 0 0 0 3\nnew.cu new 8 0 0 0 0\ncontrol fused 12 0 0 0 0",
        );
        assert_eq!(
            problems(&needs(TABLE), &found),
            [
                "the fused operation of the control was not seen",
                "gone stands in the table and in no source",
                "large: 1 blocks need 131072 registers and 1024 bytes; there are 65536 and 233472",
                "draw.cu: draw takes 50 registers, more than 48",
                "draw.cu: draw spills 16 bytes, and has 8 of stack",
                "draw.cu: draw declares 4 bytes of shared memory; it is to ask for all at the launch",
                "draw.cu: draw has 2 fused multiply-adds of f64",
                "new.cu: new has no line in the table",
            ]
        );
        let good = lines("draw.cu draw 47 0 0 0 0\ncontrol fused 12 0 0 0 1");
        assert!(problems(&needs("draw 128 48 2048 8"), &good).is_empty());
    }

    #[test]
    fn the_table_in_the_tree_is_read_whole() {
        let table = include_str!("../../../kernels/sources/needs.txt");
        let lines = table.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(needs(table).len(), lines);
    }
}
