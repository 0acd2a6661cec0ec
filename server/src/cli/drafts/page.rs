//! The report as a page with plots.

use lexiform_engine::StateClass;

use super::report::{Figures, Report};
use crate::cli::plot::Page;

/// Returns the whole page.
pub(super) fn html(report: &Report) -> String {
    let mut page = Page::new("Drafts");
    page.paragraph(&report.subject());
    bars(&mut page, "Tokens a second", report, Figures::tokens_a_second);
    bars(&mut page, "Tokens a pass", report, Figures::tokens_a_pass);
    for (region, label) in StateClass::ALL {
        let title = format!("Drafted tokens of the answer, in percent: {label}");
        bars(&mut page, &title, report, |figures| 100.0 * figures.share(region));
    }
    if !report.is_same_text() {
        page.paragraph("The arms did not write the same texts.");
    }
    page.html()
}

/// Plots one figure, a bar for each arm.
fn bars(page: &mut Page, title: &str, report: &Report, of: impl Fn(&Figures) -> f64) {
    let arms = report.arms.iter();
    let bars: Vec<_> = arms.map(|(name, figures)| (*name, of(figures))).collect();
    page.bars(title, &bars);
}
