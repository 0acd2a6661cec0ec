//! The main flow: one call of [`Core::step`] is one pass of the model.
//!
//! ```text
//!   admit ─► read ───────► begin ──────────────────► land ──► sample ─► collect
//!   who      last draws,   schedule: who, how much   wait     draw,     hand blocks
//!            drafts        submit: model, masks      for it   verify    back, tell stats
//!                          beside
//! ```
//!
//! If a model draws by itself and takes the tokens of the next pass from its own draws, that pass is begun in
//! `sample`, before the host has seen the tokens ([`ahead`](crate::engine::ahead)); the next step continues
//! from there, and admits and begins nothing.
//!
//! Grammar work is done by other threads ([`grammar_task`](crate::engine::grammar_task)): a sequence whose
//! grammar is slow sits out passes, and the others continue.

mod drawing;
mod leading;
mod passing;
mod taking;

use crate::blocks::{Blocks, Scope};
use crate::config::EngineConfig;
use crate::engine::ahead::{Admitted, Ahead};
use crate::engine::draft_model::{Assistant, DraftModel};
use crate::engine::grammar_task::{Goal, GrammarTasks};
use crate::error::EngineError;
use crate::grammar::drafters::Drafters;
use crate::grammar::masks::{Finder, MaskHook};
use crate::metrics::meters::Meters;
use crate::metrics::stats::Stats;
use crate::model::Model;
use crate::request::Request;
use crate::request::driver::{BranchEvent, Orders};
use crate::request::law::{Taught, learning_walk, teaches};
use crate::sampling::Columns;
use crate::scheduler::pace::Pace;
use crate::scheduler::pass::Work;
use crate::scheduler::{Scheduler, forget_cache};
use crate::sequence::job::Job;
use crate::sequence::tries::{self, Tries};
use crate::sequence::{Phase, Sequence};
use crate::speculation::policy::{Base, CountedTime, Policy, Worked};
use crate::speculation::store::Stores;
use crate::speculation::window;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::{LongestMatch, Tokenise};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The parts that an engine is built from.
pub(crate) struct Parts {
    pub(crate) model: Box<dyn Model>,
    pub(crate) draft: Option<Assistant>,
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) tokeniser: Option<Arc<dyn Tokenise + Sync>>,
    pub(crate) config: EngineConfig,
    pub(crate) mask_hook: Option<MaskHook>,
    /// The source of the cost of passes, in place of the clock.
    pub(crate) counted: Option<CountedTime>,
}

