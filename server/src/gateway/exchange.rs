//! One request of a gateway: the question to the upstream, the check of its answer, and further questions.

use std::sync::Arc;
use std::time::Instant;

use actix_web::{HttpRequest, web};
use hyper::Method;
use hyper::header::{HeaderMap, RETRY_AFTER};
use lexiform::error::{CompileError, ProblemKind};
use lexiform::limits::Cancel;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::gateway::check::{Checked, Checks, Rejected, Rule};
use crate::gateway::failure::Failure;
use crate::gateway::schemas::KnownSchema;
use crate::gateway::upstream::{Deadline, HttpClient, Reply};
use crate::operate::random;
use crate::request::body;
use crate::wire::chat::forwarded::{self, Forwarded};
use crate::wire::chat::projected::{Changed, GatewayReport, Projected};
use crate::wire::chat::upstream::{self, Said};
use crate::wire::constraint::{Constraint, Source};
use crate::wire::error::ApiError;

/// The path of chats at the upstream.
const CHATS: &str = "/chat/completions";

/// A request, and what its answers must be.
pub(super) struct Exchange {
    gateway: Arc<Gateway>,
    client: HttpClient,
    headers: HeaderMap,
    deadline: Deadline,
    prepared: Prepared,
    _running: OwnedSemaphorePermit,
}

/// A request whose schemas were projected.
struct Prepared {
    forwarded: Forwarded,
    checks: Arc<Checks>,
    projections: Vec<Projected>,
}

/// An answer that fits.
pub(super) struct Settled {
    /// The answer as it is passed on.
    pub(super) said: Said,
    /// What was changed in it.
    pub(super) changes: Vec<Changed>,
    /// How often the upstream was asked for it.
    pub(super) attempts: usize,
    /// The tokens of all answers but the first.
    pub(super) usage: Value,
}

impl Exchange {
    /// Reads a request and projects its schemas.
    ///
    /// # Errors
    /// Fails if the request is invalid, or if too many are running.
    pub(super) async fn begin(
        gateway: &Arc<Gateway>,
        client: &HttpClient,
        request: &HttpRequest,
        payload: web::Payload,
    ) -> Result<Self, Failure> {
        let limits = &gateway.limits;
        let running = gateway.running.clone().try_acquire_owned();
        let running = running.map_err(|_| ApiError::gateway_full(limits.requests))?;
        let deadline = Deadline::after(limits.answer);
        let body = body::read(request, payload, (&gateway.bodies, limits.body_bytes)).await?;
        let shared = gateway.clone();
        let prepared = work(gateway, move |cancel| Prepared::read(&shared, &body, &cancel)).await??;
        Ok(Self {
            gateway: gateway.clone(),
            client: client.clone(),
            headers: gateway.upstream.headers(request.headers()),
            deadline,
            prepared,
            _running: running,
        })
    }

    /// Returns the request.
    pub(super) fn forwarded(&self) -> &Forwarded {
        &self.prepared.forwarded
    }

    /// Returns `true` if the content of the answers is under a schema.
    pub(super) fn holds_content(&self) -> bool {
        self.prepared.checks.content.is_some()
    }

    /// Removes the log-probabilities from a choice whose text is checked: nobody has checked theirs.
    pub(super) fn without_logprobs(&self, choice: &mut Map<String, Value>) {
        self.prepared.checks.without_logprobs(choice);
    }

    /// Returns the maximum number of bytes of the texts of an answer.
    pub(super) fn most_bytes(&self) -> usize {
        self.gateway.upstream.bounds().bytes
    }

    /// Returns the schemas that were rewritten.
    pub(super) fn projections(&self) -> &[Projected] {
        &self.prepared.projections
    }

    /// Sends a body, and returns the answer if it is one.
    ///
    /// # Errors
    /// Fails if the upstream cannot be asked, or answers with an error, which is passed on.
    pub(super) async fn ask(&self, body: String) -> Result<Reply, Failure> {
        let upstream = &self.gateway.upstream;
        let sent = (body, self.deadline);
        let reply = upstream
            .send(&self.client, (Method::POST, CHATS), self.headers.clone(), sent)
            .await?;
        accepted(reply).await
    }

