//! A model that follows a script: logits are a function of the prefix.
//!
//! It keeps tokens where a real model keeps keys and values, in the same blocks, and reads its prefix back from them.
//! So a loop that confuses blocks, forgets to feed a token or reuses a wrong prefix gets wrong logits from it.

use crate::error::EngineError;
use crate::model::{Feed, Logits, Model};

/// The script: the row of logits after a prefix.
pub type Script = Box<dyn Fn(&[u32]) -> Vec<f32> + Send>;

/// See the module.
pub struct ScriptedModel {
    script: Script,
    vocab_size: usize,
    max_positions: usize,
    cache: Vec<Option<u32>>,
    block_size: usize,
}

impl ScriptedModel {
    /// A model whose logits after a prefix are what `script` says: `vocab_size` of them.
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
        }
    }

    fn slot(&self, feed: &Feed<'_>, position: usize) -> usize {
        feed.table[position / self.block_size] as usize * self.block_size + position % self.block_size
    }

    fn prefix(&self, feed: &Feed<'_>, end: usize) -> Result<Vec<u32>, EngineError> {
        let read = |position| {
            let token = self.cache[self.slot(feed, position)];
            token.ok_or_else(|| EngineError::Model(format!("position {position} was never fed")))
        };
        (0..end).map(read).collect()
    }
}

impl Model for ScriptedModel {
    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn max_positions(&self) -> usize {
        self.max_positions
    }

    fn cache_bytes_per_token(&self) -> usize {
        0
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError> {
        self.cache = vec![None; blocks * block_size];
        self.block_size = block_size;
        Ok(())
    }

    fn forward(&mut self, feeds: &[Feed<'_>]) -> Result<Logits, EngineError> {
        for feed in feeds {
            for (offset, &token) in feed.tokens.iter().enumerate() {
                let slot = self.slot(feed, feed.start + offset);
                self.cache[slot] = Some(token);
            }
        }
        let mut values = Vec::new();
        for feed in feeds {
            let end = feed.start + feed.tokens.len();
            for position in end - feed.rows..end {
                let row = (self.script)(&self.prefix(feed, position + 1)?);
                if row.len() != self.vocab_size {
                    let message = format!("the script gave {} logits, not {}", row.len(), self.vocab_size);
                    return Err(EngineError::Model(message));
                }
                values.extend(row);
            }
        }
        Ok(Logits::new(values, self.vocab_size))
    }
}
