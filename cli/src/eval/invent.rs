//! Invents tasks: every text follows from a drawn answer, so that what is right is known without reading
//! the text.
//!
//! ```text
//!   seed, kind, number ─► Draw ─► facts │ calls │ classes │ arithmetic ─► a line of KIND.jsonl
//! ```
//!
//! `benches/tasks` has the tasks of one seed. Another seed gives tasks that no model has been trained on.
//! Tasks of level 1 need one step, those of level 3 several, with facts that are missing, corrected or
//! beside the point.

mod arithmetic;
mod calls;
mod classes;
mod draw;
mod facts;
mod gatherings;
mod notes;
mod offers;
mod shape;
mod toolbox;

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use self::draw::{Draw, Invented};

/// The seed of the tasks in the repository.
pub(super) const SEED: u64 = 42;

/// The number of tasks of each kind.
const EACH: u64 = 100;

/// The number of levels.
const LEVELS: u64 = 3;

/// Returns the names and the texts of the files that a seed gives.
pub(super) fn files(seed: u64) -> Vec<(String, String)> {
    type Kind = (&'static str, fn(&mut Draw, u64) -> Invented);
    let kinds: [Kind; 4] = [
        ("arithmetic", arithmetic::task),
        ("calls", calls::task),
        ("classes", classes::task),
        ("facts", facts::task),
    ];
    let file = |(index, (kind, invent)): (u64, Kind)| {
        let mut prompts = HashSet::new();
        let line = |number: u64| {
            let level = 1 + (number - 1) * LEVELS / EACH;
            let mut draw = Draw::new(seed, index, number);
            // Short templates have few texts; a text that is there already is drawn again.
            let mut task = invent(&mut draw, level);
            while !prompts.insert(task.prompt.clone()) {
                task = invent(&mut draw, level);
            }
            let mut record = Map::new();
            record.insert("name".to_owned(), json!(format!("{kind}-{number:03}")));
            record.insert("kind".to_owned(), json!(kind));
            record.insert("level".to_owned(), json!(level));
            record.insert("prompt".to_owned(), json!(task.prompt));
            record.insert(task.form.0.to_owned(), task.form.1);
            record.insert("answer".to_owned(), task.answer);
            format!("{}\n", Value::Object(record))
        };
        (format!("{kind}.jsonl"), (1..=EACH).map(line).collect())
    };
    (0..).zip(kinds).map(file).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::tasks::load::load;
    use crate::eval::tasks::task::{Checker, Task};

    /// The folder of the tasks in the repository.
    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/tasks"))
    }

    // `lexiform eval tasks --write benches/tasks` writes them.
    #[test]
    fn the_tasks_of_the_repository_are_those_of_its_seed() {
        let mut bytes = 0;
        for (name, text) in files(SEED) {
            let written = std::fs::read_to_string(folder().join(&name)).expect("a file");
            assert!(written == text, "{name} differs from what --write writes");
            bytes += text.len();
        }
        assert!(bytes < 300 * 1024, "{bytes} bytes");
    }

    // Loading checks that each answer of `json` is valid; here is the rest.
    #[test]
    fn every_answer_is_valid_and_judged_right() {
        for seed in [SEED, 1, 2, 3] {
            let folder = std::env::temp_dir().join(format!("lexiform-tasks-{}-{seed}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            for (name, text) in files(seed) {
                std::fs::write(folder.join(name), text).expect("written");
            }
            let collection = load(&folder, None).expect("tasks");
            std::fs::remove_dir_all(folder).expect("removed");
            assert_eq!((collection.tasks.len(), collection.left_out.len()), (400, 0));
            for task in collection.tasks {
                let right = match &task.answer.checker {
                    Checker::Json(wanted) => wanted.value.clone(),
                    Checker::Exact { value, .. } => json!({"label": value}),
                    Checker::Number { spelled, .. } => json!({"reasoning": "…", "answer": spelled}),
                    other => panic!("{}: {other:?}", task.name),
                };
                let verdict = task.judge(&right.to_string());
                assert!(
                    verdict.is_right() && verdict.is_valid == Some(true),
                    "{}: {verdict:?}",
                    task.name
                );
                assert!(!task.judge("{}").is_right(), "{}", task.name);
                if matches!(task.answer.checker, Checker::Json(_)) {
                    assert_cut_answers_are_wrong(&task, &right.to_string());
                }
            }
        }
    }

    fn assert_cut_answers_are_wrong(task: &Task, right: &str) {
        for (end, _) in right.char_indices().skip(1).step_by(7) {
            assert!(!task.judge(&right[..end]).is_right(), "{}: {end}", task.name);
        }
    }
}
