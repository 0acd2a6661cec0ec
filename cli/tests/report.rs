//! Pages, Markdown and JSON of reports, read as a browser or a later run reads them.

use lexiform_cli::report::{
    Answer, Bar, Baseline, Chart, Data, Failure, Made, Mood, Paragraph, Part, Report, Scale, Section, Series,
    Shape, Table,
};
use serde_json::{Value, json};

fn series(name: &str, points: &[(f64, f64)]) -> Series {
    Series {
        name: name.to_owned(),
        points: points.to_vec(),
    }
}

fn chart(title: &str, scale: Scale, shape: Shape) -> Part {
    Part::Chart(Chart {
        title: title.to_owned(),
        x: "microseconds".to_owned(),
        y: "share".to_owned(),
        scale,
        shape,
    })
}

fn bar(label: &str, series: &str, value: f64, interval: Option<(f64, f64)>) -> Bar {
    Bar {
        label: label.to_owned(),
        series: series.to_owned(),
        value,
        interval,
    }
}

/// A report with a part of each kind.
fn report() -> Report {
    let distribution = Shape::Distribution {
        series: vec![
            series("one", &[(0.5, 0.0), (2.0, 0.5), (900.0, 0.99), (4e4, 1.0)]),
            series("other", &[(5.0, 0.1), (20.0, 1.0)]),
        ],
    };
    let lines = Shape::Lines {
        series: vec![series("median", &[(64.0, 10.0), (128.0, 12.0)])],
    };
    let bars = Shape::Bars {
        bars: vec![
            bar("dates", "free", 0.5, Some((0.4, 0.6))),
            bar("dates", "told", 0.9, None),
            bar("names", "free", 0.7, None),
        ],
    };
    let table = Table {
        title: "Coverage".to_owned(),
        columns: vec!["keyword".to_owned(), "right".to_owned()],
        rows: vec![vec!["minLength".to_owned(), "12".to_owned()]],
        note: "A note.".to_owned(),
    };
    Report {
        kind: "maskbench".to_owned(),
        title: "Masks".to_owned(),
        made: Made {
            date: "2026-11-28".to_owned(),
            command: "lexiform eval maskbench d.jsonl".to_owned(),
            versions: vec![("lexiform".to_owned(), "0.1.0".to_owned())],
            machine: vec![("processor".to_owned(), "a processor".to_owned())],
            data: vec![Data {
                path: "d.jsonl".to_owned(),
                bytes: 12_345,
                sha256: "abc".to_owned(),
            }],
        },
        answers: vec![Answer {
            question: "Who is right?".to_owned(),
            answer: "Nobody.".to_owned(),
            mood: Mood::Bad,
        }],
        sections: vec![Section {
            title: "Times".to_owned(),
            parts: vec![
                Part::Paragraph(Paragraph {
                    text: "Some words.".to_owned(),
                }),
                Part::Table(table),
                chart("Masks", Scale::Log, distribution),
                chart("Growth", Scale::Log, lines),
                chart("Bars", Scale::Linear, bars),
            ],
        }],
        failures: vec![Failure {
            case: "o123".to_owned(),
            what: "accepted wrongly".to_owned(),
            reason: "#/tests/3".to_owned(),
            command: "lexiform eval maskbench d.jsonl --only o123".to_owned(),
        }],
        figures: figures(&json!({"right": 10, "invalid_accepted": 1, "mask_us": {"p99": 100.0, "max": 7.0}})),
    }
}

fn figures(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

/// Returns the elements of a page in order, after checking that every element is closed in its turn.
fn elements(html: &str) -> Vec<&str> {
    const VOID: [&str; 3] = ["!doctype", "meta", "br"];
    let (mut names, mut open) = (Vec::new(), Vec::new());
    let body = html.find("</style>").expect("a style sheet");
    let style = html.find("<style>").expect("a style sheet") + "<style>".len();
    let text = [&html[..style], &html[body..]].map(|part| part.split('<').skip(1));
    for tag in text.into_iter().flatten() {
        let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("not closed: {tag}"));
        let name = tag
            .split([' ', '/'])
            .find(|name| !name.is_empty())
            .expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name);
            names.push(name);
        } else {
            names.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    names
}

