//! The report as plots, for pages and Markdown.

use lexiform_cli::report::{self, Answer, Bar, Chart, Made, Mood, Paragraph, Part, Scale, Section, Shape};

use super::report::{Cell, Report};

/// Returns the whole report.
pub(super) fn report(report: &Report) -> report::Report {
    let subject = report
        .subject()
        .into_iter()
        .map(|text| Part::Paragraph(Paragraph { text }));
    let subject = Section {
        title: "What was measured".to_owned(),
        parts: subject.collect(),
    };
    let groups = groups(report).into_iter().map(|cells| section(report, &cells));
    let json = report.json();
    let mut figures = serde_json::Map::new();
    for name in ["cells", "memory"] {
        figures.insert(name.to_owned(), json[name].clone());
    }
    report::Report {
        kind: "decode".to_owned(),
        title: "Decoding".to_owned(),
        made: Made::here(),
        answers: vec![fastest(report), nearest_to_the_limit(report)],
        sections: groups.chain([subject]).collect(),
        failures: Vec::new(),
        figures,
    }
}

/// Shows the cells of a prompt length and a temperature.
fn section(report: &Report, cells: &[&Cell]) -> Section {
    type Of<'a> = &'a dyn Fn(&Cell) -> Option<f64>;
    let plots: [(&str, &str, Of<'_>); 5] = [
        ("Speed", "tokens a second", &|cell| Some(cell.tokens_a_second())),
        ("Share of the memory limit", "percent", &|cell| {
            Some(100.0 * cell.share(report.limit())?)
        }),
        ("Time to the first token, median", "milliseconds", &|cell| {
            Some(cell.first_ms(0.5))
        }),
        ("Time of a pass", "milliseconds", &Cell::pass_ms),
        ("Speed beside the baseline", "multiple", &|cell| {
            report.ratio(cell)
        }),
    ];
    let title = cells.first().map_or_else(String::new, |first| {
        format!(
            "Prompts of {} tokens, temperature {}",
            first.prompt, first.temperature
        )
    });
    Section {
        title,
        parts: plots
            .iter()
            .filter_map(|(title, unit, of)| plot(title, unit, cells, of))
            .collect(),
    }
}

/// Groups the cells by prompt length and temperature.
fn groups(report: &Report) -> Vec<Vec<&Cell>> {
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in &report.cells {
        let key = |cell: &Cell| (cell.prompt, cell.temperature.to_bits());
        let known = groups.iter_mut().find(|group| key(group[0]) == key(cell));
        match known {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
}

/// Plots one figure of the cells that have it.
fn plot(title: &str, unit: &str, cells: &[&Cell], of: &dyn Fn(&Cell) -> Option<f64>) -> Option<Part> {
    let bars = cells.iter().filter_map(|cell| {
        Some(Bar {
            label: format!("{} × {}", cell.answers, cell.arm),
            series: String::new(),
            value: of(cell)?,
            interval: None,
        })
    });
    let bars: Vec<Bar> = bars.collect();
    (!bars.is_empty()).then(|| {
        Part::Chart(Chart {
            title: title.to_owned(),
            x: unit.to_owned(),
            y: "answers × arm".to_owned(),
            scale: Scale::Linear,
            shape: Shape::Bars { bars },
        })
    })
}

fn fastest(report: &Report) -> Answer {
    let cells = report.cells.iter();
    let fastest = cells.max_by(|one, other| one.tokens_a_second().total_cmp(&other.tokens_a_second()));
    Answer {
        question: "How fast does it write?".to_owned(),
        answer: fastest.map_or_else(
            || "Nothing was measured.".to_owned(),
            |cell| {
                format!(
                    "{:.0} tokens a second at most: {} answers at a time, {}.",
                    cell.tokens_a_second(),
                    cell.answers,
                    cell.arm
                )
            },
        ),
        mood: Mood::Plain,
    }
}

fn nearest_to_the_limit(report: &Report) -> Answer {
    let shares = report.cells.iter().filter_map(|cell| cell.share(report.limit()));
    let most = shares.max_by(f64::total_cmp);
    Answer {
        question: "How near is that to the limit of the memory?".to_owned(),
        answer: most.map_or_else(
            || "Nothing was measured.".to_owned(),
            |share| format!("{:.0}% of what memory moves, at most.", 100.0 * share),
        ),
        mood: Mood::Plain,
    }
}
