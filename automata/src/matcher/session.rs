//! One sequence as inference engines drive it: accept, validate, roll back, fill.
//!
//! A session is a list of states, so that a rollback is a truncation. It goes on in the grammar that takes
//! the place of one that has outgrown its memory, and then keeps only its last states: what was before them
//! is found again from the tokens if somebody goes back that far. So a session takes at most eight bytes for
//! each token, however long its text is.
//!
//! ```text
//!   tokens   t1 t2 t3 t4 t5 t6
//!   states            s3 s4 s5 s6        rollback(2) ─► s4        rollback(5) ─► from the start again over t1
//! ```

use super::{BatchRow, Ends, Grammar, MaskRequest, State};
use crate::error::Exhausted;

/// Why a session did not do what it was asked for. It is then as it was before.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SessionError {
    /// A token may not come where it stands.
    #[error("token {token}, number {index} of those given, may not come there")]
    NotAllowed {
        /// Where it stands among the tokens that were given.
        index: usize,
        /// The token.
        token: u32,
    },
    /// A token was given after one that ended the sequence.
    #[error("the sequence has ended before token number {index} of those given")]
    Ended {
        /// Where the token stands among those that were given.
        index: usize,
    },
    /// More tokens were to be taken back than there are.
    #[error("{asked} tokens cannot be taken back; the sequence has {taken}")]
    TooFar {
        /// The tokens to be taken back.
        asked: usize,
        /// The tokens that were accepted.
        taken: usize,
    },
    /// The grammar did not answer within its limits.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// The tokens of one sequence so far, and where its grammar stands after them.
///
/// ```
/// # use std::sync::Arc;
/// # use lexiform::{Options, Session, Source, compile};
/// # use lexiform::vocab::{TokenKind, Vocabulary};
/// # let tokens = ["<eos>", "a", "b"].map(|text| (TokenKind::Text, text));
/// # let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
/// let (grammar, _) = compile(Source::Regex("aab"), &vocab, &Options::default())?;
/// let mut session = Session::new(grammar, None);
/// assert_eq!(session.validate(&[1, 1, 1]), 2);
/// session.accept(&[1, 1])?;
/// session.rollback(1)?;
/// session.accept(&[1, 2, 0])?;
/// assert!(session.is_terminated() && session.accept(&[1]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    grammar: Grammar,
    ends: Option<Ends>,
    tokens: Vec<u32>,
    /// The state before every token, in the grammar as it is now.
    origin: State,
    /// The states after the last tokens, the newest at the end; never empty. As long as all are there, the
    /// first is the origin.
    states: Vec<State>,
    /// The tokens accepted since the grammar was last asked whether it has outgrown its memory.
    unasked: usize,
}

/// The states that a session takes along into a new grammar: rollbacks of so many tokens cost nothing.
const TAKEN_ALONG: usize = 64;

/// A grammar is asked whether it has outgrown its memory after so many tokens: to ask costs as much as
/// several steps.
const ASKED_AFTER: usize = 32;

impl Session {
    /// A sequence at its beginning. `ends` are the tokens that end it; `None` for those of the vocabulary.
    pub fn new(grammar: Grammar, ends: Option<Ends>) -> Session {
        let start = grammar.start();
        Session::at(grammar, start, ends)
    }

    /// A sequence that begins in a state of the grammar.
    pub fn at(grammar: Grammar, state: State, ends: Option<Ends>) -> Session {
        Session {
            grammar,
            ends,
            tokens: Vec::new(),
            origin: state,
            states: vec![state],
            unasked: 0,
        }
    }

    /// The grammar, or what has taken its place by now.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Where the sequence stands, in [`grammar`](Self::grammar).
    pub fn state(&self) -> State {
        *self.states.last().unwrap_or(&self.origin)
    }

    /// The accepted tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The tokens that end the sequence; `None` for those of the vocabulary.
    pub fn ends(&self) -> Option<&Ends> {
        self.ends.as_ref()
    }

