//! A line of a text with a caret under a place.
//!
//! ```text
//!     2 | {"age": "zero"}
//!       |         ^^^^^^
//! ```

use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

use super::paint::{bad, dim};

/// The most columns of a line that are shown before the place, and after it.
const BEFORE: usize = 40;
const AFTER: usize = 36;

/// Returns the line of `text` in which `span` begins, with carets under the part of the span on that line.
pub fn excerpt(text: &str, span: Range<usize>, line: usize) -> String {
    let start = boundary(text, span.start);
    let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let stop = boundary(text, span.end).clamp(start, end);
    let (before, cut_before) = last_columns(&text[begin..start]);
    let (marked, cut_marked) = first_columns(&text[start..stop], AFTER);
    let (after, cut_after) = first_columns(&text[stop..end], AFTER.saturating_sub(width(&marked)));
    let before = if cut_before {
        format!("…{before}")
    } else {
        before
    };
    let after = if cut_marked || cut_after {
        format!("{after}…")
    } else {
        after
    };
    let margin = " ".repeat(line.to_string().len());
    let carets = "^".repeat(width(&marked).max(1));
    format!(
        "    {} {before}{marked}{after}\n    {} {}{}\n",
        dim(format!("{line} |")),
        dim(format!("{margin} |")),
        " ".repeat(width(&before)),
        bad(carets),
    )
}

fn boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn first_columns(text: &str, most: usize) -> (String, bool) {
    let (mut shown, mut columns) = (String::new(), 0);
    for c in text.chars().map(visible) {
        columns += c.width().unwrap_or(0);
        if most < columns {
            return (shown, true);
        }
        shown.push(c);
    }
    (shown, false)
}

fn last_columns(text: &str) -> (String, bool) {
    let (mut shown, mut columns) = (Vec::new(), 0);
    for c in text.chars().rev().map(visible) {
        columns += c.width().unwrap_or(0);
        if BEFORE < columns {
            return (shown.into_iter().rev().collect(), true);
        }
        shown.push(c);
    }
    (shown.into_iter().rev().collect(), false)
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Returns a character as a terminal may safely print it: text of other origin must not move the cursor,
/// change colours, or turn the direction of writing.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{7f}' => '\u{2421}',
        c if c < ' ' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('?'),
        '\u{80}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            '\u{fffd}'
        }
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, span: Range<usize>, line: usize) -> String {
        anstream::adapter::strip_str(&excerpt(text, span, line)).to_string()
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let text = "{\n \"a\": zero}";
        assert_eq!(
            plain(text, 8..12, 2),
            "    2 |  \"a\": zero}\n      |       ^^^^\n"
        );
    }

    #[test]
    fn wide_characters_take_two_columns_and_a_span_ends_with_its_line() {
        assert_eq!(
            plain("世界xy\nz", 6..10, 10),
            "    10 | 世界xy\n       |     ^^\n"
        );
        assert_eq!(plain("", 0..1, 1), "    1 | \n      | ^\n");
        assert_eq!(plain("é", 1..2, 1), "    1 | é\n      | ^\n");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}X{}", "a".repeat(1000), "b".repeat(1000));
        let shown = plain(&text, 1000..1001, 1);
        let lines: Vec<&str> = shown.lines().collect();
        let expected = format!("    1 | …{}X{}…", "a".repeat(40), "b".repeat(35));
        assert_eq!((lines[0], lines[1].find('^')), (expected.as_str(), Some(8 + 41)));
    }

    #[test]
    fn no_text_commands_the_terminal() {
        let shown = plain("a\u{1b}[31m\u{202e}\tb\u{9b}", 1..2, 1);
        assert!(shown.contains("a␛[31m\u{fffd} b\u{fffd}"), "{shown:?}");
    }
}
