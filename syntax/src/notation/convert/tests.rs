//! Tests of how grammars are printed, and of the messages for what a notation does not have.

use super::*;

fn printed(text: &str, from: Notation, to: Notation) -> Result<String, Vec<String>> {
    let options = GrammarOptions {
        notation: Some(from),
        ..GrammarOptions::default()
    };
    let printed = convert(
        text,
        to,
        &options,
        &schema::Options::default(),
        &Limits::default(),
    );
    printed.map_err(|error| error.problems.iter().map(ToString::to_string).collect())
}

#[test]
fn each_notation_has_its_own_spelling() {
    let source =
        "list ::= item (\", \" item){2,} [^a-z\"-]\nitem ::= (\"é\\n\" | \"\" | 'it\\'s \"x\"'){0,3} list?";
    let class = [
        ("/", r#"[^\"\-a-z]"#, "/"),
        ("", r#"[^\"\u002Da-z]"#, ""),
        ("", "[^#x22#x2D#x61-z]", ""),
    ];
    let [lark, gbnf, w3c] = class.map(|(open, class, close)| format!("{open}{class}{close}"));
    for (to, expected) in [
        (
            Notation::Ebnf,
            "root ::= list\nlist ::= item (\", \" item){2,} [^\\\"\\-a-z]\nitem ::= ((\"é\\n\" | \"it's \\\"x\\\"\")?){0,3} list?\n".to_owned(),
        ),
        (
            Notation::Gbnf,
            format!("root ::= list\nlist ::= item (\", \" item){{2,}} {gbnf}\nitem ::= ((\"é\\n\" | \"it's \\\"x\\\"\")?){{0,3}} list?\n"),
        ),
        (
            Notation::Llguidance,
            format!("start: list\nlist: item (\", \" item)~2 (\", \" item)* {lark}\nitem: ((\"é\\n\" | \"it's \\\"x\\\"\")?)~0..3 list?\n"),
        ),
        (
            Notation::W3c,
            format!("list ::= item (\", \" item) (\", \" item) (\", \" item)* {w3c}\nitem ::= ((\"é\" #xA | \"it's \" '\"' \"x\" '\"')?)? ((\"é\" #xA | \"it's \" '\"' \"x\" '\"')?)? ((\"é\" #xA | \"it's \" '\"' \"x\" '\"')?)? list?\n"),
        ),
        (
            Notation::Abnf,
            "list = item 2*(\", \" item) (%x0-21 / %x23-2C / %x2E-60 / %x7B-10FFFF)\nitem = 0*3[%xE9 %xA / %s\"it's \" %x22 %s\"x\" %x22] [list]\n".to_owned(),
        ),
    ] {
        assert_eq!(printed(source, Notation::Ebnf, to), Ok(expected), "{to}");
    }
    // The text would be no letter where either may begin.
    let source = "start ::= \"a/\" \"x\" | \"a\" [b-d]\n";
    let expected = "start: \"a/x\" | \"a\" /[b-d]/\n";
    assert_eq!(
        printed(source, Notation::Ebnf, Notation::Lark),
        Ok(expected.to_owned())
    );
    let source = "start ::= \"a\" b | [a-d] \"x\"\nb ::= \"/\"\n";
    let expected = "start: /a/ b | /[a-d]/ /x/\nb: /\\//\n";
    assert_eq!(
        printed(source, Notation::Ebnf, Notation::Lark),
        Ok(expected.to_owned())
    );
    let iso = "a = \"it's\", 2 * 'b', { c }- | [ 'x' ] ; c = '' | 'y' - 'z';";
    let expected = "a = 'it', \"'\", 's', 2 * 'b', { c }- | [ 'x' ];\nc = [ 'y' - 'z' ];\n";
    assert_eq!(
        printed(iso, Notation::Iso, Notation::Iso),
        Ok(expected.to_owned())
    );
}

#[test]
fn names_that_are_not_allowed_are_changed_and_stay_apart() {
    let source = "root ::= a-b a_b A-b root2 digit\na-b ::= 'a' a_b ::= 'b' A-b ::= 'c' root2 ::= start start ::= 'd' digit ::= 'e'";
    for (to, names) in [
        (
            Notation::Ebnf,
            ["root", "a-b", "a_b", "A-b", "root2", "start", "digit"],
        ),
        (
            Notation::Gbnf,
            ["root", "a-b", "a-b-2", "A-b", "root2", "start", "digit"],
        ),
        (
            Notation::Abnf,
            ["root", "a-b", "a-b-2", "A-b-3", "root2", "start", "digit"],
        ),
        (
            Notation::Lark,
            ["root", "a_b_2", "a_b", "a_b_3", "root2", "start_2", "digit"],
        ),
        (
            Notation::Iso,
            ["root", "a b", "a b 2", "A b", "root2", "start", "digit"],
        ),
        (
            Notation::W3c,
            ["root", "a-b", "a_b", "A-b", "root2", "start", "digit"],
        ),
    ] {
        let text = printed(source, Notation::W3c, to).expect("a grammar");
        let lines = text.lines().filter(|line| !line.starts_with("start:"));
        let found: Vec<&str> = lines
            .map(|line| line.split([':', '=']).next().unwrap_or_default().trim())
            .collect();
        assert_eq!(found, names, "{to}\n{text}");
    }
    let source = "Token ::= root\nroot ::= 'x' | Regex \nRegex ::= 'y'";
    let expected = "root ::= Token_2\nToken_2 ::= root_2\nroot_2 ::= \"x\" | Regex_2\nRegex_2 ::= \"y\"\n";
    assert_eq!(
        printed(source, Notation::W3c, Notation::XGrammar),
        Ok(expected.to_owned())
    );
}

#[test]
fn what_a_notation_does_not_have_is_named_at_its_place() {
    for (from, text, to, expected) in [
        (
            Notation::Gbnf,
            "root ::= <think> [a-c] !<[7]> a\na ::= [^a] \"\\n\"",
            Notation::Iso,
            &[
                "line 1, column 10: grammars in `iso` cannot contain the tokens `<think>`",
                "line 1, column 24: grammars in `iso` cannot contain the tokens `!<[7]>`",
                "line 2, column 7: grammars in `iso` cannot contain a set of 1112063 characters",
                "line 2, column 12: grammars in `iso` cannot contain a line break",
            ][..],
        ),
        (
            Notation::Llguidance,
            "start: %json {} | <|a|> | <[1-3]>",
            Notation::Gbnf,
            &[
                "line 1, column 8: grammars in `gbnf` cannot contain another grammar",
                "line 1, column 27: grammars in `gbnf` cannot contain the tokens `<[1-3]>`",
            ],
        ),
        (
            Notation::Llguidance,
            "start: <|a|> | <[1-3]>",
            Notation::Gbnf,
            &["line 1, column 16: grammars in `gbnf` cannot contain the tokens `<[1-3]>`"],
        ),
        (
            Notation::W3c,
            "a ::= 'x' b",
            Notation::Gbnf,
            &["line 1, column 11: rule `b` is not defined"],
        ),
        (
            Notation::W3c,
            "a ::= 'x'",
            Notation::Pest,
            &["source: grammars are not written for pest"],
        ),
        (
            Notation::Ebnf,
            "a ::= ((((((\"x\"{100}){100}){100}){100}){100}){100}){100}",
            Notation::W3c,
            &["line 1, column 1: the grammar in `w3c` would be too long"],
        ),
    ] {
        let found = printed(text, from, to).expect_err(text);
        let mut pairs = found.iter().zip(expected);
        let is_same =
            found.len() == expected.len() && pairs.all(|(found, expected)| found.starts_with(expected));
        assert!(is_same, "{text}\n{found:#?}");
    }
}

#[test]
fn large_grammars_are_printed_or_refused() {
    let limits = Limits {
        source_bytes: 1 << 16,
        ..Limits::default()
    };
    let chain: String = (0..2_000)
        .map(|n| format!("r{n} ::= r{}? \"x\"\n", n + 1))
        .collect();
    let deep = format!("r ::= {}\"x\"{}", "(".repeat(240), ")? \"y\"".repeat(240));
    let wide = format!("r ::= {}", "[^a-z]{2,9} ".repeat(5_000));
    for text in [chain + "r2000 ::= \"y\"", deep, wide] {
        for to in Notation::all() {
            let options = GrammarOptions {
                notation: Some(Notation::Ebnf),
                ..GrammarOptions::default()
            };
            let printed = convert(&text, to, &options, &schema::Options::default(), &limits);
            if let Ok(printed) = printed {
                assert!(printed.len() < 2 << 16, "{to}: {}", printed.len());
            }
        }
    }
}
