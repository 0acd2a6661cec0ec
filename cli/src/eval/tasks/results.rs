//! The results of tasks: answers that somebody has collected, how many of them are right, and what differs
//! between ways of asking.
//!
//! ```text
//!   answers.jsonl  {"name": "sum-1", "arm": "free", "text": "…"} ──► Results ──► Report
//! ```

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::given::Given;
use super::judge::Judgement;
use super::statistics::{bonett_price, bootstrap, mcnemar, wilson};
use super::task::Task;
use crate::report::{self, Answer, Bar, Chart, Mood, Part, Report, Scale, Section, Shape, Table};

/// The judged answers of all arms.
pub(crate) struct Results<'a> {
    tasks: &'a [Task],
    arms: Vec<Judged>,
}

/// The judged answers of one arm.
struct Judged {
    name: String,
    /// The verdict for each task; `None` if it was not answered.
    verdicts: Vec<Option<Judgement>>,
}

/// Below this p-value, a difference counts as measured.
const SIGNIFICANT: f64 = 0.05;

/// Counts of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    answers: usize,
    right: usize,
    score: f64,
    /// The answers to tasks that have a schema, and those of them that are valid.
    with_schema: usize,
    valid: usize,
}

/// The difference between two arms, over the tasks that both answered.
#[derive(Clone, Debug, PartialEq)]
struct Paired {
    first: String,
    second: String,
    tasks: usize,
    only_first: usize,
    only_second: usize,
    /// By how much the second is right more often.
    difference: f64,
    interval: (f64, f64),
    p: f64,
    /// By how much the mean score of the second is higher.
    score: f64,
    score_interval: (f64, f64),
}

impl<'a> Results<'a> {
    /// Creates results without answers.
    pub(crate) fn new(tasks: &'a [Task]) -> Self {
        Self {
            tasks,
            arms: Vec::new(),
        }
    }

    /// Judges answers. Arms are in the order in which they first occur.
    pub(crate) fn judged(tasks: &'a [Task], answers: &[Given]) -> Self {
        let mut results = Self::new(tasks);
        for answer in answers {
            let verdict = tasks[answer.task].judge(&answer.text);
            results.add(answer.task, &answer.arm, verdict);
        }
        results
    }

    /// Adds the verdict on the answer to a task, by its index.
    pub(crate) fn add(&mut self, task: usize, arm: &str, verdict: Judgement) {
        let known = self.arms.iter().position(|it| it.name == arm);
        let index = known.unwrap_or_else(|| {
            self.arms.push(Judged {
                name: arm.to_owned(),
                verdicts: vec![None; self.tasks.len()],
            });
            self.arms.len() - 1
        });
        self.arms[index].verdicts[task] = Some(verdict);
    }

    /// Returns the report. `command` shows a task with its answers again, without the name of the task.
    pub(crate) fn report(&self, command: &str) -> Report {
        let groups = self.groups();
        let pairs = self.pairs(|_| true);
        Report {
            kind: "tasks".to_owned(),
            title: "Answers to tasks".to_owned(),
            answers: self.answers(&pairs),
            sections: vec![
                Section {
                    title: "Accuracy".to_owned(),
                    parts: vec![
                        Part::Table(self.table("Right answers", &groups)),
                        Part::Chart(self.chart(&groups)),
                    ],
                },
                Section {
                    title: "Differences between ways of asking".to_owned(),
                    parts: vec![Part::Table(self.pair_table(&groups))],
                },
            ],
            failures: self.failures(command),
            figures: self.figures(&groups, &pairs),
            ..Report::default()
        }
    }

    /// Returns the groups of tasks: all, each kind, and each level, as names and the indices of their
    /// tasks.
    fn groups(&self) -> Vec<(String, Vec<usize>)> {
        let of = |is_in: &dyn Fn(&Task) -> bool| -> Vec<usize> {
            (0..self.tasks.len())
                .filter(|it| is_in(&self.tasks[*it]))
                .collect()
        };
        let mut groups = vec![("all".to_owned(), of(&|_| true))];
        let kinds: BTreeSet<&str> = self.tasks.iter().map(|it| it.kind.as_str()).collect();
        for kind in kinds {
            groups.push((kind.to_owned(), of(&|it| it.kind == kind)));
        }
        let levels: BTreeSet<u64> = self.tasks.iter().filter_map(|it| it.level).collect();
        for level in levels {
            groups.push((format!("level {level}"), of(&|it| it.level == Some(level))));
        }
        groups
    }

