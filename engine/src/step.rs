//! The main flow: one call of [`Core::step`] is one pass of the model.
//!
//! ```text
//!   propose ─► schedule ─► forward  ─► sample ─► collect
//!   drafts     who, how    model,       draw,      hand blocks
//!              much        masks beside verify     back, tell stats
//! ```

use crate::blocks::Blocks;
use crate::engine::{EngineConfig, Stats};
use crate::error::EngineError;
use crate::masks::{MaskPool, Masks};
use crate::model::{Feed, Logits, Model};
use crate::request::{Event, Finish, Origin};
use crate::sample::{Context, Draw, Sampler};
use crate::scheduler::{Scheduler, Work};
use crate::sequence::Sequence;
use crate::speculate;
use lexiform::vocab::{TokenKind, Vocabulary};
use std::sync::Arc;

/// All that the decode thread owns.
pub(crate) struct Core {
    pub(crate) model: Box<dyn Model>,
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) config: EngineConfig,
    pub(crate) blocks: Blocks,
    pub(crate) scheduler: Scheduler,
    pub(crate) stats: Stats,
    masks: MaskPool,
    sampler: Sampler,
    /// Packed bits of the tokens that exist: all a sequence without grammar is held to.
    usable: Vec<u32>,
}

impl Core {
    pub(crate) fn new(
        mut model: Box<dyn Model>,
        _draft: Option<Box<dyn Model>>,
        vocabulary: Arc<Vocabulary>,
        config: EngineConfig,
    ) -> Result<Self, EngineError> {
        model.create_cache(config.blocks, config.block_size)?;
        let width = vocabulary.len().min(model.vocab_size());
        let mut usable = vec![0; width.div_ceil(32)];
        for token in (0..width).filter(|&token| vocabulary.kind(token as u32) != TokenKind::Unused) {
            usable[token / 32] |= 1 << (token % 32);
        }
        Ok(Core {
            blocks: Blocks::new(config.blocks, config.block_size),
            masks: MaskPool::new(config.mask_threads),
            scheduler: Scheduler::default(),
            stats: Stats::default(),
            sampler: Sampler::default(),
            model,
            vocabulary,
            config,
            usable,
        })
    }

    /// Whether there is nothing to do until a request comes.
    pub(crate) fn is_idle(&self) -> bool {
        self.scheduler.running.is_empty() && self.scheduler.waiting.is_empty()
    }

    /// One pass over the sequences that are due.
    pub(crate) fn step(&mut self) {
        for sequence in self
            .scheduler
            .running
            .iter_mut()
            .filter(|sequence| sequence.unfed() == 1)
        {
            speculate::propose(sequence, &self.vocabulary);
        }
        let works = self.scheduler.schedule(&mut self.blocks, &self.config);
        let (logits, masks) = self.forward(&works);
        match logits {
            Ok(logits) => self.sample_all(&works, &logits, masks),
            Err(error) => {
                for work in &works {
                    self.scheduler.running[work.index].fail(error.clone());
                }
            }
        }
        self.collect();
        self.stats.steps += 1;
    }

    /// Lets go of the sequences that are done.
    pub(crate) fn collect(&mut self) {
        for sequence in self.scheduler.collect(&mut self.blocks) {
            self.stats.failed += u64::from(sequence.failed);
            self.stats.cached_tokens += sequence.cached as u64;
        }
    }

    /// Runs the model while other threads compute the masks of all rows.
    fn forward(&mut self, works: &[Work]) -> (Result<Logits, EngineError>, Vec<Masks>) {
        let running = &self.scheduler.running;
        let wanted = |work: &Work| {
            (work.rows > 0)
                .then(|| running[work.index].states_along_drafts())
                .flatten()
        };
        let pending = self.masks.start(works.iter().map(wanted).collect());
        let fed: Vec<Vec<u32>> = works
            .iter()
            .map(|work| fed_tokens(&running[work.index], work))
            .collect();
        let feeds: Vec<Feed<'_>> = works
            .iter()
            .zip(&fed)
            .map(|(work, tokens)| {
                let sequence = &running[work.index];
                Feed {
                    tokens,
                    start: sequence.computed,
                    table: sequence.table.blocks(),
                    rows: work.rows,
                }
            })
            .collect();
        let logits = self.model.forward(&feeds);
        (logits, pending.wait())
    }

