//! Text in HTML and in Markdown, where nothing of it is markup.

/// Escapes a text for HTML, in an element or in an attribute between double quotes.
///
/// A character that HTML does not have, such as NUL, becomes U+FFFD.
pub(super) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() => safe.push(char::REPLACEMENT_CHARACTER),
            c => safe.push(c),
        }
    }
    safe
}

/// Escapes a text for a line of Markdown, also in a cell of a table.
pub(super) fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let is_inside_word =
            before.is_alphanumeric() && letters.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '_' if is_inside_word => safe.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => safe.extend(['\\', c]),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
        before = c;
    }
    safe
}

/// Puts a text into a block of code of Markdown, whose fence is longer than any in the text.
pub(super) fn code_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}sh\n{}\n{fence}\n", text.replace(['\r', '\n'], " "))
}

/// Returns at most this many characters of a text, followed by `…` if there are more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        assert_eq!(html("<script>\"&'\0"), "&lt;script&gt;&quot;&amp;&#39;\u{fffd}");
        assert_eq!(
            markdown("a|b\n`<x>` _it_ valid_rejected"),
            "a\\|b \\`&lt;x&gt;\\` \\_it\\_ valid_rejected"
        );
        assert_eq!(code_block("a ``` b"), "````sh\na ``` b\n````\n");
        assert_eq!([shortened("äöü", 2), shortened("äö", 2)], ["äö…", "äö"]);
    }
}
