//! The problems of a source for people and programs: with line and column, and with an excerpt.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use lexiform::error::{CompileError, Place, Problem, ProblemKind};
use serde_json::{Value, json};

use super::excerpt::excerpt;
use super::paint::{bad, dim, note};
use super::pointers::{self, Spot};
use super::spelling;
use crate::failure::Failure;
use crate::input::source::Loaded;

/// The number of problems that are shown with an excerpt; the others show only the place.
const EXCERPTS: usize = 20;

/// A problem and its place in the source.
#[derive(Clone, Debug)]
struct Located<'p> {
    problem: &'p Problem,
    message: Cow<'p, str>,
    span: Option<Range<usize>>,
    line_column: Option<(usize, usize)>,
}

/// Returns the failure of a command whose source does not compile.
pub fn failure(source: &Loaded, error: &CompileError) -> Failure {
    let text = format!(
        "the {} does not compile\n{}",
        source.name(),
        in_words(source, &error.problems)
    );
    Failure::DoesNotCompile {
        text: text.trim_end().to_owned(),
        json: json!({"kind": source.name(), "file": source.file(), "compiles": false, "problems": as_json(source, &error.problems)}),
    }
}

/// Formats every problem with its place and an excerpt.
pub fn in_words(source: &Loaded, problems: &[Problem]) -> String {
    let mut text = String::new();
    for (number, located) in located(source, problems).iter().enumerate() {
        text += &format!("  {}\n", located.headline());
        if number < EXCERPTS {
            text += &located.excerpt(source);
        } else if let Some((line, column)) = located.line_column {
            text += &dim(format!("    at {}\n", place_in(source, line, column)));
        }
    }
    text
}

/// Formats findings that do not stop a compile, one line each.
pub fn notes(source: &Loaded, findings: &[Problem]) -> String {
    let line = |located: &Located<'_>| {
        let place = located
            .line_column
            .map(|(line, column)| format!(" ({})", place_in(source, line, column)));
        format!(
            "  {} {}{}\n",
            note("note:"),
            located.plain(),
            dim(place.unwrap_or_default())
        )
    };
    located(source, findings).iter().map(line).collect()
}

/// Returns the problems for programs.
pub fn as_json(source: &Loaded, problems: &[Problem]) -> Vec<Value> {
    let object = |located: &Located<'_>| {
        let pointer = match &located.problem.place {
            Place::Pointer(pointer) => Some(pointer),
            _ => None,
        };
        json!({
            "kind": located.problem.kind.name(),
            "pointer": pointer,
            "line": located.line_column.map(|(line, _)| line),
            "column": located.line_column.map(|(_, column)| column),
            "message": located.message,
        })
    };
    located(source, problems).iter().map(object).collect()
}

/// Returns `person.json:3:7`, which editors open, or the line and column of a source that is not in a file.
fn place_in(source: &Loaded, line: usize, column: usize) -> String {
    match source.file() {
        Some(file) => format!("{file}:{line}:{column}"),
        None => format!("line {line}, column {column}"),
    }
}

impl Located<'_> {
    fn headline(&self) -> String {
        match self.place() {
            Some(place) => format!("{}: {}", bad(place), self.message),
            None => self.message.to_string(),
        }
    }

    fn plain(&self) -> String {
        match self.place() {
            Some(place) => format!("{place}: {}", self.message),
            None => self.message.to_string(),
        }
    }

    fn place(&self) -> Option<String> {
        match (&self.problem.place, self.line_column) {
            (Place::Whole, _) => None,
            (Place::LineColumn { .. }, Some((line, column))) => Some(format!("line {line}, column {column}")),
            (place, _) => Some(place.to_string()),
        }
    }

    fn excerpt(&self, source: &Loaded) -> String {
        let (Some((line, column)), Some(span)) = (self.line_column, &self.span) else {
            return String::new();
        };
        let is_said = matches!(self.problem.place, Place::LineColumn { .. }) && source.file().is_none();
        let place = match is_said {
            true => String::new(),
            false => dim(format!("    at {}", place_in(source, line, column))) + "\n",
        };
        place + &excerpt(source.text(), span.clone(), line)
    }
}

