//! Monitors: programs of the caller that decide which tokens may come next.
//!
//! A grammar knows the mask of every state. A type checker, a database or a policy often knows less: whether
//! *this* text may continue with *this* token. [`Monitor`] is the interface of all of them, and its states
//! declare which kind of answer they can give:
//!
//! | [`Coverage`] | the host gives | a token is drawn by |
//! |---|---|---|
//! | [`Exact`](Coverage::Exact) | the mask | a masked draw |
//! | [`Over`](Coverage::Over) | a mask that may hold more, and yes or no for a token | asking inside the mask |
//! | [`Ask`](Coverage::Ask) | yes or no for a token | asking |
//!
//! ```text
//!   Grammar ──┐
//!   Judged  ──┤
//!   PerText ──┼─► Product: what all of them allow ─► sample::step   one token of the local law
//!   PerToken ─┘   the masks are intersected,        sample::verify a drafted tree, without any mask
//!                 the others asked
//! ```
//!
//! A token has the law of the row restricted to what is allowed, whatever the kinds: the law under the
//! intersected mask, which is never computed. When tokens are checked one by one, the importance weight is an
//! estimate with the right mean ([`asked`](crate::law::asked)), which is what particles need. The laws that
//! make attempts or walk a chain need masks.
//!
//! A product can reach a state where each part allows some token, but no token is allowed by all. Then the
//! text ends with [`LawError::NoMass`](crate::law::LawError::NoMass), never with a token that one of them
//! forbids; [`ProductState::last_refusal`] names the part that refused last.
//!
//! A text of the letters a and b in which a function allows no two b in a row:
//!
//! ```
//! # use std::sync::Arc;
//! use lexiform_law::{Law, Seeded, Step, Table, Walk, Warper, Warping};
//! use lexiform_law::monitor::{Monitor, PerText, Written, sample};
//! # use lexiform::vocab::{TokenKind, Vocabulary};
//!
//! # let tokens = [(TokenKind::Text, "a"), (TokenKind::Text, "b"), (TokenKind::Special, "<eos>")];
//! # let vocabulary = Arc::new(Vocabulary::new(&tokens, &[2])?);
//! let monitor = PerText::new(&vocabulary, |written| match written {
//!     Written::Prefix(text) | Written::Whole(text) => Ok(!text.ends_with(b"bb")),
//! });
//! let warper = Warper::new(Warping::default(), Law::Local)?;
//! let (mut walk, mut chooser) = (Walk::local(&warper, true, vocabulary.eos()), Seeded::new(7, 0));
//! let (mut state, mut text) = (monitor.start(), Vec::new());
//! loop {
//!     // What a model would compute after this text.
//!     let row = Table(vec![0.1, 0.8, 0.1]);
//!     match sample::step(&mut walk, &row, &mut *state, None, &mut chooser)? {
//!         Step::Token(drawn) => {
//!             state.advance(drawn.token)?;
//!             text.push(drawn.token);
//!         }
//!         _ => break,
//!     }
//! }
//! assert!(text.windows(2).all(|pair| pair != [1, 1]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A host that is far away implements [`Judge`]: it is asked about several texts at once, and can answer
//! with what may follow, so that nothing is asked until that is written.
//!
//! A host may panic, or take its time. Nothing here catches that; the code that runs the host has to.

mod ask;
mod grammar;
mod judge;
mod product;
pub mod sample;
mod score;

pub use ask::{PerText, PerToken, Written};
pub use judge::{Judge, Judged, Question, Verdict};
pub use product::{Product, ProductState};
pub use score::Score;

/// The information that a state can give about all tokens at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// The mask holds the allowed tokens and no others.
    Exact,
    /// Every allowed token is in the mask, and others may be.
    Over,
    /// There is no mask: tokens have to be checked one by one.
    Ask,
}

/// The reason why a constraint has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(
    /// The reason, in the words of the host.
    pub String,
);

/// A set of texts that a host decides token by token.
pub trait Monitor: Send + Sync {
    /// Returns the state of the empty text.
    fn start(&self) -> Box<dyn MonitorState>;
}

/// A monitor after a text. Equal texts must get equal answers at any time.
pub trait MonitorState: Send {
    /// Returns a copy of this state, for a text that continues differently.
    fn fork(&self) -> Box<dyn MonitorState>;

    /// Returns `true` if a token may come next. An end token may if the text is whole without it. `left` is
    /// how many tokens may follow it, the end token included, if that is limited; a monitor that cannot
    /// decide whether that many are enough ignores it.
    ///
    /// # Errors
    /// The host has no answer.
    fn allows(&mut self, token: u32, left: Option<usize>) -> Result<bool, Failure>;

    /// Advances by a token that is allowed.
    ///
    /// # Errors
    /// The host has no answer, or the token is not allowed.
    fn advance(&mut self, token: u32) -> Result<(), Failure>;

    /// Clears the bits of tokens that may not come next, as far as that is known without checking single
    /// tokens; `left` is the number of tokens that may come, the end token included.
    ///
    /// # Errors
    /// The host has no answer.
    fn narrow(&mut self, _words: &mut [u32], _left: Option<usize>) -> Result<Coverage, Failure> {
        Ok(Coverage::Ask)
    }

    /// Does what [`narrow`](Self::narrow) does, as far as the host need not be asked and little has to be
    /// computed. Returns `false` if nothing is known.
    fn narrow_known(&mut self, _words: &mut [u32]) -> bool {
        false
    }

    /// Returns how many tokens the host should be asked about at once where two may suffice.
    fn together(&self) -> usize {
        1
    }

    /// Announces tokens that [`allows`](Self::allows) is likely to be asked about, the likeliest first, so
    /// that the host can be asked about all of them at once.
    ///
    /// # Errors
    /// The host has no answer.
    fn prepare(&mut self, _tokens: &[u32]) -> Result<(), Failure> {
        Ok(())
    }
}

impl Clone for Box<dyn MonitorState> {
    fn clone(&self) -> Self {
        self.fork()
    }
}
