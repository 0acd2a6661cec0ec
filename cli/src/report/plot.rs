//! Draws plots as SVG.

mod axis;
mod canvas;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::markup;
use super::model::{Bar, Chart, Series};
use super::number::{number, percent, short};
use axis::Axis;
use canvas::{Canvas, FINE, Role};

/// The number of series that look different.
pub(super) const LOOKS: usize = canvas::LOOKS;

/// The size of a plot. On a telephone it is shown about as large as this.
pub(super) const WIDTH: u32 = 400;
pub(super) const HEIGHT: u32 = 250;
/// The height of a row of bars, and of the axis under them.
const ROW: u32 = 18;
const AXIS: u32 = 40;
/// The space above a plot.
const TOP: u32 = 8;
/// The width of the labels of bars, and the number of letters that they have.
const LABELS: u32 = 142;
const LABEL_LETTERS: usize = 21;
/// The number of letters of other names, which have a whole row.
const NAME_LETTERS: usize = 44;
/// The size of letters.
const LETTERS: i32 = 12;
/// The points that are marked on a line at most.
const MARKED: usize = 30;

/// A row of a plot of bars.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Row<'a> {
    /// The heading of a group.
    Group(&'a str),
    /// A bar with the number of its series and its label.
    Bar(usize, &'a str, &'a Bar),
}

impl<'a> Row<'a> {
    /// Returns the bar, and the number of its series.
    pub(super) fn bar(&self) -> Option<(usize, &'a Bar)> {
        match *self {
            Row::Group(_) => None,
            Row::Bar(series, _, bar) => Some((series, bar)),
        }
    }
}

type Area<'a> = DrawingArea<Canvas<'a>, Shift>;
/// A plot that cannot be drawn, with the reason.
type Drawn<T> = Result<T, Box<dyn std::error::Error>>;

/// Draws lines, or distributions with shares on the vertical axis.
pub(super) fn lines(chart: &Chart, series: &[Series], are_distributions: bool) -> Drawn<String> {
    let points = || series.iter().flat_map(finite);
    let x = Axis::of(points().map(|(x, _)| x), chart.scale);
    let y = match are_distributions {
        true => Axis::of_shares(points().map(|(_, share)| share)),
        false => Axis::of(points().map(|(_, y)| y), chart.scale),
    };
    let percent = |share: f64| format!("{}%", percent(share));
    let label: &dyn Fn(f64) -> String = if are_distributions { &percent } else { &short };
    svg(chart, HEIGHT, |area| {
        let mut plot = ChartBuilder::on(area)
            .margin_top(fine(TOP))
            .margin_right(fine(22))
            .x_label_area_size(fine(AXIS))
            .y_label_area_size(fine(64))
            .build_cartesian_2d(x, y)?;
        plot.configure_mesh()
            .set_all_tick_mark_size(fine(4))
            .light_line_style(TRANSPARENT)
            .bold_line_style(Role::Grid.color())
            .axis_style(Role::Axis.color())
            .label_style(letters())
            .axis_desc_style(letters())
            .x_desc(named(&chart.x))
            .y_desc(named(&chart.y))
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| label(*value))
            .draw()?;
        for (index, series) in series.iter().enumerate() {
            let points: Vec<(f64, f64)> = finite(series).collect();
            let color = Role::Series(index).color();
            plot.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?;
            if !are_distributions && points.len() <= MARKED {
                let mark = |point: &(f64, f64)| Circle::new(*point, fine(3), color.filled());
                plot.draw_series(points.iter().map(mark))?;
            }
        }
        Ok(())
    })
}