fn located<'p>(source: &Loaded, problems: &'p [Problem]) -> Vec<Located<'p>> {
    let spots = match source.is_schema() {
        true => pointers::spots(source.text(), problems.iter().filter_map(pointer)),
        false => HashMap::new(),
    };
    let mut located: Vec<Located<'p>> = problems
        .iter()
        .map(|problem| locate(source, problem, &spots))
        .collect();
    let starts = located.iter().filter_map(|it| Some(it.span.as_ref()?.start));
    let places = lines_and_columns(source.text(), starts.collect());
    for it in &mut located {
        it.line_column = it.span.as_ref().and_then(|span| places.get(&span.start).copied());
    }
    // Sorted by place, so that they can be fixed from the top; problems without a place come first.
    located.sort_by_key(|it| it.span.as_ref().map(|span| span.start));
    located
}

fn pointer(problem: &Problem) -> Option<&str> {
    match &problem.place {
        Place::Pointer(pointer) => Some(pointer),
        _ => None,
    }
}

fn locate<'p>(source: &Loaded, problem: &'p Problem, spots: &HashMap<&str, Spot>) -> Located<'p> {
    let text = source.text();
    let (mut span, mut message) = (None, Cow::Borrowed(problem.message.as_str()));
    match &problem.place {
        Place::Pointer(pointer) => {
            span = spots
                .get(pointer.as_str())
                .map(|spot| match (&spot.key, problem.kind) {
                    // Either the value of the keyword is wrong, or the keyword itself.
                    (_, ProblemKind::Invalid | ProblemKind::Reference) | (None, _) => spot.value.clone(),
                    (Some(key), _) => key.clone(),
                });
        }
        Place::LineColumn { line, column } => span = Some(one(text, offset_of(text, *line, *column))),
        Place::Rule(rule) if source.is_grammar() => span = definition(text, rule),
        Place::Rule(_) | Place::Whole => {}
    }
    if source.is_schema()
        && problem.kind == ProblemKind::Syntax
        && let Some((offset, words)) = spelling::mistake(text)
    {
        (span, message) = (Some(one(text, offset)), Cow::Owned(format!("not JSON: {words}")));
    }
    Located {
        problem,
        message,
        span,
        line_column: None,
    }
}

/// Returns the range of the character at this place.
fn one(text: &str, offset: usize) -> Range<usize> {
    offset..offset + text[offset..].chars().next().map_or(0, char::len_utf8)
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let rest = &text[before..];
    let within = rest.char_indices().nth(column.saturating_sub(1));
    before + within.map_or(rest.len(), |(at, _)| at)
}

/// Returns where a rule is defined: its name at the beginning of a line, before a defining sign.
fn definition(text: &str, rule: &str) -> Option<Range<usize>> {
    // A chain of rules, `a -> b -> a`, is shown at its first rule.
    let rule = rule.split(" -> ").next().unwrap_or(rule);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let name = line.trim_start();
        let rest = name.strip_prefix('<').unwrap_or(name).strip_prefix(rule);
        let rest = rest.map(|rest| rest.strip_prefix('>').unwrap_or(rest).trim_start());
        if rest.is_some_and(|rest| rest.starts_with([':', '='])) {
            let start = at + line.len() - name.len();
            return Some(start..start + rule.len());
        }
        at += line.len();
    }
    None
}

/// Returns the lines and columns of these offsets, both from one, in one walk through the text.
fn lines_and_columns(text: &str, offsets: HashSet<usize>) -> HashMap<usize, (usize, usize)> {
    let mut offsets: Vec<usize> = offsets.into_iter().collect();
    offsets.sort_unstable();
    let (mut line, mut column, mut at) = (1, 1, 0);
    let mut places = HashMap::new();
    for offset in offsets {
        for c in text[at..offset].chars() {
            (line, column) = if c == '\n' {
                (line + 1, 1)
            } else {
                (line, column + 1)
            };
        }
        at = offset;
        places.insert(offset, (line, column));
    }
    places
}