    /// Compares each arm with those after it, over the tasks of a group.
    fn pairs(&self, is_in: impl Fn(usize) -> bool + Copy) -> Vec<Paired> {
        let mut pairs = Vec::new();
        for (index, first) in self.arms.iter().enumerate() {
            for second in &self.arms[index + 1..] {
                pairs.extend(paired(first, second, is_in));
            }
        }
        pairs
    }

    fn answers(&self, pairs: &[Paired]) -> Vec<Answer> {
        let mut answers = Vec::new();
        let share = |arm: &Judged| {
            let tally = arm.tally(0..self.tasks.len());
            format!("{} {} of {}", arm.name, percent(tally.share()), tally.answers)
        };
        answers.push(Answer {
            question: "How many answers are right?".to_owned(),
            answer: match self.arms.is_empty() {
                true => "Nothing was answered.".to_owned(),
                false => format!("{}.", self.arms.iter().map(share).collect::<Vec<_>>().join(", ")),
            },
            mood: Mood::Plain,
        });
        for pair in pairs {
            let (low, high) = pair.interval;
            let mood = match (pair.p < SIGNIFICANT, pair.difference > 0.0) {
                (true, true) => Mood::Good,
                (true, false) => Mood::Bad,
                _ => Mood::Plain,
            };
            answers.push(Answer {
                question: format!("Is {} right more often than {}?", pair.second, pair.first),
                answer: format!(
                    "{}: by {} points (95 % interval {} to {}; McNemar's exact test p = {}); tasks that both \
                     answered: {}.",
                    match mood {
                        Mood::Good => "Yes",
                        Mood::Bad => "No, less often",
                        Mood::Plain => "Not measurably",
                    },
                    points(pair.difference),
                    points(low),
                    points(high),
                    p_value(pair.p),
                    pair.tasks,
                ),
                mood,
            });
        }
        answers
    }

    fn table(&self, title: &str, groups: &[(String, Vec<usize>)]) -> Table {
        let columns = [
            "tasks",
            "arm",
            "answers",
            "right",
            "accuracy",
            "95 % interval",
            "score",
            "valid JSON",
        ];
        let mut rows = Vec::new();
        for (group, indices) in groups {
            for arm in &self.arms {
                let tally = arm.tally(indices.iter().copied());
                let (low, high) = wilson(tally.right, tally.answers);
                rows.push(vec![
                    group.clone(),
                    arm.name.clone(),
                    format!("{} of {}", tally.answers, indices.len()),
                    tally.right.to_string(),
                    tally.percent(tally.share()),
                    format!("{} to {}", percent(low), percent(high)),
                    tally.percent(tally.score / tally.answers as f64),
                    match tally.with_schema {
                        0 => "–".to_owned(),
                        all => percent(tally.valid as f64 / all as f64),
                    },
                ]);
            }
        }
        Table {
            title: title.to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
            note: "Intervals are Wilson's. The score counts a partly right answer by the share of its fields. Valid: the \
                   whole text is JSON that is valid under the schema."
                .to_owned(),
        }
    }

    fn chart(&self, groups: &[(String, Vec<usize>)]) -> Chart {
        let mut bars = Vec::new();
        for (group, indices) in groups {
            for arm in &self.arms {
                let tally = arm.tally(indices.iter().copied());
                if tally.answers > 0 {
                    let (low, high) = wilson(tally.right, tally.answers);
                    bars.push(Bar {
                        label: group.clone(),
                        series: arm.name.clone(),
                        value: 100.0 * tally.share(),
                        interval: Some((100.0 * low, 100.0 * high)),
                    });
                }
            }
        }
        Chart {
            title: "Right answers by kind and level".to_owned(),
            x: "right answers in %".to_owned(),
            y: String::new(),
            scale: Scale::Linear,
            shape: Shape::Bars { bars },
        }
    }

    fn pair_table(&self, groups: &[(String, Vec<usize>)]) -> Table {
        let columns = [
            "tasks",
            "arms",
            "both answered",
            "only first",
            "only second",
            "difference",
            "95 % interval",
            "p",
            "score",
            "95 % interval",
        ];
        let mut rows = Vec::new();
        for (group, indices) in groups {
            let members: BTreeSet<usize> = indices.iter().copied().collect();
            for pair in self.pairs(|it| members.contains(&it)) {
                rows.push(vec![
                    group.clone(),
                    format!("{}, {}", pair.first, pair.second),
                    pair.tasks.to_string(),
                    pair.only_first.to_string(),
                    pair.only_second.to_string(),
                    points(pair.difference),
                    format!("{} to {}", points(pair.interval.0), points(pair.interval.1)),
                    p_value(pair.p),
                    points(pair.score),
                    format!(
                        "{} to {}",
                        points(pair.score_interval.0),
                        points(pair.score_interval.1)
                    ),
                ]);
            }
        }
        Table {
            title: "Paired differences".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
            note: "Over tasks that both arms answered: those that only one of them answered right, and the second's accuracy \
                   less the first's in percentage points, with the interval of Bonett and Price and McNemar's exact p, which \
                   is not corrected for the number of rows; then the same for the mean score, with a bootstrap over the \
                   tasks."
                .to_owned(),
        }
    }

