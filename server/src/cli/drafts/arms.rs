//! The arms: the kinds of drafts.

use lexiform_engine::{
    DraftShape, DraftStores, Drafting, Learner, Lookahead, Speculation, Union, Verification,
};
use lexiform_law::draft::Retrieval as Corpus;

use crate::cli::model::ModelArgs;
use crate::cli::skip::DraftSkip;

/// One way of drafting.
#[derive(Debug)]
pub(super) struct Arm {
    pub(super) name: &'static str,
    forced: bool,
    lookup: bool,
    model: bool,
    /// The learners that draft from earlier answers; `None` for none.
    learners: Option<(&'static [Learner], Union)>,
    /// The tree that they draft.
    shape: DraftShape,
    /// The policy that chooses the drafts to feed; `None` for the policy given on the command line.
    policy: Option<Drafting>,
    /// `true` if the tokens of stores are drawn.
    sampled: bool,
    /// `true` if passes guess ahead.
    guesses: bool,
    /// The source of the draft model.
    model_of: ModelOf,
}

/// The source of an arm's draft model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelOf {
    /// The draft model given on the command line.
    Told,
    /// A model other than the one that writes.
    Other,
    /// The model itself, without some of its layers.
    Itself,
}

const NONE: Arm = Arm {
    name: "none",
    forced: false,
    lookup: false,
    model: false,
    learners: None,
    shape: DraftShape::BestFirst,
    policy: None,
    sampled: false,
    guesses: false,
    model_of: ModelOf::Told,
};

const ALL: Arm = Arm {
    name: "default",
    forced: true,
    lookup: true,
    model: true,
    learners: Some((&[Suffixes, Retrieval, StateKeyed, Recycling], Union::Surest)),
    ..NONE
};

const fn learning(name: &'static str, learners: &'static [Learner]) -> Arm {
    Arm {
        name,
        forced: true,
        learners: Some((learners, Union::Surest)),
        ..NONE
    }
}

use Learner::{NGrams, Phrases, Recycling, Retrieval, StateKeyed, Suffixes, Trigram};

/// The default learners.
const LEARNED: &[Learner] = &[Suffixes, StateKeyed, Recycling];

/// All arms. The arms with a store also draft forced tokens, as the arm `forced` does by itself. The last
/// ones are the default with another policy.
pub(super) const ARMS: [Arm; 26] = [
    NONE,
    Arm {
        name: "forced",
        forced: true,
        ..NONE
    },
    Arm {
        name: "copy",
        forced: true,
        lookup: true,
        ..NONE
    },
    learning("token-recycling", &[Recycling]),
    learning("trigram", &[Trigram]),
    learning("stand", &[NGrams]),
    learning("phrases", &[Phrases]),
    Arm {
        guesses: true,
        ..learning("lookahead", &[Phrases])
    },
    learning("suffixes", &[Suffixes]),
    learning("rest", &[Retrieval]),
    learning("state-keyed", &[StateKeyed]),
    learning("learned", LEARNED),
    Arm {
        learners: Some((LEARNED, Union::All)),
        ..learning("learned-union", LEARNED)
    },
    Arm {
        learners: Some((LEARNED, Union::First)),
        ..learning("learned-first", LEARNED)
    },
    Arm {
        shape: DraftShape::Chain,
        ..learning("chain", LEARNED)
    },
    Arm {
        shape: DraftShape::OptTree,
        ..learning("opt-tree", LEARNED)
    },
    Arm {
        shape: DraftShape::Recycling,
        ..learning("recycling-tree", LEARNED)
    },
    Arm {
        shape: DraftShape::Sequoia,
        ..learning("sequoia", LEARNED)
    },
    Arm {
        name: "draft-model",
        forced: true,
        model: true,
        model_of: ModelOf::Other,
        ..NONE
    },
    Arm {
        name: "layer-skip",
        forced: true,
        model: true,
        model_of: ModelOf::Itself,
        ..NONE
    },
    ALL,
    Arm {
        name: "sampled",
        sampled: true,
        ..ALL
    },
    Arm {
        sampled: true,
        ..learning("stand-sampled", &[NGrams])
    },
    Arm {
        name: "svip",
        policy: Some(Drafting::Svip),
        ..ALL
    },
    Arm {
        name: "ucb1",
        policy: Some(Drafting::Ucb1),
        ..ALL
    },
    Arm {
        name: "exp3",
        policy: Some(Drafting::Exp3),
        ..ALL
    },
];

impl Arm {
    /// Returns `true` if the arm drafts from a corpus and from no other store, so that it measures nothing
    /// without one.
    pub(super) fn needs_corpus(&self) -> bool {
        matches!(self.learners, Some(([Retrieval], _)))
    }

    /// Returns the stores of the arm's engine, with the operator's corpus if the arm drafts from it.
    pub(super) fn stores(&self, corpus: Option<Corpus>) -> DraftStores {
        let default = DraftStores::default();
        match self.learners {
            None => DraftStores { bytes: 0, ..default },
            Some((learners, union)) => DraftStores {
                learners: learners.to_vec(),
                union,
                shape: self.shape,
                corpus: corpus.filter(|_| learners.contains(&Retrieval)),
                ..default
            },
        }
    }

    /// Returns the lookahead window of the arm's engine.
    pub(super) fn lookahead(&self) -> Option<Lookahead> {
        self.guesses.then(Lookahead::default)
    }

    /// Returns the model flags of the arm, given the flags of the command line. If the model drafts for
    /// itself and no flag says how, it skips the one layer that it can best do without.
    pub(super) fn model(&self, told: &ModelArgs) -> ModelArgs {
        let mut model = told.clone();
        match self.model_of {
            ModelOf::Told => {}
            ModelOf::Other => model.run.drafts.draft_skip = None,
            ModelOf::Itself => {
                model.run.drafts.draft_model = None;
                model.run.drafts.draft_skip.get_or_insert(DraftSkip::Best(1));
            }
        }
        model
    }

    /// Returns the policy of the arm, given the policy of the command line.
    pub(super) fn policy(&self, told: Drafting) -> Drafting {
        self.policy.unwrap_or(told)
    }

    /// Returns `true` if its texts are not those of their seeds.
    pub(super) fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Returns the drafting settings of its requests.
    pub(super) fn speculation(&self, of: Speculation) -> Speculation {
        Speculation {
            forced: self.forced,
            lookup: self.lookup,
            model: self.model,
            learned: self.learners.is_some(),
            siblings: self.learners.is_some(),
            sampled: self.sampled,
            verification: match self.sampled {
                true => Verification::Residual,
                false => of.verification,
            },
            ..of
        }
    }
}
