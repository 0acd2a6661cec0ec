//! `lexiform check`.

use crate::program::lexiform;

const PERSON: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},
                         "required":["name","age"],"additionalProperties":false}"#;

#[test]
fn texts_that_belong_are_said_to() {
    let run = lexiform(&[
        "check",
        "--schema",
        PERSON,
        "--text",
        r#"{"name": "Ada", "age": 36}"#,
    ]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (0, "schema: compiles\ntext 1: belongs\n"),
        "{}",
        run.err
    );
}

#[test]
fn a_text_that_leaves_the_language_is_shown_where() {
    let run = lexiform(&[
        "check",
        "--schema",
        PERSON,
        "--text",
        "{\"name\": \"Ada\",\n \"age\": x}",
    ]);
    assert_eq!(run.code, 1);
    let verdict = "text 1: does not belong: in /age, at byte 24 (line 2, column 9) there is 'x', expected '-' or '0'–'9'";
    assert!(run.out.contains(verdict), "{}", run.out);
}

#[test]
fn a_text_that_ends_early_is_told_what_is_missing() {
    let run = lexiform(&["check", "--regex", "yes|no", "--text", "ye", "--text", "no"]);
    assert_eq!(run.code, 1);
    let expected = "regex: compiles\n\
                    text 1: does not belong: it ends too early, at byte 2 (line 1, column 3), expected \"s\"\n    \
                    1 | ye\n      |   ^\n\
                    text 2: belongs\n";
    assert_eq!(run.out, expected);
}

#[test]
fn other_spellings_of_a_string_belong_too() {
    let run = lexiform(&["check", "--schema", r#"{"const":"a"}"#, "--text", r#""\u0061""#]);
    assert_eq!(run.code, 0, "{}", run.out);
}

#[test]
fn a_key_that_comes_again_in_another_spelling_is_the_same_key() {
    let text = r#"{"a": 1, "\u0061": 2}"#;
    let run = lexiform(&["check", "--schema", r#"{"type":"object"}"#, "--text", text]);
    assert_eq!(run.code, 1);
    let verdict = "text 1: does not belong: at byte 9 (line 1, column 10) the key \"a\" comes again";
    assert!(run.out.contains(verdict), "{}", run.out);
}

#[test]
fn all_problems_of_a_source_are_listed_with_their_places() {
    let schema = r#"{"properties": {"a": {"type": "nonsense"}, "b": {"minimum": "zero"}}}"#;
    let run = lexiform(&["check", "--schema", schema]);
    assert_eq!(run.code, 3);
    assert!(run.out.starts_with("schema: does not compile\n"), "{}", run.out);
    assert!(
        run.out.contains("#/properties/a/type") && run.out.contains("#/properties/b/minimum"),
        "{}",
        run.out
    );
}

#[test]
fn a_file_is_one_text_without_its_last_line_break() {
    let folder = std::env::temp_dir().join(format!("lexiform-cli-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("text");
    std::fs::write(&file, "aab\n").expect("a file");
    let grammar = r#"root ::= "a" root | "b""#;
    let run = lexiform(&["check", "--grammar", grammar, &file.to_string_lossy()]);
    std::fs::remove_dir_all(folder).expect("removed");
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
}

#[test]
fn wrong_calls_are_told_apart_from_wrong_texts() {
    let missing = lexiform(&["check", "--schema", "no/such/file.json"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("no/such/file.json"), "{}", missing.err);
    assert_eq!(
        lexiform(&["check", "--text", "x"]).code,
        2,
        "a constraint is needed"
    );
    assert_eq!(
        lexiform(&["check", "--regex", "a", "--schema", "{}"]).code,
        2,
        "one constraint is enough"
    );
}
