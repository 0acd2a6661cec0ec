//! A plot on a page: the picture, its legend, and its figures as a table.

use std::fmt::Write as _;

use super::model::{Bar, Chart, Series, Shape, Table};
use super::number::{count, number};
use super::plot::{self, LOOKS, Row};
use super::{markup, table};

/// The rows of bars that are drawn at most; the table has more.
const MOST_ROWS: usize = 60;
/// The lines that are drawn at most: more of them look alike.
const MOST_LINES: usize = 2 * LOOKS;
/// The rows of the table of lines; with more points than that, some are left out.
const MOST_POINTS: usize = 40;
/// The shares of samples for which the table of distributions has a row.
const SHARES: [(f64, &str); 9] = [
    (0.1, "10%"),
    (0.25, "25%"),
    (0.5, "50% (median)"),
    (0.75, "75%"),
    (0.9, "90%"),
    (0.95, "95%"),
    (0.99, "99%"),
    (0.999, "99.9%"),
    (1.0, "all (maximum)"),
];

/// What people must know to read a distribution.
const SCALE_OF_SHARES: &str = "<p class=\"note\">A curve says which share of the samples is at most so large. \
     Its upper part is stretched: 90%, 99% and 99.9% are as far apart.</p>\n";

/// Writes a plot with its legend and its table.
pub(super) fn html(chart: &Chart) -> String {
    let mut html = format!(
        "<figure>\n<figcaption>{}</figcaption>\n",
        markup::html(&chart.title)
    );
    html.push_str(&legend(chart));
    html.push_str(&plot(chart).0);
    if matches!(chart.shape, Shape::Distribution { .. }) {
        html.push_str(SCALE_OF_SHARES);
    }
    let _ = write!(
        html,
        "<details><summary>The figures as a table</summary>\n{}</details>\n</figure>\n",
        table::html(&figures(chart))
    );
    html
}

/// Returns `true` if a plot has no point that can be drawn.
fn is_empty(chart: &Chart) -> bool {
    match &chart.shape {
        Shape::Distribution { series } | Shape::Lines { series } => {
            let mut points = series.iter().flat_map(|series| &series.points);
            !points.any(|(x, y)| x.is_finite() && y.is_finite())
        }
        Shape::Bars { bars } => !bars.iter().any(|bar| bar.value.is_finite()),
    }
}

/// Draws a plot. Returns the element, and its width and height in its own units.
pub(super) fn plot(chart: &Chart) -> (String, (u32, u32)) {
    let lines = |series: &[Series], are_distributions| {
        let drawn = &series[..series.len().min(MOST_LINES)];
        (plot::lines(chart, drawn, are_distributions), plot::HEIGHT)
    };
    let (drawn, height) = match &chart.shape {
        _ if is_empty(chart) => {
            let nothing = "<p class=\"none\">There is nothing to plot.</p>\n".to_owned();
            (Ok(nothing), plot::HEIGHT)
        }
        Shape::Distribution { series } => lines(series, true),
        Shape::Lines { series } => lines(series, false),
        Shape::Bars { bars } => {
            let rows = rows(bars);
            let rows = &rows[..rows.len().min(MOST_ROWS)];
            (plot::bars(chart, rows), plot::height_of_bars(rows.len()))
        }
    };
    let element = drawn.unwrap_or_else(|error| {
        let error = markup::html(&error.to_string());
        format!("<p class=\"none\">The plot cannot be drawn: {error}</p>\n")
    });
    (element, (plot::WIDTH, height))
}

/// Writes the names of lines, with how each looks; nothing for bars, which are labelled.
fn legend(chart: &Chart) -> String {
    let (Shape::Distribution { series } | Shape::Lines { series }) = &chart.shape else {
        return String::new();
    };
    if is_empty(chart) {
        return String::new();
    }
    let mut html = String::from("<ul class=\"legend\">\n");
    for (index, series) in series.iter().take(MOST_LINES).enumerate() {
        let _ = writeln!(
            html,
            "<li><svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 34 10\">\
             <line class=\"s{}\" x1=\"1\" y1=\"5\" x2=\"33\" y2=\"5\"/></svg>{}</li>",
            index % LOOKS,
            markup::html(&series.name)
        );
    }
    if series.len() > MOST_LINES {
        let _ = writeln!(
            html,
            "<li>{} more in the table</li>",
            count(series.len() - MOST_LINES)
        );
    }
    html.push_str("</ul>\n");
    html
}

