//! `lexiform eval render`: an earlier report once more, as a page or as Markdown, and its tables and plots
//! within documents.
//!
//! ```text
//!   report as JSON ──┬─► --html, --markdown
//!                    └─► a document, between two comments:
//!                          <!-- report PATH table "TITLE" -->  …  <!-- end of report -->
//!                        and beside it:
//!                          <!-- report PATH plot "TITLE" FILE.svg -->
//! ```
//!
//! Paths are those from the folder of the document. So the figures of a document are those of a report, and a
//! test can tell whether they still are.

use std::path::{Path, PathBuf};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome, read_text};
use crate::report::{Report, write};

/// The comments around what a report says in a document.
const BEGIN: &str = "<!-- report ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end of report -->";

/// The arguments of `lexiform eval render`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// The report, as --report wrote it
    #[arg(value_name = "REPORT", required_unless_present = "into")]
    report: Option<PathBuf>,
    /// Write the report as a page with plots
    #[arg(long, value_name = "FILE", requires = "report")]
    html: Option<PathBuf>,
    /// Write the report as Markdown; it is printed if no file is named
    #[arg(long, value_name = "FILE", requires = "report")]
    markdown: Option<PathBuf>,
    /// Renew the tables and plots of reports in this document
    ///
    /// A table is written between `<!-- report PATH table "TITLE" -->` and `<!-- end of report -->`, a plot
    /// into the file that `<!-- report PATH plot "TITLE" FILE.svg -->` names. Paths are those from the folder
    /// of the document.
    #[arg(long, value_name = "FILE", conflicts_with = "report")]
    into: Vec<PathBuf>,
}

/// Runs `lexiform eval render`.
///
/// # Errors
/// A report or a document cannot be read or written, or names what a report does not have.
pub fn run(args: &Args) -> Outcome {
    for document in &args.into {
        for (path, text) in renewed(document)? {
            write(&path, &text)?;
        }
    }
    if let Some(path) = &args.report {
        let report = read(path)?;
        if let Some(path) = &args.html {
            write(path, &report.html())?;
        }
        match (&args.markdown, &args.html) {
            (Some(path), _) => write(path, &report.markdown())?,
            (None, None) => anstream::print!("{}", report.markdown()),
            (None, Some(_)) => (),
        }
    }
    Ok(Code::Fine)
}

fn read(path: &Path) -> Result<Report, Failure> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::message(format!(
            "{} is no report as --report writes it: {error}",
            path.display()
        ))
    })
}

/// Returns the files that a document and its plots consist of, with the texts that they should have.
///
/// # Errors
/// A comment is broken, a report cannot be read, or has no such table or plot.
pub fn renewed(document: &Path) -> Result<Vec<(PathBuf, String)>, Failure> {
    let text = read_text(document)?;
    let folder = document.parent().unwrap_or(Path::new(""));
    let (mut renewed, mut files) = (String::new(), Vec::new());
    let mut rest = text.as_str();
    while let Some(begin) = rest.find(BEGIN) {
        let line = text[..text.len() - rest.len() + begin].matches('\n').count() + 1;
        let broken = |why: String| Failure::message(format!("{}, line {line}: {why}", document.display()));
        let close = rest[begin..].find(CLOSE);
        let close = close.ok_or_else(|| broken(format!("the comment has no end `{}`", CLOSE.trim())))?;
        let comment = Comment::parse(&rest[begin + BEGIN.len()..begin + close]).map_err(broken)?;
        let after = begin + close + CLOSE.len();
        renewed.push_str(&rest[..after]);
        rest = &rest[after..];
        let report = read(&folder.join(comment.report))?;
        match comment.shown {
            Shown::Table => {
                let table = report.table_as_markdown(comment.title);
                let table =
                    table.ok_or_else(|| broken(format!("the report has no table {:?}", comment.title)))?;
                let end = rest.find(END);
                let end = end.ok_or_else(|| broken(format!("`{END}` is missing after the table")))?;
                renewed.push_str(&format!("\n\n{}\n\n", table.trim()));
                rest = &rest[end..];
            }
            Shown::Plot(file) => {
                let plot = report.plot_as_svg(comment.title);
                let plot =
                    plot.ok_or_else(|| broken(format!("the report has no plot {:?}", comment.title)))?;
                files.push((folder.join(file), plot));
            }
        }
    }
    renewed.push_str(rest);
    files.push((document.to_owned(), renewed));
    Ok(files)
}