    fn sample_all(&mut self, works: &[Work], logits: &Logits, masks: Vec<Masks>) {
        let mut first_row = 0;
        for (work, masks) in works.iter().zip(masks) {
            let sequence = &mut self.scheduler.running[work.index];
            let end = sequence.computed + work.feed;
            if work.rows > 0 {
                let rows = (first_row..first_row + work.rows).map(|row| logits.row(row));
                let sample = Sample {
                    sampler: &mut self.sampler,
                    vocabulary: &self.vocabulary,
                    usable: &self.usable,
                };
                let accepted = sample.verify(sequence, rows, masks);
                self.stats.drafted += sequence.drafts.len() as u64;
                self.stats.accepted += accepted as u64;
                self.stats.generated += accepted as u64 + 1;
                sequence.computed = end + accepted;
                sequence.drafts.clear();
            } else {
                sequence.computed = end;
            }
            first_row += work.rows;
            self.blocks
                .commit(&mut sequence.table, &sequence.tokens, sequence.computed);
        }
    }
}

fn fed_tokens(sequence: &Sequence, work: &Work) -> Vec<u32> {
    let mut tokens = sequence.tokens[sequence.computed..sequence.computed + work.feed].to_vec();
    if work.rows > 0 {
        tokens.extend(sequence.drafts.iter().map(|draft| draft.token));
    }
    tokens
}

struct Sample<'a> {
    sampler: &'a mut Sampler,
    vocabulary: &'a Vocabulary,
    usable: &'a [u32],
}

impl Sample<'_> {
    /// Draws a token from every row until a draw differs from the draft; says how many drafts were confirmed.
    fn verify<'r>(
        mut self,
        sequence: &mut Sequence,
        rows: impl Iterator<Item = &'r [f32]>,
        masks: Masks,
    ) -> usize {
        if sequence.request.grammar.is_some() && masks.is_none() {
            sequence.fail(EngineError::Panicked("while computing a mask".to_string()));
            return 0;
        }
        sequence.drafted += sequence.drafts.len();
        for (number, row) in rows.enumerate() {
            let allowed = masks.as_ref().map_or(self.usable, |masks| masks[number].words());
            let draw = match self.draw(sequence, row, allowed) {
                Ok(draw) => draw,
                Err(error) => {
                    sequence.fail(error);
                    return number;
                }
            };
            let token = draw.token;
            let draft = sequence
                .drafts
                .get(number)
                .copied()
                .filter(|draft| draft.token == token);
            sequence.accepted += usize::from(draft.is_some());
            self.accept(
                sequence,
                draw,
                draft.map_or(Origin::Sampled, |draft| draft.origin),
            );
            if draft.is_none() || sequence.closed {
                return number;
            }
        }
        sequence.drafts.len()
    }

    fn draw(&mut self, sequence: &Sequence, row: &[f32], allowed: &[u32]) -> Result<Draw, EngineError> {
        let context = Context {
            sampling: &sequence.request.sampling,
            generated: sequence.generated(),
            logprobs: sequence.request.logprobs,
            allowed,
            usable: self.usable,
        };
        self.sampler.draw(row, &context)
    }

    /// Makes a drawn token part of the sequence and tells the client.
    fn accept(&mut self, sequence: &mut Sequence, draw: Draw, origin: Origin) {
        let token = draw.token;
        sequence.tokens.push(token);
        sequence.log_probability += draw.log_p;
        sequence.log_weight += draw.log_mass;
        if let (Some(grammar), Some(state)) = (&sequence.request.grammar, sequence.state) {
            sequence.state = grammar.step(state, token);
            if sequence.state.is_none() {
                let message = format!("token {token} is in the mask, but the grammar does not step over it");
                return sequence.fail(EngineError::Model(message));
            }
        }
        if self.ends(sequence, token) {
            return sequence.finish(Finish::Stop);
        }
        sequence.send(Event::Token {
            token,
            bytes: self.text(token),
            logprob: draw.logprob,
            log_mass: draw.log_mass as f32,
            top: draw.top,
            origin,
        });
        if self.only_the_end_is_left(sequence) {
            sequence.finish(Finish::Stop);
        } else if sequence.remaining() == 0 {
            sequence.finish(Finish::Length);
        }
    }

    fn text(&self, token: u32) -> Vec<u8> {
        match self.vocabulary.kind(token) {
            TokenKind::Text => self.vocabulary.bytes(token).to_vec(),
            _ => Vec::new(),
        }
    }

    fn ends(&self, sequence: &Sequence, token: u32) -> bool {
        let request = &sequence.request;
        match (&request.grammar, sequence.state) {
            (Some(grammar), Some(state)) => grammar.is_finished(state),
            _ => {
                !request.ignore_eos && (self.vocabulary.is_eos(token) || request.stop_tokens.contains(&token))
            }
        }
    }

    /// Then the answer is complete without asking the model, unless somebody wants to know what it would have said.
    fn only_the_end_is_left(&self, sequence: &Sequence) -> bool {
        let (Some(grammar), Some(state)) = (&sequence.request.grammar, sequence.state) else {
            return false;
        };
        !sequence.request.weigh_end
            && grammar.is_accepting(state)
            && grammar.mask(state).count() == self.vocabulary.eos().len()
    }
}
