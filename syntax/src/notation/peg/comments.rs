//! Blanks the comments of a grammar out, which nest as deep as they like: a parser would recurse into them.

/// Returns the grammar with blanks in the place of each comment, so that all offsets stay the same. A
/// comment that is never closed stays as it is.
pub(super) fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut written = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let length = match bytes[at] {
            b'"' => quoted(&bytes[at..]),
            b'\'' => character(&bytes[at..]),
            b'/' => {
                let Some(length) = comment(&bytes[at..]) else {
                    break;
                };
                for byte in &mut written[at..at + length] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
                length
            }
            _ => 1,
        };
        at += length.max(1);
    }
    // Whole characters were replaced by bytes of ASCII.
    String::from_utf8(written).unwrap_or_default()
}

fn quoted(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the length of a character in quotes: `'"'` and `'\''`, or of a quote that begins none.
fn character(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'\\') => {
            let end = text.iter().skip(3).position(|&byte| byte == b'\'');
            end.map_or(1, |end| end + 4)
        }
        Some(_) => {
            let end = text.iter().skip(2).take(4).position(|&byte| byte == b'\'');
            end.map_or(1, |end| end + 3)
        }
        None => 1,
    }
}

/// Returns the length of the comment with which a text begins, or `None` if it is never closed.
fn comment(text: &[u8]) -> Option<usize> {
    if text.starts_with(b"//") {
        let end = text.iter().position(|&byte| byte == b'\n');
        return Some(end.unwrap_or(text.len()));
    }
    if !text.starts_with(b"/*") {
        return Some(0);
    }
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let (step, change) = match rest {
            [b'/', b'*', ..] => (2, 1),
            [b'*', b'/', ..] => (2, -1),
            _ => (1, 0),
        };
        at += step;
        depth += change;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::blanked;

    #[test]
    fn comments_become_blanks_and_texts_stay() {
        for (text, expected) in [
            ("a /* é /* b */ */ c", "a                  c"),
            ("a // b\nc", "a     \nc"),
            ("\"// \\\" /*\" '\"' '/' /**/", "\"// \\\" /*\" '\"' '/'     "),
            ("'\\'' // x", "'\\''     "),
            ("/* /* */", "/* /* */"),
            ("'a..'b' //", "'a..'b'   "),
        ] {
            assert_eq!(blanked(text), expected, "{text}");
        }
    }
}