/// What a comment asks for.
struct Comment<'a> {
    report: &'a str,
    title: &'a str,
    shown: Shown<'a>,
}

enum Shown<'a> {
    Table,
    /// A plot in a file of this path.
    Plot(&'a str),
}

impl<'a> Comment<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let wrong =
            || "expected `report PATH table \"TITLE\"` or `report PATH plot \"TITLE\" FILE.svg`".to_owned();
        let mut parts = text.splitn(3, '"');
        let (Some(before), Some(title), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        let (report, kind) = before.trim().rsplit_once(' ').ok_or_else(wrong)?;
        let shown = match (kind, file.trim()) {
            ("table", "") => Shown::Table,
            ("plot", file) if file.ends_with(".svg") => Shown::Plot(file),
            _ => return Err(wrong()),
        };
        Ok(Comment {
            report: report.trim(),
            title,
            shown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Bar, Chart, Part, Scale, Section, Shape, Table};

    fn report() -> Report {
        let table = Table {
            title: "Right".to_owned(),
            columns: vec!["engine".to_owned(), "right".to_owned()],
            rows: vec![vec!["a".to_owned(), "3".to_owned()]],
            note: String::new(),
        };
        let chart = Chart {
            title: "Speed".to_owned(),
            x: "µs".to_owned(),
            y: "engine".to_owned(),
            scale: Scale::Linear,
            shape: Shape::Bars {
                bars: vec![Bar {
                    label: "a".to_owned(),
                    value: 3.0,
                    ..Bar::default()
                }],
            },
        };
        Report {
            sections: vec![Section {
                title: "All".to_owned(),
                parts: vec![Part::Table(table), Part::Chart(chart)],
            }],
            ..Report::default()
        }
    }

    /// Returns the files that a document in a folder with a report becomes.
    fn rendered(name: &str, document: &str) -> Result<Vec<(PathBuf, String)>, String> {
        let folder = std::env::temp_dir().join(format!("lexiform-render-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let json = serde_json::to_string(&report()).expect("JSON");
        std::fs::write(folder.join("r.json"), json).expect("a file");
        let file = folder.join("d.md");
        std::fs::write(&file, document).expect("a file");
        let files = renewed(&file).map_err(|failure| failure.to_string());
        std::fs::remove_dir_all(&folder).expect("the folder goes");
        files
    }

    #[test]
    fn a_document_shows_what_a_report_says() {
        let old = "# A\n<!-- report r.json table \"Right\" -->\nold\n<!-- end of report -->\nB\n\
                   <!-- report r.json plot \"Speed\" p.svg -->\n![](p.svg)\n";
        let files = rendered("shows", old).expect("it is whole");
        let [(picture, svg), (_, text)] = &files[..] else {
            panic!("two files");
        };
        assert!(picture.ends_with("p.svg") && svg.starts_with("<svg"), "{svg}");
        assert!(text.contains("| a | 3 |") && !text.contains("old"), "{text}");
        let again = rendered("again", text).expect("it is whole");
        assert_eq!(&again[1].1, text, "renewing twice changes nothing");
    }

    /// The documents of this repository show what the recorded reports say.
    #[test]
    fn documents_are_up_to_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for document in ["README.md", "docs/src/comparison.md"] {
            for (path, text) in renewed(&root.join(document)).expect(document) {
                let there = read_text(&path).expect("a file of the repository");
                assert!(
                    there == text,
                    "{}: run `lexiform eval render --into {document}`",
                    path.display()
                );
            }
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        for (name, document, word) in [
            (
                "title",
                "\n<!-- report r.json table \"Wrong\" -->\n<!-- end of report -->",
                "line 2: the report has no table",
            ),
            (
                "end",
                "<!-- report r.json table \"Right\" -->\n",
                "line 1: `<!-- end of report -->` is missing",
            ),
            (
                "form",
                "<!-- report r.json -->",
                "line 1: expected `report PATH table",
            ),
            ("close", "<!-- report r.json", "has no end"),
            ("file", "<!-- report x.json table \"Right\" -->", "x.json"),
        ] {
            let error = rendered(name, document).expect_err(name);
            assert!(error.contains(word), "{name}: {error}");
        }
    }
}
