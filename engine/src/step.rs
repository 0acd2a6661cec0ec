//! The main flow: one call of [`Core::step`] is one pass of the model.
//!
//! ```text
//!   renew    ─► propose ─► schedule ─► forward  ─► sample ─► collect
//!   grammars    drafts     who, how    model,       draw,      hand blocks
//!                          much        masks beside verify     back, tell stats
//! ```

use crate::blocks::Blocks;
use crate::crew;
use crate::draft_model::DraftModel;
use crate::engine::{EngineConfig, Stats};
use crate::error::EngineError;
use crate::masks::{MaskPool, Masks};
use crate::meters::Meters;
use crate::model::{Feed, Logits, Model, Row};
use crate::sample::{Columns, law};
use crate::scheduler::{Scheduler, Work, forget_cache};
use crate::sequence::Sequence;
use crate::speculate::{self, Drafters};
use crate::tries::{self, Tries};
use crate::write::{Writer, Written};
use lexiform::draft::{LongestMatch, Tokenise};
use lexiform::law::{Law, Walk};
use lexiform::vocab::Vocabulary;
use std::sync::Arc;
use std::time::Instant;

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) model: Box<dyn Model>,
    pub(crate) draft: Option<Box<dyn Model>>,
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) tokeniser: Option<Arc<dyn Tokenise + Sync>>,
    pub(crate) config: EngineConfig,
}

/// The passes between two looks at the memory of grammars.
const RENEWED_EVERY: u64 = 16;

/// All that the decode thread owns.
pub(crate) struct Core {
    model: Box<dyn Model>,
    vocabulary: Arc<Vocabulary>,
    config: EngineConfig,
    pub(crate) blocks: Blocks,
    pub(crate) scheduler: Scheduler,
    pub(crate) stats: Stats,
    meters: Arc<Meters>,
    masks: MaskPool,
    columns: Columns,
    drafters: Drafters,
    draft_model: Option<DraftModel>,
    tries: Tries,
}

impl Core {
    pub(crate) fn new(parts: Parts, meters: Arc<Meters>) -> Result<Self, EngineError> {
        let Parts {
            mut model,
            draft,
            vocabulary,
            tokeniser,
            config,
        } = parts;
        model.create_cache(config.blocks, config.block_size)?;
        let columns = Columns::new(&vocabulary, model.vocab_size());
        model.leave_out(&columns.left_out(model.vocab_size()));
        let draft_model = draft
            .map(|draft| DraftModel::new(draft, vocabulary.clone(), &config))
            .transpose()?;
        let tokeniser = tokeniser.unwrap_or_else(|| Arc::new(LongestMatch(vocabulary.clone())));
        Ok(Core {
            blocks: Blocks::new(config.blocks, config.block_size),
            masks: MaskPool::new(config.mask_threads, meters.clone()),
            columns,
            drafters: Drafters::new(tokeniser, vocabulary.clone()),
            scheduler: Scheduler::default(),
            stats: Stats {
                block_size: config.block_size,
                ..Stats::default()
            },
            meters,
            tries: Tries::default(),
            draft_model,
            model,
            vocabulary,
            config,
        })
    }

    /// Whether there is nothing to do until a request comes.
    pub(crate) fn is_idle(&self) -> bool {
        self.scheduler.running.is_empty() && self.scheduler.waiting.is_empty()
    }

    /// Takes a new sequence in.
    pub(crate) fn take_in(&mut self, mut sequence: Sequence) {
        self.stats.requests += 1;
        self.stats.prompt_tokens += sequence.request.prompt.len() as u64;
        if let (Law::Global { attempts, fallback }, Some(grammar)) =
            (law(&sequence.request), &sequence.request.grammar)
        {
            let trie = match self.config.share_attempts {
                true => self.tries.shared(&sequence.request, grammar, &self.vocabulary),
                false => tries::new(&sequence.request, &self.vocabulary),
            };
            sequence.walk = Walk::global(trie.clone(), attempts, fallback);
            sequence.trie = Some(trie);
        }
        // Drafts after the prompt are fed with the last of it.
        self.drafters.propose(&mut sequence);
        self.scheduler.waiting.push_back(sequence);
    }