    /// Asks for a whole answer, and returns it as it is passed on.
    ///
    /// # Errors
    /// Fails like [`ask`](Self::ask), and if the answer does not fit in the end.
    pub(super) async fn whole(&self) -> Result<Value, Failure> {
        let forwarded = self.forwarded();
        let mut answer = self.answer(forwarded.body(), forwarded.samples).await?;
        let (mut choices, mut changes, mut attempts) = (Vec::new(), Vec::new(), 1);
        for (index, said) in answer.choices.into_iter().enumerate() {
            let settled = self.settle(index, said).await?;
            choices.push(settled.said.to_choice(index));
            changes.extend(settled.changes);
            attempts += settled.attempts - 1;
            if !settled.usage.is_null() {
                upstream::add_usage(
                    answer.fields.entry("usage").or_insert(Value::Null),
                    &settled.usage,
                );
            }
        }
        answer.fields.insert("choices".to_owned(), Value::Array(choices));
        answer
            .fields
            .insert("lexiform".to_owned(), self.report(&changes, attempts));
        Ok(Value::Object(answer.fields))
    }

    /// Returns the fields of an answer that are specific to a gateway.
    pub(super) fn report(&self, changes: &[Changed], attempts: usize) -> Value {
        let projections = self.projections();
        let report = GatewayReport {
            projections,
            changes,
            attempts,
        };
        report.to_json()
    }

    async fn answer(&self, body: String, samples: usize) -> Result<upstream::Whole, Failure> {
        let body = self.ask(body).await?.whole().await?;
        let object = upstream::object(&body)?;
        if object.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Failure::in_stream(&object));
        }
        let answer = upstream::whole(object, samples)?;
        match answer.choices.iter().position(|said| said.finish.is_none()) {
            None => Ok(answer),
            Some(index) => {
                let reason = format!("choices[{index}].finish_reason is missing");
                Err(ApiError::upstream_answer(reason).into())
            }
        }
    }

    /// Checks the answer of a choice, and asks again for one that does not fit.
    ///
    /// # Errors
    /// Fails if the last answer does not fit either, or if the upstream cannot be asked again.
    pub(super) async fn settle(&self, index: usize, first: Said) -> Result<Settled, Failure> {
        let (mut said, mut usage, mut attempts) = (first, Value::Null, 1);
        let mut spare = None;
        loop {
            identify(&mut said);
            let (checks, checked) = (self.prepared.checks.clone(), said.clone());
            let is_last = attempts > self.gateway.limits.retries;
            let rejected = match work(&self.gateway, move |_| checks.check(checked)).await? {
                Ok(mut checked) => match checked.guessed.take().filter(|_| !is_last) {
                    None => return Ok(Settled::of(checked, index, attempts, usage)),
                    Some(guessed) => {
                        spare = Some(checked);
                        guessed
                    }
                },
                Err(rejected) => rejected,
            };
            if rejected.is_cut || is_last {
                return match spare {
                    Some(checked) => Ok(Settled::of(checked, index, attempts, usage)),
                    None => Err(given_up(index, &said, &rejected, attempts).into()),
                };
            }
            tracing::info!(place = rejected.place, reason = rejected.reason, "asked again");
            let body = self.forwarded().body_again(&rejected.messages(&said));
            let mut again = self.answer(body, 1).await?;
            attempts += 1;
            upstream::add_usage(&mut usage, again.fields.get("usage").unwrap_or(&Value::Null));
            said = again.choices.pop().ok_or_else(ApiError::internal)?;
        }
    }
}

impl Settled {
    /// Returns the answer of a choice that fits.
    fn of(checked: Checked, index: usize, attempts: usize, usage: Value) -> Self {
        let Checked {
            said, mut changes, ..
        } = checked;
        for change in &mut changes {
            change.param = format!("choices[{index}].{}", change.param);
        }
        Self {
            said,
            changes,
            attempts,
            usage,
        }
    }
}

/// Returns the answer if it is one.
///
/// # Errors
/// Fails with the error that the upstream answered with.
pub(super) async fn accepted(reply: Reply) -> Result<Reply, Failure> {
    if reply.status == 200 {
        return Ok(reply);
    }
    let (status, retry_after) = (reply.status, reply.headers.get(RETRY_AFTER).cloned());
    let body = reply.whole().await?;
    let retry_after = retry_after.as_ref().map(|value| value.as_bytes());
    Err(Failure::of_upstream(status, &body, retry_after))
}

/// Gives an identity to each call that has none, and two calls never the same one.
fn identify(said: &mut Said) {
    let mut seen: Vec<String> = Vec::new();
    for call in &mut said.calls {
        if call.id.is_empty() || seen.contains(&call.id) {
            call.id = format!("call_{}", random::identity());
        }
        seen.push(call.id.clone());
    }
}

