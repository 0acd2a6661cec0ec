//! A report as one HTML page: no scripts, no other files, and nothing in the data is markup.
//!
//! ```text
//!   title ─ answers ─ contents ─ sections (paragraphs, tables, plots) ─ failures ─ how it was made
//! ```

use std::fmt::Write as _;

use super::model::{Answer, Failure, Made, Mood, Part, Report, Section};
use super::number::count;
use super::{chart, markup, table};

const STYLE: &str = include_str!("page.css");

/// The failures that are shown at most, of all kinds together; JSON has all.
const MOST_FAILURES: usize = 300;
/// The letters of a reason that are shown.
const REASON_LETTERS: usize = 1000;

/// Returns the whole page.
pub(super) fn html(report: &Report) -> String {
    let title = markup::html(&report.title);
    // A browser runs and loads nothing from this page, whatever a schema that it names is called.
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{}</header>\n<main>\n",
        subject(&report.made)
    );
    page.push_str(&answers(&report.answers));
    page.push_str(&contents(report));
    for (index, part) in report.sections.iter().enumerate() {
        page.push_str(&section(index, part));
    }
    page.push_str(&failures(&report.failures));
    page.push_str(&made(&report.made));
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// Says in a line what was measured, when and where.
fn subject(made: &Made) -> String {
    let versions = made
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"));
    let machine = made.machine.iter().take(1).map(|(_, value)| value.clone());
    let date = (!made.date.is_empty()).then(|| made.date.clone());
    let parts: Vec<String> = versions.chain(machine).chain(date).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("<p>{}</p>\n", markup::html(&parts.join(" · "))),
    }
}

fn answers(answers: &[Answer]) -> String {
    if answers.is_empty() {
        return String::new();
    }
    let mut html = String::from("<dl class=\"answers\">\n");
    for answer in answers {
        let (class, sign, word) = match answer.mood {
            Mood::Good => ("good", "✓", "Good: "),
            Mood::Bad => ("bad", "✗", "Bad: "),
            Mood::Plain => ("plain", "", ""),
        };
        let _ = writeln!(
            html,
            "<div class=\"{class}\"><dt>{}</dt><dd><span class=\"sign\" aria-hidden=\"true\">{sign}</span>\
             <span class=\"heard\">{word}</span>{}</dd></div>",
            markup::html(&answer.question),
            markup::html(&answer.answer)
        );
    }
    html.push_str("</dl>\n");
    html
}

fn contents(report: &Report) -> String {
    let sections = report.sections.iter().enumerate();
    let mut links: Vec<String> = sections
        .map(|(index, section)| format!("<a href=\"#part-{index}\">{}</a>", markup::html(&section.title)))
        .collect();
    if !report.failures.is_empty() {
        links.push("<a href=\"#failures\">Failures</a>".to_owned());
    }
    links.push("<a href=\"#made\">How it was made</a>".to_owned());
    format!("<nav aria-label=\"Contents\">{}</nav>\n", links.join("\n"))
}

fn section(index: usize, section: &Section) -> String {
    let mut html = format!(
        "<section id=\"part-{index}\">\n<h2>{}</h2>\n<div class=\"parts\">\n",
        markup::html(&section.title)
    );
    for part in &section.parts {
        html.push_str(&match part {
            Part::Paragraph(paragraph) => format!("<p>{}</p>\n", markup::html(&paragraph.text)),
            Part::Table(shown) => table::html(shown),
            Part::Chart(shown) => chart::html(shown),
        });
    }
    html.push_str("</div>\n</section>\n");
    html
}

/// Lists the failures in groups of what went wrong, the largest first.
fn failures(failures: &[Failure]) -> String {
    if failures.is_empty() {
        return "<section id=\"failures\">\n<h2>Failures</h2>\n<p>Nothing failed.</p>\n</section>\n"
            .to_owned();
    }
    let groups = Failure::groups(failures);
    let most = MOST_FAILURES / groups.len().min(MOST_FAILURES);
    let mut html = format!(
        "<section id=\"failures\">\n<h2>Failures ({})</h2>\n",
        count(failures.len())
    );
    for (what, group) in groups.iter().take(MOST_FAILURES) {
        let _ = writeln!(
            html,
            "<details><summary>{}: {}</summary>\n<ul>",
            markup::html(what),
            count(group.len())
        );
        for failure in group.iter().take(most) {
            let reason = markup::shortened(&failure.reason, REASON_LETTERS);
            let _ = write!(
                html,
                "<li><strong>{}</strong> <span>{}</span>",
                markup::html(&failure.case),
                markup::html(&reason)
            );
            if !failure.command.is_empty() {
                let _ = write!(html, "<pre><code>{}</code></pre>", markup::html(&failure.command));
            }
            html.push_str("</li>\n");
        }
        html.push_str("</ul>\n");
        if group.len() > most {
            let more = count(group.len() - most);
            let _ = writeln!(
                html,
                "<p class=\"note\">{more} more are in the report as JSON.</p>"
            );
        }
        html.push_str("</details>\n");
    }
    html.push_str("</section>\n");
    html
}

fn made(made: &Made) -> String {
    let mut html = String::from("<section id=\"made\">\n<h2>How it was made</h2>\n<div class=\"parts\">\n");
    if !made.command.is_empty() {
        let _ = writeln!(html, "<pre><code>{}</code></pre>", markup::html(&made.command));
    }
    let tables = made.tables();
    html.extend(tables.iter().map(table::html));
    html.push_str("</div>\n</section>\n");
    html
}