    /// One pass over the sequences that are due.
    pub(crate) fn step(&mut self) {
        self.renew_grammars();
        self.propose();
        let works = self.scheduler.schedule(&mut self.blocks, &self.config);
        let (logits, masks) = self.forward(&works);
        match logits {
            Ok(logits) => {
                let begun = Instant::now();
                self.sample(&works, logits, masks);
                self.meters.draws.observe_time(begun.elapsed());
            }
            Err(error) => {
                for work in &works {
                    self.scheduler.running[work.index].fail(error.clone());
                }
            }
        }
        self.collect();
        self.stats.steps += 1;
    }

    /// Moves sequences away from grammars that have outgrown their memory. To look is cheap and not free, and a pass adds
    /// little to a grammar.
    fn renew_grammars(&mut self) {
        if !self.stats.steps.is_multiple_of(RENEWED_EVERY) {
            return;
        }
        let Scheduler { running, waiting, .. } = &mut self.scheduler;
        running
            .iter_mut()
            .chain(waiting)
            .for_each(Sequence::renew_grammar);
        self.tries.renew_grammars();
    }

    fn propose(&mut self) {
        let decoding = self
            .scheduler
            .running
            .iter_mut()
            .filter(|sequence| sequence.unfed() == 1);
        let mut for_model = Vec::new();
        for sequence in decoding {
            self.drafters.propose(sequence);
            if sequence.request.speculation.model {
                for_model.push(sequence);
            }
        }
        if let Some(model) = &mut self.draft_model
            && model.propose(&mut for_model, &self.masks).is_err()
        {
            // Drafts are not needed; a model that fails once would fail again.
            self.stats.draft_model_failed = true;
            self.draft_model = None;
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
        let mut feeds = Vec::with_capacity(works.len());
        for (work, tokens) in works.iter().zip(&fed) {
            let sequence = &running[work.index];
            let table = sequence.table.blocks();
            feeds.push(Feed {
                tokens,
                start: sequence.computed,
                table,
                rows: work.rows,
            });
        }
        let count: usize = feeds.iter().map(|feed| feed.tokens.len()).sum();
        self.meters.pass_tokens.observe(count as f64);
        let begun = Instant::now();
        let logits = self.model.forward(&feeds);
        self.meters.passes.observe_time(begun.elapsed());
        let begun = Instant::now();
        let masks = pending.wait();
        if masks.iter().any(Option::is_some) {
            self.meters.mask_waits.observe_time(begun.elapsed());
        }
        (logits, masks)
    }

    fn sample(&mut self, works: &[Work], mut logits: Logits, masks: Vec<Masks>) {
        let written = self.write(works, &mut logits, masks);
        for (work, written) in works.iter().zip(written) {
            let sequence = &mut self.scheduler.running[work.index];
            let mut computed = sequence.computed + work.feed;
            let mut restart = false;
            if let Some(written) = written {
                self.stats.count(sequence.drafts.len(), &written);
                if let Some(gap) = written.gap {
                    self.meters.gaps.observe_time(gap);
                }
                speculate::observe(sequence, written.accepted);
                sequence.drafts.clear();
                restart = written.restart;
                computed += if restart { 0 } else { written.accepted };
            }
            // A client that leaves in the middle of an accepted draft never hears of its end: those tokens are in
            // the cache, but not in the text.
            let computed = computed.min(sequence.tokens.len());
            sequence.computed = computed;
            self.blocks
                .commit(&mut sequence.table, &sequence.tokens, computed);
            if restart {
                // Only now: what the failed attempt computed is remembered by its tokens.
                sequence.restart();
                forget_cache(sequence, &mut self.blocks);
                Writer {
                    vocabulary: &self.vocabulary,
                }
                .replay(sequence);
            }
        }
    }

    /// Draws for all sequences that have rows, on several threads if there is much to draw from; what became of each.
    ///
    /// Sequences under the global law may share what their attempts teach, so they are drawn one after the other: which
    /// text a seed gives must not depend on which thread was faster.
    fn write(&mut self, works: &[Work], logits: &mut Logits, masks: Vec<Masks>) -> Vec<Option<Written>> {
        for row in logits.rows_mut() {
            self.columns.clean(row);
        }
        let threads = crew::threads(self.config.draw_threads, logits.numbers());
        let (mut in_order, mut bundles) = (Vec::new(), Vec::new());
        let mut first_row = 0;
        let mut works_and_masks = works.iter().zip(masks).enumerate().peekable();
        for (index, sequence) in self.scheduler.running.iter_mut().enumerate() {
            let Some((number, (work, masks))) = works_and_masks.next_if(|(_, (work, _))| work.index == index)
            else {
                continue;
            };
            let rows = first_row..first_row + work.rows;
            first_row += work.rows;
            if work.rows > 0 {
                let mut rows: Vec<Row<'_>> = rows.map(|row| self.columns.of(logits, row)).collect();
                if sequence.trie.is_some() {
                    // What a trie keeps is compared with rows that come again without their measure.
                    rows.iter_mut().for_each(|row| row.measured = None);
                    in_order.push((number, sequence, rows, masks));
                } else {
                    bundles.push(vec![(number, sequence, rows, masks)]);
                }
            }
        }
        bundles.insert(0, in_order);
        let writer = Writer {
            vocabulary: &self.vocabulary,
        };
        let bundles = crew::each(bundles, threads, |bundle| {
            let write = |(number, sequence, rows, masks): (usize, &mut Sequence, Vec<Row<'_>>, Masks)| {
                (number, writer.write(sequence, &rows, masks.as_deref()))
            };
            bundle.into_iter().map(write).collect::<Vec<_>>()
        });
        let mut written = vec![None; works.len()];
        for (number, what) in bundles.into_iter().flatten() {
            written[number] = Some(what);
        }
        written
    }

    /// Lets go of the sequences that are done.
    pub(crate) fn collect(&mut self) {
        let done = self.scheduler.collect(&mut self.blocks);
        for sequence in &done {
            self.stats.failed += u64::from(sequence.failed);
            self.stats.cached_tokens += sequence.cached as u64;
        }
        if let Some(model) = &mut self.draft_model
            && !done.is_empty()
        {
            let alive: Vec<u64> = self
                .scheduler
                .running
                .iter()
                .map(|sequence| sequence.id)
                .collect();
            model.retain(|id| alive.contains(&id));
        }
    }

    /// Fails what ran, after a panic. The caches may hold anything now, so they start empty.
    pub(crate) fn recover(&mut self, message: &str) {
        self.stats.panics += 1;
        for mut sequence in self.scheduler.running.drain(..) {
            self.stats.failed += 1;
            sequence.fail(EngineError::Panicked(message.to_string()));
        }
        self.blocks = Blocks::new(self.config.blocks, self.config.block_size);
        if let Some(model) = &mut self.draft_model {
            model.reset(&self.config);
        }
    }

    /// Brings the figures up to date.
    pub(crate) fn measure(&mut self) -> Stats {
        self.stats.running = self.scheduler.running.len();
        self.stats.waiting = self.scheduler.waiting.len();
        self.stats.preemptions = self.scheduler.preemptions;
        self.stats.blocks_total = self.blocks.total();
        self.stats.blocks_used = self.blocks.used();
        self.stats.blocks_kept = self.blocks.kept();
        self.stats.clone()
    }
}

fn fed_tokens(sequence: &Sequence, work: &Work) -> Vec<u32> {
    let mut tokens = sequence.tokens[sequence.computed..sequence.computed + work.feed].to_vec();
    if work.rows > 0 {
        tokens.extend(sequence.drafts.iter().map(|draft| draft.token));
    }
    tokens
}
