//! Reports as pages with plots, without scripts or external resources.

use std::fmt::Write as _;

/// The width of the longest bar, in pixels.
const WIDTH: f64 = 420.0;
/// The height of a row, in pixels.
const ROW: f64 = 22.0;
/// The horizontal position where bars begin, in pixels.
const LEFT: f64 = 140.0;

/// A page that is being written.
pub(super) struct Page(String);

impl Page {
    /// Creates a page with this title.
    pub(super) fn new(title: &str) -> Self {
        let title = escaped(title);
        Page(format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
             <style>body{{font:15px system-ui;max-width:60em;margin:2em auto;padding:0 1em}}\
             text{{font:13px system-ui;fill:currentColor}}rect{{fill:#2f6f9f}}rect.region{{fill:#7a9a4a}}</style>\n\
             <h1>{title}</h1>\n"
        ))
    }

    /// Adds a paragraph.
    pub(super) fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p>{}</p>", escaped(text));
    }

    /// Adds a heading above several plots.
    pub(super) fn heading(&mut self, text: &str) {
        let _ = writeln!(self.0, "<h2>{}</h2>", escaped(text));
    }

    /// Adds a plot of one figure, with a bar for each label.
    pub(super) fn bars<L: AsRef<str>>(&mut self, title: &str, bars: &[(L, f64)]) {
        let title = escaped(title);
        let most = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let height = ROW * bars.len() as f64;
        let _ = writeln!(
            self.0,
            "<h3>{title}</h3>\n<svg role=\"img\" aria-label=\"{title}\" width=\"{}\" height=\"{height}\">",
            LEFT + WIDTH + 80.0
        );
        for (row, (label, value)) in bars.iter().enumerate() {
            let (label, y) = (escaped(label.as_ref()), ROW * row as f64);
            let width = if most > 0.0 { WIDTH * value / most } else { 0.0 };
            let middle = y + 0.7 * ROW;
            let _ = writeln!(
                self.0,
                "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{label}</text>\
                 <rect x=\"{LEFT}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{middle}\">{value:.2}</text>",
                LEFT - 8.0,
                y + 3.0,
                ROW - 6.0,
                LEFT + width + 6.0,
            );
        }
        self.0.push_str("</svg>\n");
    }

    /// Returns the whole page.
    pub(super) fn html(mut self) -> String {
        self.0.push_str("</html>\n");
        self.0
    }
}

/// Escapes the markup in a text.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values_and_texts_are_no_markup() {
        let mut page = Page::new("a<b");
        page.bars("\"c\"", &[("d&e", 1.0), ("f", 2.0)]);
        page.bars("none", &[("g", 0.0)]);
        let html = page.html();
        for part in [
            "<title>a&lt;b</title>",
            "aria-label=\"&quot;c&quot;\"",
            "d&amp;e",
            "width=\"210.0\"",
            "width=\"420.0\"",
            "width=\"0.0\"",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(html.ends_with("</html>\n"));
    }
}
