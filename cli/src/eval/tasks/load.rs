//! Loads tasks from the files in which people have them.
//!
//! | form | a record |
//! |---|---|
//! | `tasks` | a task of this project ([`Task`]) |
//! | `questions` | `question` and `answer`: GSM8K, whose answers end with `#### 42`, Last Letter Concatenation, Coin Flip; or `input` with `target` or `target_scores`: BIG-bench, such as Shuffle Objects |
//! | `bfcl` | a record of the Berkeley Function-Calling Leaderboard; what is right is in the folder `possible_answer` |
//! | `calls` | the same with `tools` as JSON Schema and the right `calls` in the record |
//!
//! Forms of others have fields that are not needed; those are left alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::bfcl;
use super::decimal::{Decimal, first_in};
use super::records::{records, told};
use super::task::{Answer, Checker, Defect, Fields, Message, Parts, Task, reasoning_then};
use crate::failure::Failure;

/// The form of the records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Tasks of this project
    Tasks,
    /// Questions with answers: GSM8K, Last Letter Concatenation, BIG-bench
    Questions,
    /// The Berkeley Function-Calling Leaderboard, as it is published
    Bfcl,
    /// Function calls with tools as JSON Schema
    Calls,
}

/// The tasks of a file or folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection {
    pub(crate) tasks: Vec<Task>,
    /// The records of other collections that contradict themselves: their names and why.
    pub(crate) left_out: Vec<(String, String)>,
}

/// Loads the tasks of a file, or of all files of a folder that end with `.json` or `.jsonl`.
///
/// # Errors
/// A file cannot be read or has broken records, which are named by their lines, or two tasks have one name.
pub(crate) fn load(path: &Path, form: Option<Form>) -> Result<Collection, Failure> {
    let mut collection = Collection::default();
    let mut names: HashMap<String, String> = HashMap::new();
    for file in files(path)? {
        for (place, task) in of_file(&file, form, &mut collection.left_out)? {
            if let Some(first) = names.insert(task.name.clone(), place.clone()) {
                let name = &task.name;
                return Err(Failure::message(format!(
                    "{place}: {first} has a task named {name:?} too"
                )));
            }
            collection.tasks.push(task);
        }
    }
    match collection.tasks.is_empty() {
        true => Err(Failure::message(format!("{} has no tasks", path.display()))),
        false => Ok(collection),
    }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |source| Failure::Read {
        path: path.to_owned(),
        source,
    };
    let entries = std::fs::read_dir(path).map_err(unreadable)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|it| it.map(|it| it.path())).collect();
    let mut files = paths.map_err(unreadable)?;
    files.retain(|it| it.is_file() && it.extension().is_some_and(|it| it == "json" || it == "jsonl"));
    files.sort();
    Ok(files)
}

/// Loads the tasks of a file, each with its place.
fn of_file(
    path: &Path,
    form: Option<Form>,
    left_out: &mut Vec<(String, String)>,
) -> Result<Vec<(String, Task)>, Failure> {
    let (records, title) = records(path)?;
    let Some(first) = records.first() else {
        return Ok(Vec::new());
    };
    let form = match form {
        Some(form) => form,
        None => Form::of(&first.value).ok_or_else(|| {
            let forms = "`--tasks-form` names the form: tasks, questions, bfcl or calls";
            Failure::message(format!("{}: a record of no known form; {forms}", first.place))
        })?,
    };
    let right = match form {
        Form::Bfcl => bfcl::possible_answers(path)?,
        _ => HashMap::new(),
    };
    let title = title.unwrap_or_else(|| stem(path));
    let mut tasks = Vec::new();
    let mut defects = Vec::new();
    for record in records {
        let name = format!("{title}-{}", record.number);
        let task = match form {
            Form::Tasks => Task::read(&record.value),
            Form::Questions => question(&record.value, &name, &title),
            Form::Bfcl => bfcl::published(&record.value, &right, &stem(path)),
            Form::Calls => bfcl::with_calls(&record.value, &stem(path)),
        };
        match task {
            Ok(task) => tasks.push((record.place, task)),
            Err(defect) if form != Form::Tasks && defect.contradicts_itself => {
                left_out.push((record.place, defect.to_string()));
            }
            Err(defect) => defects.push(format!("{}: {defect}", record.place)),
        }
    }
    match defects.is_empty() {
        true => Ok(tasks),
        false => Err(Failure::message(told(&defects))),
    }
}

/// Returns the name of a file without its ending; of `task.json`, that of its folder.
fn stem(path: &Path) -> String {
    let named = match path.file_stem() {
        Some(stem) if stem == "task" => path.parent().and_then(Path::file_name).unwrap_or(stem),
        Some(stem) => stem,
        None => path.as_os_str(),
    };
    named.to_string_lossy().into_owned()
}

