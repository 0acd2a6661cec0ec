//! A report as Markdown: the answers, the tables, and the figures of each plot as a table.

use std::fmt::Write as _;

use super::model::{Answer, Failure, Made, Mood, Part, Report};
use super::number::count;
use super::{chart, markup, table};

/// The failures that are listed at most, of all kinds together; JSON has all.
const MOST_FAILURES: usize = 100;
/// The letters of a reason that are shown.
const REASON_LETTERS: usize = 300;

/// Returns the whole text.
pub(super) fn text(report: &Report) -> String {
    let mut text = format!("# {}\n\n", markup::markdown(&report.title));
    text.push_str(&answers(&report.answers));
    for section in &report.sections {
        let _ = writeln!(text, "## {}\n", markup::markdown(&section.title));
        for part in &section.parts {
            match part {
                Part::Paragraph(paragraph) => {
                    let _ = writeln!(text, "{}\n", markup::markdown(&paragraph.text));
                }
                Part::Table(shown) => text.push_str(&table::markdown(shown)),
                Part::Chart(shown) => text.push_str(&table::markdown(&chart::figures(shown))),
            }
        }
    }
    text.push_str(&failures(&report.failures));
    text.push_str(&made(&report.made));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn answers(answers: &[Answer]) -> String {
    let lines = answers.iter().map(|answer| {
        let sign = match answer.mood {
            Mood::Good => "✓ ",
            Mood::Bad => "✗ ",
            Mood::Plain => "",
        };
        let (question, answer) = (
            markup::markdown(&answer.question),
            markup::markdown(&answer.answer),
        );
        format!("- **{question}** {sign}{answer}\n")
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

fn failures(failures: &[Failure]) -> String {
    if failures.is_empty() {
        return "## Failures\n\nNothing failed.\n\n".to_owned();
    }
    let mut text = format!("## Failures ({})\n\n", count(failures.len()));
    let groups = Failure::groups(failures);
    let most = MOST_FAILURES / groups.len().min(MOST_FAILURES);
    for (what, group) in groups.iter().take(MOST_FAILURES) {
        let _ = writeln!(text, "### {}: {}\n", markup::markdown(what), count(group.len()));
        for failure in group.iter().take(most) {
            let reason = markup::shortened(&failure.reason, REASON_LETTERS);
            let line = format!("{}: {reason}", failure.case);
            let line = line.trim_end_matches([':', ' ']);
            let _ = writeln!(text, "- {}", markup::markdown(line));
        }
        text.push('\n');
        if let Some(failure) = group.iter().find(|failure| !failure.command.is_empty()) {
            let _ = writeln!(text, "{}", markup::code_block(&failure.command));
        }
        if group.len() > most {
            let _ = writeln!(
                text,
                "{} more are in the report as JSON.\n",
                count(group.len() - most)
            );
        }
    }
    text
}

fn made(made: &Made) -> String {
    let mut text = String::from("## How it was made\n\n");
    if !made.command.is_empty() {
        let _ = writeln!(text, "{}", markup::code_block(&made.command));
    }
    text.extend(made.tables().iter().map(table::markdown));
    text
}