/// Checks that a page loads nothing and runs nothing.
fn is_self_contained(html: &str) {
    for forbidden in [
        "src=",
        "<script",
        "<link",
        "<iframe",
        "<img",
        "@import",
        "url(",
        "javascript:",
        " on",
    ] {
        let tags = html
            .split('<')
            .filter_map(|tag| tag.split_once('>'))
            .map(|(tag, _)| format!("<{tag}>"));
        let forbidden_tag = tags.into_iter().find(|tag| tag.contains(forbidden));
        assert_eq!(forbidden_tag, None, "{forbidden}");
    }
    let links = html.split("href=\"").skip(1);
    assert!(links.into_iter().all(|link| link.starts_with('#')));
}

#[test]
fn a_page_shows_every_part_and_needs_nothing_else() {
    let html = report().html();
    is_self_contained(&html);
    let elements = elements(&html);
    let times = |name: &str| elements.iter().filter(|element| **element == name).count();
    assert_eq!((times("figure"), times("h1"), times("dt")), (3, 1, 1));
    // One table of its own, one below each plot, and three that say how the report was made.
    assert_eq!(times("table"), 7);
    assert_eq!(html.matches("<svg class=\"plot\"").count(), 3);
    // Each line of a plot has its mark in the legend, and bars are labelled.
    assert_eq!(html.matches("<svg class=\"key\"").count(), 3);
    for text in [
        "Who is right?",
        "Nobody.",
        "Bad: ",
        "Some words.",
        "minLength",
        "accepted wrongly: 1",
        "#/tests/3",
        "lexiform eval maskbench d.jsonl --only o123",
        "12,345",
        "a processor",
        "0.4 to 0.6",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // The answers come first.
    let place = |text: &str| html.find(text).unwrap_or(usize::MAX);
    assert!(place("Nobody.") < place("Some words.") && place("Some words.") < place("#/tests/3"));
    assert!(place("#/tests/3") < place("12,345"));
}

/// Names of schemas and reasons come from strangers.
#[test]
fn no_text_is_markup() {
    let hostile = "</style><script>alert(1)</script>\"'&`|\u{0}\n</svg>";
    let mut report = report();
    report.title = hostile.to_owned();
    report.made.command = hostile.to_owned();
    report.made.data[0].path = hostile.to_owned();
    report.answers[0].answer = hostile.to_owned();
    report.failures[0] = Failure {
        case: hostile.to_owned(),
        what: hostile.to_owned(),
        reason: hostile.to_owned(),
        command: hostile.to_owned(),
    };
    report.sections = vec![Section {
        title: hostile.to_owned(),
        parts: vec![
            Part::Paragraph(Paragraph {
                text: hostile.to_owned(),
            }),
            Part::Table(Table {
                title: hostile.to_owned(),
                columns: vec![hostile.to_owned()],
                rows: vec![vec![hostile.to_owned()]],
                note: hostile.to_owned(),
            }),
            Part::Chart(Chart {
                title: hostile.to_owned(),
                x: hostile.to_owned(),
                y: hostile.to_owned(),
                scale: Scale::Log,
                shape: Shape::Distribution {
                    series: vec![series(hostile, &[(1.0, 1.0)])],
                },
            }),
            chart(
                "bars",
                Scale::Linear,
                Shape::Bars {
                    bars: vec![bar(hostile, hostile, 1.0, None), bar("b", "c", 1.0, None)],
                },
            ),
        ],
    }];
    let html = report.html();
    is_self_contained(&html);
    assert!(!elements(&html).contains(&"script"));
    let markdown = report.markdown();
    let outside_of_code = markdown.split("```").step_by(2);
    assert!(
        outside_of_code.into_iter().all(|part| !part.contains('<')),
        "{markdown}"
    );
    assert!(
        markdown.lines().all(|line| !line.starts_with("</svg>")),
        "{markdown}"
    );
}

/// Measurements may be missing, zero, or not numbers at all.
#[test]
fn every_series_can_be_plotted() {
    let strange: Vec<Vec<(f64, f64)>> = vec![
        vec![],
        vec![(0.0, 0.0)],
        vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)],
        vec![(0.0, 0.5), (1.0, 1.0)],
        vec![(-3.0, -4.0), (1e300, 1e-300)],
        vec![(f64::MAX, f64::MIN), (f64::MIN_POSITIVE, f64::MAX)],
        vec![(5.0, 0.2); 3],
        (0..5000).map(|it| (f64::from(it), f64::from(it % 7))).collect(),
    ];
    let mut parts = Vec::new();
    for scale in [Scale::Linear, Scale::Log] {
        parts.push(chart("none", scale, Shape::Lines { series: vec![] }));
        parts.push(chart("none", scale, Shape::Bars { bars: vec![] }));
        for points in &strange {
            let series = vec![series("a", points), series("b", &[])];
            let bars = points
                .iter()
                .map(|(x, y)| bar("l", "", *x, Some((*y, *x))))
                .collect();
            parts.push(chart(
                "d",
                scale,
                Shape::Distribution {
                    series: series.clone(),
                },
            ));
            parts.push(chart("l", scale, Shape::Lines { series }));
            parts.push(chart("b", scale, Shape::Bars { bars }));
        }
    }
    let report = Report {
        sections: vec![Section {
            title: "Strange".to_owned(),
            parts,
        }],
        ..Report::default()
    };
    let html = report.html();
    elements(&html);
    let pictures = html
        .split("<svg")
        .skip(1)
        .map(|svg| svg.split("</svg>").next().unwrap_or_default());
    for picture in pictures {
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
    assert!(html.contains("There is nothing to plot."));
    report.markdown();
    let read: Report = serde_json::from_value(report.json()).expect("a report");
    assert_eq!(read.json(), report.json());
}

