//! Callbacks as monitors and scores of a request: they are asked about the content of an answer, as clients
//! read it.
//!
//! Thoughts and calls of tools are not content, so nothing is asked about them. Where an answer may begin
//! with one of these, nothing is asked before its content has begun.

use std::sync::Arc;

use lexiform::vocab::Vocabulary;
use lexiform_engine::{Tilt, Watched};
use lexiform_law::monitor::{Failure, Judge, Judged, Question, Score, Verdict};

use super::{OutputFormat, Part, PartReader};
use crate::model::served::ServedModel;
use crate::operate::callbacks::{Desk, Host};
use crate::operate::random;
use crate::wire::constraint::callbacks::{self, Named, Wanted};
use crate::wire::constraint::monitors::{Monitor, MonitorSource};
use crate::wire::error::ApiError;
use crate::wire::generation::Generation;

/// The number of tokens about which a host is asked at once where two may suffice.
const TOGETHER: usize = 4;

/// Returns the monitors of a request that are callbacks, and its tilt.
///
/// # Errors
/// Fails if one of them is none that the operator allows.
pub fn of(
    served: &ServedModel,
    generation: &Generation,
    format: &Arc<OutputFormat>,
) -> Result<(Vec<Watched>, Option<Tilt>), ApiError> {
    let id = format!("cb_{}", random::identity());
    let mut monitors = Vec::new();
    for Monitor { param, source } in &generation.monitors {
        let MonitorSource::Callback(named) = source else {
            continue;
        };
        let judge = ContentJudge {
            desk: desk(served, &id, named, Wanted::Verdicts, callbacks::verdicts)?,
            format: format.clone(),
        };
        let judged = Judged::new(served.vocabulary(), judge).leaving_marks();
        monitors.push(Watched::new(param.as_str(), Arc::new(judged)).remote());
    }
    let tilt = match &generation.tilt {
        None => None,
        Some(tilt) => Some(Tilt {
            name: "tilt".into(),
            score: Arc::new(ContentScore {
                desk: desk(served, &id, &tilt.callback, Wanted::Scores, callbacks::scores)?,
                format: format.clone(),
                vocabulary: served.vocabulary().clone(),
            }),
            prefixes: tilt.prefixes,
            is_remote: true,
        }),
    };
    Ok((monitors, tilt))
}

/// Returns the desk at which the sequences of a request ask a callback.
fn desk<A: Clone + 'static>(
    served: &ServedModel,
    id: &str,
    named: &Named,
    wanted: Wanted,
    read: fn(&[u8], usize) -> Result<Vec<A>, String>,
) -> Result<Desk<A>, ApiError> {
    let host: Arc<Host> = match served.callbacks().get(&named.name) {
        Some(host) => host.clone(),
        None => {
            let names: Vec<&str> = served.callbacks().names().collect();
            return Err(ApiError::unknown_callback(&named.param, &named.name, &names));
        }
    };
    let (id, named) = (id.to_owned(), named.clone());
    Ok(Desk::new(move |texts: &[Question]| {
        let answer = host.ask(&callbacks::question(&id, &named, wanted, texts));
        let answer = answer.and_then(|body| read(&body, texts.len()));
        answer.map_err(|reason| Failure(format!("callback {}: {reason}", named.name)))
    }))
}

/// The content of a text, as far as it is known.
enum Seen {
    /// It has not begun, or the text is a thought or a call.
    Nothing,
    /// The content, and what comes after it in the text, which is content or the beginning of a call.
    Content(String, String),
}

/// Reads the content of the beginning of an answer, or of a whole one.
fn content(format: &Arc<OutputFormat>, text: &str, is_whole: bool) -> Seen {
    if format.thought.is_absent() && format.calls.is_none() {
        return Seen::Content(text.to_owned(), String::new());
    }
    let mut reader = PartReader::new(format.clone());
    let parts = reader.push(text);
    let is_elsewhere = reader.thinks() || parts.iter().any(|part| matches!(part, Part::Opened(_)));
    let found = joined(&parts);
    let held = joined(&reader.finish());
    match (is_elsewhere, is_whole) {
        (true, _) => Seen::Nothing,
        (false, true) => Seen::Content(found + &held, String::new()),
        (false, false) if found.is_empty() => Seen::Nothing,
        (false, false) => Seen::Content(found, held),
    }
}

fn joined(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Content(text) => Some(text.clone()),
        _ => None,
    };
    parts.iter().filter_map(text).collect()
}

/// A callback that judges contents.
struct ContentJudge {
    desk: Desk<Verdict>,
    format: Arc<OutputFormat>,
}

impl Judge for ContentJudge {
    fn judge(&self, texts: &[Question]) -> Result<Vec<Verdict>, Failure> {
        let seen = texts
            .iter()
            .map(|text| content(&self.format, &text.text, text.is_whole));
        let seen: Vec<Seen> = seen.collect();
        let asked = seen.iter().zip(texts).filter_map(|(seen, text)| match seen {
            Seen::Nothing => None,
            Seen::Content(content, _) => Some(Question {
                text: content.clone(),
                is_whole: text.is_whole,
            }),
        });
        let asked: Vec<Question> = asked.collect();
        let mut verdicts = match asked.is_empty() {
            true => Vec::new(),
            false => self.desk.answers(&asked)?,
        }
        .into_iter();
        let verdict = |seen: &Seen| match seen {
            Seen::Nothing => Some(Verdict::Open),
            Seen::Content(_, held) => verdicts.next().map(|verdict| after(verdict, held)),
        };
        Ok(seen.iter().filter_map(verdict).collect())
    }

    fn together(&self) -> usize {
        TOGETHER
    }
}

/// Returns the verdict about a text that goes on with more than what was judged.
fn after(verdict: Verdict, held: &str) -> Verdict {
    match verdict {
        Verdict::Next(items) if !held.is_empty() => {
            let rests = items.iter().filter_map(|item| item.strip_prefix(held));
            let rests: Vec<Arc<str>> = rests.map(Arc::from).collect();
            match rests.iter().any(|rest| rest.is_empty()) {
                true => Verdict::Open,
                false => Verdict::Next(rests),
            }
        }
        verdict => verdict,
    }
}

/// A callback that scores contents.
struct ContentScore {
    desk: Desk<f64>,
    format: Arc<OutputFormat>,
    vocabulary: Arc<Vocabulary>,
}

impl Score for ContentScore {
    /// What has no content has the score 0.
    fn score(&self, text: &[u32], is_whole: bool) -> Result<f64, Failure> {
        let bytes: Vec<u8> = text
            .iter()
            .flat_map(|&token| self.vocabulary.bytes(token))
            .copied()
            .collect();
        match content(&self.format, &String::from_utf8_lossy(&bytes), is_whole) {
            Seen::Nothing => Ok(0.0),
            Seen::Content(text, _) => {
                let scores = self.desk.answers(&[Question { text, is_whole }])?;
                scores
                    .first()
                    .copied()
                    .ok_or_else(|| Failure("no score".to_owned()))
            }
        }
    }
}