impl Form {
    /// Returns the form that has a record like this.
    fn of(record: &Value) -> Option<Self> {
        let has = |name: &str| record.get(name).is_some();
        if has("answer") && (has("prompt") || has("messages")) {
            Some(Self::Tasks)
        } else if record["question"].is_array() && has("tools") {
            Some(Self::Calls)
        } else if record["question"].is_array() && has("function") {
            Some(Self::Bfcl)
        } else if (record["question"].is_string() && has("answer"))
            || (record["input"].is_string() && (has("target") || has("target_scores")))
        {
            Some(Self::Questions)
        } else {
            None
        }
    }
}

/// Reads a question with its answer.
fn question(record: &Value, name: &str, kind: &str) -> Result<Task, Defect> {
    let mut fields = Fields::of(record, "")?;
    let asked = match fields.get("question") {
        Some(_) => fields.text("question")?,
        None => fields.text("input")?,
    };
    let mut prompt = asked.trim().to_owned();
    let (checker, schema) = if let Some(scores) = fields.get("target_scores") {
        let (choices, right) = choices(scores)?;
        prompt += &format!("\n\nThe choices are: {}.", choices.join("; "));
        (exact(right.into(), false), json!({"enum": choices}))
    } else {
        let field = if record.get("target").is_some() {
            "target"
        } else {
            "answer"
        };
        let answer = fields.required(if field == "target" { "target" } else { "answer" })?;
        match answer {
            Value::Array(several) if several.len() == 1 => stated(&several[0], field)?,
            answer => stated(answer, field)?,
        }
    };
    prompt += "\n\nThink step by step, then state the answer.";
    Task::new(Parts {
        name: name.to_owned(),
        kind: kind.to_owned(),
        level: None,
        messages: vec![Message::user(prompt)],
        tools: Vec::new(),
        schema: Some(reasoning_then(&schema)),
        answer: Answer {
            checker,
            at: Some("/answer".to_owned()),
        },
    })
}

fn exact(value: Value, fold: bool) -> Checker {
    Checker::Exact { value, fold }
}

/// Returns the checker of an answer and the schema of the answers of its type. A number after `####` or as
/// the whole answer is a number.
fn stated(answer: &Value, field: &str) -> Result<(Checker, Value), Defect> {
    let defect = |reason: &str| Defect::new(format!("/{field}"), reason);
    let number = match answer {
        Value::Number(number) => Decimal::parse(&number.to_string()),
        Value::String(text) => match text.rsplit_once("####") {
            Some((_, rest)) => Some(first_in(rest).ok_or_else(|| defect("has no number after ####"))?),
            None => Decimal::parse(&text.trim().replace(',', "")),
        },
        _ => None,
    };
    if let Some(value) = number {
        let spelled = value.json();
        let checker = Checker::Number {
            value,
            spelled,
            tolerance: 0.0,
        };
        return Ok((checker, json!({"type": "number"})));
    }
    match answer {
        Value::String(text) if !text.trim().is_empty() => {
            Ok((exact(text.trim().into(), true), json!({"type": "string"})))
        }
        Value::Bool(is) => Ok((exact((*is).into(), false), json!({"type": "boolean"}))),
        Value::Array(_) => Err(defect("has several answers; one can be judged")),
        _ => Err(defect("is neither a text nor a number")),
    }
}