#[test]
fn a_report_as_json_is_read_again() {
    let text = report().json().to_string();
    let read: Report = serde_json::from_str(&text).expect("a report");
    assert_eq!(read, report());
}

/// A page stays readable with ten thousand failures, and JSON has all of them.
#[test]
fn a_page_is_bounded_and_json_is_whole() {
    let mut report = report();
    let failure = |index: usize| Failure {
        case: format!("case-{index}"),
        what: ["does not compile", "accepted wrongly"][index % 2].to_owned(),
        reason: "x".repeat(5000),
        command: "again".to_owned(),
    };
    report.failures = (0..10_000).map(failure).collect();
    report.sections[0].parts.push(Part::Table(Table {
        title: "Long".to_owned(),
        columns: vec!["a".to_owned()],
        rows: (0..10_000).map(|row| vec![format!("row-{row}")]).collect(),
        note: String::new(),
    }));
    let (html, markdown) = (report.html(), report.markdown());
    assert!(
        html.len() < 1_000_000 && markdown.len() < 100_000,
        "{} {}",
        html.len(),
        markdown.len()
    );
    assert!(html.contains("Failures (10,000)") && html.contains("4,850 more are in the report as JSON."));
    assert!(html.contains("9,600 more rows are in the report as JSON."));
    assert!(html.contains("<summary>385 more rows</summary>"));
    assert_eq!(report.json()["failures"].as_array().map(Vec::len), Some(10_000));
    report.failures.clear();
    let (html, markdown) = (report.html(), report.markdown());
    assert!(html.contains("Nothing failed.") && markdown.contains("Nothing failed."));
}

#[test]
fn markdown_has_the_figures_of_plots_as_tables() {
    let text = report().markdown();
    for line in [
        "# Masks",
        "- **Who is right?** ✗ Nobody.",
        "| minLength | 12 |",
        "| 50% (median) | 2 | 20 |",
        "| dates | told | 0.9 |  |",
        "- o123: #/tests/3",
        "lexiform eval maskbench d.jsonl --only o123",
        "| d.jsonl | 12,345 | abc |",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}:\n{text}");
    }
}

/// Writes a baseline, compares the report with it, and returns what is said and whether anything got worse.
fn compared(name: &str, baseline: &Value, now: &Value, tolerance: f64) -> (String, bool) {
    let path = std::env::temp_dir().join(format!("lexiform-baseline-{}-{name}.json", std::process::id()));
    std::fs::write(&path, baseline.to_string()).expect("written");
    let baseline = Baseline::read(&path).expect("a baseline");
    std::fs::remove_file(path).expect("removed");
    let mut report = report();
    report.figures = figures(now);
    let comparison = baseline.compare(&report, tolerance).expect("comparable");
    (comparison.text(), comparison.is_regression())
}

/// The figures before and now, whether that is a regression, and what is said.
fn are_judged(cases: &[(Value, Value, bool, &str)]) {
    for (index, (before, now, is_worse, said)) in cases.iter().enumerate() {
        let (mut before, mut now) = (before.clone(), now.clone());
        before["of_all"] = json!(1);
        before["failures"] = json!([{"name": "o123"}]);
        now["of_all"] = json!(1);
        let (text, regression) = compared(&format!("{said}-{index}"), &before, &now, 0.1);
        assert_eq!(
            (regression, text.contains(said)),
            (*is_worse, true),
            "{before} {now}\n{text}"
        );
    }
}

