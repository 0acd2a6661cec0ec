//! A head that was trained to draft from the hidden states of the main model.
//!
//! ```text
//!   main model   t0 t1 … tn-1 ─► states h0 … hn-1, kept beside its keys and values
//!   head         (t1 h0) (t2 h1) … (tn hn-1) ─► row, own state g ─► (draft g) ─► row, …
//! ```
//!
//! A head that has a state of its own ([`Head::own_width`]) reads the text behind the main model, into its
//! own cache, and then its drafts one after another. Drafts are read for one turn only: as soon as the main
//! model has read them, its states replace the head's. A head that has none predicts all tokens at once, from
//! the last state.
//!
//! Where the law draws once whatever is drafted, a head drafts [trees](super::trees), and elsewhere a chain.

use crate::blocks::{Blocks, Table};
use crate::config::EngineConfig;
use crate::engine::draft_model::tokens::{TokenDrafter, TokenModel, drafted};
use crate::engine::draft_model::trees::{TreeModel, TreeNode, depth};
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::model::head::{Head, HeadFeed};
use crate::model::logits::Logits;
use crate::model::{Feed, Model};
use crate::sequence::Sequence;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::NodeId;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The head, its cache, and what drafts from its rows.
pub(crate) struct HeadDrafter {
    reader: HeadReader,
    drafter: TokenDrafter,
}

impl HeadDrafter {
    pub(super) fn new(
        head: Box<dyn Head>,
        target: &dyn Model,
        vocabulary: Arc<Vocabulary>,
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        let (read, kept) = (head.states_width(), target.states_width());
        if read != kept {
            return Err(EngineError::Config(format!(
                "the {} head reads {read} numbers of hidden states for each token, and the model keeps {kept}: \
                 it was loaded for another model",
                head.kind()
            )));
        }
        let drafter = TokenDrafter::new(vocabulary, head.vocab_size(), config);
        let reader = HeadReader::new(head, config)?;
        Ok(HeadDrafter { reader, drafter })
    }

    /// Forgets sequences that have ended.
    pub(super) fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        self.reader.retain(alive);
    }

    /// Empties the cache, whose contents are undefined after a panic.
    pub(super) fn reset(&mut self, config: &EngineConfig) {
        self.reader.tracks.clear();
        self.reader.blocks = Blocks::new(config.blocks, config.block_size);
    }

    /// Extends the drafts of these sequences; see [`TokenDrafter::propose`].
    pub(super) fn propose(
        &mut self,
        target: &dyn Model,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        self.reader.begin();
        let reader = &mut self.reader;
        let mut model = HeadModel { reader, target };
        self.drafter
            .propose_by_rule(&mut model, sequences, grammar_tasks, grace)
    }
}

/// A text to be read by a head, with the drafts that it goes on after.
struct HeadPassage {
    /// The identity of its sequence.
    id: u64,
    text: Arc<Vec<u32>>,
    /// The blocks of the main model, where the states of the text are.
    table: Vec<u32>,
    drafts: Vec<u32>,
    scale: f64,
}

impl HeadPassage {
    /// Returns the number of tokens of the text that are read, each with the state before it.
    fn pairs(&self) -> usize {
        self.text.len() - 1
    }
}

/// The part of a text that a head has read.
#[derive(Default)]
struct Track {
    table: Table,
    /// The number of tokens from the second one on whose keys and values are in the cache.
    read: usize,
    /// `true` if the text was met in this turn, in which it does not change.
    is_met: bool,
    /// The number of drafts that were read after the text in this turn.
    drafts: usize,
    /// The head's own states before and after the last of these; before the first there is a state of the
    /// main model.
    before: Vec<f32>,
    own: Vec<f32>,
    /// The head's own states after the nodes of a tree below these; empty for nodes that were not read.
    of_nodes: Vec<Vec<f32>>,
    /// The rows of all next tokens, of a head that predicts them at once.
    ahead: Option<Vec<f32>>,
}