    /// Whether a token that ends the sequence was accepted.
    pub fn is_terminated(&self) -> bool {
        self.grammar.is_finished(self.state())
    }

    /// Whether the text so far is complete, so that the sequence may end.
    pub fn is_accepting(&self) -> bool {
        self.grammar.is_accepting(self.state())
    }

    /// Takes these tokens, all or none.
    ///
    /// # Errors
    /// When one of them may not come, when the sequence ends before the last one, or when a step costs more
    /// than its limits allow. Nothing is taken then.
    pub fn accept(&mut self, tokens: &[u32]) -> Result<(), SessionError> {
        let before = self.states.len();
        for (index, &token) in tokens.iter().enumerate() {
            match self.after(index, token) {
                Ok(next) => self.states.push(next),
                Err(error) => {
                    self.states.truncate(before);
                    return Err(error);
                }
            }
        }
        self.tokens.extend_from_slice(tokens);
        self.unasked += tokens.len();
        if self.unasked >= ASKED_AFTER {
            self.unasked = 0;
            self.renew();
        }
        Ok(())
    }

    fn after(&self, index: usize, token: u32) -> Result<State, SessionError> {
        if self.is_terminated() {
            return Err(SessionError::Ended { index });
        }
        let next = self.grammar.step_for(self.state(), token, self.ends.as_ref())?;
        next.ok_or(SessionError::NotAllowed { index, token })
    }

    /// How many of these tokens could be accepted one after the other; nothing is taken.
    pub fn validate(&self, tokens: &[u32]) -> usize {
        self.grammar.walk(self.state(), tokens, self.ends.as_ref()).len()
    }

    /// Takes back the last tokens, an end among them too.
    ///
    /// # Errors
    /// When there are fewer tokens, or when to find the state again costs more than the limits allow.
    pub fn rollback(&mut self, count: usize) -> Result<(), SessionError> {
        let taken = self.tokens.len();
        let Some(left) = taken.checked_sub(count) else {
            return Err(SessionError::TooFar { asked: count, taken });
        };
        match self.states.len().checked_sub(count) {
            Some(states) if states > 0 => self.states.truncate(states),
            _ => self.states = vec![self.found_again(left)?],
        }
        self.tokens.truncate(left);
        Ok(())
    }

    /// The state after the first tokens, from the beginning.
    fn found_again(&self, tokens: usize) -> Result<State, SessionError> {
        let mut state = self.origin;
        for (index, &token) in self.tokens[..tokens].iter().enumerate() {
            let next = self.grammar.step_for(state, token, self.ends.as_ref())?;
            state = next.ok_or(SessionError::NotAllowed { index, token })?;
        }
        Ok(state)
    }

    /// Takes back all tokens.
    pub fn reset(&mut self) {
        self.tokens.clear();
        self.states.clear();
        self.states.push(self.origin);
    }

    /// Writes the mask of what may come next into a buffer: words beyond the mask are cleared, missing ones
    /// are left out.
    ///
    /// # Errors
    /// When the mask costs more than its limits allow. The buffer is cleared then.
    pub fn fill(&self, budget: Option<usize>, words: &mut [u32]) -> Result<(), Exhausted> {
        let request = MaskRequest::from(self.state()).within(budget);
        self.grammar.fill(request.ending(self.ends.as_ref()), words)
    }

    /// The sequence as a row of a batch.
    pub fn row(&self, budget: Option<usize>) -> BatchRow {
        BatchRow {
            grammar: self.grammar.clone(),
            state: self.state(),
            budget,
            ends: self.ends.clone(),
        }
    }

    /// Goes on in the grammar that takes the place of an outgrown one, with the last states alone.
    fn renew(&mut self) {
        let first = self.states.len().saturating_sub(TAKEN_ALONG);
        let mut kept = vec![self.origin];
        kept.extend_from_slice(&self.states[first..]);
        if self.grammar.compact(&mut kept) {
            self.origin = kept.remove(0);
            self.states = kept;
        }
    }
}
