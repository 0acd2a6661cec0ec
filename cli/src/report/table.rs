//! Tables, on a page and in Markdown.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::markup;
use super::model::Table;
use super::number::count;

/// The rows that are shown at most; JSON has all.
const MOST_ROWS: usize = 400;
/// The rows that a page shows at once, unless only a few more follow.
const VISIBLE_ROWS: usize = 15;
const FEW: usize = 5;

/// Returns the sentence that says how many rows are not shown; empty if all are.
fn rest(table: &Table) -> String {
    match table.rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("{} more rows are in the report as JSON.", count(more)),
    }
}

/// Writes a table for a page. Only its first rows are visible at once, so that what follows is found.
pub(super) fn html(table: &Table) -> String {
    let rows = &table.rows[..table.rows.len().min(MOST_ROWS)];
    let visible = if rows.len() > VISIBLE_ROWS + FEW {
        VISIBLE_ROWS
    } else {
        rows.len()
    };
    let (first, more) = rows.split_at(visible);
    let mut html = rows_html(&table.title, &table.columns, first);
    if !more.is_empty() {
        let _ = write!(
            html,
            "<details><summary>{} more rows</summary>\n{}</details>\n",
            count(more.len()),
            rows_html("", &table.columns, more)
        );
    }
    for note in [table.note.clone(), rest(table)]
        .iter()
        .filter(|note| !note.is_empty())
    {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", markup::html(note));
    }
    // One element, whatever it consists of, so that a page can place it.
    format!("<div>\n{html}</div>\n")
}

fn rows_html(title: &str, columns: &[String], rows: &[Vec<String>]) -> String {
    let mut html = String::from("<div class=\"table\"><table>\n");
    if !title.is_empty() {
        let _ = writeln!(html, "<caption>{}</caption>", markup::html(title));
    }
    let heads = columns
        .iter()
        .map(|name| format!("<th scope=\"col\">{}</th>", markup::html(name)));
    let _ = writeln!(
        html,
        "<thead><tr>{}</tr></thead>\n<tbody>",
        heads.collect::<String>()
    );
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let cell = markup::html(cell);
            match column {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td>{cell}</td>"),
            }
        });
        let _ = writeln!(html, "<tr>{}</tr>", cells.collect::<String>());
    }
    html.push_str("</tbody>\n</table></div>\n");
    html
}

/// Writes a table for Markdown, with its title in bold letters above it.
pub(super) fn markdown(table: &Table) -> String {
    let mut text = String::new();
    if !table.title.is_empty() {
        let _ = writeln!(text, "**{}**\n", markup::markdown(&table.title));
    }
    let line = |cells: &[String]| {
        let cells = cells.iter().map(|cell| format!(" {} |", markup::markdown(cell)));
        format!("|{}\n", cells.collect::<String>())
    };
    let sides = (0..table.columns.len()).map(|column| if column == 0 { "---|" } else { "---:|" });
    let _ = writeln!(text, "{}|{}", line(&table.columns), sides.collect::<String>());
    let rows = table.rows.iter().take(MOST_ROWS);
    text.extend(rows.map(|row| line(row)));
    text.push('\n');
    for note in [table.note.clone(), rest(table)]
        .iter()
        .filter(|note| !note.is_empty())
    {
        let _ = writeln!(text, "{}\n", markup::markdown(note));
    }
    text
}

/// Writes a table for a terminal, in columns, with its title above it.
pub(crate) fn in_columns(table: &Table) -> String {
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
