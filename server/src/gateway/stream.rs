//! A streamed answer: free text is passed on as it comes, what is under a schema when it was checked.
//!
//! ```text
//!   upstream ─ role, free text, thoughts ──────────────────────────────► client, at once
//!            ─ text under a schema, calls ─► held ─ finish_reason ─► checked ─► client, in one piece
//!                                                                      └► asked again (not as a stream)
//! ```
//!
//! A value cannot be passed on before it is checked: what was sent cannot be taken back when its end turns
//! out to be wrong. Calls are held until all of them are there, because an answer is asked for again as a
//! whole. A comment is sent every few seconds, so that proxies keep the connection open meanwhile.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::gateway::events::Events;
use crate::gateway::exchange::Exchange;
use crate::gateway::failure::Failure;
use crate::gateway::upstream::{Reply, too_large};
use crate::wire::chat::upstream::{self, Chunk, Delta, Said};
use crate::wire::error::ApiError;

/// The time between two comments.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The number of frames that may wait for a slow client; then nothing more is read from the upstream.
const WAITING: usize = 16;

/// Returns the answer to a client, which the answer of the upstream becomes. Dropping it ends both.
///
/// # Errors
/// Fails if the answer of the upstream is no stream of events.
pub(super) fn respond(exchange: Exchange, reply: Reply) -> Result<HttpResponse, Failure> {
    let kind = reply
        .headers
        .get("content-type")
        .and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| {
        kind.trim_start()
            .to_ascii_lowercase()
            .starts_with("text/event-stream")
    }) {
        return Err(ApiError::upstream_answer("a stream of events was asked for").into());
    }
    let (sender, mut receiver) = channel(WAITING);
    actix_web::rt::spawn(run(exchange, Events::new(reply), sender));
    let frames = futures_util::stream::poll_fn(move |context| {
        receiver
            .poll_recv(context)
            .map(|frame| frame.map(Ok::<Bytes, Infallible>))
    });
    let mut response = HttpResponse::Ok();
    response
        .content_type("text/event-stream")
        .insert_header(("cache-control", "no-cache"));
    Ok(response.streaming(frames))
}

/// Passes a stream on until it ends or the client has left.
async fn run(exchange: Exchange, events: Events, sender: Sender<Bytes>) {
    let mut keep_alive = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let passing = Passing::new(&exchange, &sender).follow(events);
    tokio::pin!(passing);
    loop {
        tokio::select! {
            () = &mut passing => return,
            () = sender.closed() => return,
            _ = keep_alive.tick() => {
                // If there is no room, the client has enough to read.
                let _ = sender.try_send(Bytes::from_static(b": keep-alive\n\n"));
            }
        }
    }
}

/// A stream that is being passed on.
struct Passing<'a> {
    exchange: &'a Exchange,
    sender: &'a Sender<Bytes>,
    /// The fields that all pieces have, as the upstream sent them last.
    fields: Map<String, Value>,
    choices: BTreeMap<usize, Growing>,
    /// The tokens that the upstream told of this stream, and those of the answers that were asked for again.
    usage: Option<Value>,
    more_usage: Value,
    /// The bytes of the texts so far.
    bytes: usize,
}

/// A choice that is being written.
#[derive(Default)]
struct Growing {
    said: Said,
    is_settled: bool,
}

impl<'a> Passing<'a> {
    fn new(exchange: &'a Exchange, sender: &'a Sender<Bytes>) -> Self {
        Self {
            exchange,
            sender,
            fields: Map::new(),
            choices: BTreeMap::new(),
            usage: None,
            more_usage: Value::Null,
            bytes: 0,
        }
    }

    /// Passes on all events, and the error that ends them, if one does.
    async fn follow(mut self, mut events: Events) {
        let passed = async {
            while let Some(event) = events.next().await? {
                self.take(upstream::chunk(event, self.exchange.forwarded().samples)?)
                    .await?;
            }
            self.close().await
        };
        let last: Result<(), Failure> = passed.await;
        let last = match last {
            Ok(()) => "data: [DONE]\n\n".to_owned(),
            Err(failure) => {
                tracing::info!(%failure, "a stream failed");
                format!("data: {}\n\n", failure.envelope())
            }
        };
        self.send_frame(last).await;
    }

    /// Sends a frame. If the client has left, this whole future is dropped.
    async fn send_frame(&self, frame: String) {
        let _ = self.sender.send(Bytes::from(frame)).await;
    }

    /// Sends a piece with these choices and further fields.
    async fn send(&self, choices: Value, more: Option<(&str, Value)>) {
        let mut piece = self.fields.clone();
        piece.insert("choices".to_owned(), choices);
        piece.extend(more.map(|(name, value)| (name.to_owned(), value)));
        self.send_frame(format!("data: {}\n\n", Value::Object(piece)))
            .await;
    }

