//! Compares the spellings of characters with serde_json, and checks the encoded languages.

use super::*;
use lexiform_automata::grammar::{Part, Regular};
use lexiform_automata::language::Terminal;
use lexiform_automata::limits::Limits;
use regex_syntax::hir::Repetition;

fn terminal(hir: Hir) -> Terminal {
    Terminal::new(&Regular::of(vec![Part::Match(hir.into())]), &Limits::default()).expect("a language")
}

fn has(terminal: &Terminal, text: &str) -> bool {
    terminal.matches_from(terminal.start(), text.as_bytes())
}

/// Returns all characters up to U+3000, the edges of the planes, and a sample of the others.
fn characters() -> impl Iterator<Item = char> {
    (0..=0x3000_u32)
        .chain((0x3000..=0x10_ffff).step_by(997))
        .chain([0xd7ff, 0xe000, 0xffff, 0x1_0000])
        .filter_map(char::from_u32)
}

fn numbered(c: char, upper: bool) -> String {
    let mut units = [0; 2];
    let spell = |unit: &u16| {
        if upper {
            format!("\\u{unit:04X}")
        } else {
            format!("\\u{unit:04x}")
        }
    };
    c.encode_utf16(&mut units).iter().map(spell).collect()
}

#[test]
fn minimal_spells_each_character_as_serde_json_does_and_in_no_other_way() {
    let one = terminal(json_char(Escapes::Minimal));
    for c in characters() {
        let quoted = serde_json::to_string(&c).expect("a character is JSON");
        let spelled = &quoted[1..quoted.len() - 1];
        assert!(has(&one, spelled), "{spelled}");
        for other in [c.to_string(), numbered(c, false), numbered(c, true)] {
            assert_eq!(has(&one, &other), other.eq_ignore_ascii_case(spelled), "{other}");
        }
    }
    assert!(!has(&one, "\\/"));
}

#[test]
fn any_spells_each_character_in_every_way() {
    let one = terminal(json_char(Escapes::Any));
    for c in characters() {
        let raw = c.to_string();
        let is_raw = serde_json::from_str::<String>(&format!("\"{raw}\"")).is_ok();
        assert_eq!(has(&one, &raw), is_raw, "{raw:?}");
        assert!(
            has(&one, &numbered(c, false)) && has(&one, &numbered(c, true)),
            "{raw:?}"
        );
    }
    for escape in [
        "\\\"",
        "\\\\",
        "\\/",
        "\\b",
        "\\f",
        "\\n",
        "\\r",
        "\\t",
        "\\ud83D\\uDe00",
    ] {
        assert!(has(&one, escape), "{escape}");
    }
    for not in [
        "",
        "\\",
        "\"",
        "\\a",
        "\\u12",
        "\\ud800",
        "\\ude00",
        "\\ud83d\\u0041",
        "\\ud83dx",
        "ab",
        "\\x41",
    ] {
        assert!(!has(&one, not), "{not}");
    }
}

#[test]
fn encoded_characters_are_a_prefix_code() {
    for escapes in [Escapes::Minimal, Escapes::Canonical, Escapes::Any] {
        let one = terminal(json_char(escapes));
        // After a whole character, nothing can continue it.
        for c in characters() {
            for spelled in [c.to_string(), numbered(c, true), format!("\\{c}")] {
                let mut cursor = Some(one.start());
                for (at, &byte) in spelled.as_bytes().iter().enumerate() {
                    assert!(
                        !cursor.is_some_and(|cursor| at > 0 && one.is_accepting(cursor)),
                        "{spelled} at {at}"
                    );
                    cursor = cursor.and_then(|cursor| one.next(cursor, byte));
                    if cursor.is_none() {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn an_encoded_language_has_the_spellings_of_its_words() {
    let hir = |pattern: &str| regex_syntax::Parser::new().parse(pattern).expect(pattern);
    let minimal = |pattern| terminal(encode_json(&hir(pattern), Escapes::Minimal));
    let any = |pattern| terminal(encode_json(&hir(pattern), Escapes::Any));
    let quotes = r#"(?:"a\\"|[\x00-\x1f]|é/)+"#;
    for text in [r#"\"a\\\\\""#, r"\n\u0001\u001F\u001f", "é/é/"] {
        assert!(
            has(&minimal(r#"(?:"a\\\\"|[\x00-\x1f]|é/)+"#), text) || has(&minimal(quotes), text),
            "{text}"
        );
    }
    assert!(!has(&minimal(quotes), r"\u000a"));
    assert!(has(&any(quotes), r#"\u0022\u0061\\\u0022\u00E9\/"#));
    assert!(!has(&any(quotes), r"\u0062"));
    assert!(has(&any("[a-f]{2,3}"), r"\u0061b\u0063") && !has(&any("[a-f]{2,3}"), r"\u0061"));
    assert!(has(&any("[😀-😂x]"), r"\uD83D\uDE01") && !has(&any("[😀-😂x]"), r"\uD83D\uDE03"));
    let bytes = Hir::class(Class::Bytes(ClassBytes::new([
        regex_syntax::hir::ClassBytesRange::new(b'\n', b'"'),
    ])));
    let run = Hir::repetition(Repetition {
        min: 1,
        max: None,
        greedy: true,
        sub: Box::new(bytes),
    });
    assert!(has(&terminal(encode_json(&run, Escapes::Minimal)), r#"\n !\""#));
}

#[test]
fn a_string_body_is_any_run_of_characters() {
    let body = terminal(json_string_body(Escapes::Any));
    for text in ["", "a", "\\u00e9x\\n", "日本"] {
        assert!(
            has(&body, text) && serde_json::from_str::<String>(&format!("\"{text}\"")).is_ok(),
            "{text}"
        );
    }
    assert!(!has(&body, "a\"") && !has(&body, "\n") && !has(&body, "\\"));
}

#[test]
fn canonically_each_character_has_one_spelling() {
    let one = terminal(json_char(Escapes::Canonical));
    for c in characters() {
        let spellings = [
            c.to_string(),
            numbered(c, false),
            numbered(c, true),
            format!("\\{c}"),
        ];
        let short = SHORT_ESCAPES.iter().find(|(escaped, _)| *escaped == c);
        let short = short.map(|(_, letter)| format!("\\{letter}"));
        let mut all: Vec<String> = spellings.into_iter().chain(short).collect();
        all.sort();
        all.dedup();
        let of_this = all.iter().filter(|text| {
            let value = serde_json::from_str::<String>(&format!("\"{text}\""));
            value.is_ok_and(|value| value == c.to_string()) && has(&one, text)
        });
        assert_eq!(of_this.count(), 1, "{c:?}: {all:?}");
    }
    assert!(has(&one, r"\u001f") && !has(&one, r"\u001F"));
}
