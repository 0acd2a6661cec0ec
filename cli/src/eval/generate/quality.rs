//! Whether the answers to tasks are right, beside whether they are valid.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::findings::Group;
use super::record::Outcome;
use crate::eval::tasks::{Given, Results, Task};
use crate::report::Report;

/// Removes the failures of answers that nothing constrained. That they are not valid breaks no promise: they
/// are right or wrong like all others.
pub(super) fn keep_promised(report: &mut Report, groups: &[Group<'_>]) {
    let free_of = |group: &Group<'_>| -> Vec<String> {
        let pairs = group.pairs.iter();
        pairs
            .filter(|(item, record)| item.schema.is_none() || !record.arm.constrains())
            .filter(|(_, record)| matches!(record.outcome, Outcome::Answered { .. }))
            .map(|(_, record)| group.case(record))
            .collect()
    };
    let free: HashSet<String> = groups.iter().flat_map(free_of).collect();
    report.failures.retain(|failure| !free.contains(&failure.case));
}

/// Adds the judgement of all answers to a report. `command` shows a task with its answers again, without the
/// name of the task.
pub(super) fn add(report: &mut Report, tasks: &[Task], groups: &[Group<'_>], command: &str) {
    let numbers: HashMap<&str, usize> = tasks.iter().map(|task| task.name.as_str()).zip(0..).collect();
    let given_of = |group: &Group<'_>| -> Vec<Given> {
        let pairs = group.pairs.iter();
        let given = pairs.filter_map(|(item, record)| match &record.outcome {
            Outcome::Answered { answer, .. } => Some(Given {
                task: *numbers.get(item.name.as_str())?,
                arm: group.tally.label.clone(),
                text: answer.text.clone(),
            }),
            Outcome::Failed(_) => None,
        });
        given.collect()
    };
    let given: Vec<Given> = groups.iter().flat_map(given_of).collect();
    let quality = Results::judged(tasks, &given).report(command);
    report.failures.extend(quality.failures);
    report.answers.splice(0..0, quality.answers);
    report.sections.splice(0..0, quality.sections);
    report
        .figures
        .insert("quality".to_owned(), Value::Object(quality.figures));
}