fn given_up(index: usize, said: &Said, rejected: &Rejected, attempts: usize) -> ApiError {
    let place = format!("choices[{index}].{}", rejected.place);
    match rejected.is_cut {
        true => ApiError::answer_cut(&place, said.finish.as_deref().unwrap_or_default()),
        false => ApiError::answer_rejected(&place, &rejected.reason, attempts),
    }
}

/// Does work on a thread that may block, when its turn has come. It is cancelled when nobody waits for it.
async fn work<T: Send + 'static>(
    gateway: &Arc<Gateway>,
    work: impl FnOnce(Cancel) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let turn = gateway.working.clone().acquire_owned().await;
    let turn = turn.map_err(|_| ApiError::shutting_down())?;
    let left = CancellationToken::new();
    let waiting = left.clone().drop_guard();
    let most = gateway.limits.compile;
    let done = tokio::task::spawn_blocking(move || {
        let end = Instant::now() + most;
        let done = work(Cancel::when(move || left.is_cancelled() || Instant::now() >= end));
        drop(turn);
        done
    });
    let done = done.await;
    drop(waiting);
    done.map_err(|_| ApiError::internal())
}

impl Prepared {
    fn read(gateway: &Gateway, body: &[u8], cancel: &Cancel) -> Result<Self, ApiError> {
        let mut forwarded = forwarded::read(body)?;
        let (mut projections, mut arguments) = (Vec::new(), Vec::new());
        let known = |constraint: &Constraint| -> Result<Option<Arc<KnownSchema>>, ApiError> {
            let Source::Schema(text) = &constraint.source else {
                return Ok(None);
            };
            let known = gateway.schemas.known(text, cancel);
            known
                .map(Some)
                .map_err(|error| not_projected(gateway, constraint, &error))
        };
        let tools = forwarded.tools.clone();
        for (index, tool) in tools.iter().enumerate() {
            let Some(constraint) = tool.input.constraint() else {
                continue;
            };
            if let Some(known) = known(constraint)? {
                forwarded.constrain_tool(index, known.schema());
                projections.extend(known.told(&constraint.param));
                arguments.push((tool.name.clone(), known));
            }
        }
        let content = match forwarded.content.clone() {
            None => None,
            Some(_) if forwarded.is_any_object() => Some(Rule::Object),
            Some(constraint) => known(&constraint)?.map(|known| {
                forwarded.constrain_content(known.schema());
                projections.extend(known.told(&constraint.param));
                Rule::Schema(known)
            }),
        };
        tell(&projections);
        let calls = forwarded.calls.clone();
        let checks = Arc::new(Checks {
            content,
            calls,
            arguments,
        });
        Ok(Self {
            forwarded,
            checks,
            projections,
        })
    }
}

fn not_projected(gateway: &Gateway, constraint: &Constraint, error: &CompileError) -> ApiError {
    let is_late = error
        .problems
        .first()
        .is_some_and(|problem| problem.kind == ProblemKind::Cancelled);
    match is_late {
        true => ApiError::compile_timed_out(gateway.limits.compile.as_secs_f64()),
        false => ApiError::constraint(&constraint.subject(), error),
    }
}

/// Writes what is lost to the log.
fn tell(projections: &[Projected]) {
    for projected in projections
        .iter()
        .filter(|projected| !projected.losses.is_empty())
    {
        let losses: Vec<String> = projected
            .losses
            .iter()
            .map(|loss| format!("#{}: {}", loss.path, loss.message))
            .collect();
        tracing::info!(
            param = projected.param,
            relation = projected.relation,
            losses = losses.join("; "),
            "projected"
        );
    }
}

/// Returns the list of models of the upstream.
///
/// # Errors
/// Fails if the upstream cannot be asked, or if its answer is no list.
pub(super) async fn models(
    gateway: &Gateway,
    client: &HttpClient,
    request: &HttpRequest,
) -> Result<Map<String, Value>, Failure> {
    let upstream = &gateway.upstream;
    let sent = (String::new(), Deadline::after(gateway.limits.answer));
    let headers = upstream.headers(request.headers());
    let reply = upstream
        .send(client, (Method::GET, "/models"), headers, sent)
        .await?;
    let body = accepted(reply).await?.whole().await?;
    let list = upstream::object(&body)?;
    match list.get("data") {
        Some(Value::Array(_)) => Ok(list),
        _ => Err(ApiError::upstream_answer("data: expected an array").into()),
    }
}
