//! The report as tables and plots, for pages and Markdown.

use std::path::Path;

use lexiform_cli::failure::Failure;
use lexiform_cli::report::{self, Answer, Bar, Chart, Made, Mood, Paragraph, Part, Scale, Section, Shape};
use lexiform_engine::StateClass;

use super::report::{Figures, Report};

/// Returns the whole report.
///
/// # Errors
/// The data cannot be read again.
pub(super) fn report(report: &Report, data: &Path) -> Result<report::Report, Failure> {
    let speed = vec![
        Part::Paragraph(Paragraph {
            text: format!("{}.", report.subject()),
        }),
        bars(
            "Tokens a second",
            "tokens a second",
            report,
            Figures::tokens_a_second,
        ),
        bars("Tokens a pass", "tokens a pass", report, Figures::tokens_a_pass),
    ];
    let regions = StateClass::ALL.map(|(region, label)| {
        bars(
            &format!("Drafted tokens: {label}"),
            "percent",
            report,
            |figures| 100.0 * figures.share(region),
        )
    });
    let section = |title: &str, parts: Vec<Part>| Section {
        title: title.to_owned(),
        parts,
    };
    Ok(report::Report {
        kind: "drafts".to_owned(),
        title: "Drafts".to_owned(),
        made: Made::here().read(data)?,
        answers: vec![fastest(report), same_texts(report)],
        sections: vec![
            section("Speed", speed),
            section(
                "Where drafts are kept, in percent of the tokens",
                regions.to_vec(),
            ),
        ],
        failures: report.failures().into_iter().map(failure).collect(),
        figures: report.json().as_object().cloned().unwrap_or_default(),
    })
}

/// Plots one figure, a bar for each arm.
fn bars(title: &str, unit: &str, report: &Report, of: impl Fn(&Figures) -> f64) -> Part {
    let bars = report.arms.iter().map(|(name, figures)| Bar {
        label: (*name).to_owned(),
        series: String::new(),
        value: of(figures),
        interval: None,
    });
    Part::Chart(Chart {
        title: title.to_owned(),
        x: unit.to_owned(),
        y: "arm".to_owned(),
        scale: Scale::Linear,
        shape: Shape::Bars { bars: bars.collect() },
    })
}

fn fastest(report: &Report) -> Answer {
    let speed = |(_, figures): &&(&'static str, Figures)| figures.tokens_a_second();
    let arms = report.arms.iter();
    let fastest = arms.max_by(|one, other| speed(one).total_cmp(&speed(other)));
    Answer {
        question: "Which drafts are fastest?".to_owned(),
        answer: match fastest {
            Some((name, figures)) => format!(
                "{name}, with {:.0} tokens a second and {:.2} a pass.",
                figures.tokens_a_second(),
                figures.tokens_a_pass()
            ),
            None => "Nothing was measured.".to_owned(),
        },
        mood: Mood::Plain,
    }
}

fn same_texts(report: &Report) -> Answer {
    let others = report.failures();
    Answer {
        question: "Do all arms write the same texts?".to_owned(),
        answer: match others.is_empty() {
            true => "Yes.".to_owned(),
            false => format!("No: {} wrote other texts than the first.", others.join(", ")),
        },
        mood: if others.is_empty() { Mood::Good } else { Mood::Bad },
    }
}

fn failure(arm: &str) -> report::Failure {
    report::Failure {
        case: arm.to_owned(),
        what: "other texts than the first arm".to_owned(),
        ..report::Failure::default()
    }
}
