//! The names of rules in a notation.

use foldhash::{HashSet, HashSetExt};

use crate::notation::recognise::Notation;

/// The names of XGrammar's macros: before a bracket, they would be calls.
const MACROS: [&str; 6] = [
    "TagDispatch",
    "TokenTagDispatch",
    "Token",
    "ExcludeToken",
    "Regex",
    "Substring",
];
/// The rules that every grammar in ABNF has.
const CORE: [&str; 16] = [
    "alpha", "bit", "char", "cr", "crlf", "ctl", "digit", "dquote", "hexdig", "htab", "lf", "lwsp", "octet",
    "sp", "vchar", "wsp",
];

/// Returns the name of the rule with which texts begin, if a notation prescribes one.
pub(super) fn start_of(notation: Notation) -> Option<&'static str> {
    match notation {
        Notation::Ebnf | Notation::Gbnf | Notation::XGrammar => Some("root"),
        Notation::Lark | Notation::Llguidance => Some("start"),
        Notation::W3c | Notation::Iso | Notation::Abnf | Notation::Pest => None,
    }
}

/// Returns names for rules in a notation. No two are the same. A name that is allowed stays as it is, unless
/// it is that of `reserved`, which only the first rule may have.
pub(super) fn renamed(names: &[&str], notation: Notation) -> Vec<String> {
    let reserved = start_of(notation);
    let mut taken: HashSet<String> = HashSet::with_capacity(names.len());
    let is_free = |at: usize, name: &str| match notation {
        Notation::XGrammar if MACROS.contains(&name) => false,
        Notation::Abnf if CORE.contains(&key(name, notation).as_str()) => {
            at < names.len() && names[at] == name
        }
        _ => at == 0 || reserved != Some(name),
    };
    let keep = |at: usize, name: &str| allowed(name, notation) == name && is_free(at, name);
    let mut found: Vec<Option<String>> = Vec::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        let stays = keep(at, name) && taken.insert(key(name, notation));
        found.push(stays.then(|| (*name).to_owned()));
    }
    let renamed = found.into_iter().zip(names).map(|(found, name)| {
        found.unwrap_or_else(|| {
            let base = allowed(name, notation);
            let separator = separator(notation);
            let mut candidates = (1_usize..).map(|number| match number {
                1 => base.clone(),
                _ => format!("{base}{separator}{number}"),
            });
            let is_new = |name: &String| is_free(usize::MAX, name) && taken.insert(key(name, notation));
            candidates.find(is_new).unwrap_or(base)
        })
    });
    renamed.collect()
}

/// Returns what is equal for names that are the same.
fn key(name: &str, notation: Notation) -> String {
    match notation {
        Notation::Abnf => name.to_ascii_lowercase(),
        _ => name.to_owned(),
    }
}

/// Returns the sign between the words of a name.
fn separator(notation: Notation) -> char {
    match notation {
        Notation::Gbnf | Notation::Abnf => '-',
        Notation::Iso => ' ',
        _ => '_',
    }
}

/// Returns a name that a notation allows, which is the same if this one is allowed.
fn allowed(name: &str, notation: Notation) -> String {
    let separator = separator(notation);
    let is_small = matches!(notation, Notation::Lark | Notation::Llguidance);
    let is_fine = |c: char| match notation {
        Notation::Lark | Notation::Llguidance | Notation::Iso => false,
        Notation::Gbnf | Notation::Abnf => c == '-',
        Notation::W3c | Notation::XGrammar => matches!(c, '_' | '-' | '.'),
        Notation::Ebnf | Notation::Pest => matches!(c, '_' | '-'),
    };
    let mut written = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            _ if c.is_ascii_uppercase() && is_small => written.push(c.to_ascii_lowercase()),
            _ if c.is_ascii_alphanumeric() || is_fine(c) => written.push(c),
            _ if c == separator && !written.ends_with(separator) => written.push(c),
            // Signs between words are one separator.
            _ if written.is_empty() || written.ends_with(separator) => {}
            _ => written.push(separator),
        }
    }
    let length = written
        .trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
        .len();
    written.truncate(length);
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_' && separator == '_' && !is_small;
    match written.chars().next() {
        Some(c) if begins(c) => written,
        _ => format!("r{written}"),
    }
}
