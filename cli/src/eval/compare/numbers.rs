//! Numbers and tables as people read them.

use unicode_width::UnicodeWidthStr as _;

use crate::report::Table;

/// Writes microseconds with three significant digits or all whole ones; a dash if there are none.
pub(super) fn microseconds(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if !value.is_finite() => "–".to_owned(),
        Some(value) if value < 9.995 => format!("{value:.2}"),
        Some(value) if value < 99.95 => format!("{value:.1}"),
        Some(value) => grouped(value.round() as u64),
    }
}

/// Writes a ratio.
pub(super) fn times(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{}×", microseconds(Some(value))),
        _ => "–".to_owned(),
    }
}

pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// Writes a number with commas between groups of three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|it| std::str::from_utf8(it).ok())
        .collect();
    groups.join(",")
}

/// Cuts a text to so many characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Keeps the end of a text, so many characters.
pub(super) fn ending(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count > most {
        false => text.to_owned(),
        true => format!("…{}", text.chars().skip(count - most).collect::<String>()),
    }
}

/// Lays a table out in columns.
pub(super) fn laid_out(table: &Table) -> String {
    let rows = || std::iter::once(&table.columns).chain(&table.rows);
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            rows()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                let space = " ".repeat(width.saturating_sub(cell.width()));
                if column == 0 {
                    format!("{cell}{space}")
                } else {
                    format!("{space}{cell}")
                }
            });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    format!("\n{}\n{}", table.title, rows().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let written = [0.0, 9.994, 12.34, 99.96, 1234.5, 1_234_567.0].map(|value| microseconds(Some(value)));
        assert_eq!(written, ["0.00", "9.99", "12.3", "100", "1,235", "1,234,567"]);
        assert_eq!(
            (microseconds(None), times(Some(f64::NAN))),
            ("–".to_owned(), "–".to_owned())
        );
        assert_eq!(
            (shortened("äöü", 2), ending("äöü", 2)),
            ("äö…".to_owned(), "…öü".to_owned())
        );
    }
}
