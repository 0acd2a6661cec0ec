//! A sequence as inference engines drive it: accept, validate, roll back, fill.
//!
//! A session is a list of states, so that a rollback is a truncation. When its grammar has outgrown its
//! memory, the session continues in the replacement and keeps only its last states; a rollback beyond those
//! recomputes the state from the tokens. So a session takes at most eight bytes per token, however long its
//! text is.
//!
//! ```text
//!   tokens   t1 t2 t3 t4 t5 t6
//!   states            s3 s4 s5 s6        rollback(2) ─► s4        rollback(5) ─► recomputed from t1
//! ```

use super::{BatchRow, Ends, Grammar, MaskRequest, State};
use crate::error::Exhausted;

/// The error of a session operation. The session is left unchanged.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SessionError {
    /// A token that may not come next.
    #[error("token {token}, number {index} of those given, may not come there")]
    NotAllowed {
        /// The index of the token among those given.
        index: usize,
        /// The token.
        token: u32,
    },
    /// A token after one that ended the sequence.
    #[error("the sequence has ended before token number {index} of those given")]
    Ended {
        /// The index of the token among those given.
        index: usize,
    },
    /// A rollback of more tokens than there are.
    #[error("{asked} tokens cannot be taken back; the sequence has {taken}")]
    TooFar {
        /// The number of tokens to roll back.
        asked: usize,
        /// The number of accepted tokens.
        taken: usize,
    },
    /// A query to the grammar that reached a limit.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// The tokens of one sequence so far, and the state of its grammar after them.
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
    /// The state before the first token, in the current grammar.
    origin: State,
    /// The states after the last tokens, the newest at the end; never empty. While all states are kept, the
    /// first is the origin.
    states: Vec<State>,
    /// The number of tokens accepted since the last check of whether the grammar has outgrown its memory.
    unasked: usize,
}

/// The number of states that a session takes along into a new grammar, so that rollbacks of that many tokens
/// are cheap.
const TAKEN_ALONG: usize = 64;

/// The number of tokens after which a session checks whether its grammar has outgrown its memory. A check
/// costs as much as several steps.
const ASKED_AFTER: usize = 32;

impl Session {
    /// Starts a sequence at the beginning of the grammar. `ends` are the tokens that end it; `None` for those
    /// of the vocabulary.
    pub fn new(grammar: Grammar, ends: Option<Ends>) -> Session {
        let start = grammar.start();
        Session::at(grammar, start, ends)
    }

    /// Starts a sequence in a state of the grammar.
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

    /// Returns the current grammar: the one that was given, or its latest replacement.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Returns the current state, which belongs to [`grammar`](Self::grammar).
    pub fn state(&self) -> State {
        *self.states.last().unwrap_or(&self.origin)
    }

    /// Returns the accepted tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Returns the tokens that end the sequence; `None` for the vocabulary's own.
    pub fn ends(&self) -> Option<&Ends> {
        self.ends.as_ref()
    }

    /// Returns `true` if a token that ends the sequence was accepted.
    pub fn is_terminated(&self) -> bool {
        self.grammar.is_finished(self.state())
    }

    /// Returns `true` if the text so far is complete, so that the sequence may end.
    pub fn is_accepting(&self) -> bool {
        self.grammar.is_accepting(self.state())
    }

    /// Accepts these tokens, all or none.
    ///
    /// # Errors
    /// Returns an error if one of them may not come next, if the sequence ends before the last one, or if a
    /// step costs more than its limits allow. No token is accepted then.
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

    /// Returns how many of these tokens could be accepted in order, without accepting them.
    pub fn validate(&self, tokens: &[u32]) -> usize {
        self.grammar.walk(self.state(), tokens, self.ends.as_ref()).len()
    }

    /// Rolls back the last `count` tokens, an end token among them too.
    ///
    /// # Errors
    /// Returns an error if there are fewer tokens, or if recomputing the state costs more than the limits
    /// allow.
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

    /// Recomputes the state after the first `tokens` tokens, from the beginning.
    fn found_again(&self, tokens: usize) -> Result<State, SessionError> {
        let mut state = self.origin;
        for (index, &token) in self.tokens[..tokens].iter().enumerate() {
            let next = self.grammar.step_for(state, token, self.ends.as_ref())?;
            state = next.ok_or(SessionError::NotAllowed { index, token })?;
        }
        Ok(state)
    }

    /// Rolls back all tokens.
    pub fn reset(&mut self) {
        self.tokens.clear();
        self.states.clear();
        self.states.push(self.origin);
    }

    /// Writes the mask of the next token into a buffer. Words beyond the mask are cleared; a mask longer than
    /// the buffer is cut off.
    ///
    /// # Errors
    /// Returns an error if the mask costs more than its limits allow. The buffer is then cleared.
    pub fn fill(&self, budget: Option<usize>, words: &mut [u32]) -> Result<(), Exhausted> {
        let request = MaskRequest::from(self.state()).within(budget);
        self.grammar.fill(request.ending(self.ends.as_ref()), words)
    }

    /// Returns the sequence as a row of a batch.
    pub fn row(&self, budget: Option<usize>) -> BatchRow {
        BatchRow {
            grammar: self.grammar.clone(),
            state: self.state(),
            budget,
            ends: self.ends.clone(),
        }
    }

    /// Switches to the replacement of a grammar that has outgrown its memory, and keeps only the last states.
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
