//! `lexiform eval`, run in this process on small collections of our own.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use lexiform_cli::eval;
use lexiform_cli::failure::{Code, Outcome};
use lexiform_cli::program::Commands;
use lexiform_cli::report::Report;
use serde_json::{Value, json};

/// No commands besides those of this crate.
#[derive(Debug, Subcommand)]
enum Nothing {}

impl Commands for Nothing {
    fn is_json(&self) -> bool {
        match *self {}
    }

    fn run(self) -> Outcome {
        match self {}
    }
}

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    eval: eval::Args<Nothing>,
}

/// Runs `lexiform eval` without output.
fn run(args: &[&str]) -> Outcome {
    let cli = Cli::try_parse_from([&["eval"], args, &["--quiet"]].concat()).expect("a right call");
    eval::run(cli.eval)
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lexiform-eval-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does not make a test fail.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn read(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

/// A file of the tests of the programs.
fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/data/cli");
    folder.join(name).to_string_lossy().into_owned()
}

/// Runs a command and returns its figures, without times and sizes, and the whole report.
fn figures(name: &str, args: &[&str]) -> (Value, Report) {
    let folder = Folder::new(name);
    let (out, whole) = (folder.path("out.json"), folder.path("report.json"));
    let code = run(&[args, &["--out", &out, "--report", &whole]].concat()).expect("a report");
    let (mut figures, whole) = (read(&out), read(&whole));
    let failed = figures["failures"]
        .as_array()
        .is_some_and(|failures| !failures.is_empty());
    assert_eq!(code == Code::No, failed);
    if let Some(fields) = figures.as_object_mut() {
        fields.retain(|name, _| !name.ends_with("_us") && !name.ends_with("_bytes"));
    }
    (figures, serde_json::from_value(whole).expect("a report"))
}

/// The form of the figures is stable: these are from before reports had pages.
#[test]
fn figures_are_as_they_always_were() {
    let (instances, tokenizer) = (data("maskbench.jsonl"), data("tokenizer.json"));
    let counts = |all, right, errors, rejected, accepted| json!({"schemas": all, "right": right, "compile_errors": errors, "valid_rejected": rejected, "invalid_accepted": accepted});
    let unknown = "unknown type \"nonsense\" (types: array, boolean, integer, null, number, object, string)";
    let mut expected = counts(5, 2, 1, 1, 1);
    expected["instances_valid"] = json!(6);
    expected["instances_invalid"] = json!(7);
    expected["by_split"] = json!({"Own_easy": counts(2, 2, 0, 0, 0), "Own_hard": counts(2, 0, 1, 1, 0), "single": counts(1, 0, 0, 0, 1)});
    expected["errors"] = json!({"invalid instance accepted": 1, unknown.replace("nonsense", "…"): 1, "valid instance rejected": 1});
    expected["failures"] = json!([
        {"name": "Own_hard---broken", "what": "compile_error", "reason": unknown},
        {"name": "Own_hard---mislabelled", "what": "rejected_wrongly", "reason": "valid instance rejected"},
        {"name": "single_0", "what": "accepted_wrongly", "reason": "invalid instance accepted"}
    ]);
    let (maskbench, _) = figures("maskbench", &["maskbench", &instances, "--tokenizer", &tokenizer]);
    assert_eq!(maskbench.to_string(), expected.to_string());
    let (suite, _) = figures("suite", &["suite", &data("suite"), "--draft", "7"]);
    let expected = json!({
        "cases": 4, "right": 3, "compile_errors": 1, "valid_rejected": 0, "invalid_accepted": 0,
        "failures": [{"name": "bounds.json: no schema at all: never judged", "what": "compile_error",
            "reason": "#/type: `type` must be a type name or an array of type names, not 12"}]
    });
    assert_eq!(suite.to_string(), expected.to_string());
    let (cases, _) = figures("cases", &["cases", &data("regex.jsonl"), "--kind", "regex"]);
    let expected = json!({
        "cases": 8, "right": 5, "compile_errors": 1, "rejected_wrongly": 1, "accepted_wrongly": 1,
        "failures": [
            {"name": "regex.jsonl:2 \"x\"", "what": "compile_error", "reason": "line 1, column 1: unclosed character class"},
            {"name": "regex.jsonl:3 \"b\"", "what": "rejected_wrongly", "reason": ""},
            {"name": "regex.jsonl:3 \"a\"", "what": "accepted_wrongly", "reason": ""}
        ]
    });
    assert_eq!(cases.to_string(), expected.to_string());
}

/// A failure says where it is, and how to see it again.
#[test]
fn failures_of_maskbench_have_places_and_commands() {
    let (instances, tokenizer) = (data("maskbench.jsonl"), data("tokenizer.json"));
    let (_, report) = figures("places", &["maskbench", &instances, "--tokenizer", &tokenizer]);
    let places: Vec<(&str, &str)> = report
        .failures
        .iter()
        .map(|failure| (failure.what.as_str(), failure.reason.as_str()))
        .collect();
    let expected = [
        (
            "does not compile",
            "#/type: unknown type \"nonsense\" (types: array, boolean, integer, null, number, object, string)",
        ),
        (
            "rejected wrongly",
            "instance #/tests/0/data: `\"this instance is labelled wrongly\"` is refused at the start",
        ),
        ("accepted wrongly", "instance #/tests/0/data"),
    ];
    assert_eq!(places, expected);
    let named = report
        .failures
        .iter()
        .zip(["Own_hard---broken", "Own_hard---mislabelled", "single_0"]);
    for (failure, name) in named {
        assert!(
            failure.command.ends_with(&format!(" --only {name}")),
            "{}",
            failure.command
        );
        let again = ["maskbench", &instances, "--tokenizer", &tokenizer, "--only", name];
        let (figures, _) = self::figures(name, &again);
        assert_eq!(
            (&figures["schemas"], &figures["failures"][0]["name"]),
            (&json!(1), &json!(name))
        );
    }
    let titles: Vec<&str> = report
        .sections
        .iter()
        .map(|section| section.title.as_str())
        .collect();
    assert_eq!(titles, ["Times", "Growth", "Coverage"]);
    assert!(
        report
            .html()
            .contains("<th scope=\"row\">additionalProperties</th>")
    );
    assert_eq!(report.made.data[0].sha256.len(), 64);
}

/// The command of each failure judges that case alone, with the same result.
#[test]
fn failures_of_cases_and_of_the_suite_are_repeated_alone() {
    let (regex, suite) = (data("regex.jsonl"), data("suite"));
    let collections = [
        vec!["cases", &regex, "--kind", "regex"],
        vec!["suite", &suite, "--draft", "7"],
    ];
    for collection in collections {
        let (_, report) = figures("alone", &collection);
        assert!(!report.failures.is_empty(), "{collection:?}");
        for failure in &report.failures {
            assert!(failure.command.contains(" --only "), "{}", failure.command);
            let only = ["--only", &failure.case];
            let (figures, again) = figures("alone-again", &[&collection[..], &only].concat());
            // A text that is both accepted and rejected has one name for two cases.
            assert!(
                (1..=2).contains(&figures["cases"].as_u64().unwrap_or(0)),
                "{figures}"
            );
            assert!(again.failures.contains(failure), "{failure:?}");
        }
        let wrong = run(&[&collection[..], &["--only", "nobody"]].concat());
        assert_eq!(
            wrong.expect_err("an error").to_string(),
            "no case has the name \"nobody\""
        );
    }
}

#[test]
fn a_name_that_is_not_there_is_an_error() {
    let (instances, tokenizer) = (data("maskbench.jsonl"), data("tokenizer.json"));
    let wrong = run(&[
        "maskbench",
        &instances,
        "--tokenizer",
        &tokenizer,
        "--only",
        "nobody",
    ]);
    let message = wrong.expect_err("an error").to_string();
    assert_eq!(
        message,
        "--only nobody: the collection has no schema with this name"
    );
}

/// MaskBench has a file for each schema, which is named after it.
#[test]
fn a_folder_of_files_is_a_collection() {
    let folder = Folder::new("folder");
    folder.write(
        "m/Own---a.json",
        r#"{"schema": {"type": "null"}, "tests": [{"valid": true, "data": null}]}"#,
    );
    folder.write(
        "m/Own---b.json",
        r#"{"schema": {"type": "null"}, "tests": [{"valid": true, "data": 1}]}"#,
    );
    let (place, tokenizer) = (folder.path("m"), data("tokenizer.json"));
    let (figures, report) = figures("files", &["maskbench", &place, "--tokenizer", &tokenizer]);
    assert_eq!((&figures["schemas"], &figures["right"]), (&json!(2), &json!(1)));
    assert_eq!(report.failures[0].case, "Own---b");
    folder.write("m/Own---c.json", "{");
    let broken = run(&["maskbench", &place, "--tokenizer", &tokenizer])
        .expect_err("an error")
        .to_string();
    assert!(broken.contains("Own---c.json: EOF"), "{broken}");
}

/// Blank lines count as lines.
#[test]
fn a_broken_line_is_named_by_its_number() {
    let folder = Folder::new("lines");
    let path = folder.write("a.jsonl", "{\"schema\": {}, \"tests\": []}\n\n{\n");
    let wrong = run(&["maskbench", &path, "--tokenizer", &data("tokenizer.json")]);
    let message = wrong.expect_err("an error").to_string();
    assert!(message.contains("a.jsonl, line 3: EOF"), "{message}");
}

/// With a baseline, the exit code says whether anything got worse; a baseline is checked before the run.
#[test]
fn a_baseline_decides_about_the_exit_code() {
    let folder = Folder::new("baseline");
    let cases = folder.write(
        "cases.jsonl",
        r#"{"regex": "a+b", "accept": ["ab", "c"], "reject": ["b"]}"#,
    );
    let (before, page) = (folder.path("before.json"), folder.path("page.html"));
    assert_eq!(
        run(&["cases", &cases, "--out", &before]).expect("a report"),
        Code::No
    );
    let again = ["cases", &cases, "--baseline", &before, "--html", &page];
    assert_eq!(run(&again).expect("a report"), Code::Fine);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(
        html.contains("Did anything get worse than in the baseline?") && html.contains("Nothing got worse.")
    );
    folder.write(
        "cases.jsonl",
        r#"{"regex": "a+b", "accept": ["ab", "c", "d"], "reject": ["b"]}"#,
    );
    assert_eq!(run(&again).expect("a report"), Code::No);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(
        html.contains("<th scope=\"row\">rejected_wrongly</th><td>1</td><td>2</td>"),
        "{html}"
    );
    let missing = run(&["cases", &cases, "--baseline", "missing.json"]).expect_err("an error");
    assert!(missing.to_string().contains("missing.json"), "{missing}");
}

/// Looks at a folder and returns what is found.
fn looked_at(folder: &Folder, path: &str) -> (Code, Value) {
    let found = eval::data::found(Path::new(&folder.path(path))).expect("a folder");
    let code = run(&["data", &folder.path(path)]).expect("a folder");
    (code, found)
}

#[test]
fn a_folder_says_what_lies_in_it() {
    let folder = Folder::new("data");
    let maskbench = r#"{"schema": {}, "tests": [{"valid": true, "data": 1}, {"valid": false, "data": 2}]}"#;
    folder.write("all/files/a.json", maskbench);
    folder.write("all/files/b.json", maskbench);
    folder.write("all/lines.jsonl", &format!("{maskbench}\n\n{maskbench}\n"));
    folder.write("all/rows.jsonl", r#"{"unique_id": "a", "json_schema": "{}"}"#);
    folder.write(
        "all/gsm8k/test.jsonl",
        r#"{"question": "?", "answer": "1\n#### 1"}"#,
    );
    folder.write("all/grammar/g/grammar.ebnf", "root ::= \"a\"");
    folder.write("all/grammar/g/accept.txt", "\"a\"\n");
    folder.write("all/suite/remotes/a.json", "{}");
    folder.write(
        "all/suite/tests/draft7/a.json",
        r#"[{"schema": {}, "tests": [{"data": 1, "valid": true}]}]"#,
    );
    folder.write(
        "all/bfcl.json",
        "{\"question\": [[]], \"function\": []}\n{\"question\": [[]], \"function\": []}\n",
    );
    let (code, found) = looked_at(&folder, "all");
    assert_eq!(
        (code, &found["broken"], &found["unread"]),
        (Code::Fine, &json!([]), &json!([])),
        "{found}"
    );
    let parts: Vec<(String, &str, u64, u64)> = found["found"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|part| {
            let path = part["path"].as_str().expect("a path");
            let path = path.trim_start_matches(&folder.path("all/")).to_owned();
            let count = |field: &str| part[field].as_u64().expect("a count");
            (
                path,
                part["collection"].as_str().expect("a name"),
                count("records"),
                count("cases"),
            )
        })
        .collect();
    let expected = [
        ("bfcl.json", "bfcl", 2, 2),
        ("files", "maskbench", 2, 4),
        ("grammar/g", "cases", 1, 1),
        ("gsm8k/test.jsonl", "gsm8k", 1, 1),
        ("lines.jsonl", "maskbench", 2, 4),
        ("rows.jsonl", "jsonschemabench", 1, 1),
        ("suite/tests/draft7", "suite", 1, 1),
    ];
    assert_eq!(
        parts,
        expected.map(|(path, name, records, cases)| (path.to_owned(), name, records, cases))
    );
    let suite = &found["found"][6]["commands"][0];
    assert_eq!(
        suite,
        &format!("lexiform eval suite {} --draft 7", folder.path("all/suite"))
    );
}

#[test]
fn what_is_broken_or_not_read_is_named() {
    let folder = Folder::new("broken");
    folder.write(
        "all/a.jsonl",
        "{\"regex\": \"a\", \"accept\": []}\n\n{\"regex\": }\n",
    );
    folder.write("all/b.json", "{\n  \"type\": \n}");
    folder.write("all/c.parquet", "PAR1");
    folder.write("all/d.json", "{\"a\": 1}");
    folder.write("all/notes.txt", "no data");
    let (code, found) = looked_at(&folder, "all");
    let list = |field: &str| found[field].as_array().expect("a list").clone();
    let broken = list("broken");
    assert_eq!((code, broken.len()), (Code::No, 2), "{found}");
    assert!(
        broken[0]
            .as_str()
            .is_some_and(|it| it.contains("a.jsonl, line 3: ")),
        "{found}"
    );
    assert!(
        broken[1]
            .as_str()
            .is_some_and(|it| it.contains("b.json: expected value at line 3")),
        "{found}"
    );
    let unread = list("unread");
    assert_eq!(unread.len(), 2, "{found}");
    assert!(
        unread[0]
            .as_str()
            .is_some_and(|it| it.contains("c.parquet: Parquet is not read")),
        "{found}"
    );
    assert!(
        unread[1]
            .as_str()
            .is_some_and(|it| it.contains("d.json: of no known collection")),
        "{found}"
    );
    assert_eq!(list("found").len(), 1, "{found}");
    let (code, found) = looked_at(&folder, "all/notes.txt");
    assert_eq!((code, &found["found"]), (Code::No, &json!([])));
    assert!(run(&["data", &folder.path("nowhere")]).is_err());
}
