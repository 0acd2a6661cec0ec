//! How texts and sets of characters are spelled in each notation.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use crate::notation::recognise::Notation;
use crate::regex::node::{any_set, is_empty};
use lexiform_automata::grammar::TokenSet;

/// The most characters of a set that are written as alternatives.
const MOST_ALTERNATIVES: usize = 300;

/// A spelled part, and how tightly it holds together.
pub(super) struct Spelled {
    pub(super) text: String,
    /// It has several alternatives.
    pub(super) is_choice: bool,
    /// It has several parts in a sequence.
    pub(super) is_sequence: bool,
}

impl Spelled {
    fn one(text: String) -> Spelled {
        Spelled {
            text,
            is_choice: false,
            is_sequence: false,
        }
    }

    fn list(parts: &[String], separator: &str) -> Spelled {
        Spelled {
            text: parts.join(separator),
            is_choice: false,
            is_sequence: parts.len() > 1,
        }
    }
}

/// Spells a text.
///
/// # Errors
/// Returns what the notation cannot say.
pub(super) fn text(text: &str, notation: Notation) -> Result<Spelled, String> {
    match notation {
        Notation::W3c => {
            let parts = pieces(text, |c| is_shown(c) && c != '"' || c == ' ');
            let spelled = parts.into_iter().map(|(piece, is_quoted)| match is_quoted {
                true => format!("\"{piece}\""),
                false if piece == "\"" => "'\"'".to_owned(),
                false => point(&piece),
            });
            Ok(Spelled::list(&spelled.collect::<Vec<_>>(), " "))
        }
        Notation::Abnf => {
            let is_plain = |c: char| matches!(c, ' ' | '!' | '#'..='~');
            let spelled = pieces(text, is_plain).into_iter().map(|(piece, is_quoted)| {
                let has_letters = piece.contains(|c: char| c.is_ascii_alphabetic());
                match is_quoted {
                    true if has_letters => format!("%s\"{piece}\""),
                    true => format!("\"{piece}\""),
                    false => format!("%x{:X}", piece.chars().next().map_or(0, u32::from)),
                }
            });
            Ok(Spelled::list(&spelled.collect::<Vec<_>>(), " "))
        }
        Notation::Iso => {
            if text.contains('\n') {
                return Err("a line break: texts in quotes have none, and there are no escapes".to_owned());
            }
            let parts = pieces(text, |c| c != '\'').into_iter();
            let spelled = parts.map(|(piece, is_quoted)| match is_quoted {
                true => format!("'{piece}'"),
                false => "\"'\"".to_owned(),
            });
            Ok(Spelled::list(&spelled.collect::<Vec<_>>(), ", "))
        }
        _ => {
            let escaped = text.chars().map(|c| match c {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                c => character(c),
            });
            Ok(Spelled::one(format!("\"{}\"", escaped.collect::<String>())))
        }
    }
}

/// Spells a text as a regular expression between slashes.
pub(super) fn expression(text: &str) -> Spelled {
    let escaped = text.chars().map(|c| match c {
        c if c.is_ascii_punctuation() => format!("\\{c}"),
        c => character(c),
    });
    Spelled::one(format!("/{}/", escaped.collect::<String>()))
}

/// Spells a set of at least two characters.
///
/// # Errors
/// Returns what the notation cannot say.
pub(super) fn set(set: &ClassUnicode, notation: Notation) -> Result<Spelled, String> {
    match notation {
        Notation::Abnf => {
            let ranges = set.ranges().iter().map(|range| {
                let (start, end) = (u32::from(range.start()), u32::from(range.end()));
                match start == end {
                    true => format!("%x{start:X}"),
                    false => format!("%x{start:X}-{end:X}"),
                }
            });
            Ok(alternatives(ranges.collect(), " / "))
        }
        Notation::Iso => {
            let count = |range: &ClassUnicodeRange| (range.start()..=range.end()).size_hint().0;
            let count: usize = set.ranges().iter().map(count).sum();
            if count > MOST_ALTERNATIVES {
                return Err(format!(
                    "a set of {count} characters: each would be an alternative"
                ));
            }
            let characters = set.ranges().iter().flat_map(|range| range.start()..=range.end());
            let spelled = characters.map(|c| text(&c.to_string(), notation).map(|spelled| spelled.text));
            Ok(alternatives(spelled.collect::<Result<_, _>>()?, " | "))
        }
        _ => Ok(class(set, notation)),
    }
}

/// Spells a special token, if the notation has it.
pub(super) fn special(name: &str, notation: Notation) -> Option<&str> {
    let inside = name.strip_prefix('<').and_then(|name| name.strip_suffix('>'))?;
    let is_token = !inside.is_empty() && !inside.contains(['>', '\n']) && !inside.starts_with('[');
    let has_bars = inside.len() > 2 && inside.starts_with('|') && inside.ends_with('|');
    let is_said = match notation {
        Notation::Gbnf => true,
        Notation::Ebnf => has_bars,
        Notation::Llguidance => !inside.contains(char::is_whitespace),
        _ => false,
    };
    (is_token && is_said).then_some(name)
}

