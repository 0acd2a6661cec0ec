//! Drafts: tokens that are cheap to guess, fed together with the token that must be fed anyway.
//!
//! ```text
//!   forced text ─┬─► lookup in prompt, answer, reference ─► draft model    each continues after the previous
//!                ├─► samples of the request and earlier answers           beside what was looked up
//!                └─► guesses of the window, fed for the rows after them   beside all of these
//! ```
//!
//! Forced and copied text is verified by *drawing once*: at every position the law draws its token as if
//! there were no draft, and if that token is the drafted one, the logits after it are already there. Such a
//! draft can only save passes; the text, its probability and the random numbers used are the same without
//! it. The tokens that a draft model samples are verified by the *residual rule*, unless the request asks
//! for the text of its seed ([`Verification`]): the residual rule gives another text of the same law.
//!
//! [`Verification`]: crate::request::Verification
//!
//! The [policy](crate::speculation::policy) decides how many of the drafts are fed.

use crate::error::EngineError;
use crate::grammar::drawn;
use crate::grammar::outlook::Outlook;
use crate::request::Request;
use crate::speculation::draft::{Confidence, Draft, Source};
use crate::{Grammar, State};
use lexiform::vocab::Vocabulary;
use lexiform_law::draft;
use lexiform_law::draft::{Drafter, Forced, Lookup, NodeId, PromptLookup, Proposal, Text, Tokenise};
use std::sync::Arc;

/// The parameters of the lookup. Matches shorter than two tokens are mostly chance. Longer ones distinguish
/// places where the same few words occur often.
const LOOKUP: PromptLookup = PromptLookup {
    longest: 16,
    shortest: 2,
    branches: 1,
    window: 1 << 16,
};

/// The number of tokens that are copied at first. Once as many were confirmed one after another, twice as
/// many are copied as were confirmed, up to the room of the request: a passage that is repeated word for
/// word takes passes in proportion to the logarithm of its length.
const COPIED: usize = 16;
/// The number of drafts up to which stores add to them: the likeliest paths through what they know.
const LEARNED: usize = 32;

/// Returns the index of the tokens of a request's prompt and reference, if its drafts are looked up. Takes
/// the reference out of the request.
pub(crate) fn lookup(request: &mut Request) -> Option<Lookup> {
    let reference = std::mem::take(&mut request.prompt.reference);
    let how = PromptLookup {
        branches: request.speculation.branches,
        ..LOOKUP
    };
    let looks = request.speculation.lookup && request.speculation.max_draft > 0;
    looks.then(|| Lookup::new(how, &request.prompt.tokens, reference))
}

/// A tokenizer that drafters share.
struct Cutter(Arc<dyn Tokenise + Sync>);

impl Tokenise for Cutter {
    fn tokens(&self, bytes: &[u8]) -> Option<Vec<u32>> {
        self.0.tokens(bytes)
    }
}

/// The drafters that need no model.
pub(crate) struct Drafters {
    tokeniser: Arc<dyn Tokenise + Sync>,
    vocabulary: Arc<Vocabulary>,
}

impl Drafters {
    pub(crate) fn new(tokeniser: Arc<dyn Tokenise + Sync>, vocabulary: Arc<Vocabulary>) -> Self {
        Drafters {
            tokeniser,
            vocabulary,
        }
    }

    /// Sets the drafts of a sequence.
    ///
    /// # Errors
    /// A mask that is needed to judge a draft costs too much.
    pub(crate) fn propose(&self, outlook: &mut Outlook) -> Result<(), EngineError> {
        outlook.drafts.clear();
        let (speculation, room) = (outlook.speculation, outlook.room());
        let has_source = speculation.forced
            || outlook.lookup.is_some()
            || !outlook.stores.is_empty()
            || outlook.window.is_some();
        if room == 0 || !has_source {
            return Ok(());
        }
        let tokens = outlook.tokens.clone();
        let (prompt, answer) = tokens.split_at(outlook.prompt);
        let text = Text { prompt, answer };
        let grammar = outlook.grammar.clone();
        let at = grammar.as_ref().map(|(grammar, state)| (grammar, *state));
        let mut draft: draft::Draft<'_, Grammar> = draft::Draft::new(at, self.vocabulary.eos(), room);
        if speculation.forced {
            Forced::new(Cutter(self.tokeniser.clone()), self.vocabulary.clone()).propose(text, &mut draft);
        }
        let forced = draft.nodes().len();
        if let Some(lookup) = &outlook.lookup {
            // The beginning of a copy is its likeliest part: of little room, half is for other drafters.
            let is_shared = !outlook.stores.is_empty() || speculation.model;
            let most = match outlook.copied {
                0 if is_shared => COPIED.min((room - forced.min(room)).div_ceil(2)),
                copied => copied.saturating_mul(2).max(COPIED),
            };
            draft.set_budget(room.min(forced + most));
            lookup.offer(text, &mut draft);
        }
        let mut places = Vec::with_capacity(draft.nodes().len());
        self.take(draft.nodes(), &mut places, outlook)?;
        draft.set_budget(room.min(draft.nodes().len().max(LEARNED)));
        // Beside a passage that is being repeated, what is likely elsewhere is not.
        let is_repeated = outlook.copied >= COPIED && draft.nodes().len() > forced;
        if !is_repeated && !drawn::draw(outlook, forced, &self.vocabulary) {
            for store in &outlook.stores {
                store.offer(text, (forced.checked_sub(1), outlook.least), &mut draft);
            }
            self.take(draft.nodes(), &mut places, outlook)?;
        }
        outlook.take_guesses();
        Ok(())
    }

    /// Turns the nodes that are not in `places` into drafts. `places` has the draft that each node has
    /// become; a node below one that has not become a draft becomes none either.
    fn take(
        &self,
        nodes: &[draft::Node<State>],
        places: &mut Vec<Option<NodeId>>,
        outlook: &mut Outlook,
    ) -> Result<(), EngineError> {
        for node in &nodes[places.len()..] {
            let parent = node.parent.map(|parent| places[parent]);
            let is_taken = match parent {
                Some(None) => false,
                _ => outlook.push(drafted(node, parent.flatten()), &self.vocabulary)?,
            };
            places.push(is_taken.then(|| outlook.drafts.len() - 1));
        }
        Ok(())
    }
}

/// Returns a node as a draft. None of these tokens are drawn.
fn drafted(node: &draft::Node<State>, parent: Option<NodeId>) -> Draft {
    Draft {
        token: node.token,
        parent,
        source: match node.origin {
            draft::Origin::Forced => Source::Forced,
            draft::Origin::Copied => Source::Copied,
            draft::Origin::Predicted => Source::Predicted,
            draft::Origin::Model => Source::Model,
            learned => Source::Learned(learned, Confidence::of(node.chance)),
        },
        state: node.state,
        proposal: Proposal::Point,
        is_last: false,
    }
}