/// Returns the choices of a record, and the one whose score is highest.
fn choices(scores: &Value) -> Result<(Vec<String>, String), Defect> {
    let defect = |reason: &str| Defect::new("/target_scores", reason);
    let scores = scores
        .as_object()
        .ok_or_else(|| defect("is no object of choices with scores"))?;
    let plain = |choice: &str| choice.trim().trim_end_matches('.').to_owned();
    let mut scored = Vec::new();
    for (choice, score) in scores {
        let score = score
            .as_f64()
            .ok_or_else(|| defect("has a score that is no number"))?;
        scored.push((plain(choice), score));
    }
    let best = scored.iter().map(|it| it.1).fold(f64::NEG_INFINITY, f64::max);
    let right: Vec<&String> = scored.iter().filter(|it| it.1 == best).map(|it| &it.0).collect();
    let [right] = right[..] else {
        return Err(defect("has not one choice with the highest score"));
    };
    let right = right.clone();
    Ok((scored.into_iter().map(|it| it.0).collect(), right))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files into a folder of their own, loads one of them or the folder, and removes it.
    fn loaded(test: &str, files: &[(&str, &str)], name: &str) -> Result<Collection, String> {
        let folder = std::env::temp_dir().join(format!("lexiform-load-{}-{test}", std::process::id()));
        for (file, text) in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("written");
        }
        let collection = load(&folder.join(name), None);
        std::fs::remove_dir_all(&folder).expect("removed");
        let place = format!("{}/", folder.display());
        collection.map_err(|failure| failure.to_string().replace(&place, ""))
    }

    fn one(test: &str, text: &str) -> Result<Collection, String> {
        loaded(test, &[("data.jsonl", text)], "data.jsonl")
    }

    /// Returns the names of the tasks that each of these texts answers rightly.
    fn right<'a>(collection: &'a Collection, text: &str) -> Vec<&'a str> {
        let right = collection.tasks.iter().filter(|it| it.judge(text).is_right());
        right.map(|it| it.name.as_str()).collect()
    }

    #[test]
    fn gsm8k_has_numbers_after_four_marks() {
        let text = "{\"question\": \"How many?\", \"answer\": \"2 + 2 = <<2+2=4>>4\\n#### 1,004\"}\n\n\
                    {\"question\": \"And now?\", \"answer\": \"#### -3\"}\n";
        let collection = one("gsm8k", text).expect("tasks");
        assert_eq!(right(&collection, "so 1004"), ["data-1"]);
        assert_eq!(
            right(&collection, r#"{"reasoning": "r", "answer": -3}"#),
            ["data-3"]
        );
        let broken = one(
            "gsm8k-broken",
            "{\"question\": \"q\", \"answer\": \"#### none\"}\n",
        );
        assert_eq!(
            broken.unwrap_err(),
            "data.jsonl, line 1: /answer: has no number after ####"
        );
    }

    #[test]
    fn last_letters_are_texts_in_examples() {
        let text = r#"{"examples": [{"question": "Last letters of \"Bo Ines\"?", "answer": "os"},
            {"question": "Is it heads?", "answer": "no"}, {"question": "How much?", "answer": 7}]}"#;
        let collection =
            loaded("letters", &[("last_letters.json", text)], "last_letters.json").expect("tasks");
        assert_eq!(right(&collection, "The answer is OS."), ["last_letters-1"]);
        assert_eq!(
            right(&collection, r#"{"reasoning": "", "answer": "no"}"#),
            ["last_letters-2"]
        );
        assert_eq!(right(&collection, "7"), ["last_letters-3"]);
    }

    #[test]
    fn shuffled_objects_choose_by_scores() {
        let text = r#"{"name": "tracking", "examples": [
            {"input": "Alice has the", "target_scores": {"red ball.": 1, "blue ball.": 0}},
            {"input": "Which?", "target": "(B)"}, {"input": "2 + 2", "target": ["4"]}]}"#;
        let collection = loaded("shuffled", &[("x/task.json", text)], "x/task.json").expect("tasks");
        assert_eq!(collection.tasks[0].choices(), ["red ball", "blue ball"]);
        assert_eq!(
            right(&collection, "first blue ball, then red ball"),
            ["tracking-1"]
        );
        assert_eq!(right(&collection, "The answer is (B)."), ["tracking-2"]);
        assert_eq!(collection.tasks[1].kind, "tracking");
    }

    #[test]
    fn broken_records_are_named_by_their_lines() {
        let good = r#"{"question": "q", "answer": "a"}"#;
        for (test, text, told) in [
            (
                "cut",
                format!("{good}\n{{\"question\": \"q\n"),
                "data.jsonl, line 2: ",
            ),
            (
                "garbage",
                format!("{good}\n\nNaN\n"),
                "data.jsonl, line 3: expected value",
            ),
            ("scalar", "3".to_owned(), "data.jsonl: neither JSON lines"),
            (
                "number",
                format!("{good}\n3\n"),
                "data.jsonl, line 2: is no JSON object",
            ),
            (
                "null",
                format!("{good}\n{{\"question\": null, \"answer\": 1}}\n"),
                "data.jsonl, line 2: /question: is no text",
            ),
            (
                "missing",
                format!("{good}\n{{\"question\": \"q\"}}\n"),
                "data.jsonl, line 2: `answer` is missing",
            ),
            (
                "list",
                format!("[{good}, {{\"question\": \"q\", \"answer\": []}}]"),
                "data.jsonl, at /1: /answer: has several",
            ),
            (
                "scores",
                r#"[{"input": "i", "target_scores": {"a": 1, "b": 1}}]"#.to_owned(),
                "data.jsonl, at /0: /target_scores: has not one",
            ),
            (
                "unknown",
                "{\"text\": 1}\n{\"text\": 2}".to_owned(),
                "data.jsonl, line 1: a record of no known form",
            ),
            ("empty", String::new(), "data.jsonl has no tasks"),
        ] {
            let found = one(test, &text).expect_err(test);
            assert!(found.starts_with(told), "{test}: {found}");
        }
        let many = "x\n".repeat(9);
        assert!(
            one("many", &many)
                .unwrap_err()
                .ends_with("\nand 4 more broken records")
        );
    }

    #[test]
    fn a_folder_has_the_tasks_of_its_files_and_each_name_once() {
        let task = |name: &str| {
            format!(r#"{{"name": "{name}", "kind": "k", "prompt": "p", "answer": {{"exact": "x"}}}}"#)
        };
        let files = [
            ("b.jsonl", task("one")),
            ("a.json", task("two")),
            ("LICENSE", "no".to_owned()),
        ];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let collection = loaded("folder", &files, "").expect("tasks");
        assert_eq!(right(&collection, "x"), ["two", "one"]);
        let twice = [("a.jsonl", task("one")), ("b.jsonl", task("one"))];
        let twice = twice.each_ref().map(|(name, text)| (*name, text.as_str()));
        let told = loaded("twice", &twice, "").unwrap_err();
        assert_eq!(
            told,
            "b.jsonl, line 1: a.jsonl, line 1 has a task named \"one\" too"
        );
    }
}