/// Returns the rows of bars: with more than one series, each group has a heading, and its bars are labelled
/// by their series; otherwise by their groups.
fn rows(bars: &[Bar]) -> Vec<Row<'_>> {
    let mut names: Vec<&str> = Vec::new();
    for bar in bars {
        if !names.contains(&bar.series.as_str()) {
            names.push(&bar.series);
        }
    }
    let look = |bar: &Bar| names.iter().position(|name| *name == bar.series).unwrap_or(0);
    if names.len() < 2 {
        return bars.iter().map(|bar| Row::Bar(0, &bar.label, bar)).collect();
    }
    let mut rows = Vec::new();
    for (index, bar) in bars.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &bars[before].label);
        if before != Some(&bar.label) {
            rows.push(Row::Group(&bar.label));
        }
        rows.push(Row::Bar(look(bar), &bar.series, bar));
    }
    rows
}

/// Returns the figures of a plot as a table.
pub(super) fn figures(chart: &Chart) -> Table {
    match &chart.shape {
        Shape::Distribution { series } => distributions(chart, series),
        Shape::Lines { series } => lines(chart, series),
        Shape::Bars { bars } => bar_table(chart, bars),
    }
}

fn distributions(chart: &Chart, series: &[Series]) -> Table {
    let rows = SHARES.iter().map(|(share, name)| {
        let cells = series.iter().map(|series| {
            let reached = series.points.iter().find(|(_, of)| *of >= *share);
            number(reached.map_or(f64::NAN, |(value, _)| *value))
        });
        std::iter::once((*name).to_owned()).chain(cells).collect()
    });
    Table {
        title: chart.title.clone(),
        columns: headed(format!("{}, at most", chart.x), series),
        rows: rows.collect(),
        note: String::new(),
    }
}

fn lines(chart: &Chart, series: &[Series]) -> Table {
    let mut places: Vec<f64> = series
        .iter()
        .flat_map(|series| series.points.iter().map(|(x, _)| *x))
        .collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let step = places.len().div_ceil(MOST_POINTS).max(1);
    let rows = places.iter().step_by(step).map(|place| {
        let cells = series.iter().map(|series| {
            let there = series.points.iter().find(|(x, _)| x == place);
            there.map_or_else(String::new, |(_, y)| number(*y))
        });
        std::iter::once(number(*place)).chain(cells).collect()
    });
    Table {
        title: chart.title.clone(),
        columns: headed(chart.x.clone(), series),
        rows: rows.collect(),
        note: match step {
            1 => chart.y.clone(),
            _ => format!("{}. Some points are left out here.", chart.y),
        },
    }
}

fn headed(first: String, series: &[Series]) -> Vec<String> {
    let names = series.iter().map(|series| series.name.clone());
    std::iter::once(first).chain(names).collect()
}

fn bar_table(chart: &Chart, bars: &[Bar]) -> Table {
    let have_series = bars.iter().any(|bar| bar.series != bars[0].series);
    let have_intervals = bars.iter().any(|bar| bar.interval.is_some());
    let mut columns = vec![chart.y.clone()];
    columns.extend(have_series.then(String::new));
    columns.push(chart.x.clone());
    columns.extend(have_intervals.then(|| "interval".to_owned()));
    let rows = bars.iter().map(|bar| {
        let mut row = vec![bar.label.clone()];
        row.extend(have_series.then(|| bar.series.clone()));
        row.push(number(bar.value));
        row.extend(have_intervals.then(|| match bar.interval {
            Some((low, high)) => format!("{} to {}", number(low), number(high)),
            None => String::new(),
        }));
        row
    });
    Table {
        title: chart.title.clone(),
        columns,
        rows: rows.collect(),
        note: String::new(),
    }
}
