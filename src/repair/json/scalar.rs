//! The spellings of a value that is neither an object nor an array, the nearest to the written one first.

use super::read::{Read, Text, Value};

/// One way to write a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spelling {
    pub(super) text: String,
    /// The approximate number of characters by which it differs from the written value.
    pub(super) cost: usize,
    /// `true` if it is only the beginning of a value, which the grammar completes.
    pub(super) cut: bool,
}

impl Spelling {
    fn whole(text: impl Into<String>, cost: usize) -> Spelling {
        Spelling {
            text: text.into(),
            cost,
            cut: false,
        }
    }

    fn cut(text: impl Into<String>) -> Spelling {
        Spelling {
            text: text.into(),
            cost: 0,
            cut: true,
        }
    }
}

/// Returns the spellings of a value; none for an object or an array.
pub(super) fn spellings(read: &Read, text: &str) -> Vec<Spelling> {
    let spelled = text.get(read.span.clone()).unwrap_or_default();
    match &read.value {
        Value::Text(text) => of_text(text, spelled),
        Value::Word { word, cut } => of_word(word, *cut),
        Value::Object(..) | Value::Array(..) => Vec::new(),
    }
}

/// Returns the spellings of a key, or of a text in quotation marks that stays one.
pub(super) fn quoted_spellings(text: &Text, spelled: &str) -> Vec<Spelling> {
    let mut all = Vec::new();
    let is_json = spelled.len() > 1 && spelled.starts_with('"') && spelled.ends_with('"');
    if !text.cut && is_json {
        all.push(Spelling::whole(spelled, 0));
    }
    let quoted = quoted(&text.content);
    let cost = usize::from(quoted != spelled);
    if text.cut {
        all.push(Spelling::whole(quoted.clone(), 1));
        all.push(Spelling::cut(&quoted[..quoted.len() - 1]));
    } else if cost > 0 || !is_json {
        all.push(Spelling::whole(quoted, cost));
    }
    all
}

fn of_text(text: &Text, spelled: &str) -> Vec<Spelling> {
    let mut all = quoted_spellings(text, spelled);
    let bare = literal(text.content.trim()).filter(|_| !text.cut);
    all.extend(bare.map(|bare| Spelling::whole(bare, 2)));
    all
}

fn of_word(word: &str, cut: bool) -> Vec<Spelling> {
    let mut all = Vec::new();
    let bare = literal(word);
    if let Some(bare) = &bare {
        all.push(Spelling::whole(bare.clone(), usize::from(bare != word)));
        if let Some((whole, fraction)) = bare.split_once('.')
            && fraction.bytes().all(|byte| byte == b'0')
        {
            all.push(Spelling::whole(whole, 1));
        }
    }
    if cut
        && (bare.is_some()
            || ["true", "false", "null"]
                .iter()
                .any(|literal| literal.starts_with(word)))
    {
        all.push(Spelling::cut(word));
    }
    all.push(Spelling::whole(quoted(word), 2));
    // A number with a unit, which is not part of it.
    if let Some((number, unit)) = word.split_once(' ')
        && let Some(number) = number_of(number)
        && unit.starts_with(char::is_alphabetic)
    {
        all.push(Spelling::whole(number, unit.chars().count()));
    }
    all
}

/// Returns a number, `true`, `false` or `null` in JSON, given in the notation of other languages.
fn literal(word: &str) -> Option<String> {
    let known = match word {
        "true" | "True" | "TRUE" => "true",
        "false" | "False" | "FALSE" => "false",
        "null" | "None" | "NULL" | "Null" | "nil" | "undefined" | "NaN" => "null",
        _ => return number_of(word),
    };
    Some(known.to_owned())
}

/// Returns a number in JSON with the same digits.
fn number_of(word: &str) -> Option<String> {
    let (sign, rest) = match word.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = match whole {
        "" if !fraction.is_empty() => "0".to_owned(),
        whole => whole.replace('_', ""),
    };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent
        .get(1..)
        .map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
    let is_number = !whole.is_empty()
        && are_digits(&whole)
        && (whole == "0" || !whole.starts_with('0'))
        && are_digits(fraction)
        && power.is_none_or(|power| !power.is_empty() && are_digits(power));
    is_number.then(|| match fraction {
        "" => format!("{sign}{whole}{exponent}"),
        fraction => format!("{sign}{whole}.{fraction}{exponent}"),
    })
}

/// Returns a text as a JSON string with the fewest escapes.
pub(super) fn quoted(content: &str) -> String {
    let mut quoted = String::with_capacity(content.len() + 2);
    quoted.push('"');
    for c in content.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for (word, number) in [
            ("34", Some("34")),
            ("+5", Some("5")),
            (".5", Some("0.5")),
            ("5.", Some("5")),
            ("1_000", Some("1000")),
            ("-1.50e+3", Some("-1.50e+3")),
            ("007", None),
            ("1e", None),
            ("", None),
            (".", None),
            ("12a", None),
        ] {
            assert_eq!(number_of(word).as_deref(), number, "{word}");
        }
    }

    #[test]
    fn words_are_literals_or_texts() {
        let texts = |word: &str| {
            let all = of_word(word, false).into_iter();
            all.map(|spelling| spelling.text).collect::<Vec<_>>()
        };
        assert_eq!(texts("True"), ["true", "\"True\""]);
        assert_eq!(texts("34.0"), ["34.0", "34", "\"34.0\""]);
        assert_eq!(texts("34 years"), ["\"34 years\"", "34"]);
        assert_eq!(texts("a\"b"), ["\"a\\\"b\""]);
    }
}