/// Draws horizontal bars, one under the other.
pub(super) fn bars(chart: &Chart, rows: &[Row<'_>]) -> Drawn<String> {
    let bars = || rows.iter().filter_map(Row::bar).map(|(_, bar)| bar);
    let ends = bars().flat_map(|bar| {
        [
            Some(bar.value),
            bar.interval.map(|(_, high)| high),
            bar.interval.map(|(low, _)| low),
        ]
    });
    let axis = Axis::of(ends.flatten(), chart.scale);
    let start = axis.zero();
    svg(chart, height_of_bars(rows.len()), |area| {
        let mut plot = ChartBuilder::on(area)
            .margin_top(fine(TOP))
            .margin_right(fine(44))
            .margin_left(fine(LABELS))
            .x_label_area_size(fine(AXIS))
            .build_cartesian_2d(axis, rows.len() as f64..0.0)?;
        plot.configure_mesh()
            .set_all_tick_mark_size(fine(4))
            .light_line_style(TRANSPARENT)
            .bold_line_style(Role::Grid.color())
            .axis_style(TRANSPARENT)
            .disable_y_mesh()
            .label_style(letters())
            .axis_desc_style(letters())
            .x_desc(named(&chart.x))
            .x_label_formatter(&|value| short(*value))
            .draw()?;
        for (index, row) in rows.iter().enumerate() {
            let top = index as f64;
            let middle = ((TOP + ROW / 2) as i32 + ROW as i32 * index as i32) * FINE;
            match row {
                Row::Group(label) => text(area, &named(label), (2 * FINE, middle), HPos::Left)?,
                Row::Bar(look, label, bar) => {
                    bar_and_interval(&mut plot, bar, *look, (start, top))?;
                    text(
                        area,
                        &shown(label),
                        ((LABELS as i32 - 6) * FINE, middle),
                        HPos::Right,
                    )?;
                    let ends = [Some(bar.value), bar.interval.map(|(_, high)| high)];
                    let end = ends.into_iter().flatten().filter(|end| end.is_finite());
                    let (right, _) = plot.backend_coord(&(end.fold(start, f64::max), top));
                    text(area, &number(bar.value), (right + 5 * FINE, middle), HPos::Left)?;
                }
            }
        }
        Ok(())
    })
}

/// Returns the height of a plot with so many rows of bars.
pub(super) fn height_of_bars(rows: usize) -> u32 {
    ROW * rows as u32 + AXIS + TOP
}

/// Draws a bar from `start`, in the row whose upper edge is `top`, and its interval.
fn bar_and_interval(
    plot: &mut ChartContext<'_, Canvas<'_>, Cartesian2d<Axis, RangedCoordf64>>,
    bar: &Bar,
    look: usize,
    (start, top): (f64, f64),
) -> Drawn<()> {
    if bar.value.is_finite() {
        let corners = [(start, top + 0.18), (bar.value, top + 0.82)];
        plot.draw_series([Rectangle::new(corners, Role::Series(look).color().filled())])?;
    }
    let is_finite = |(low, high): &(f64, f64)| low.is_finite() && high.is_finite();
    if let Some((low, high)) = bar.interval.filter(is_finite) {
        let line = |from, to| PathElement::new(vec![from, to], Role::Interval.color());
        plot.draw_series([
            line((low, top + 0.5), (high, top + 0.5)),
            line((low, top + 0.3), (low, top + 0.7)),
            line((high, top + 0.3), (high, top + 0.7)),
        ])?;
    }
    Ok(())
}

/// Returns the points that can be drawn.
fn finite(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    let points = series.points.iter().copied();
    points.filter(|(x, y)| x.is_finite() && y.is_finite())
}

/// Returns an SVG element with what is drawn.
fn svg(chart: &Chart, height: u32, draw: impl FnOnce(&Area<'_>) -> Drawn<()>) -> Drawn<String> {
    let title = markup::html(&chart.title);
    let mut svg = format!(
        "<svg class=\"plot\" role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 {WIDTH} {height}\">\n"
    );
    {
        let area = Canvas::new(&mut svg, WIDTH, height).into_drawing_area();
        draw(&area)?;
        area.present()?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Converts units of the picture to pixels of the canvas.
fn fine(units: u32) -> u32 {
    units * FINE.unsigned_abs()
}

/// The style of letters. The canvas takes their place and role from it; their size is in the style sheet.
fn letters() -> TextStyle<'static> {
    ("sans-serif", LETTERS * FINE)
        .into_font()
        .color(&Role::Label.color())
}

fn text(area: &Area<'_>, text: &str, place: (i32, i32), side: HPos) -> Drawn<()> {
    let style = letters().pos(Pos::new(side, VPos::Center));
    area.draw_text(text, &style, place)?;
    Ok(())
}

/// Returns the beginning of a name that fits beside an axis or above a group of bars.
fn named(name: &str) -> String {
    markup::shortened(name, NAME_LETTERS)
}

/// Returns the beginning of a label that fits beside a bar.
fn shown(label: &str) -> String {
    markup::shortened(label, LABEL_LETTERS)
}
