//! The flags of drafts: what is drafted, by which policy, and what is learned for that.

use std::path::PathBuf;

use clap::ValueEnum;
use lexiform_engine::{DraftShape, DraftStores, Drafting, Learner, Lookahead, Union};

use crate::cli::skip::DraftSkip;

/// The memory for what is learned from the answers of one owner, in MiB.
const DRAFT_MIB: usize = 8;
/// The memory for texts to draft from, in MiB.
const CORPUS_MIB: usize = 256;

/// The drafts of the engine.
#[derive(Clone, Debug, clap::Args)]
pub struct DraftArgs {
    /// A small model that drafts ahead, named like --model; it never changes the text, only the speed. A
    /// model with the same tokenizer drafts best
    #[arg(long, env = "LEXIFORM_DRAFT_MODEL", value_name = "MODEL")]
    pub draft_model: Option<PathBuf>,
    /// Let the model draft for itself without some of its layers: these, as 2-4,7, counted from 0, or as
    /// best:3, the given number that it can best do without. It replaces a draft model
    #[arg(
        long,
        env = "LEXIFORM_DRAFT_SKIP",
        value_name = "LAYERS",
        conflicts_with = "draft_model"
    )]
    pub draft_skip: Option<DraftSkip>,
    /// Guess tokens ahead in this many columns of each pass, and draft from phrases that the guesses reveal
    /// (lookahead decoding): for devices on which a pass of a hundred tokens takes as long as one of one
    /// token
    #[arg(long, env = "LEXIFORM_DRAFT_LOOKAHEAD", value_name = "COLUMNS")]
    pub draft_lookahead: Option<usize>,
    /// Memory for what is learned from the answers of one API key, in MiB, to draft its next answers from; 0
    /// learns nothing
    #[arg(long, env = "LEXIFORM_DRAFT_MEMORY", default_value_t = DRAFT_MIB, value_name = "MIB")]
    pub draft_memory: usize,
    /// A folder in which what is learned from the answers of each API key is kept across restarts, the most
    /// recent answers in a quarter of that memory. It is created if it does not exist
    #[arg(long, env = "LEXIFORM_DRAFT_FOLDER", value_name = "DIR")]
    pub draft_folder: Option<PathBuf>,
    /// Draft the answers for all API keys from those for all others. The time that an answer takes then
    /// reveals whether another key had a similar one
    #[arg(long, env = "LEXIFORM_SHARE_DRAFTS")]
    pub share_drafts: bool,
    /// A text, or a folder of texts, that answers are likely to repeat, to draft from; may be given several
    /// times. They are read at start, without hidden files in a folder
    #[arg(
        long,
        env = "LEXIFORM_DRAFT_CORPUS",
        value_name = "PATH",
        value_delimiter = ','
    )]
    pub draft_corpus: Vec<PathBuf>,
    /// Memory for these texts, in MiB; the program does not start if they need more
    #[arg(long, env = "LEXIFORM_DRAFT_CORPUS_MEMORY", default_value_t = CORPUS_MIB, value_name = "MIB")]
    pub draft_corpus_memory: usize,
    /// How many drafts a pass verifies: measured, as many as pay off by the measured costs of passes;
    /// always, all of them; svip, all, but drafts end where their drafter is unsure; ucb1 or exp3, those of
    /// the sources that a bandit chooses
    #[arg(long, env = "LEXIFORM_DRAFT_POLICY", value_enum, default_value_t = PolicyWord::Measured, value_name = "POLICY")]
    pub draft_policy: PolicyWord,
    /// The stores to draft from, in their order: suffixes of earlier answers, corpus, state of the
    /// constraint, recycling, stand, trigram, phrases. By default suffixes,corpus,state,recycling, and
    /// phrases with --draft-lookahead
    #[arg(
        long,
        env = "LEXIFORM_DRAFTERS",
        value_enum,
        value_delimiter = ',',
        value_name = "STORES"
    )]
    pub drafters: Vec<DrafterWord>,
    /// Whose drafts count where several stores have some: of the surest, of the first, or of all
    #[arg(long, env = "LEXIFORM_DRAFT_UNION", value_enum, default_value_t = UnionWord::Surest, value_name = "UNION")]
    pub draft_union: UnionWord,
    /// The trees that stores draft: best-first, the likeliest paths; chain; opt-tree, layer by layer;
    /// recycling, the fixed tree of Token Recycling; sequoia, the best tree for the measured acceptance of
    /// each rank
    #[arg(long, env = "LEXIFORM_DRAFT_SHAPE", value_enum, default_value_t = ShapeWord::BestFirst, value_name = "SHAPE")]
    pub draft_shape: ShapeWord,
}

/// A policy, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyWord {
    /// As many as pay off.
    Measured,
    /// All.
    Always,
    /// All, up to where a drafter is unsure.
    Svip,
    /// Those of the sources that UCB1 chooses.
    Ucb1,
    /// Those of the sources that EXP3 chooses.
    Exp3,
}