/// Spells a set of tokens, if the notation has it.
pub(super) fn tokens(set: &TokenSet, notation: Notation) -> Option<String> {
    let single = |&(first, last): &(u32, u32)| (first == last).then(|| first.to_string());
    match (notation, &set.ids[..], &set.names[..]) {
        (_, [], [name]) if !set.is_complement => special(name, notation).map(str::to_owned),
        (Notation::Gbnf, [], [name]) => special(name, notation).map(|name| format!("!{name}")),
        (Notation::Gbnf, [id], []) => {
            let sign = if set.is_complement { "!" } else { "" };
            Some(format!("{sign}<[{}]>", single(id)?))
        }
        (Notation::XGrammar, ids @ [_, ..], []) => {
            let ids: Vec<String> = ids.iter().map(single).collect::<Option<_>>()?;
            let call = if set.is_complement {
                "ExcludeToken"
            } else {
                "Token"
            };
            Some(format!("{call}({})", ids.join(", ")))
        }
        (Notation::Llguidance, [], []) => set.is_complement.then(|| "<[*]>".to_owned()),
        (Notation::Llguidance, ids, []) => {
            let ids = ids.iter().map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            });
            let sign = if set.is_complement { "^" } else { "" };
            Some(format!("<[{sign}{}]>", ids.collect::<Vec<_>>().join(",")))
        }
        _ => None,
    }
}

fn alternatives(parts: Vec<String>, separator: &str) -> Spelled {
    Spelled {
        is_choice: parts.len() > 1,
        text: parts.join(separator),
        is_sequence: false,
    }
}

fn class(set: &ClassUnicode, notation: Notation) -> Spelled {
    let has_point = matches!(notation, Notation::Ebnf | Notation::Gbnf);
    if has_point && *set == any_set() {
        return Spelled::one(".".to_owned());
    }
    let mut others = set.clone();
    others.negate();
    let is_negated = others.ranges().len() < set.ranges().len() && !is_empty(&others);
    let ranges = if is_negated { &others } else { set }.ranges();
    let mut written = String::from(if is_negated { "[^" } else { "[" });
    // Digits alone in brackets would be the number of a rule of the W3C.
    let has_range = ranges
        .iter()
        .any(|range| u32::from(range.end()) - u32::from(range.start()) > 1);
    let add = |written: &mut String, c: char| {
        let is_number_before = c.is_ascii_hexdigit() && ends_with_number(written);
        let is_plain = c.is_ascii_alphabetic() || has_range && c.is_ascii_digit();
        written.push_str(&match notation {
            Notation::W3c if is_plain && !is_number_before => c.to_string(),
            _ => member(c, notation),
        });
    };
    for range in ranges {
        let (start, end) = (range.start(), range.end());
        add(&mut written, start);
        if start == end {
            continue;
        }
        if u32::from(end) - u32::from(start) > 1 {
            written.push('-');
        }
        add(&mut written, end);
    }
    written.push(']');
    Spelled::one(match notation {
        Notation::Lark | Notation::Llguidance => format!("/{written}/"),
        _ => written,
    })
}

/// Returns `true` if a class so far ends with `#x…`.
fn ends_with_number(written: &str) -> bool {
    let before = written.trim_end_matches(|c: char| c.is_ascii_hexdigit());
    before.len() < written.len() && before.ends_with("#x")
}

/// Spells a character within a class.
fn member(c: char, notation: Notation) -> String {
    let is_special = matches!(
        c,
        '[' | ']' | '^' | '-' | '\\' | '"' | '/' | '#' | '&' | '~' | '|'
    );
    match notation {
        Notation::W3c => point(&c.to_string()),
        Notation::Lark | Notation::Llguidance | Notation::Ebnf if is_special => format!("\\{c}"),
        Notation::Gbnf | Notation::XGrammar if matches!(c, '[' | ']' | '\\' | '"') => format!("\\{c}"),
        Notation::Gbnf | Notation::XGrammar if matches!(c, '^' | '-') => format!("\\u{:04X}", u32::from(c)),
        _ if c.is_ascii() => character(c),
        _ => number(c),
    }
}

/// Spells a character that is no sign of the notation.
fn character(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        _ if is_shown(c) || c == ' ' => c.to_string(),
        _ => number(c),
    }
}

fn number(c: char) -> String {
    match u32::from(c) {
        code @ ..=0xffff => format!("\\u{code:04X}"),
        code => format!("\\U{code:08X}"),
    }
}

fn point(text: &str) -> String {
    format!("#x{:X}", text.chars().next().map_or(0, u32::from))
}

/// Returns `true` for characters that people can see and tell apart.
fn is_shown(c: char) -> bool {
    c.is_ascii_graphic() || c.is_alphanumeric()
}

/// Splits a text into runs of plain characters and single other ones; an empty text is one run.
fn pieces(text: &str, is_plain: impl Fn(char) -> bool) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    for c in text.chars() {
        match (found.last_mut(), is_plain(c)) {
            (Some((run, true)), true) => run.push(c),
            (_, is_plain) => found.push((c.to_string(), is_plain)),
        }
    }
    if found.is_empty() {
        found.push((String::new(), true));
    }
    found
}
