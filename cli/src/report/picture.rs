//! A plot as an SVG file of its own, for documents that show pictures: with its title and its legend, in the
//! colours of the reader's light or dark mode.

use std::fmt::Write as _;

use super::model::{Chart, Shape};
use super::plot::LOOKS;
use super::{chart, markup};

const STYLE: &str = include_str!("page.css");

/// The width of a picture, the height of a line of its title or legend, and the margin.
const WIDTH: u32 = 640;
const LINE: u32 = 22;
const MARGIN: u32 = 16;

/// Returns the whole file.
pub(super) fn svg(shown: &Chart) -> String {
    let (plot, (width, height)) = chart::plot(shown);
    let names: Vec<&str> = match &shown.shape {
        Shape::Distribution { series } | Shape::Lines { series } => {
            series.iter().map(|series| series.name.as_str()).collect()
        }
        Shape::Bars { .. } => Vec::new(),
    };
    let columns = 3;
    let legend = LINE * names.len().div_ceil(columns) as u32;
    let inner = WIDTH - 2 * MARGIN;
    let plot_height = inner * height / width.max(1);
    let top = MARGIN + LINE + 6;
    let whole = top + legend + plot_height + MARGIN;
    let title = markup::html(&shown.title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {whole}\" width=\"{WIDTH}\" height=\"{whole}\" \
         role=\"img\" aria-label=\"{title}\">\n<style>\n{STYLE}.paper {{ fill: var(--paper); }} .plot {{ max-width: none; }}\n\
         text.title {{ font: 600 15px system-ui, sans-serif; }}\n</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{whole}\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{title}</text>\n",
        MARGIN + 14
    );
    for (index, name) in names.iter().enumerate() {
        let x = MARGIN + inner / columns as u32 * (index % columns) as u32;
        let y = top + LINE * (index / columns) as u32 + 8;
        let _ = writeln!(
            svg,
            "<line class=\"s{}\" x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            index % LOOKS,
            x + 32,
            x + 38,
            y + 4,
            markup::html(&markup::shortened(name, 24))
        );
    }
    let _ = write!(
        svg,
        "<svg x=\"{MARGIN}\" y=\"{}\" width=\"{inner}\" height=\"{plot_height}\" viewBox=\"0 0 {width} {height}\">\n\
         {plot}</svg>\n</svg>\n",
        top + legend
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Scale, Series};

    #[test]
    fn a_picture_needs_no_other_file_and_names_are_no_markup() {
        let chart = Chart {
            title: "Masks <fast>".to_owned(),
            x: "time, µs".to_owned(),
            y: "share".to_owned(),
            scale: Scale::Log,
            shape: Shape::Distribution {
                series: vec![Series {
                    name: "a & b".to_owned(),
                    points: vec![(1.0, 0.5), (10.0, 1.0)],
                }],
            },
        };
        let picture = svg(&chart);
        assert!(picture.starts_with("<svg xmlns="), "{picture}");
        assert!(
            picture.contains("Masks &lt;fast&gt;") && picture.contains("a &amp; b"),
            "{picture}"
        );
        assert_eq!(
            picture.matches("http").count(),
            1,
            "the name of the notation alone"
        );
        assert_eq!(picture.matches("<svg").count(), picture.matches("</svg>").count());
    }
}