    fn failures(&self, command: &str) -> Vec<report::Failure> {
        let mut failures = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            for arm in &self.arms {
                let Some(verdict) = &arm.verdicts[index] else {
                    continue;
                };
                if !verdict.is_right() {
                    failures.push(report::Failure {
                        case: format!("{} ({})", task.name, arm.name),
                        what: match verdict.unread {
                            Some(_) => "no answer".to_owned(),
                            None => "wrong answer".to_owned(),
                        },
                        reason: verdict.reason(),
                        command: format!("{command} {}", task.name),
                    });
                }
            }
        }
        failures
    }

    fn figures(&self, groups: &[(String, Vec<usize>)], pairs: &[Paired]) -> Map<String, Value> {
        let mut figures = Map::new();
        figures.insert("tasks".to_owned(), json!(self.tasks.len()));
        for arm in &self.arms {
            let mut of_arm = Map::new();
            for (group, indices) in groups {
                let tally = arm.tally(indices.iter().copied());
                let (low, high) = wilson(tally.right, tally.answers);
                let figures = json!({
                    "answers": tally.answers,
                    "right": tally.right,
                    "accuracy": tally.share(),
                    "interval": [low, high],
                    "score": tally.score / tally.answers.max(1) as f64,
                    "valid": tally.valid,
                    "with_schema": tally.with_schema,
                });
                of_arm.insert(group.clone(), figures);
            }
            figures.insert(arm.name.clone(), Value::Object(of_arm));
        }
        let pairs = pairs.iter().map(|it| {
            let figures = json!({
                "tasks": it.tasks,
                "only_first": it.only_first,
                "only_second": it.only_second,
                "difference": it.difference,
                "interval": [it.interval.0, it.interval.1],
                "p": it.p,
                "score_difference": it.score,
                "score_interval": [it.score_interval.0, it.score_interval.1],
            });
            (format!("{} to {}", it.first, it.second), figures)
        });
        figures.insert("paired".to_owned(), Value::Object(pairs.collect()));
        figures
    }
}

impl Judged {
    fn tally(&self, tasks: impl IntoIterator<Item = usize>) -> Tally {
        let mut tally = Tally::default();
        for verdict in tasks.into_iter().filter_map(|it| self.verdicts[it].as_ref()) {
            tally.answers += 1;
            tally.right += usize::from(verdict.is_right());
            tally.score += verdict.score;
            tally.with_schema += usize::from(verdict.is_valid.is_some());
            tally.valid += usize::from(verdict.is_valid == Some(true));
        }
        tally
    }
}

impl Tally {
    /// Returns the share of right answers; 0 if there is none.
    fn share(&self) -> f64 {
        self.right as f64 / self.answers.max(1) as f64
    }

    fn percent(&self, share: f64) -> String {
        match self.answers {
            0 => "–".to_owned(),
            _ => percent(share),
        }
    }
}