impl From<PolicyWord> for Drafting {
    fn from(word: PolicyWord) -> Self {
        match word {
            PolicyWord::Measured => Drafting::Measured,
            PolicyWord::Always => Drafting::Always,
            PolicyWord::Svip => Drafting::Svip,
            PolicyWord::Ucb1 => Drafting::Ucb1,
            PolicyWord::Exp3 => Drafting::Exp3,
        }
    }
}

/// A store, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DrafterWord {
    /// Earlier answers.
    Suffixes,
    /// The operator's texts.
    Corpus,
    /// Rows at a state of the constraint.
    State,
    /// The last row after a token.
    Recycling,
    /// Rows after the last three tokens.
    Stand,
    /// Tokens that followed the last two.
    Trigram,
    /// Phrases.
    Phrases,
}

impl From<DrafterWord> for Learner {
    fn from(word: DrafterWord) -> Self {
        match word {
            DrafterWord::Suffixes => Learner::Suffixes,
            DrafterWord::Corpus => Learner::Retrieval,
            DrafterWord::State => Learner::StateKeyed,
            DrafterWord::Recycling => Learner::Recycling,
            DrafterWord::Stand => Learner::NGrams,
            DrafterWord::Trigram => Learner::Trigram,
            DrafterWord::Phrases => Learner::Phrases,
        }
    }
}

/// A rule that combines stores, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnionWord {
    /// Of the surest.
    Surest,
    /// Of the first that has any.
    First,
    /// Of all.
    All,
}

impl From<UnionWord> for Union {
    fn from(word: UnionWord) -> Self {
        match word {
            UnionWord::Surest => Union::Surest,
            UnionWord::First => Union::First,
            UnionWord::All => Union::All,
        }
    }
}

/// A shape, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShapeWord {
    /// The likeliest paths.
    BestFirst,
    /// The likeliest token after each.
    Chain,
    /// Layer by layer.
    OptTree,
    /// A fixed tree.
    Recycling,
    /// A tree for measured acceptance.
    Sequoia,
}

impl From<ShapeWord> for DraftShape {
    fn from(word: ShapeWord) -> Self {
        match word {
            ShapeWord::BestFirst => DraftShape::BestFirst,
            ShapeWord::Chain => DraftShape::Chain,
            ShapeWord::OptTree => DraftShape::OptTree,
            ShapeWord::Recycling => DraftShape::Recycling,
            ShapeWord::Sequoia => DraftShape::Sequoia,
        }
    }
}

impl DraftArgs {
    /// Returns the stores to draft from; the texts of the operator are read elsewhere.
    pub(super) fn stores(&self) -> DraftStores {
        DraftStores {
            bytes: self.draft_memory.saturating_mul(1 << 20),
            shared: self.share_drafts,
            folder: self.draft_folder.clone(),
            learners: self.learners(),
            union: self.draft_union.into(),
            shape: self.draft_shape.into(),
            ..DraftStores::default()
        }
    }

    /// Returns the learners to draft from. Phrases are guesses at text that has not been written yet, so all
    /// other learners come first unless an order is given.
    fn learners(&self) -> Vec<Learner> {
        if !self.drafters.is_empty() {
            return self.drafters.iter().map(|&word| word.into()).collect();
        }
        let mut learners = DraftStores::default().learners;
        learners.extend(self.draft_lookahead.map(|_| Learner::Phrases));
        learners
    }

    /// Returns the window of guesses.
    pub(super) fn lookahead(&self) -> Option<Lookahead> {
        self.draft_lookahead.map(|columns| Lookahead {
            columns,
            ..Lookahead::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        drafts: DraftArgs,
    }

    fn read(flags: &[&str]) -> DraftArgs {
        let flags = Flags::try_parse_from([&["lexiform"], flags].concat());
        flags.expect("flags").drafts
    }

    #[test]
    fn guesses_come_after_what_was_learned() {
        let (default, guessing) = (read(&[]), read(&["--draft-lookahead", "7"]));
        assert_eq!(default.lookahead(), None);
        assert_eq!(guessing.lookahead().map(|window| window.columns), Some(7));
        let learners = guessing.stores().learners;
        let (last, others) = learners.split_last().expect("learners");
        assert_eq!(
            (*last, others),
            (Learner::Phrases, &default.stores().learners[..])
        );
    }

    /// The default is the engine's, and whatever the engine has can be chosen.
    #[test]
    fn everything_that_drafts_has_a_word() {
        let default = read(&[]).stores();
        assert_eq!(
            (default.learners, default.union, default.shape),
            (
                DraftStores::default().learners,
                DraftStores::default().union,
                DraftStores::default().shape
            )
        );
        let chosen = read(&[
            "--drafters",
            "stand,corpus",
            "--draft-union",
            "all",
            "--draft-shape",
            "opt-tree",
        ]);
        let stores = chosen.stores();
        assert_eq!(stores.learners, [Learner::NGrams, Learner::Retrieval]);
        assert_eq!((stores.union, stores.shape), (Union::All, DraftShape::OptTree));
        let policies = ["measured", "always", "svip", "ucb1", "exp3"];
        let policies = policies.map(|word| Drafting::from(read(&["--draft-policy", word]).draft_policy));
        assert_eq!(policies[0], Drafting::default());
        let mut different = policies.to_vec();
        different.dedup();
        assert_eq!(different.len(), policies.len());
    }
}