impl Parts {
    /// Returns the parts that every engine has, and none of the optional ones.
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

/// The number of passes between two checks of the memory of grammars.
const RENEWED_EVERY: u64 = 16;

/// All data owned by the decode thread.
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
    /// A buffer for the orders of a driver.
    pub(crate) orders: Orders,
    pub(crate) stats: Stats,
    meters: Arc<Meters>,
    pub(crate) grammar_tasks: GrammarTasks,
    columns: Columns,
    draft_model: Option<DraftModel>,
    tries: Tries,
    pub(crate) stores: Stores,
    /// The pass that was begun after the draws of the last one.
    ahead: Option<Ahead>,
    /// The sequences present when the scheduler last tried to admit one.
    admitted: Admitted,
    /// The time that the model took for the last pass.
    last_pass: Duration,
    pace: Pace,
    /// The source of the cost of passes, in place of the clock.
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
        let draft_model = draft.map(|draft| DraftModel::new(draft, &*model, tokens, &config));
        let draft_model = draft_model.transpose()?;
        let (finder, drafters) = (
            Finder { hook: mask_hook },
            Drafters::new(tokeniser, vocabulary.clone()),
        );
        Ok(Core {
            blocks: Blocks::new(config.blocks, config.block_size),
            grammar_tasks: GrammarTasks::new(
                (config.mask_threads, config.max_running),
                finder,
                drafters,
                meters.clone(),
            )?,
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
            ahead: None,
            admitted: Admitted::default(),
            last_pass: Duration::ZERO,
            pace: Pace::default(),
            counted,
            draft_model,
            model,
            vocabulary,
            config,
        })
    }

    /// Returns the number of tokens that the draft model reads, if its rows can be contrasted with.
    pub(crate) fn draft_context(&self) -> Option<usize> {
        self.draft_model.as_ref().and_then(DraftModel::context)
    }

    /// Returns `true` if there is nothing to do until a request comes.
    pub(crate) fn is_idle(&self) -> bool {
        self.scheduler.running.is_empty() && self.scheduler.waiting.is_empty() && self.ahead.is_none()
    }

    /// Adds a new request: its first branch, and its job.
    pub(crate) fn take_in(&mut self, mut sequence: Sequence, job: Job) {
        self.stats.requests += job.answers() as u64;
        self.stats.prompt_tokens += sequence.request.prompt.tokens.len() as u64;
        if let (Some(taught), Some(grammar)) =
            (teaches(&sequence.request), &sequence.request.constraints.grammar)
        {
            let trie = match taught {
                Taught::Requests => self.tries.shared(&sequence.request, grammar, &self.vocabulary),
                Taught::Own => tries::new(&sequence.request, &self.vocabulary),
            };
            sequence.draw.walk = learning_walk(&sequence.request, &sequence.draw.warper, trie.clone());
            sequence.draw.trie = Some(trie);
        }
        sequence.share_within(&self.scope_of(&sequence.request));
        sequence.draft.store = self.stores.of(&sequence.request.limits.owner);
        sequence.draft.window = window::begin(self.config.lookahead, &sequence.request);
        sequence.draft.siblings = self.stores.of_samples(&sequence.request);
        sequence.id.number = self.next_sequence;
        self.next_sequence += 1;
        let id = sequence.id.job;
        self.scheduler.waiting.push_back(sequence);
        self.jobs.insert(id, job);
        self.tell(id, 0, BranchEvent::Begun);
    }

    /// Returns the texts that those of a request may share blocks with.
    fn scope_of(&self, request: &Request) -> Scope {
        let owner = match self.config.share_prompts {
            true => None,
            false => request.limits.owner.clone(),
        };
        Scope {
            owner,
            salt: request.prompt.cache_salt.clone(),
        }
    }

    /// Runs one pass over the sequences that are due.
    pub(crate) fn step(&mut self) {
        let begun = Instant::now();
        self.end_late();
        self.end_watched();
        self.renew_grammars();
        let ahead = self.take_ahead();
        if ahead.is_none() {
            self.admit();
        }
        self.tell_read();
        self.read();
        self.collect();
        let (pass, begun) = match ahead {
            Some(ahead) => (self.go_on(ahead), begun),
            None => {
                let begun = begun + self.propose();
                (self.begin(), begun)
            }
        };
        let Some(mut pass) = pass else {
            return self.collect();
        };
        let passed = self.land(&mut pass);
        let passed = passed.and_then(|mut flight| self.sample(&mut pass, &mut *flight));
        if let Err(error) = passed {
            for work in &pass.works {
                self.scheduler.running[work.index].fail(error.clone());
            }
            self.settle();
        }
        self.collect();
        self.tell_policy(&pass.works, begun);
        self.stats.steps += 1;
    }

    /// Moves sequences away from grammars that have outgrown their memory. The check is cheap but not free,
    /// and a pass adds little to a grammar.
    fn renew_grammars(&mut self) {
        if !self.stats.steps.is_multiple_of(RENEWED_EVERY) {
            return;
        }
        self.scheduler.all().for_each(Sequence::renew_grammar);
        self.tries.renew_grammars();
    }

    /// Returns how long to wait for grammars: as long as the model took, and at least as long as configured.
    fn grace(&self) -> Duration {
        self.last_pass.max(self.config.mask_grace)
    }

    /// Lets grammars read the last draws, which determines what to draft.
    fn read(&mut self) {
        self.grammar_tasks.least = self.scheduler.policy.least_chance() as f32;
        if self.scheduler.running.iter().any(Sequence::draws_drafts) {
            self.grammar_tasks.odds = self.scheduler.policy.odds();
        }
        // After one that takes longer, the others may too, and all of them together must not.
        let mut is_brief = true;
        for sequence in self.scheduler.running.iter_mut().filter(|it| it.asks()) {
            match (
                sequence.request.constraints.grammar.is_some(),
                sequence.grammar.cooldown,
            ) {
                (false, _) => self.grammar_tasks.read_now(sequence),
                (true, 0) if is_brief && self.grammar_tasks.read_briefly(sequence, &mut is_brief) => (),
                (true, 1..) if sequence.is_masked() => self.grammar_tasks.start(sequence, Goal::All),
                (true, _) => self.grammar_tasks.start(sequence, Goal::Reading),
            }
        }
        let grace = self.grace();
        self.grammar_tasks.gather(&mut self.scheduler, grace);
    }

    /// Reports to drivers the branches that are read as far as ordered.
    fn tell_read(&mut self) {
        let is_read = |sequence: &&Sequence| sequence.phase == Phase::Reading && sequence.unfed() == 0;
        let read = self.scheduler.running.iter().filter(is_read);
        let read: Vec<_> = read
            .map(|sequence| (sequence.id.job, sequence.id.branch))
            .collect();
        for (job, branch) in read {
            self.tell(job, branch, BranchEvent::Read);
        }
    }

    /// Reports to the policy the cost of a pass that began at this moment.
    fn tell_policy(&mut self, works: &[Work], begun: Instant) {
        let pass = Base {
            tokens: works.iter().map(|work| work.rows).sum(),
            drawing: works.iter().filter(|work| work.rows > 0).count(),
            prompts: works.iter().map(Work::of_prompt).sum(),
        };
        let worked = Worked::Pass {
            decoded: pass.tokens,
            prompts: pass.prompts,
        };
        let took = match &self.counted {
            Some(counted) => counted(worked),
            None => begun.elapsed(),
        };
        self.scheduler.policy.passed(pass, took);
    }

    /// Removes the sequences that are done.
    pub(crate) fn collect(&mut self) {
        self.tell_endings();
        let mut done = self.scheduler.collect(&mut self.blocks);
        if done.is_empty() {
            return;
        }
        for sequence in &mut done {
            sequence.report.place = None;
            // The fate of its last drafts; that of other sequences is reported when they are planned again.
            self.scheduler.policy.hear(&mut sequence.draft.record);
            if sequence.id.branch == 0 {
                self.stats.cached_tokens += sequence.text.cached as u64;
            }
        }
        if let Some(model) = &mut self.draft_model {
            let alive: Vec<u64> = self
                .scheduler
                .running
                .iter()
                .map(|sequence| sequence.id.number)
                .collect();
            model.retain(|id| alive.contains(&id));
        }
        // This includes branches that their drivers have dropped by now, having made an answer of them.
        for _ in done.iter().filter(|sequence| sequence.teach_answer()) {
            self.stores.ended();
        }
        let (dropped, ended): (Vec<_>, Vec<_>) =
            done.into_iter().partition(|sequence| sequence.report.dropped);
        for sequence in ended {
            if let Some(job) = self.jobs.get_mut(&sequence.id.job) {
                job.keep(sequence);
            }
        }
        self.grammar_tasks.forget(dropped);
    }

    /// Fails the running sequences after a panic. The caches start empty, as their contents are undefined.
    pub(crate) fn recover(&mut self, message: &str) {
        self.stats.panics += 1;
        self.ahead = None;
        for sequence in &mut self.scheduler.running {
            forget_cache(sequence, &mut self.blocks);
            sequence.fail(EngineError::Panicked(message.to_string()));
        }
        // The request whose driver panicked is gone.
        let jobs = &self.jobs;
        let is_lost = |sequence: &&mut Sequence| !jobs.contains_key(&sequence.id.job);
        self.scheduler
            .all()
            .filter(is_lost)
            .for_each(|sequence| sequence.report.give_up());
        self.blocks = Blocks::new(self.config.blocks, self.config.block_size);
        if let Some(model) = &mut self.draft_model {
            model.reset(&self.config);
        }
        self.collect();
    }

    /// Updates the statistics.
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
