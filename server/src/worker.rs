//! Between a request and the engine: the samples of one request are submitted together and their events arrive in one
//! channel.
//!
//! A request that is dropped, because its client has gone or because the answer is complete, drops its tickets, and
//! with them the sequences in the engine. The channel has no bound of its own: it holds at most `max_tokens` events a
//! sample, and the engine must never wait for a slow client.

use lexiform_engine::{Engine, Event, Refusal, Request, Ticket};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::error::ApiError;

/// The samples of one request while they are written.
pub struct Running {
    events: UnboundedReceiver<(usize, Event)>,
    tickets: Vec<Option<Ticket>>,
}

impl Running {
    /// Submits all requests, or none.
    ///
    /// # Errors
    /// The engine refuses one of them.
    pub fn start(engine: &Engine, requests: Vec<Request>) -> Result<Self, ApiError> {
        let (sender, events) = unbounded_channel();
        let mut tickets = Vec::with_capacity(requests.len());
        for (index, request) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            let sink = Box::new(move |event| sender.send((index, event)).is_ok());
            let ticket = engine
                .submit(request, sink)
                .map_err(|refusal| refused(&refusal))?;
            tickets.push(Some(ticket));
        }
        Ok(Self { events, tickets })
    }

    /// The next event, or `None` when no sample can bring one any more.
    pub async fn next(&mut self) -> Option<(usize, Event)> {
        self.events.recv().await
    }

    /// The next event, for streams that are polled.
    pub fn poll_next(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<(usize, Event)>> {
        self.events.poll_recv(context)
    }

    /// Ends one sample early; its last event still arrives.
    pub fn cancel(&mut self, index: usize) {
        if let Some(ticket) = self.tickets.get_mut(index) {
            *ticket = None;
        }
    }
}

/// What a client is told when the engine does not take its request.
fn refused(refusal: &Refusal) -> ApiError {
    match refusal {
        Refusal::Busy { limit, .. } => ApiError::queue_full(*limit),
        Refusal::Stopped => ApiError::shutting_down(),
        Refusal::TooLong { .. } => ApiError::invalid(
            "context_length_exceeded",
            Some("messages".to_owned()),
            refusal.to_string(),
        ),
        Refusal::EmptyPrompt | Refusal::UnknownToken { .. } => {
            ApiError::invalid("invalid_value", Some("prompt".to_owned()), refusal.to_string())
        }
        Refusal::Invalid { name, .. } => {
            ApiError::invalid("invalid_value", Some((*name).to_owned()), refusal.to_string())
        }
        // A refusal that no request can cause is a fault of this server.
        #[allow(unreachable_patterns, reason = "the engine may learn to refuse more")]
        _ => {
            eprintln!("error: the engine refused a request: {refusal}");
            ApiError::internal()
        }
    }
}