#[test]
fn any_difference_of_counts_is_judged() {
    are_judged(&[
        (
            json!({"right": 10}),
            json!({"right": 10}),
            false,
            "Nothing got worse.",
        ),
        (
            json!({"right": 10}),
            json!({"right": 9}),
            true,
            "worse      right",
        ),
        (
            json!({"right": 10}),
            json!({"right": 11}),
            false,
            "better     right",
        ),
        (
            json!({"failed": 0}),
            json!({"failed": 1}),
            true,
            "worse      failed",
        ),
        (
            json!({"of_some_kind": 1}),
            json!({"of_some_kind": 99}),
            false,
            "different  of_some_kind",
        ),
        (
            json!({"of_some_kind": 1}),
            json!({}),
            true,
            "missing    of_some_kind",
        ),
        (
            json!({"errors": {"a": 1}}),
            json!({"errors": {"b": 1}}),
            false,
            "Nothing got worse.",
        ),
        (json!({}), json!({"right": 1}), false, "new        right"),
    ]);
}

#[test]
fn times_may_differ_by_the_tolerance() {
    let p99 = |time: Value| json!({"mask_us": {"p99": time}});
    let max = |time: f64| json!({"mask_us": {"max": time}});
    let hundred = || p99(json!(100.0));
    are_judged(&[
        (hundred(), p99(json!(110.0)), false, "different  mask_us.p99"),
        (hundred(), p99(json!(110.1)), true, "worse      mask_us.p99"),
        (hundred(), p99(json!(80.0)), false, "better     mask_us.p99"),
        (hundred(), p99(json!(null)), true, "missing    mask_us.p99"),
        (p99(json!(null)), p99(json!(null)), false, "Nothing got worse."),
        (max(1.0), max(99.0), false, "different  mask_us.max"),
    ]);
}

/// Arms may be measured in another order, or not all of them.
#[test]
fn parts_of_a_list_are_known_by_their_names() {
    let arm = |name: &str, speed: f64| json!({"arm": name, "tokens_a_second": speed});
    let before = json!({"arms": [arm("none", 10.0), arm("all", 20.0)], "failures": ["o123"]});
    let (text, is_worse) = compared(
        "arms",
        &before,
        &json!({"arms": [arm("all", 20.0), arm("none", 5.0)]}),
        0.1,
    );
    assert!(
        is_worse && text.contains("worse      arms.none.tokens_a_second"),
        "{text}"
    );
    assert!(!text.contains("arms.all"), "{text}");
}

#[test]
fn cases_that_fail_anew_are_named() {
    let before = json!({"right": 10, "failures": [{"name": "o7", "what": "compile_error", "reason": ""}]});
    let (text, is_worse) = compared("anew", &before, &json!({"right": 10}), 0.1);
    assert!(
        is_worse && text.contains("fails now: o123") && text.contains("does not fail any more: o7"),
        "{text}"
    );
}

/// The whole report is a baseline too, and names its evaluation.
#[test]
fn a_baseline_is_of_the_same_evaluation() {
    let path = std::env::temp_dir().join(format!("lexiform-baseline-{}.json", std::process::id()));
    let write = |text: &str| std::fs::write(&path, text).expect("written");
    write(&report().json().to_string());
    let baseline = Baseline::read(&path).expect("a baseline");
    let same = baseline.compare(&report(), 0.1).expect("comparable");
    assert!(
        !same.is_regression() && same.text().contains("Nothing got worse."),
        "{}",
        same.text()
    );
    let mut other = report();
    other.made.data[0].sha256 = "def".to_owned();
    let text = baseline.compare(&other, 0.1).expect("comparable").text();
    assert!(text.contains("other data"), "{text}");
    other.kind = "suite".to_owned();
    let message = baseline
        .compare(&other, 0.1)
        .expect_err("another evaluation")
        .to_string();
    assert!(
        message.contains("`maskbench`") && message.contains("`suite`"),
        "{message}"
    );
    for (wrong, said) in [
        ("[1]", "expected a JSON object"),
        ("{", "EOF"),
        ("{}", "no figures"),
        ("{\"right\": 1, \"failures\": 1}", "/failures"),
        ("{\"failures\": [], \"figures\": 1}", "/figures"),
    ] {
        write(wrong);
        let message = Baseline::read(&path).expect_err(wrong).to_string();
        assert!(
            message.contains(said) && message.contains("lexiform-baseline"),
            "{message}"
        );
    }
    std::fs::remove_file(path).expect("removed");
}
