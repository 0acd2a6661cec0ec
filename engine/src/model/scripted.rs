//! A model that follows a script: logits are a function of the prefix.
//!
//! It keeps tokens where a real model keeps keys and values, in the same blocks, and reads its prefix back
//! from them. So a loop that confuses blocks, forgets to feed a token or reuses a wrong prefix gets wrong
//! logits from it.

use crate::error::EngineError;
use crate::model::flight::{Drawing, Flight, Landed, Made};
use crate::model::logits::Logits;
use crate::model::tree::{Seen, Sight, check_all, check_copies};
use crate::model::{Feed, Model, SlotMoves};
use std::any::Any;

/// The script: the row of logits after a prefix.
pub type Script = Box<dyn Fn(&[u32]) -> Vec<f32> + Send>;

/// A model that computes its logits by a script; see the module.
pub struct ScriptedModel {
    script: Script,
    vocab_size: usize,
    max_positions: usize,
    cache: Vec<Option<u32>>,
    block_size: usize,
    /// `true` if its passes draw, and can be fed from draws.
    draws: bool,
    left_out: Vec<usize>,
}

impl ScriptedModel {
    /// Returns a model whose logits after a prefix are the `vocab_size` logits that `script` returns.
    pub fn new(
        vocab_size: usize,
        max_positions: usize,
        script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    ) -> Self {
        ScriptedModel {
            script: Box::new(script),
            vocab_size,
            max_positions,
            cache: Vec::new(),
            block_size: 1,
            draws: false,
            left_out: Vec::new(),
        }
    }

    /// Makes the model's passes draw by themselves, so that they can be fed with tokens that the host has not
    /// read yet ([`Model::submit_after`]).
    #[must_use]
    pub fn drawing(self) -> Self {
        ScriptedModel { draws: true, ..self }
    }

    fn place(&self, feed: &Feed<'_>, slot: usize) -> usize {
        feed.table[slot / self.block_size] as usize * self.block_size + slot % self.block_size
    }

    fn prefix(&self, feed: &Feed<'_>, seen: &Seen<'_>) -> Result<Vec<u32>, EngineError> {
        let read = |slot| {
            let token = self.cache[self.place(feed, slot)];
            token.ok_or_else(|| EngineError::Model(format!("slot {slot} was never fed")))
        };
        seen.slots().map(read).collect()
    }
}

impl Model for ScriptedModel {
    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn max_positions(&self) -> usize {
        self.max_positions
    }

    fn variance(&self) -> Option<&'static str> {
        None
    }

    fn cache_bytes_per_token(&self) -> usize {
        0
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError> {
        self.cache = vec![None; blocks * block_size];
        self.block_size = block_size;
        Ok(())
    }

    fn leave_out(&mut self, columns: &[usize]) {
        self.left_out = columns.to_vec();
    }

    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError> {
        check_all("feed", feeds, |feed| {
            feed.check(self.block_size, self.max_positions)
        })?;
        for feed in feeds {
            for (offset, &token) in feed.tokens.iter().enumerate() {
                let place = self.place(feed, feed.start + offset);
                self.cache[place] = Some(token);
            }
        }
        let mut values = Vec::new();
        for feed in feeds {
            let sight = Sight::of(feed);
            for number in feed.tokens.len() - feed.rows..feed.tokens.len() {
                let mut row = (self.script)(&self.prefix(feed, &sight.seen(number, usize::MAX))?);
                if row.len() != self.vocab_size {
                    let message = format!("the script gave {} logits, not {}", row.len(), self.vocab_size);
                    return Err(EngineError::Model(message));
                }
                if self.draws {
                    let columns = self.left_out.iter();
                    columns.for_each(|&column| row[column] = f32::NEG_INFINITY);
                }
                values.extend(row);
            }
        }
        let landed = Landed::new(Logits::new(values, self.vocab_size));
        Ok(Box::new(match self.draws {
            true => landed.starting_draws(),
            false => landed,
        }))
    }

    fn submit_after(
        &mut self,
        drawing: &dyn Drawing,
        asks: &[usize],
        feeds: &[Feed<'_>],
    ) -> Result<Option<Box<dyn Flight>>, EngineError> {
        let drawing: &dyn Any = drawing;
        let Some(made) = drawing.downcast_ref::<Made>() else {
            return Ok(None);
        };
        let drawn: Vec<u32> = made.tokens().collect();
        let tokens: Option<Vec<[u32; 1]>> = asks.iter().map(|&ask| Some([*drawn.get(ask)?])).collect();
        let Some(tokens) = tokens.filter(|tokens| tokens.len() == feeds.len()) else {
            return Ok(None);
        };
        let fed = feeds.iter().zip(&tokens);
        let feeds: Vec<Feed<'_>> = fed.map(|(feed, tokens)| Feed { tokens, ..*feed }).collect();
        self.submit(&feeds).map(Some)
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        check_all("move", moves, |moves| moves.check(self.block_size))?;
        for (from, to) in moves.iter().flat_map(|moves| moves.rows(self.block_size)) {
            self.cache[to] = self.cache[from];
        }
        Ok(())
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        check_copies(pairs, self.cache.len() / self.block_size)?;
        for &(from, to) in pairs {
            let from = from as usize * self.block_size;
            self.cache
                .copy_within(from..from + self.block_size, to as usize * self.block_size);
        }
        Ok(())
    }
}
