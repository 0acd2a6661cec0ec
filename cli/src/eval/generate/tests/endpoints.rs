//! Answers of several endpoints, side by side.

use super::*;
use crate::eval::generate::endpoints;
use crate::report::{Part, Report, Table};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    args: endpoints::Args,
}

fn beside(data: &Path, answers: &[(&str, &Path)]) -> Result<Report, Failure> {
    let mut words = vec![
        "endpoints".to_owned(),
        "--data".to_owned(),
        data.display().to_string(),
    ];
    words.extend(
        answers
            .iter()
            .map(|(name, path)| format!("{name}={}", path.display())),
    );
    endpoints::evaluate(&Program::parse_from(words).args)
}

fn table<'a>(report: &'a Report, title: &str) -> &'a Table {
    let parts = report.sections.iter().flat_map(|section| &section.parts);
    let mut tables = parts.filter_map(|part| match part {
        Part::Table(table) if table.title == title => Some(table),
        _ => None,
    });
    tables.next().expect("the table")
}

/// Keeps the answers of a server that reacts like this.
fn asked(
    folder: &Folder,
    name: &str,
    data: &Path,
    more: &[&str],
    react: fn(&str, usize) -> Reaction,
) -> PathBuf {
    let server = Scripted::new(react);
    let answers = folder.path(name);
    let kept = ["--answers", answers.to_str().expect("a path")];
    ran(&server.url(), data, &[&kept[..], more].concat());
    answers
}

/// Guards against giving an endpoint with fewer answers, or with a shorter context, the easier schemas.
#[test]
fn only_what_all_were_asked_counts() {
    let folder = Folder::new("beside");
    let data = folder.collection(&["valid", "invalid", "refused", "truncated", "too_long"]);
    let whole = asked(&folder, "whole.jsonl", &data, &[], |_, _| valid());
    let part = asked(&folder, "part.jsonl", &data, &["--limit", "4"], bad_reaction);
    let report = beside(&data, &[("good", &whole), ("bad", &part)]).expect("a report");
    let by_endpoint = table(&report, "By endpoint");
    let rows: Vec<&str> = by_endpoint.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(rows, ["good", "bad"]);
    assert_eq!(report.figures["good"]["asked"], 3);
    assert_eq!(report.figures["bad"]["asked"], 3);
    assert_eq!(report.figures["good"]["valid"], 3);
    let failed = report.failures.len() as u64;
    assert_eq!(
        report.figures["bad"]["valid"].as_u64().map(|valid| 3 - valid),
        Some(failed)
    );
    for failure in &report.failures {
        assert!(failure.case.ends_with(" (bad)"), "{}", failure.case);
        assert!(
            failure.command.contains("--arm both --only "),
            "{}",
            failure.command
        );
    }
    let settings = table(&report, "How the endpoints were asked");
    assert_eq!(settings.rows[0].last().map(String::as_str), Some("5"));
}

#[test]
fn arms_are_named_if_there_are_several() {
    let folder = Folder::new("beside-arms");
    let data = folder.collection(&["valid"]);
    let more = ["--arm", "free", "--arm", "both"];
    let answers = asked(&folder, "one.jsonl", &data, &more, |_, _| valid());
    let report = beside(&data, &[("ours", &answers)]).expect("a report");
    let rows: Vec<&str> = table(&report, "By endpoint")
        .rows
        .iter()
        .map(|row| row[0].as_str())
        .collect();
    assert_eq!(rows, ["ours, both", "ours, free"]);
}

#[test]
fn a_name_stands_for_one_file() {
    let folder = Folder::new("beside-twice");
    let data = folder.collection(&["x"]);
    let answers = asked(&folder, "one.jsonl", &data, &[], |_, _| valid());
    let failure = beside(&data, &[("ours", &answers), ("ours", &answers)]).expect_err("a failure");
    assert_eq!(failure.to_string(), "the name \"ours\" is given twice");
    let report = beside(&data, &[("ours", &answers)]).expect("a report");
    assert_eq!(report.title, "The answers of ours");
}

#[test]
fn answers_about_other_data_are_refused() {
    let folder = Folder::new("beside-other");
    let data = folder.collection(&["x"]);
    let answers = asked(&folder, "one.jsonl", &data, &[], |_, _| valid());
    let other = folder.path("other.jsonl");
    fs::write(&other, "{\"name\": \"y\", \"schema\": {}}\n").expect("written");
    let failure = beside(&other, &[("ours", &answers)])
        .expect_err("a failure")
        .to_string();
    assert!(
        failure.contains("one.jsonl has answers about data with the sum "),
        "{failure}"
    );
}

#[test]
fn files_of_something_else_are_refused() {
    let folder = Folder::new("beside-broken");
    let data = folder.collection(&["x"]);
    let answers = folder.path("none.jsonl");
    for (text, message) in [
        ("", "line 1: not a file of answers"),
        (
            "{\"lexiform\": \"eval generate\"}\n",
            "line 1: not a file of answers",
        ),
    ] {
        fs::write(&answers, text).expect("written");
        let failure = beside(&data, &[("ours", &answers)])
            .expect_err("a failure")
            .to_string();
        assert!(failure.contains(message), "{failure}");
    }
}

/// The fields reach the request, and are a setting like all others.
#[test]
fn further_fields_are_sent_and_kept() {
    let folder = Folder::new("fields");
    let data = folder.collection(&["valid"]);
    let server = Scripted::new(|_, _| valid());
    let answers = folder.path("answers.jsonl");
    let kept = ["--answers", answers.to_str().expect("a path")];
    let more = ["--fields", "{\"top_p\": 0.5}"];
    let run = ran(&server.url(), &data, &[&kept[..], &more].concat());
    assert!(
        run.report.made.command.contains("--fields '{\"top_p\":0.5}'"),
        "{}",
        run.report.made.command
    );
    let failure = failure(&server.url(), &data, &kept).to_string();
    assert!(
        failure.contains("whose --fields is {\"top_p\":0.5} and not {}"),
        "{failure}"
    );
}