/// Tokens that a text feeds in one pass.
enum Piece {
    /// These tokens, counted from the second of the text.
    Text(Range<usize>),
    /// The next draft.
    Draft,
}

/// A head that reads texts incrementally.
struct HeadReader {
    head: Box<dyn Head>,
    blocks: Blocks,
    tracks: HashMap<u64, Track>,
    max_feed: usize,
}

impl HeadReader {
    fn new(mut head: Box<dyn Head>, config: &EngineConfig) -> Result<Self, EngineError> {
        head.create_cache(config.blocks, config.block_size)?;
        Ok(HeadReader {
            head,
            blocks: Blocks::new(config.blocks, config.block_size),
            tracks: HashMap::new(),
            max_feed: config.max_step_tokens,
        })
    }

    fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        for (_, track) in self.tracks.extract_if(|&id, _| !alive(id)) {
            self.blocks.release(track.table);
        }
    }

    /// Begins a turn: texts may have changed since the last one.
    fn begin(&mut self) {
        for track in self.tracks.values_mut() {
            (track.is_met, track.drafts, track.ahead) = (false, 0, None);
            track.of_nodes.clear();
        }
    }

    /// Rewinds to what was read of a text and is still valid, and reserves room for the rest and for drafts;
    /// returns `false` if there is none.
    fn prepare(&mut self, sequence: &mut Sequence, drafts: usize) -> bool {
        let text = &sequence.text.tokens;
        let pairs = text.len().saturating_sub(1);
        let is_kept = sequence.text.computed >= pairs && pairs > 0;
        if !is_kept || pairs + drafts > self.head.max_positions() {
            return false;
        }
        let track = self.tracks.entry(sequence.id.number).or_default();
        if self.head.own_width() == 0 {
            return drafts < self.head.ahead();
        }
        if !track.is_met {
            track.is_met = true;
            if track.table.blocks().is_empty() {
                // Texts that differ in nothing but their first token share what is read after it.
                (track.table, track.read) = self.blocks.take_over(sequence.text.table.scope(), &text[1..]);
            } else {
                track.read = track.read.min(sequence.draft.unchanged.saturating_sub(1));
            }
            // The last one is read again, for its row.
            track.read = track.read.min(pairs - 1);
            sequence.draft.unchanged = text.len();
        }
        let end = match pairs.min(track.read + self.max_feed) {
            end if end == pairs => pairs + drafts,
            end => end,
        };
        self.blocks.reserve(&mut track.table, track.read, end)
    }

    /// Feeds the next tokens of each passage; returns, for each that was read to its end, the index of its
    /// row.
    fn forward(
        &mut self,
        target: &dyn Model,
        passages: &[HeadPassage],
    ) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        let mut found: Vec<Option<Vec<f32>>> = passages.iter().map(|_| None).collect();
        if self.head.own_width() == 0 {
            self.look_ahead(target, passages, &mut found)?;
        } else {
            let texts = passages.iter().map(|passage| self.next_of_text(passage));
            self.feed(target, passages, texts.collect(), &mut found)?;
            loop {
                let drafts: Vec<_> = passages.iter().map(|passage| self.next_draft(passage)).collect();
                if drafts.iter().all(Option::is_none) {
                    break;
                }
                self.feed(target, passages, drafts, &mut found)?;
            }
        }
        let mut rows = 0;
        let numbers = found.iter().map(|row| {
            rows += usize::from(row.is_some());
            row.as_ref().map(|_| rows - 1)
        });
        let numbers = numbers.collect();
        let values: Vec<f32> = found.into_iter().flatten().flatten().collect();
        Ok((Logits::new(values, self.head.vocab_size()), numbers))
    }

    fn next_of_text(&self, passage: &HeadPassage) -> Option<Piece> {
        let (read, pairs) = (self.tracks[&passage.id].read, passage.pairs());
        (read < pairs).then(|| Piece::Text(read..pairs.min(read + self.max_feed)))
    }

    fn next_draft(&self, passage: &HeadPassage) -> Option<Piece> {
        let track = &self.tracks[&passage.id];
        let is_next = track.read == passage.pairs() && track.drafts < passage.drafts.len();
        is_next.then_some(Piece::Draft)
    }

    /// Runs a pass of one piece of each passage, and keeps the rows and states after those that end there.
    fn feed(
        &mut self,
        target: &dyn Model,
        passages: &[HeadPassage],
        pieces: Vec<Option<Piece>>,
        found: &mut [Option<Vec<f32>>],
    ) -> Result<(), EngineError> {
        let mut fed = Vec::new();
        for (number, (passage, piece)) in passages.iter().zip(pieces).enumerate() {
            if let Some(piece) = piece {
                fed.push((number, self.fed(target, passage, &piece)?));
            }
        }
        if fed.is_empty() {
            return Ok(());
        }
        for round in self.blocks.take_copies() {
            self.head.copy_blocks(&round)?;
        }
        let tracks = fed.iter().map(|(number, _)| &self.tracks[&passages[*number].id]);
        let feeds = fed.iter().zip(tracks).map(|((number, fed), track)| HeadFeed {
            feed: Feed {
                tokens: &fed.tokens,
                start: fed.start,
                table: track.table.blocks(),
                rows: usize::from(fed.is_whole),
                parents: None,
                scale: passages[*number].scale,
            },
            kept: &fed.kept,
            own: &fed.own,
        });
        let rows = self.head.run(&feeds.collect::<Vec<_>>())?;
        let mut next = 0;
        let width = self.head.own_width();
        for (number, fed) in fed {
            let passage = &passages[number];
            let Some(track) = self.tracks.get_mut(&passage.id) else {
                continue;
            };
            match fed.own.is_empty() {
                true => track.read = fed.start + fed.tokens.len(),
                false => track.drafts += 1,
            }
            if fed.is_whole {
                let own = rows.own[next * width..(next + 1) * width].to_vec();
                track.before = std::mem::replace(&mut track.own, own);
                found[number] = Some(rows.logits.row(next).to_vec());
                next += 1;
            }
            // Drafts may be rejected; only certain tokens are shared with other sequences.
            self.blocks
                .commit(&mut track.table, &passage.text[1..], track.read);
        }
        Ok(())
    }

    /// Returns what a passage feeds for a piece.
    fn fed(&self, target: &dyn Model, passage: &HeadPassage, piece: &Piece) -> Result<Fed, EngineError> {
        let track = &self.tracks[&passage.id];
        Ok(match piece {
            Piece::Text(range) => Fed {
                tokens: passage.text[range.start + 1..=range.end].to_vec(),
                start: range.start,
                kept: target.states(&passage.table, range.clone())?,
                own: Vec::new(),
                is_whole: range.end == passage.pairs(),
            },
            Piece::Draft => Fed {
                tokens: vec![passage.drafts[track.drafts]],
                start: passage.pairs() + track.drafts,
                kept: Vec::new(),
                own: track.own.clone(),
                is_whole: true,
            },
        })
    }

    /// Feeds nodes of trees with their ancestors, below the last token that was read.
    fn feed_trees(
        &mut self,
        target: &dyn Model,
        trees: &[(HeadPassage, &[TreeNode], Vec<usize>)],
    ) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        let mut fed = Vec::new();
        for (number, (passage, nodes, wanted)) in trees.iter().enumerate() {
            let tree = FedTree::new(nodes, wanted);
            let last = passage.pairs() + passage.drafts.len() - 1;
            let Some(track) = self.tracks.get_mut(&passage.id) else {
                continue;
            };
            let end = last + 1 + tree.nodes.len();
            let is_room =
                end <= self.head.max_positions() && self.blocks.reserve(&mut track.table, last, end);
            if is_room && track.read + track.drafts == last + 1 {
                track.of_nodes.resize(nodes.len(), Vec::new());
                let fed_tree = self.fed_tree(target, (passage, nodes), &tree, last)?;
                fed.push((number, tree, fed_tree));
            }
        }
        for round in self.blocks.take_copies() {
            self.head.copy_blocks(&round)?;
        }
        let feeds = fed.iter().map(|(number, tree, fed)| HeadFeed {
            feed: Feed {
                tokens: &fed.tokens,
                start: fed.start,
                table: self.tracks[&trees[*number].0.id].table.blocks(),
                rows: trees[*number].2.len(),
                parents: Some(&tree.parents),
                scale: trees[*number].0.scale,
            },
            kept: &fed.kept,
            own: &fed.own,
        });
        let feeds: Vec<HeadFeed<'_>> = feeds.collect();
        let mut firsts = vec![None; trees.len()];
        if feeds.is_empty() {
            return Ok((Logits::default(), firsts));
        }
        let rows = self.head.run(&feeds)?;
        let (mut next, width) = (0, self.head.own_width());
        for (number, ..) in &fed {
            let (passage, _, wanted) = &trees[*number];
            firsts[*number] = Some(next);
            for &node in wanted {
                if let Some(track) = self.tracks.get_mut(&passage.id) {
                    track.of_nodes[node] = rows.own[next * width..(next + 1) * width].to_vec();
                }
                next += 1;
            }
        }
        Ok((rows.logits, firsts))
    }

    /// Returns what a tree feeds, below the token in slot `last`.
    fn fed_tree(
        &self,
        target: &dyn Model,
        (passage, nodes): (&HeadPassage, &[TreeNode]),
        tree: &FedTree,
        last: usize,
    ) -> Result<Fed, EngineError> {
        let track = &self.tracks[&passage.id];
        let mut fed = match passage.drafts.last() {
            None => Fed {
                tokens: vec![passage.text[last + 1]],
                start: last,
                kept: target.states(&passage.table, last..last + 1)?,
                own: Vec::new(),
                is_whole: false,
            },
            Some(&token) => Fed {
                tokens: vec![token],
                start: last,
                kept: Vec::new(),
                own: track.before.clone(),
                is_whole: false,
            },
        };
        for &node in &tree.nodes {
            fed.tokens.push(nodes[node].token);
            let before = nodes[node]
                .parent
                .map_or(&track.own, |parent| &track.of_nodes[parent]);
            fed.own.extend(before);
        }
        Ok(fed)
    }

    /// Returns the rows of nodes of trees, of a head that predicts all next tokens at once.
    fn layers_ahead(&self, trees: &[(HeadPassage, &[TreeNode], Vec<usize>)]) -> (Logits, Vec<Option<usize>>) {
        let width = self.head.vocab_size();
        let (mut values, mut firsts) = (Vec::new(), Vec::new());
        for (passage, nodes, wanted) in trees {
            let first = values.len() / width;
            let ahead = self.tracks[&passage.id].ahead.as_deref().unwrap_or_default();
            // The wanted nodes are in one layer.
            let layer = wanted.first().map_or(0, |&node| depth(nodes, node));
            let from = (passage.drafts.len() + layer) * width;
            let row = ahead.get(from..from + width);
            firsts.push(row.map(|_| first));
            wanted
                .iter()
                .for_each(|_| values.extend_from_slice(row.unwrap_or_default()));
        }
        (Logits::new(values, width), firsts)
    }

    /// Finds the rows of passages by a head that predicts all next tokens at once, from the last state.
    fn look_ahead(
        &mut self,
        target: &dyn Model,
        passages: &[HeadPassage],
        found: &mut [Option<Vec<f32>>],
    ) -> Result<(), EngineError> {
        let is_new = |passage: &&HeadPassage| self.tracks[&passage.id].ahead.is_none();
        let new: Vec<&HeadPassage> = passages.iter().filter(is_new).collect();
        let states = new
            .iter()
            .map(|passage| target.states(&passage.table, passage.pairs() - 1..passage.pairs()));
        let states = states.collect::<Result<Vec<_>, _>>()?;
        let feed = |kept| HeadFeed {
            feed: Feed {
                tokens: &[],
                start: 0,
                table: &[],
                rows: 0,
                parents: None,
                scale: 1.0,
            },
            kept,
            own: &[],
        };
        let (count, width) = (self.head.ahead(), self.head.vocab_size());
        if !new.is_empty() {
            let feeds: Vec<HeadFeed<'_>> = states.iter().map(|kept| feed(kept)).collect();
            let rows = self.head.run(&feeds)?.logits;
            for (number, passage) in new.iter().enumerate() {
                let ahead = (number * count..(number + 1) * count).flat_map(|row| rows.row(row));
                let ahead = ahead.copied().collect();
                if let Some(track) = self.tracks.get_mut(&passage.id) {
                    track.ahead = Some(ahead);
                }
            }
        }
        for (passage, found) in passages.iter().zip(found) {
            let ahead = self.tracks[&passage.id].ahead.as_ref();
            let first = passage.drafts.len() * width;
            *found = ahead.and_then(|ahead| Some(ahead.get(first..first + width)?.to_vec()));
        }
        Ok(())
    }
}

