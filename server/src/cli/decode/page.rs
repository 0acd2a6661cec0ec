//! The report as a page with plots.

use super::report::{Cell, Report};
use crate::cli::plot::Page;

/// Returns the whole page.
pub(super) fn html(report: &Report) -> String {
    let mut page = Page::new("Decoding");
    report.subject().iter().for_each(|line| page.paragraph(line));
    for cells in groups(report) {
        let Some(first) = cells.first() else { continue };
        page.heading(&format!(
            "Prompts of {} tokens, temperature {}",
            first.prompt, first.temperature
        ));
        plot(&mut page, "Tokens a second", &cells, |cell| {
            Some(cell.tokens_a_second())
        });
        plot(
            &mut page,
            "Share of the memory limit, in percent",
            &cells,
            |cell| Some(100.0 * cell.share(report.limit())?),
        );
        plot(
            &mut page,
            "Time to the first token, median, in milliseconds",
            &cells,
            |cell| Some(cell.first_ms(0.5)),
        );
        plot(
            &mut page,
            "Time of a pass, in milliseconds",
            &cells,
            Cell::pass_ms,
        );
        plot(&mut page, "Speed as a multiple of the baseline", &cells, |cell| {
            report.ratio(cell)
        });
    }
    page.html()
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
fn plot(page: &mut Page, title: &str, cells: &[&Cell], of: impl Fn(&Cell) -> Option<f64>) {
    let bar = |cell: &&Cell| Some((format!("{} × {}", cell.answers, cell.arm), of(cell)?));
    let bars: Vec<_> = cells.iter().filter_map(bar).collect();
    if !bars.is_empty() {
        page.bars(title, &bars);
    }
}
