//! `lexiform mask`.

use serde_json::{Value, json};

use crate::program::{data, lexiform};

fn mask(args: &[&str]) -> Value {
    let tokenizer = data("tokenizer.json");
    let run = lexiform(&[&["mask", "--tokenizer", &tokenizer, "--json"], args].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    serde_json::from_str(&run.out).expect("one JSON object")
}

#[test]
fn only_tokens_with_a_completion_are_allowed() {
    let view = mask(&["--regex", "name|age|a1"]);
    let texts = |group: &str| -> Vec<Value> {
        let samples = view["groups"][group]["samples"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        samples.into_iter().map(|it| it["text"].clone()).collect()
    };
    // The tokenizer has the letters and the merges ag, age, na, me, name.
    assert_eq!(
        texts("letters"),
        [
            json!("a"),
            json!("n"),
            json!("ag"),
            json!("age"),
            json!("na"),
            json!("name")
        ]
    );
    assert_eq!(
        (&view["allowed"], &view["eos"], &view["forced"]),
        (&json!(6), &json!(false), &json!(""))
    );
    assert_eq!(view["bytes"], json!([b'a', b'n']));
}

#[test]
fn after_a_prefix_forced_text_and_the_end_are_shown() {
    let forced = mask(&["--regex", "name|age", "--prefix", "n"]);
    assert_eq!(
        (&forced["forced"], &forced["eos"]),
        (&json!("ame"), &json!(false))
    );
    let whole = mask(&["--regex", "name|age", "--prefix", "age"]);
    assert_eq!((&whole["allowed"], &whole["eos"]), (&json!(1), &json!(true)));
    assert_eq!(whole["groups"]["special"]["samples"][0]["text"], "<|end|>");
}

#[test]
fn the_text_form_names_groups_and_counts() {
    let run = lexiform(&[
        "mask",
        "--tokenizer",
        &data("tokenizer.json"),
        "--regex",
        "[0-9]+",
        "--samples",
        "2",
    ]);
    assert_eq!(run.code, 0, "{}", run.err);
    let expected = "allowed: 11 of 269 tokens\nmay end: no\nnext:    '0'–'9'\ndigits   \"0\" \"1\" …  (11)\n";
    assert_eq!(run.out, expected);
}

#[test]
fn a_prefix_that_leaves_the_language_is_an_error_with_its_place() {
    let run = lexiform(&[
        "mask",
        "--tokenizer",
        &data("tokenizer.json"),
        "--regex",
        "abc",
        "--prefix",
        "abd",
    ]);
    assert_eq!(run.code, 1);
    let problem = "error: the prefix leaves the language: at byte 2 (line 1, column 3) there is 'd', expected \"c\"\n    \
                   1 | abd\n      |   ^\n";
    assert_eq!(run.err, problem);
}