fn paired(first: &Judged, second: &Judged, is_in: impl Fn(usize) -> bool) -> Option<Paired> {
    let both: Vec<(&Judgement, &Judgement)> = (0..first.verdicts.len())
        .filter(|it| is_in(*it))
        .filter_map(|it| Some((first.verdicts[it].as_ref()?, second.verdicts[it].as_ref()?)))
        .collect();
    let scores: Vec<f64> = both
        .iter()
        .map(|(first, second)| second.score - first.score)
        .collect();
    let score_interval = bootstrap(&scores)?;
    let count = |pair: (bool, bool)| {
        let pairs = both
            .iter()
            .filter(|(first, second)| (first.is_right(), second.is_right()) == pair);
        pairs.count()
    };
    let (only_first, only_second) = (count((true, false)), count((false, true)));
    let all = both.len() as f64;
    Some(Paired {
        first: first.name.clone(),
        second: second.name.clone(),
        tasks: both.len(),
        only_first,
        only_second,
        difference: (only_second as f64 - only_first as f64) / all,
        interval: bonett_price(only_first, only_second, both.len()),
        p: mcnemar(only_first, only_second),
        score: scores.iter().sum::<f64>() / all,
        score_interval,
    })
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns a difference of shares in percentage points, with its sign.
fn points(difference: f64) -> String {
    let points = 100.0 * difference;
    // A difference that rounds to nothing has no sign.
    let points = if points.abs() < 0.05 { 0.0 } else { points };
    format!("{points:+.1}").replace("+0.0", "0.0").replace('-', "−")
}

fn p_value(p: f64) -> String {
    match p < 0.001 {
        true => "< 0.001".to_owned(),
        false => format!("{p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Vec<Task> {
        let task = |index: u64| {
            let record = json!({
                "name": format!("t{index}"), "kind": if index < 4 { "a" } else { "b" }, "level": 1 + index % 2,
                "prompt": "p", "schema": {"type": "object"}, "answer": {"number": index, "at": "/n"},
            });
            Task::read(&record).expect("a task")
        };
        (0..6).map(task).collect()
    }

    fn given_of(arm: &str, numbers: &[(usize, u64)]) -> Vec<Given> {
        let given = |(task, number): &(usize, u64)| Given {
            task: *task,
            arm: arm.to_owned(),
            text: format!("{{\"n\": {number}}}"),
        };
        numbers.iter().map(given).collect()
    }

    // Six tasks: the first arm is right on 0, 1 and 2 of the five that it answered, the second on 0, 3, 4,
    // 5.
    #[test]
    fn a_report_counts_by_arm_kind_and_level() {
        let tasks = tasks();
        let mut answers = given_of("free", &[(0, 0), (1, 1), (2, 2), (3, 9), (4, 9)]);
        answers.extend(given_of(
            "both",
            &[(0, 0), (1, 9), (2, 9), (3, 3), (4, 4), (5, 5)],
        ));
        let report = Results::judged(&tasks, &answers).report("lexiform eval tasks --only");
        let figures = &report.figures;
        assert_eq!(figures["free"]["all"]["right"], 3);
        assert_eq!(figures["free"]["all"]["answers"], 5);
        assert_eq!(figures["free"]["a"]["accuracy"], 0.75);
        assert_eq!(figures["both"]["b"]["right"], 2);
        assert_eq!(figures["both"]["level 1"]["answers"], 3);
        assert_eq!(figures["both"]["all"]["valid"], 6);
        let pair = &figures["paired"]["free to both"];
        assert_eq!(
            (&pair["tasks"], &pair["only_first"], &pair["only_second"]),
            (&json!(5), &json!(2), &json!(2))
        );
        assert_eq!((&pair["difference"], &pair["p"]), (&json!(0.0), &json!(1.0)));
        let failed: Vec<&str> = report.failures.iter().map(|it| it.case.as_str()).collect();
        assert_eq!(failed, ["t1 (both)", "t2 (both)", "t3 (free)", "t4 (free)"]);
        assert_eq!(report.failures[0].reason, "/n: 9, wanted 1");
        assert_eq!(report.failures[0].command, "lexiform eval tasks --only t1");
        let Part::Chart(chart) = &report.sections[0].parts[1] else {
            panic!("a chart")
        };
        let Shape::Bars { bars } = &chart.shape else {
            panic!("bars")
        };
        assert_eq!((bars.len(), bars[0].value), (10, 60.0));
    }

    #[test]
    fn the_same_answers_make_the_same_report() {
        let tasks = tasks();
        let mut answers = given_of("x", &[(0, 0), (1, 0), (2, 2)]);
        answers.extend(given_of("y", &[(0, 1), (1, 1), (2, 2)]));
        let one = Results::judged(&tasks, &answers).report("");
        assert_eq!(one, Results::judged(&tasks, &answers).report(""));
        assert!(
            one.answers[1].answer.starts_with("Not measurably: by 0.0 points"),
            "{:?}",
            one.answers
        );
    }

    #[test]
    fn nothing_answered_is_no_panic() {
        let tasks = tasks();
        let report = Results::judged(&tasks, &[]).report("");
        assert_eq!(report.answers[0].answer, "Nothing was answered.");
        let one = Results::judged(&tasks, &given_of("x", &[(0, 0)])).report("");
        let Part::Table(table) = &one.sections[0].parts[0] else {
            panic!("a table")
        };
        assert_eq!(
            table.rows[2][2..],
            ["0 of 2", "0", "–", "0.0 % to 100.0 %", "–", "–"].map(str::to_owned)
        );
    }

    #[test]
    fn differences_are_written_in_points() {
        let written = [0.0, -0.0001, 0.061, -0.5].map(points);
        assert_eq!(written, ["0.0", "0.0", "+6.1", "−50.0"]);
    }
}
