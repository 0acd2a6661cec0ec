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
        (&json!(6), &json!(0)),
        "{all}"
    );
}

#[test]
fn what_is_in_another_notation_is_counted_as_not_compiling() {
    let lark = eval(&["cases", "--kind", "lark", "--data", &data("grammars.jsonl")]);
    assert_eq!((&lark["cases"], &lark["compile_errors"]), (&json!(6), &json!(5)));
}

#[test]
fn missing_data_is_named() {
    let run = lexiform(&["eval", "suite", "--data", &data("suite"), "--draft", "4"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("draft4"), "{}", run.err);
}

/// Three tasks of each kind. Every arm writes the same texts; drafts of the grammar save passes.
#[test]
fn drafts_are_compared_on_the_same_texts() {
    let folder = std::env::temp_dir().join(format!("lexiform-cli-drafts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (data, page) = (folder.join("tasks.jsonl"), folder.join("page.html"));
    let tool = r#"{"name": "set.alarm", "parameters": {"type": "object", "properties": {"hour": {"enum": ["six", "seven"]}}, "required": ["hour"]}}"#;
    let lines = [
        format!(r#"{{"question": [[{{"role": "user", "content": "Wake me at six."}}]], "tools": [{tool}]}}"#),
        r#"{"prompt": "Ada is 36.", "schema": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}}"#.to_owned(),
        format!(r#"{{"messages": [{{"role": "user", "content": "At seven."}}], "tools": [{{"type": "function", "function": {tool}}}]}}"#),
    ];
    std::fs::write(&data, lines.join("\n")).unwrap();
    let (data, page) = (data.to_str().unwrap(), page.to_str().unwrap());
    let report = eval(&[
        "drafts",
        "--data",
        data,
        "--max-tokens",
        "40",
        "--always",
        "--html",
        page,
        "--arm",
        "none",
        "--arm",
        "forced",
        "--arm",
        "learned",
    ]);
    assert_eq!(report["tasks"], 3);
    let arms = report["arms"].as_array().unwrap();
    let names: Vec<&str> = arms.iter().map(|arm| arm["arm"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "forced", "learned"]);
    let passes: Vec<u64> = arms.iter().map(|arm| arm["passes"].as_u64().unwrap()).collect();
    assert!(passes[0] > passes[1] && passes[1] >= passes[2], "{passes:?}");
    assert_eq!(arms[0]["drafted"], 0);
    assert_eq!(arms[0]["tokens"], arms[2]["tokens"]);
    assert!(arms[2]["store_bytes"].as_u64().unwrap() > 0);
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 7);
    std::fs::write(data, "{\"tools\": []}\n").unwrap();
    let run = lexiform(&["eval", "drafts", "--data", data]);
    assert_ne!(run.code, 0);
    let message = &run.err;
    assert!(
        message.contains("tasks.jsonl:1: expected messages, question or prompt"),
        "{message}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// Texts of an operator are drafted from, by every policy, and what is written stays the same.
#[test]
fn drafts_come_from_a_corpus_by_every_policy() {
    let folder = std::env::temp_dir().join(format!("lexiform-cli-corpus-{}", std::process::id()));
    let corpus = folder.join("corpus");
    std::fs::create_dir_all(&corpus).unwrap();
    let text = r#"{"name": "Ada", "age": 36} {"name":"Ada","age":36}"#;
    std::fs::write(corpus.join("a.txt"), text).unwrap();
    let data = folder.join("tasks.jsonl");
    let schema = r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}"#;
    std::fs::write(
        &data,
        format!(r#"{{"prompt": "Ada is 36.", "schema": {schema}}}"#),
    )
    .unwrap();
    let (data, corpus) = (data.to_str().unwrap(), corpus.to_str().unwrap());
    let few = ["drafts", "--data", data, "--max-tokens", "40", "--arm", "rest"];
    let with_corpus = ["--draft-corpus", corpus, "--always"];
    let policies = ["--arm", "none", "--arm", "svip", "--arm", "ucb1", "--arm", "exp3"];
    let report = eval(&[&few[..], &with_corpus, &policies].concat());
    let arms = report["arms"].as_array().unwrap();
    let names: Vec<&str> = arms.iter().map(|arm| arm["arm"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "rest", "svip", "ucb1", "exp3"]);
    let is_same = arms.iter().all(|arm| arm["tokens"] == arms[0]["tokens"]);
    assert!(is_same && report["failures"] == json!([]), "{report}");
    assert!(arms[1]["drafted"].as_u64() > Some(0), "{report}");
    assert!(arms[1]["store_bytes"].as_u64() > Some(0), "{report}");
    let run = lexiform(&[&["eval"][..], &few].concat());
    let message = &run.err;
    assert_eq!(run.code, 2);
    assert!(
        message.contains("--arm rest come from --draft-corpus"),
        "{message}"
    );
    let missing = ["--draft-corpus", "/nowhere/a.txt", "--draft-corpus", corpus];
    let run = lexiform(&[&["eval"][..], &few, &missing].concat());
    assert_eq!(run.code, 2);
    assert!(run.err.contains("cannot read /nowhere/a.txt"), "{}", run.err);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The model itself drafts without some of its layers, and from what its passes guess; what is written stays
/// the same.
#[test]
fn a_model_drafts_for_itself() {
    let folder = std::env::temp_dir().join(format!("lexiform-cli-itself-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let data = folder.join("tasks.jsonl");
    let schema = r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}"#;
    let lines = ["Ada is 36.", "Grace is 85."]
        .map(|prompt| format!(r#"{{"prompt": "{prompt}", "schema": {schema}}}"#));
    std::fs::write(&data, lines.join("\n")).unwrap();
    let data = data.to_str().unwrap();
    let few = [
        "drafts",
        "--data",
        data,
        "--max-tokens",
        "40",
        "--arm",
        "layer-skip",
    ];
    let others = ["--always", "--arm", "none", "--arm", "lookahead"];
    for skip in ["best:2", "2-3"] {
        let report = eval(&[&few[..], &others, &["--draft-skip", skip]].concat());
        let arms = report["arms"].as_array().unwrap();
        let names: Vec<&str> = arms.iter().map(|arm| arm["arm"].as_str().unwrap()).collect();
        assert_eq!(names, ["none", "lookahead", "layer-skip"]);
        assert_eq!(report["failures"], json!([]), "{report}");
        for arm in &arms[1..] {
            assert!(arm["drafted"].as_u64() > Some(0), "{report}");
            assert!(arm["passes"].as_u64() < arms[0]["passes"].as_u64(), "{report}");
        }
    }
    for (skip, problem) in [
        (
            "6",
            "layers to skip in drafts: there is no layer 6; the model has 6, from 0 on",
        ),
        ("best:6", "6 layers cannot be skipped of 6"),
        (
            "x",
            "\"x\" is neither layers, such as 2-4,7, nor a number of them, such as best:3",
        ),
    ] {
        let run = lexiform(&[&["eval"][..], &few, &["--draft-skip", skip]].concat());
        assert_eq!(run.code, 2, "{}", run.err);
        assert!(run.err.contains(problem), "{}", run.err);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
