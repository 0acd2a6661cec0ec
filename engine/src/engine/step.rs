//! The main flow: one call of [`Core::step`] is one pass of the model.
//!
//! ```text
//!   admit ─► read ───────► schedule ─► submit ──► land ──► sample ─► collect
//!   who      last draws,   who, how    model,     wait     draw,     hand blocks
//!            drafts        much        masks      for it   verify    back, tell stats
//!                                      beside
//! ```
//!
//! What grammars have to say comes from other threads ([`errand`](crate::engine::errand)): a sequence whose
//! grammar is slow sits passes out, and the others go on.

mod drawing;

use crate::blocks::Blocks;
use crate::config::EngineConfig;
use crate::engine::draft_model::{Assistant, DraftModel};
use crate::engine::errand::{Errands, Goal};
use crate::error::EngineError;
use crate::grammar::drafters::Drafters;
use crate::grammar::masks::{Finder, MaskHook};
use crate::metrics::meters::Meters;
use crate::metrics::stats::Stats;
use crate::model::flight::Flight;
use crate::model::{Feed, Model, SlotMoves};
use crate::request::driver::{News, Orders};
use crate::request::law::{Taught, learning_walk, teaches};
use crate::sampling::Columns;
use crate::scheduler::pace::Pace;
use crate::scheduler::pass::Work;
use crate::scheduler::{Scheduler, forget_cache};
use crate::sequence::job::Job;
use crate::sequence::tries::{self, Tries};
use crate::sequence::{Doing, Sequence};
use crate::speculation::draft::{is_chain, parents};
use crate::speculation::policy::{Base, CountedTime, Policy, Worked};
use crate::speculation::store::Stores;
use crate::speculation::window;
use lexiform::draft::{LongestMatch, NodeId, Tokenise};
use lexiform::vocab::Vocabulary;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) model: Box<dyn Model>,
    pub(crate) draft: Option<Assistant>,
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) tokeniser: Option<Arc<dyn Tokenise + Sync>>,
    pub(crate) config: EngineConfig,
    pub(crate) mask_hook: Option<MaskHook>,
    /// Says what passes cost, in place of the clock.
    pub(crate) counted: Option<CountedTime>,
}

impl Parts {
    /// The parts that every engine has, and none of the others.
    pub(crate) fn new(model: Box<dyn Model>, vocabulary: Arc<Vocabulary>, config: EngineConfig) -> Self {
        Parts {
            model,
            draft: None,
            vocabulary,
            tokeniser: None,
            config,
            mask_hook: None,
            counted: None,
        }
    }
}

/// How long the loop sleeps while all sequences sit out, before it looks for new requests.
const IDLE: Duration = Duration::from_millis(1);

/// Rows of a pass whose masks are looked for before the model runs, rather than beside it.
const FEW_ROWS: usize = 8;

/// The passes between two looks at the memory of grammars.
const RENEWED_EVERY: u64 = 16;

/// All that the decode thread owns.
pub(crate) struct Core {
    model: Box<dyn Model>,
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) config: EngineConfig,
    pub(crate) blocks: Blocks,
    pub(crate) scheduler: Scheduler,
    /// The requests that the sequences are branches of.
    pub(crate) jobs: HashMap<u64, Job>,
    /// The identity of the next sequence.
    pub(crate) next_sequence: u64,
    /// Room for what a driver orders.
    pub(crate) orders: Orders,
    pub(crate) stats: Stats,
    meters: Arc<Meters>,
    pub(crate) errands: Errands,
    columns: Columns,
    draft_model: Option<DraftModel>,
    tries: Tries,
    pub(crate) stores: Stores,
    /// How long the model took for the last pass.
    last_pass: Duration,
    pace: Pace,
    /// Says what passes cost, in place of the clock.
    counted: Option<CountedTime>,
}

