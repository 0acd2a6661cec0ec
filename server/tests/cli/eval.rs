//! `lexiform eval`, on small collections of our own whose every figure is known.

use serde_json::{Value, json};

use crate::program::{data, lexiform};

fn eval(args: &[&str]) -> Value {
    let run = lexiform(&[&["eval"], args, &["--json"]].concat());
    let report: Value = serde_json::from_str(&run.out).expect("one JSON object");
    assert_eq!(run.out.lines().count(), 1, "the object is one line");
    let failed = report["failures"].as_array().expect("a list").len();
    assert_eq!(run.code, i32::from(failed > 0), "{}", run.err);
    report
}

fn maskbench(more: &[&str]) -> Value {
    let (instances, tokenizer) = (data("maskbench.jsonl"), data("tokenizer.json"));
    eval(
        &[
            &["maskbench", "--data", &instances, "--tokenizer", &tokenizer],
            more,
        ]
        .concat(),
    )
}

#[test]
fn maskbench_counts_each_schema_once() {
    let report = maskbench(&[]);
    let counts = [
        "schemas",
        "right",
        "compile_errors",
        "valid_rejected",
        "invalid_accepted",
    ]
    .map(|it| report[it].clone());
    assert_eq!(counts, [json!(5), json!(2), json!(1), json!(1), json!(1)]);
    assert_eq!(
        (&report["instances_valid"], &report["instances_invalid"]),
        (&json!(6), &json!(7))
    );
    let hard =
        json!({"schemas": 2, "right": 0, "compile_errors": 1, "valid_rejected": 1, "invalid_accepted": 0});
    assert_eq!(report["by_split"]["Own_hard"], hard);
    assert_eq!(report["by_split"].as_object().expect("splits").len(), 3);
    assert_eq!(report["errors"]["valid instance rejected"], 1);
    assert_eq!(report["errors"]["invalid instance accepted"], 1);
}

#[test]
fn maskbench_reports_every_time_it_took() {
    let report = maskbench(&["--limit", "1", "--cache", "warm", "--whitespace", "flexible"]);
    assert_eq!(report["schemas"], 1);
    for (field, least) in [("mask_us", 20), ("compile_us", 1), ("first_mask_us", 1)] {
        let summary = &report[field];
        assert!(
            least <= summary["count"].as_u64().expect("a count"),
            "{field}: {summary}"
        );
        let figures = ["p50", "p90", "p99", "p999", "max"].map(|it| summary[it].as_f64().expect("a figure"));
        assert!(figures.is_sorted() && 0.0 < figures[4], "{field}: {summary}");
    }
}

#[test]
fn a_report_is_written_to_a_file_too() {
    let file = std::env::temp_dir().join(format!("lexiform-cli-eval-{}.json", std::process::id()));
    let printed = maskbench(&["--limit", "2", "--out", &file.to_string_lossy()]);
    let written = std::fs::read_to_string(&file).expect("a report");
    std::fs::remove_file(file).expect("removed");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), printed);
}

#[test]
fn the_suite_is_read_by_draft_with_its_remotes() {
    let suite = data("suite");
    let seven = eval(&["suite", "--data", &suite, "--draft", "7"]);
    let counts = [
        "cases",
        "right",
        "compile_errors",
        "valid_rejected",
        "invalid_accepted",
    ]
    .map(|it| seven[it].clone());
    assert_eq!(counts, [json!(4), json!(3), json!(1), json!(0), json!(0)]);
    let failures = seven["failures"].as_array().expect("a list");
    assert_eq!(
        (failures.len(), &failures[0]["what"]),
        (1, &json!("compile_error"))
    );
    let name = failures[0]["name"].as_str().expect("a name");
    assert!(name.starts_with("bounds.json: "), "{name}");
    let latest = eval(&["suite", "--data", &suite, "--draft", "2020-12"]);
    assert_eq!((&latest["cases"], &latest["right"]), (&json!(2), &json!(2)));
    let formats = eval(&[
        "suite",
        "--data",
        &suite,
        "--draft",
        "2020-12",
        "--optional-format",
    ]);
    assert_eq!((&formats["cases"], &formats["right"]), (&json!(4), &json!(4)));
}

#[test]
fn cases_are_texts() {
    let regex = eval(&["cases", "--kind", "regex", "--data", &data("regex.jsonl")]);
    let counts = [
        "cases",
        "right",
        "compile_errors",
        "rejected_wrongly",
        "accepted_wrongly",
    ]
    .map(|it| regex[it].clone());
    assert_eq!(counts, [json!(8), json!(5), json!(1), json!(1), json!(1)]);
    let named: Vec<(&Value, &Value)> = regex["failures"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (&it["name"], &it["what"]))
        .collect();
    let expected = [
        (json!("regex.jsonl:2 \"x\""), json!("compile_error")),
        (json!("regex.jsonl:3 \"b\""), json!("rejected_wrongly")),
        (json!("regex.jsonl:3 \"a\""), json!("accepted_wrongly")),
    ];
    assert_eq!(named, expected.each_ref().map(|(name, what)| (name, what)));
    let ebnf = eval(&["cases", "--kind", "ebnf", "--data", &data("grammars.jsonl")]);
    assert_eq!((&ebnf["cases"], &ebnf["right"]), (&json!(5), &json!(5)));
}

#[test]
fn the_folders_of_this_repository_are_a_collection() {
    let grammars = concat!(env!("CARGO_MANIFEST_DIR"), "/../grammars");
    let all = eval(&["cases", grammars]);
    assert!(all["cases"].as_u64() > Some(100), "{all}");
    assert_eq!((&all["cases"], &all["failures"]), (&all["right"], &json!([])));
    let one = eval(&["cases", &format!("{grammars}/json")]);
    assert!(one["cases"].as_u64() < all["cases"].as_u64(), "{one}");
}

#[test]
fn lines_say_their_own_kind_where_none_is_asked_for() {
    let all = eval(&["cases", &data("grammars.jsonl")]);
    assert_eq!(
        (&all["cases"], &all["compile_errors"]),
        (&json!(6), &json!(1)),
        "{all}"
    );
}

#[test]
fn what_is_not_supported_is_counted_as_not_compiling() {
    let lark = eval(&["cases", "--kind", "lark", "--data", &data("grammars.jsonl")]);
    assert_eq!((&lark["cases"], &lark["compile_errors"]), (&json!(6), &json!(6)));
}

#[test]
fn missing_data_is_named() {
    let run = lexiform(&["eval", "suite", "--data", &data("suite"), "--draft", "4"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("draft4"), "{}", run.err);
}
