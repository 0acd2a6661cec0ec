//! Tables, on a page and in Markdown.

use std::fmt::Write as _;

use super::markup;
use super::model::Table;
use super::number::count;

/// The rows that are shown at most; JSON has all.
const MOST_ROWS: usize = 400;

/// Returns the sentence that says how many rows are not shown; empty if all are.
fn rest(table: &Table) -> String {
    match table.rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("{} more rows are in the report as JSON.", count(more)),
    }
}

/// Writes a table for a page.
pub(super) fn html(table: &Table) -> String {
    let mut html = String::from("<div class=\"table\"><table>\n");
    if !table.title.is_empty() {
        let _ = writeln!(html, "<caption>{}</caption>", markup::html(&table.title));
    }
    let heads = table
        .columns
        .iter()
        .map(|name| format!("<th scope=\"col\">{}</th>", markup::html(name)));
    let _ = writeln!(
        html,
        "<thead><tr>{}</tr></thead>\n<tbody>",
        heads.collect::<String>()
    );
    for row in table.rows.iter().take(MOST_ROWS) {
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
    for note in [table.note.clone(), rest(table)]
        .iter()
        .filter(|note| !note.is_empty())
    {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", markup::html(note));
    }
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
