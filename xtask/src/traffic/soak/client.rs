//! A client: it has one text after another streamed, and checks each.

use super::place::{STEADY, SWAPPED};
use super::suspect::{Ending, Span, Suspects};
use crate::traffic::PATIENCE;
use crate::traffic::driver::{Seen, chat};
use crate::traffic::http::{Answer, CHAT, exchange, head, with_key};
use crate::traffic::promise::{self, Promise, Told};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The pause after a request that was not answered.
const PAUSE: Duration = Duration::from_millis(250);

/// What all clients have in common.
pub(super) struct Client<'a> {
    pub(super) address: String,
    pub(super) keys: Vec<String>,
    pub(super) suspects: &'a Suspects,
    /// The place of the swapped model that clients use at present.
    pub(super) fashion: Arc<AtomicUsize>,
}

/// What a client does in a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It waits for the whole answer.
    Waits,
    /// It leaves after the first bytes.
    Leaves,
    /// It sends a request that must be refused.
    Errs,
}

impl Client<'_> {
    /// Sends the request of a turn, and records its outcome.
    pub(super) fn ask(&self, turn: usize, seen: &mut Seen) {
        let manner = match turn % 16 {
            14 => Manner::Leaves,
            15 => Manner::Errs,
            _ => Manner::Waits,
        };
        let model = match turn / 16 % 4 {
            0 => SWAPPED[self.fashion.load(Relaxed) % SWAPPED.len()],
            _ => STEADY,
        };
        let promise = Promise::of(promise::ALL, turn);
        let mut body = chat(model, turn, promise.fields());
        body["stream"] = json!(true);
        if manner == Manner::Errs {
            body["temperature"] = json!("hot");
        }
        let body = body.to_string();
        let key = &self.keys[turn % self.keys.len()];
        let request = with_key(key, &head(CHAT, body.len(), "close")) + &body;
        let leaves = |answer: &Answer| manner == Manner::Leaves && answer.first.is_some();
        let from = Instant::now();
        let answer = exchange(&self.address, &request, |answer| {
            answer.time < PATIENCE && !(leaves(answer) && answer.status == 200)
        });
        let until = Instant::now();
        match outcome(&answer, manner, promise) {
            Ok(outcome) => {
                seen.count(outcome);
                if let (Some(first), Manner::Waits) = (answer.first, manner) {
                    seen.time("first byte", first);
                    seen.time("whole answer", answer.time);
                }
            }
            Err(Fault::Suspect(ending)) => {
                self.suspects.note(Span { from, until }, ending);
                std::thread::sleep(PAUSE);
            }
            Err(Fault::Wrong(why)) => {
                seen.count(format!("WRONG: {why}"));
                seen.wrong
                    .push(format!("{why}: status {}: {:.300}", answer.status, answer.body));
            }
        }
    }
}

/// What is not as it should be.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// Something that the times of the story may explain.
    Suspect(Ending),
    /// Something that nothing explains.
    Wrong(&'static str),
}

/// Returns the kind of an answer, or what is not as it should be.
fn outcome(answer: &Answer, manner: Manner, promise: Promise) -> Result<&'static str, Fault> {
    let suspect = |ending| Err(Fault::Suspect(ending));
    match (answer.status, manner) {
        _ if answer.time >= PATIENCE => Err(Fault::Wrong("an answer does not end")),
        (0, _) => suspect(Ending::Silent),
        (400, Manner::Errs) => Ok("a wrong request, refused with 400"),
        (200, Manner::Errs) => Err(Fault::Wrong("a wrong request was answered")),
        (200, Manner::Leaves) => Ok("left in the middle"),
        (200, Manner::Waits) => streamed(&Told::streamed(&answer.body), promise),
        _ => match answer.code() {
            code if code.is_empty() && answer.broken.is_some() => suspect(Ending::Cut),
            code if code.is_empty() => Err(Fault::Wrong("a refusal without a code")),
            code => suspect(Ending::Refused(code)),
        },
    }
}

fn streamed(told: &Told, promise: Promise) -> Result<&'static str, Fault> {
    match (told.finish.as_str(), told.error.as_str()) {
        (_, code) if !code.is_empty() => Err(Fault::Suspect(Ending::Told(code.to_owned()))),
        ("stop", _) if promise.obeys(&told.content) => Ok("a right answer"),
        ("stop", _) => Err(Fault::Wrong("an answer does not obey")),
        ("", _) => Err(Fault::Suspect(Ending::Cut)),
        _ => Err(Fault::Wrong("an answer is not whole, though its tokens suffice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_and_obeys_is_right() {
        let promise = Promise::of(promise::SHORT, 3);
        let stream = |text: &str, finish: &str| {
            let choice = json!({"delta": {"content": text}, "finish_reason": Some(finish).filter(|it| !it.is_empty())});
            format!("data: {}\n\n", json!({"choices": [choice]}))
        };
        let of = |status, body: &str, manner| {
            let (body, time) = (body.to_owned(), Duration::ZERO);
            outcome(
                &Answer {
                    status,
                    body,
                    time,
                    ..Answer::default()
                },
                manner,
                promise,
            )
        };
        assert!(of(200, &stream("yes", "stop"), Manner::Waits).is_ok());
        let is_wrong = |of| matches!(of, Err(Fault::Wrong(_)));
        assert!(is_wrong(of(200, &stream("maybe", "stop"), Manner::Waits)));
        assert!(is_wrong(of(200, &stream("ye", "length"), Manner::Waits)));
        assert!(is_wrong(of(200, &stream("yes", "stop"), Manner::Errs)));
        assert!(is_wrong(of(500, "", Manner::Waits)));
        let suspect = |ending| Err(Fault::Suspect(ending));
        assert_eq!(of(200, &stream("ye", ""), Manner::Waits), suspect(Ending::Cut));
        assert_eq!(of(0, "", Manner::Waits), suspect(Ending::Silent));
        let error = r#"{"error": {"code": "queue_full"}}"#;
        assert_eq!(
            of(429, error, Manner::Waits),
            suspect(Ending::Refused("queue_full".to_owned()))
        );
        let told = stream("y", "") + "data: " + error + "\n\n";
        assert_eq!(
            of(200, &told, Manner::Waits),
            suspect(Ending::Told("queue_full".to_owned()))
        );
    }
}