impl Core {
    pub(crate) fn new(parts: Parts, meters: Arc<Meters>) -> Result<Self, EngineError> {
        let Parts {
            mut model,
            draft,
            vocabulary,
            tokeniser,
            config,
            mask_hook,
            counted,
        } = parts;
        model.create_cache(config.blocks, config.block_size)?;
        let columns = Columns::new(&vocabulary, model.vocab_size());
        model.leave_out(&columns.left_out(model.vocab_size()));
        let tokeniser = tokeniser.unwrap_or_else(|| Arc::new(LongestMatch(vocabulary.clone())));
        let tokens = (vocabulary.clone(), tokeniser.clone());
        let draft_model = draft.map(|draft| DraftModel::new(draft, tokens, &config));
        let draft_model = draft_model.transpose()?;
        let (finder, drafters) = (
            Finder { hook: mask_hook },
            Drafters::new(tokeniser, vocabulary.clone()),
        );
        Ok(Core {
            blocks: Blocks::new(config.blocks, config.block_size),
            errands: Errands::new(
                (config.mask_threads, config.max_running),
                finder,
                drafters,
                meters.clone(),
            ),
            columns,
            scheduler: Scheduler::new(Policy::new(config.drafting)),
            jobs: HashMap::new(),
            next_sequence: 0,
            orders: Orders::new(),
            stats: Stats {
                block_size: config.block_size,
                ..Stats::default()
            },
            meters,
            tries: Tries::default(),
            stores: Stores::open(config.draft_stores.clone(), config.drafting, &vocabulary)?,
            last_pass: Duration::ZERO,
            pace: Pace::default(),
            counted,
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

    /// Takes a new request in: its first branch, and all else.
    pub(crate) fn take_in(&mut self, mut sequence: Sequence, job: Job) {
        self.stats.requests += job.answers() as u64;
        self.stats.prompt_tokens += sequence.request.prompt.len() as u64;
        if let (Some(taught), Some(grammar)) = (teaches(&sequence.request), &sequence.request.grammar) {
            let trie = match taught {
                Taught::Requests => self.tries.shared(&sequence.request, grammar, &self.vocabulary),
                Taught::Own => tries::new(&sequence.request, &self.vocabulary),
            };
            sequence.walk = learning_walk(&sequence.request, trie.clone());
            sequence.trie = Some(trie);
        }
        sequence.store = self.stores.of(&sequence.request.owner);
        sequence.window = window::begin(self.config.lookahead, &sequence.request);
        sequence.siblings = self.stores.of_samples(&sequence.request);
        sequence.id = self.next_sequence;
        self.next_sequence += 1;
        let id = sequence.job;
        self.scheduler.waiting.push_back(sequence);
        self.jobs.insert(id, job);
        self.tell(id, 0, News::Begun);
    }

    /// One pass over the sequences that are due.
    pub(crate) fn step(&mut self) {
        let begun = Instant::now();
        self.end_late();
        self.end_watched();
        self.renew_grammars();
        self.scheduler.admit(&mut self.blocks, &self.config);
        self.tell_read();
        self.read();
        self.collect();
        let begun = begun + self.propose();
        let beside = self.pace.tokens(&self.config);
        let works = self.scheduler.schedule(&mut self.blocks, &self.config, beside);
        if works.is_empty() {
            // Who runs waits for a grammar.
            self.errands.wait(&mut self.scheduler, IDLE);
            return self.collect();
        }
        let passed = self.submit(&works).and_then(|submitted| {
            let mut flight = self.land(submitted)?;
            let begun = Instant::now();
            let sampled = self.sample(&works, &mut *flight);
            self.meters.draws.observe_time(begun.elapsed());
            sampled
        });
        if let Err(error) = passed {
            for work in &works {
                self.scheduler.running[work.index].fail(error.clone());
            }
        }
        self.collect();
        self.tell_policy(&works, begun);
        self.stats.steps += 1;
    }

    /// Moves sequences away from grammars that have outgrown their memory. To look is cheap and not free, and a pass adds
    /// little to a grammar.
    fn renew_grammars(&mut self) {
        if !self.stats.steps.is_multiple_of(RENEWED_EVERY) {
            return;
        }
        self.scheduler.all().for_each(Sequence::renew_grammar);
        self.tries.renew_grammars();
    }

    /// How long to wait for grammars: as long as the model took, at least as long as is configured.
    fn grace(&self) -> Duration {
        self.last_pass.max(self.config.mask_grace)
    }

    /// Lets grammars read what was drawn last, which says what to draft.
    fn read(&mut self) {
        self.errands.least = self.scheduler.policy.least_chance() as f32;
        // After one that takes longer, the others may too: all of them together must not.
        let mut is_brief = true;
        for sequence in self.scheduler.running.iter_mut().filter(|it| it.asks()) {
            match (sequence.request.grammar.is_some(), sequence.parole) {
                (false, _) => self.errands.read_now(sequence),
                (true, 0) if is_brief && self.errands.read_briefly(sequence, &mut is_brief) => (),
                (true, 1..) if sequence.is_masked() => self.errands.start(sequence, Goal::All),
                (true, _) => self.errands.start(sequence, Goal::Reading),
            }
        }
        let grace = self.grace();
        self.errands.gather(&mut self.scheduler, grace);
    }

    /// Tells drivers of the branches that are read as far as was ordered.
    fn tell_read(&mut self) {
        let is_read = |sequence: &&Sequence| sequence.doing == Doing::Reading && sequence.unfed() == 0;
        let read = self.scheduler.running.iter().filter(is_read);
        let read: Vec<_> = read.map(|sequence| (sequence.job, sequence.branch)).collect();
        for (job, branch) in read {
            self.tell(job, branch, News::Read);
        }
    }

    /// Says what a pass has cost that began at this moment. One that fed prompts costs something else.
    fn tell_policy(&mut self, works: &[Work], begun: Instant) {
        let rows: usize = works.iter().map(|work| work.rows).sum();
        let feeds_rows = works.iter().all(|work| work.feed == 1 && work.rows > 0);
        let took = match &self.counted {
            Some(counted) => counted(Worked::Pass(rows)),
            None => begun.elapsed(),
        };
        let pass = Base {
            tokens: rows,
            drawing: works.len(),
        };
        self.scheduler.policy.passed(feeds_rows.then_some(pass), took);
    }

    /// Lets the draft model go on with the drafts of sequences whose grammars are quick, as far as that pays; how long it
    /// took.
    fn propose(&mut self) -> Duration {
        let Some(model) = &mut self.draft_model else {
            return Duration::ZERO;
        };
        let begun = Instant::now();
        let decodes = |sequence: &Sequence| {
            let is_quick = sequence.parole == 0 && sequence.masks.is_none();
            let draws = sequence.doing == Doing::Drawing && sequence.unfed() == 1 && sequence.is_ready();
            // What a draft model reads is one text.
            let drafts = sequence.request.speculation.model && !sequence.is_asked();
            drafts && draws && is_quick && is_chain(&sequence.drafts)
        };
        self.scheduler.plan_model(decodes);
        let running = self.scheduler.running.iter_mut();
        let mut for_model: Vec<_> = running.filter(|sequence| sequence.reach > 0).collect();
        let sequences = for_model.len();
        let read = for_model
            .iter_mut()
            .map(|it| std::mem::replace(&mut it.record.is_read, true));
        let readings = read.filter(|is_read| !is_read).count();
        match model.propose(&mut for_model, &self.errands, self.config.mask_grace) {
            Ok(rounds) => {
                let took = match &self.counted {
                    Some(counted) => counted(Worked::DraftPass(sequences)) * rounds as u32,
                    None => begun.elapsed(),
                };
                self.scheduler.policy.drafted((rounds, readings), took);
            }
            Err(_) => {
                // Drafts are not needed; a model that fails once would fail again.
                self.stats.draft_model_failed = true;
                self.draft_model = None;
            }
        }
        begun.elapsed()
    }

    /// Has other threads find the masks of all rows that are not known yet; whether there are any to wait for.
    fn ask_for_masks(&mut self, works: &[Work]) -> bool {
        let running = &mut self.scheduler.running;
        let mut asked = false;
        let few = works.iter().map(|work| work.rows).sum::<usize>() <= FEW_ROWS;
        for work in works.iter().filter(|work| work.rows > 0) {
            let sequence = &mut running[work.index];
            let is_masked = sequence.is_masked();
            asked |= is_masked;
            let is_known =
                sequence.masks.is_some() || few && is_masked && self.errands.find_briefly(sequence);
            if is_masked && !is_known {
                self.errands.start(sequence, Goal::Masks);
            }
        }
        asked
    }

    /// Starts a pass, and with it the search for the masks of its rows.
    fn submit(&mut self, works: &[Work]) -> Result<Submitted, EngineError> {
        let asked = self.ask_for_masks(works);
        let running = &self.scheduler.running;
        let fed: Vec<Vec<u32>> = works
            .iter()
            .map(|work| fed_tokens(&running[work.index], work))
            .collect();
        let trees = works.iter().map(|work| match work.rows {
            0 => None,
            _ => parents(&running[work.index].drafts),
        });
        let trees: Vec<Option<Vec<u16>>> = trees.collect();
        let mut feeds = Vec::with_capacity(works.len());
        for ((work, tokens), parents) in works.iter().zip(&fed).zip(&trees) {
            let sequence = &running[work.index];
            let table = sequence.table.blocks();
            feeds.push(Feed {
                tokens,
                start: sequence.computed,
                table,
                rows: work.rows,
                parents: parents.as_deref(),
                scale: sequence.warper.scale(),
            });
        }
        let count: usize = feeds.iter().map(|feed| feed.tokens.len()).sum();
        self.meters.pass_tokens.observe(count as f64);
        let begun = Instant::now();
        let mut copies = self.blocks.take_copies().into_iter();
        let copied = copies.try_for_each(|round| self.model.copy_blocks(&round));
        copied?;
        Ok(Submitted {
            flight: self.model.submit(&feeds)?,
            begun,
            tokens: count,
            asked,
        })
    }

    /// Waits for a pass, and then for the masks of its rows, but not for long.
    fn land(&mut self, submitted: Submitted) -> Result<Box<dyn Flight>, EngineError> {
        let Submitted {
            mut flight,
            begun,
            tokens,
            asked,
        } = submitted;
        flight.wait()?;
        self.last_pass = begun.elapsed();
        self.pace.observe(tokens, self.last_pass);
        self.meters.passes.observe_time(self.last_pass);
        let begun = Instant::now();
        let grace = self.grace();
        self.errands.gather(&mut self.scheduler, grace);
        if asked {
            self.meters.mask_waits.observe_time(begun.elapsed());
        }
        Ok(flight)
    }

    fn sample(&mut self, works: &[Work], flight: &mut dyn Flight) -> Result<(), EngineError> {
        let written = self.write(works, flight)?;
        let mut drew = Vec::with_capacity(works.len());
        let mut moves = Vec::new();
        for (work, written) in works.iter().zip(written) {
            let sequence = &mut self.scheduler.running[work.index];
            self.stats.prefilled_tokens += prompt_part(sequence, work);
            let mut computed = sequence.computed + work.feed;
            if work.rows > 0 && written.is_none() {
                // It sits out, and its last token is fed again for the row that nobody could draw from.
                computed -= 1;
            }
            let (blocks, mut left) = (&mut self.blocks, None);
            if let Some(written) = written {
                written.count(&mut self.stats);
                if let Some(gap) = written.gap {
                    self.meters.gaps.observe_time(gap);
                }
                left = written.left;
                let accepted = if left.is_some() {
                    &[][..]
                } else {
                    &written.accepted
                };
                moves.extend(moved(sequence, computed, accepted));
                computed += accepted.len();
                drew.extend(news(sequence, written.drawn).map(|news| (sequence.job, sequence.branch, news)));
            }
            if left.is_none() {
                // The last token is always fed again for its row, also an accepted draft that had none.
                computed = computed.min(sequence.tokens.len() - 1);
            }
            sequence.computed = computed;
            let text = left.as_ref().unwrap_or(&sequence.tokens);
            blocks.commit(&mut sequence.table, text, computed);
            if let Some(left) = &left {
                // What the failed attempts computed is remembered by its tokens; this one goes on with what is the same.
                sequence.computed = common(left, &sequence.tokens).min(computed);
                blocks.rewind(&mut sequence.table, sequence.computed);
            }
        }
        self.compact(&moves);
        for (job, branch, news) in drew {
            self.tell(job, branch, news);
        }
        self.tell_read();
        Ok(())
    }

    /// Moves the keys and values of accepted drafts to where the text goes on.
    fn compact(&mut self, moves: &[Moved]) {
        if moves.is_empty() {
            return;
        }
        let running = &self.scheduler.running;
        let find = |id: u64| running.iter().find(|sequence| sequence.id == id);
        let slots = moves.iter().filter_map(|moved| {
            Some(SlotMoves {
                table: find(moved.sequence)?.table.blocks(),
                start: moved.start,
                slots: &moved.slots,
            })
        });
        let slots: Vec<SlotMoves<'_>> = slots.collect();
        let Err(error) = self.model.move_slots(&slots) else {
            return;
        };
        let is_moved = |sequence: &&mut Sequence| moves.iter().any(|moved| moved.sequence == sequence.id);
        let running = self.scheduler.running.iter_mut();
        running
            .filter(is_moved)
            .for_each(|sequence| sequence.fail(error.clone()));
    }

    /// Lets go of the sequences that are done.
    pub(crate) fn collect(&mut self) {
        self.tell_endings();
        let mut done = self.scheduler.collect(&mut self.blocks);
        if done.is_empty() {
            return;
        }
        for sequence in &mut done {
            sequence.place = None;
            if sequence.branch == 0 {
                self.stats.cached_tokens += sequence.cached as u64;
            }
        }
        if let Some(model) = &mut self.draft_model {
            let alive: Vec<u64> = self
                .scheduler
                .running
                .iter()
                .map(|sequence| sequence.id)
                .collect();
            model.retain(|id| alive.contains(&id));
        }
        // Also of those that their drivers have dropped by now, having made an answer of them.
        for _ in done.iter().filter(|sequence| sequence.teach_answer()) {
            self.stores.ended();
        }
        let (dropped, ended): (Vec<_>, Vec<_>) = done.into_iter().partition(|sequence| sequence.dropped);
        for sequence in ended {
            if let Some(job) = self.jobs.get_mut(&sequence.job) {
                job.keep(sequence);
            }
        }
        self.errands.forget(dropped);
    }

    /// Fails what ran, after a panic. The caches may hold anything now, so they start empty.
    pub(crate) fn recover(&mut self, message: &str) {
        self.stats.panics += 1;
        for sequence in &mut self.scheduler.running {
            forget_cache(sequence, &mut self.blocks);
            sequence.fail(EngineError::Panicked(message.to_string()));
        }
        // The request of whose driver it was is gone.
        let jobs = &self.jobs;
        let is_lost = |sequence: &&mut Sequence| !jobs.contains_key(&sequence.job);
        self.scheduler.all().filter(is_lost).for_each(Sequence::give_up);
        self.blocks = Blocks::new(self.config.blocks, self.config.block_size);
        if let Some(model) = &mut self.draft_model {
            model.reset(&self.config);
        }
        self.collect();
    }

    /// Brings the figures up to date.
    pub(crate) fn measure(&mut self) -> Stats {
        self.stats.running = self.scheduler.running.len();
        self.stats.waiting = self.scheduler.waiting.len();
        self.stats.preemptions = self.scheduler.preemptions;
        self.stats.blocks_total = self.blocks.total();
        self.stats.blocks_used = self.blocks.used();
        self.stats.blocks_kept = self.blocks.kept();
        self.stats.draft_store_bytes = self.stores.bytes();
        self.stats.draft_corpus_bytes = self.stores.corpus_bytes();
        self.stats.draft_stores_failed = self.stores.given_up();
        self.stats.draft_saves_failed = self.stores.unsaved();
        self.stats.clone()
    }
}

/// A pass on its way.
struct Submitted {
    flight: Box<dyn Flight>,
    begun: Instant,
    /// How many it was fed.
    tokens: usize,
    /// Whether masks are being looked for.
    asked: bool,
}

/// What a driver is told of a pass that brought so many tokens. Given tokens may take several passes.
fn news(sequence: &Sequence, drawn: usize) -> Option<News> {
    if sequence.closed {
        return None;
    }
    match sequence.doing {
        Doing::Scoring => sequence.given.is_empty().then_some(News::Scored),
        Doing::Ranking => (!sequence.ranked.is_empty()).then_some(News::Ranked),
        Doing::Weighing => (!sequence.weighed.is_empty()).then_some(News::Weighed),
        _ => (drawn > 0).then_some(News::Drew),
    }
}

/// Accepted drafts that do not lie where the text goes on.
struct Moved {
    sequence: u64,
    start: usize,
    slots: Vec<usize>,
}

/// Which slots have to move: the drafts lie after the text in the order of the tree, and it goes on with a path of them.
fn moved(sequence: &Sequence, start: usize, accepted: &[NodeId]) -> Option<Moved> {
    let lies_right = accepted.iter().enumerate().all(|(number, &node)| number == node);
    (!lies_right).then(|| Moved {
        sequence: sequence.id,
        start,
        slots: accepted.iter().map(|node| start + node).collect(),
    })
}

/// How many tokens two texts begin with in common; not the last of the second one, whose row is wanted.
fn common(left: &[u32], text: &[u32]) -> usize {
    let same = left.iter().zip(text).take_while(|(one, other)| one == other);
    same.count().min(text.len() - 1)
}

/// How many tokens of its prompt a sequence was fed.
fn prompt_part(sequence: &Sequence, work: &Work) -> u64 {
    let end = (sequence.computed + work.feed).min(sequence.request.prompt.len());
    end.saturating_sub(sequence.computed) as u64
}

fn fed_tokens(sequence: &Sequence, work: &Work) -> Vec<u32> {
    let mut tokens = sequence.tokens[sequence.computed..sequence.computed + work.feed].to_vec();
    if work.rows > 0 {
        tokens.extend(sequence.drafts.iter().map(|draft| draft.token));
    }
    tokens
}