/// The nodes of a tree that are fed: those whose rows are wanted, after their ancestors.
struct FedTree {
    nodes: Vec<usize>,
    /// The parent of each, as a feed counts them.
    parents: Vec<u16>,
}

impl FedTree {
    fn new(nodes: &[TreeNode], wanted: &[usize]) -> Self {
        let mut is_fed = vec![false; nodes.len()];
        for &node in wanted {
            let path = std::iter::successors(Some(node), |&node| nodes[node].parent);
            path.for_each(|node| is_fed[node] = true);
        }
        let fed: Vec<usize> = (0..nodes.len()).filter(|&node| is_fed[node]).collect();
        let place = |node: usize| {
            fed.iter()
                .position(|&other| other == node)
                .map_or(0, |place| place + 1)
        };
        let parents = fed.iter().map(|&node| nodes[node].parent.map_or(0, place) as u16);
        FedTree {
            parents: parents.collect(),
            nodes: fed,
        }
    }
}

/// Tokens of one text in a pass, with the states before them.
struct Fed {
    tokens: Vec<u32>,
    start: usize,
    kept: Vec<f32>,
    own: Vec<f32>,
    /// `true` if the row after the last one is needed.
    is_whole: bool,
}

/// A head with its main model, while it drafts.
struct HeadModel<'a> {
    reader: &'a mut HeadReader,
    target: &'a dyn Model,
}

impl TokenModel for HeadModel<'_> {
    type Passage = HeadPassage;

    fn prepare(&mut self, sequence: &mut Sequence, tip: Option<NodeId>) -> bool {
        let drafts = drafted(sequence, tip).len();
        self.reader.prepare(sequence, drafts)
    }

    fn passage(&self, sequence: &Sequence, tip: Option<NodeId>) -> HeadPassage {
        HeadPassage {
            id: sequence.id.number,
            text: sequence.text.tokens.clone(),
            table: sequence.text.table.blocks().to_vec(),
            drafts: drafted(sequence, tip),
            scale: sequence.draw.warper.scale(),
        }
    }

    fn forward(&mut self, passages: &[HeadPassage]) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        self.reader.forward(self.target, passages)
    }
}

impl TreeModel for HeadModel<'_> {
    fn branch(
        &mut self,
        trees: &[(HeadPassage, &[TreeNode], Vec<usize>)],
    ) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        match self.reader.head.own_width() {
            0 => Ok(self.reader.layers_ahead(trees)),
            _ => self.reader.feed_trees(self.target, trees),
        }
    }
}
