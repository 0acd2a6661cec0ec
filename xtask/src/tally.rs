//! Counts tests over many programs, so that one line can report the result of the whole run.

use crate::process::code;
use std::fmt;
use std::ops::AddAssign;
use std::process::ExitCode;

/// The number of tests that passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    pub(crate) const PASSED: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    pub(crate) const FAILED: Self = Self {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
    pub(crate) const SKIPPED: Self = Self {
        passed: 0,
        failed: 0,
        skipped: 1,
    };

    /// Prints the counts as the closing line of a command, and returns success if nothing failed.
    pub(crate) fn close(self) -> ExitCode {
        println!("{self}");
        code(self.failed == 0)
    }
}

impl From<bool> for Tally {
    /// Counts one test that passed or failed.
    fn from(passed: bool) -> Self {
        if passed { Tally::PASSED } else { Tally::FAILED }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Parses the output of `cargo test -- --show-output`.
///
/// A test that lacks its data prints `skipped: NAME: why` and returns, which libtest counts as passed. Here
/// it is counted as skipped, even if only part of it was skipped: the closing line must not claim more than
/// was checked.
#[derive(Debug, Default)]
pub(crate) struct LibtestReader {
    tally: Tally,
    among_failures: bool,
    test_is_skipped: bool,
    skipped_here: u64,
}

impl LibtestReader {
    pub(crate) fn read(&mut self, line: &str) {
        if line == "failures:" {
            self.among_failures = true;
        } else if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            self.test_is_skipped = false;
        } else if line.starts_with("skipped: ") && !self.among_failures && !self.test_is_skipped {
            self.test_is_skipped = true;
            self.skipped_here += 1;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.end_of_program(counts);
        }
    }

    fn end_of_program(&mut self, counts: &str) {
        let skipped = std::mem::take(&mut self.skipped_here);
        self.tally += Tally {
            passed: count_before(counts, " passed").saturating_sub(skipped),
            failed: count_before(counts, " failed"),
            skipped: count_before(counts, " ignored") + skipped,
        };
        self.among_failures = false;
        self.test_is_skipped = false;
    }

    /// Returns the counts; `finished_well` is the exit status, so that a failed build never counts as zero
    /// failures.
    pub(crate) fn finish(self, finished_well: bool) -> Tally {
        let mut tally = self.tally;
        if !finished_well && tally.failed == 0 {
            tally += Tally::FAILED;
        }
        tally
    }
}

/// Returns the number written before `label`, as in `12 passed`.
fn count_before(text: &str, label: &str) -> u64 {
    let before = text.find(label).map_or("", |at| &text[..at]);
    let digits = before
        .rsplit(|it: char| !it.is_ascii_digit())
        .next()
        .unwrap_or("");
    digits.parse().unwrap_or(0)
}

/// Reads the closing lines of Node's tests: `# pass 5`, `# fail 0`, `# skipped 1`.
pub(crate) fn of_node(output: &str, finished_well: bool) -> Tally {
    let count = |label: &str| {
        let mut lines = output.lines().rev();
        let found = lines.find_map(|line| line.strip_prefix("# ")?.strip_prefix(label)?.trim().parse().ok());
        found.unwrap_or(0)
    };
    let mut tally = Tally {
        passed: count("pass "),
        failed: count("fail "),
        skipped: count("skipped "),
    };
    if !finished_well && tally.failed == 0 {
        tally += Tally::FAILED;
    }
    tally
}

/// Reads the closing lines of Python's `unittest`: `Ran 5 tests in 1s`, then `OK (skipped=1)` or
/// `FAILED (failures=1)`.
pub(crate) fn of_unittest(output: &str, finished_well: bool) -> Tally {
    let ran = output
        .lines()
        .rev()
        .find(|line| line.starts_with("Ran "))
        .map_or(0, |line| count_before(line, " test"));
    let last = output
        .lines()
        .rev()
        .find(|line| line.starts_with("OK") || line.starts_with("FAILED"))
        .unwrap_or("");
    let named = |name: &str| {
        let after = last.split_once(name).map_or("", |(_, after)| after);
        after
            .split(|it: char| !it.is_ascii_digit())
            .next()
            .unwrap_or("")
            .parse::<u64>()
            .unwrap_or(0)
    };
    let failed = named("failures=") + named("errors=");
    let failed = if finished_well { failed } else { failed.max(1) };
    let skipped = named("skipped=");
    Tally {
        passed: ran.saturating_sub(failed + skipped),
        failed,
        skipped,
    }
}

/// Reads the closing line of pytest: `1 failed, 5 passed, 2 skipped in 1.2s`.
pub(crate) fn of_pytest(output: &str, finished_well: bool) -> Tally {
    let counts = output
        .lines()
        .rev()
        .find(|line| {
            line.contains(" in ")
                && [" passed", " failed", " error", " skipped"]
                    .iter()
                    .any(|it| line.contains(it))
        })
        .unwrap_or("");
    let failed = count_before(counts, " failed") + count_before(counts, " error");
    Tally {
        passed: count_before(counts, " passed"),
        failed: if finished_well { failed } else { failed.max(1) },
        skipped: count_before(counts, " skipped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_of_node_are_read() {
        let output = "ok 1 - a\n# tests 3\n# pass 2\n# fail 0\n# skipped 1\n";
        let tally = of_node(output, true);
        assert_eq!((tally.passed, tally.failed, tally.skipped), (2, 0, 1));
        assert_eq!(of_node("", false).failed, 1);
    }

    #[test]
    fn the_closing_line_of_pytest_is_read() {
        let counts = |output, finished_well| of_pytest(output, finished_well).to_string();
        let all = "tests/a.py ...s [100%]\n== 1 failed, 12 passed, 2 skipped, 1 error in 1.20s ==\n";
        assert_eq!(counts(all, false), "12 passed, 2 failed, 2 skipped");
        assert_eq!(
            counts("3 passed in 0.10s\n", true),
            "3 passed, 0 failed, 0 skipped"
        );
        assert_eq!(counts("", false), "0 passed, 1 failed, 0 skipped");
    }

    fn read(text: &str, finished_well: bool) -> Tally {
        let mut reader = LibtestReader::default();
        text.lines().for_each(|line| reader.read(line));
        reader.finish(finished_well)
    }

    #[test]
    fn programs_are_summed() {
        let one = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let two = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        assert_eq!(
            read(&[one, two].concat(), false).to_string(),
            "15 passed, 2 failed, 1 skipped"
        );
    }

    #[test]
    fn a_test_without_its_data_is_skipped_once() {
        let text = "successes:\n\n---- a stdout ----\nskipped: a: x is not there\nskipped: a: y is not there\n\n\
                    ---- b stdout ----\nall well\n\nsuccesses:\n    a\n    b\n\n\
                    test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        assert_eq!(
            read(text, true),
            Tally {
                passed: 1,
                failed: 0,
                skipped: 1
            }
        );
    }

    #[test]
    fn a_failing_test_stays_failed_whatever_it_printed() {
        let text = "failures:\n\n---- a stdout ----\nskipped: a: x is not there\nassertion failed\n\n\
                    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s\n";
        assert_eq!(
            read(text, false),
            Tally {
                passed: 0,
                failed: 1,
                skipped: 0
            }
        );
    }

    #[test]
    fn a_build_that_fails_is_a_failure() {
        assert_eq!(read("", false), Tally::FAILED);
    }

    #[test]
    fn unittest_summaries() {
        assert_eq!(
            of_unittest("Ran 5 tests in 1.2s\n\nOK (skipped=2)\n", true).to_string(),
            "3 passed, 0 failed, 2 skipped"
        );
        let failed = of_unittest("Ran 5 tests in 1.2s\n\nFAILED (failures=1, errors=1)\n", false);
        assert_eq!(failed.to_string(), "3 passed, 2 failed, 0 skipped");
        assert_eq!(
            of_unittest("Traceback", false).to_string(),
            "0 passed, 1 failed, 0 skipped"
        );
    }
}