    async fn take(&mut self, chunk: Chunk) -> Result<(), Failure> {
        self.fields = chunk.fields;
        self.usage = chunk.usage.or(self.usage.take());
        for (index, delta) in chunk.deltas {
            let ends = delta.said.finish.is_some();
            if let Some(choice) = self.grow(index, delta)? {
                self.send(json!([choice]), None).await;
            }
            if ends {
                self.settle(index).await?;
            }
        }
        Ok(())
    }

    /// Adds what is new to a choice, and returns the part of it that is passed on at once.
    fn grow(&mut self, index: usize, delta: Delta) -> Result<Option<Value>, Failure> {
        let Delta { said: new, places } = delta;
        let texts = new
            .calls
            .iter()
            .map(|call| call.input.len() + call.name.len() + call.id.len());
        self.bytes += new.content.as_ref().map_or(0, String::len) + texts.sum::<usize>();
        let most = self.exchange.most_bytes();
        if self.bytes > most {
            return Err(too_large(most).into());
        }
        let growing = self.choices.entry(index).or_default();
        if growing.is_settled {
            let has_more = !new.calls.is_empty() || new.content.is_some_and(|text| !text.is_empty());
            return match has_more || new.finish.is_some() {
                true => {
                    Err(ApiError::upstream_answer(format!("choices[{index}] goes on after its end")).into())
                }
                false => Ok(None),
            };
        }
        let mut message = new.message;
        if let Some(text) = new.content {
            growing.said.content.get_or_insert_default().push_str(&text);
            if !self.exchange.holds_content() {
                message.insert("content".to_owned(), Value::String(text));
            }
        }
        for (place, call) in places.into_iter().zip(new.calls) {
            let calls = &mut growing.said.calls;
            calls.resize_with(calls.len().max(place + 1), Default::default);
            calls[place].grow(call);
        }
        growing.said.is_refused |= new.is_refused;
        growing.said.finish = new.finish;
        let mut choice = new.choice;
        self.exchange.without_logprobs(&mut choice);
        if growing.said.finish.is_some() {
            growing.said.choice = choice.clone();
        }
        Ok((!message.is_empty()).then(|| delta_of(index, message, choice, None)))
    }

    /// Checks a choice that has ended, and sends what was held of it.
    async fn settle(&mut self, index: usize) -> Result<(), Failure> {
        let Some(growing) = self.choices.get_mut(&index) else {
            return Ok(());
        };
        growing.is_settled = true;
        let first = std::mem::take(&mut growing.said);
        let is_told =
            !self.exchange.holds_content() && first.content.as_ref().is_some_and(|text| !text.is_empty());
        let settled = self.exchange.settle(index, first).await?;
        upstream::add_usage(&mut self.more_usage, &settled.usage);
        let said = settled.said;
        let is_another = settled.attempts > 1;
        let mut message = Map::new();
        if is_another {
            let is_new = |(name, value): &(String, Value)| name != "role" && !value.is_null();
            message.extend(said.message.clone().into_iter().filter(is_new));
        }
        // The text of another answer than the one that was passed on is left out if its calls say enough.
        let is_content_new = is_another && (!is_told || said.calls.is_empty());
        if let Some(content) = &said.content
            && (self.exchange.holds_content() || is_content_new)
        {
            message.insert("content".to_owned(), json!(content));
        }
        if !said.calls.is_empty() {
            message.insert("tool_calls".to_owned(), said.calls_json(true));
        }
        if !message.is_empty() {
            self.send(json!([delta_of(index, message, Map::new(), None)]), None)
                .await;
        }
        let end = delta_of(index, Map::new(), said.choice, said.finish.as_deref());
        let report = self.exchange.report(&settled.changes, settled.attempts);
        self.send(json!([end]), Some(("lexiform", report))).await;
        Ok(())
    }

    /// Checks that every choice has ended, and tells the tokens that were used.
    async fn close(&mut self) -> Result<(), Failure> {
        let settled = self.choices.values().filter(|growing| growing.is_settled).count();
        if settled < self.exchange.forwarded().samples {
            return Err(ApiError::upstream_failed("it ended its stream before its answer").into());
        }
        if let Some(mut usage) = self.usage.take() {
            upstream::add_usage(&mut usage, &self.more_usage);
            self.send(json!([]), Some(("usage", usage))).await;
        }
        Ok(())
    }
}

/// Returns a choice of a piece.
fn delta_of(
    index: usize,
    message: Map<String, Value>,
    other: Map<String, Value>,
    finish: Option<&str>,
) -> Value {
    let mut choice = Map::new();
    choice.insert("index".to_owned(), json!(index));
    choice.insert("delta".to_owned(), Value::Object(message));
    choice.extend(other);
    choice.insert("finish_reason".to_owned(), json!(finish));
    Value::Object(choice)
}
