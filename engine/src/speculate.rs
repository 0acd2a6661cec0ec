//! Drafts: tokens that are cheap to guess, fed together with what must be fed anyway.
//!
//! ```text
//!   forced text ─► lookup in prompt and answer ─► draft model      each goes on where the one before it stopped
//! ```
//!
//! Forced and copied text is verified by *drawing once*: at every position the law draws its token as if there were no
//! draft, and if that token is the one drafted, the logits behind it are already there. Such a draft can only save
//! passes; the text, its probability and the random numbers used are the same without it. What a draft model samples is
//! verified by the *residual rule*, unless the request wants the text of its seed ([`Verification`]): then the text is
//! another one of the same law.
//!
//! [`Verification`]: crate::request::Verification
//!
//! Forced text is drafted as far as it goes. Guesses are kept short where they fail: a sequence drafts one token more
//! than were confirmed the last time, and twice as many after all were.

use crate::error::EngineError;
use crate::outlook::{Outlook, path};
use crate::request::Origin;
use crate::sequence::{Draft, Sequence};
use crate::{Grammar, State};
use lexiform::draft::{self, Drafter, Forced, NodeId, PromptLookup, Text, Tokenise};
use lexiform::vocab::Vocabulary;
use std::sync::Arc;

/// Shorter matches than two tokens are mostly chance.
const LOOKUP: PromptLookup = PromptLookup {
    longest: 4,
    shortest: 2,
    branches: 1,
};

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
    /// A mask that is needed to judge one costs too much.
    pub(crate) fn propose(&self, outlook: &mut Outlook) -> Result<(), EngineError> {
        outlook.drafts.clear();
        let (speculation, room) = (outlook.speculation, outlook.room());
        if room == 0 || !(speculation.forced || speculation.lookup) {
            return Ok(());
        }
        let (prompt, answer) = outlook.tokens.split_at(outlook.prompt);
        let text = Text { prompt, answer };
        let at = outlook.grammar.as_ref().map(|(grammar, state)| (grammar, *state));
        let mut draft: draft::Draft<'_, Grammar> = draft::Draft::new(at, self.vocabulary.eos(), room);
        if speculation.forced {
            Forced::new(Cutter(self.tokeniser.clone()), self.vocabulary.clone()).propose(text, &mut draft);
        }
        if speculation.lookup {
            let lookup = PromptLookup {
                branches: speculation.branches,
                ..LOOKUP
            };
            lookup.clone().propose(text, &mut draft);
        }
        let nodes = draft.nodes().to_vec();
        // Where each node has become a draft; what hangs below one that has not is none either.
        let mut places: Vec<Option<NodeId>> = Vec::with_capacity(nodes.len());
        for node in &nodes {
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

fn drafted(node: &draft::Node<State>, parent: Option<NodeId>) -> Draft {
    Draft {
        token: node.token,
        parent,
        origin: match node.origin {
            draft::Origin::Forced => Origin::Forced,
            draft::Origin::Copied | draft::Origin::Model => Origin::Drafted,
        },
        state: node.state,
        proposal: node.proposal.clone(),
        is_last: false,
    }
}

/// Learns from a verified draft, of which this path was accepted. Of a tree, what counts is how far its branches reach.
pub(crate) fn observe(sequence: &mut Sequence, accepted: &[NodeId]) {
    let drafts = &sequence.drafts;
    let guessed = |path: &[NodeId]| {
        let is_guess = |&&node: &&NodeId| drafts[node].origin == Origin::Drafted;
        path.iter().filter(is_guess).count()
    };
    let reached = (0..drafts.len()).map(|node| guessed(&path(drafts, Some(node))));
    let (offered, confirmed) = (reached.max().unwrap_or(0), guessed(accepted));
    if offered > 0 {
        let reach = if confirmed == offered {
            2 * offered.max(sequence.reach)
        } else {
            confirmed + 1
        };
        sequence.reach = reach.clamp(1, sequence.request.speculation.max_draft);
    }
}
