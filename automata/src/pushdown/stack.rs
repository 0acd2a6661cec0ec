//! Configurations: sets of stacks of frames, shared and interned.
//!
//! A configuration is a set of pairs *(frame, configuration of the callers)*. Pairs with the same frame are
//! merged after every step, so that an ambiguous grammar shares frames instead of multiplying stacks (a
//! graph-structured stack, Tomita 1985); a deterministic one has a single pair. Interning makes the number of
//! a configuration its identity: equal numbers have equal futures, and a step is memoised: the first in the
//! configuration itself, since most are left by one byte only, others in a row of 256 entries, kept in blocks
//! of 16.
//!
//! ```text
//!   {"a": [1          (array item, ⟨ (object member, ⟨ (done, END) ⟩) ⟩)
//!                       └ frame ┘   └────── callers ──────────────┘
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use dashmap::DashMap;
use once_cell::race::OnceBox;
use once_cell::sync::OnceCell;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::frame::{FrameId, Frames, RETURN, View};
use crate::pushdown::intern::index::{Index, hash_of};
use crate::pushdown::intern::seen::Seen;
use crate::work::{end_by, spend};

/// The number of an interned configuration.
pub type ConfigId = u32;

/// Nothing is left to be read: below the start rule.
pub(crate) const END: ConfigId = 0;
/// The sequence is over: the end-of-sequence token was taken.
pub(crate) const FINISHED: ConfigId = 1;

type Pairs = Box<[(FrameId, ConfigId)]>;

/// A set of stacks of frames with its memoised steps.
#[derive(Debug)]
struct Config {
    pairs: Pairs,
    closure: OnceCell<Closure>,
    /// The first token that was asked for, and where it leads.
    token: AtomicU64,
    /// The first byte that was asked for, and where it leads.
    first: AtomicU64,
    row: OnceBox<StepRow>,
    /// The configuration that stands for all that tokens cannot tell from it, once that was asked for.
    representative: AtomicU32,
    /// What it is called in every process, once that was asked for; 0 before.
    name: AtomicU64,
    /// How many single frames lie above one another from here to the bottom, or to where there are several.
    height: u32,
}

impl Config {
    fn new(pairs: Pairs, height: u32, closure: OnceCell<Closure>) -> Config {
        Config {
            pairs,
            closure,
            token: AtomicU64::new(NONE),
            first: AtomicU64::new(NONE),
            row: OnceBox::new(),
            representative: AtomicU32::new(UNKNOWN_STATE),
            name: AtomicU64::new(0),
            height,
        }
    }
}

/// The configuration after each byte, as far as it was asked for; the high half of a byte finds the block.
type StepRow = [OnceBox<[AtomicU32; 16]>; 16];

/// What a configuration can do next, calls and returns followed as far as nothing is read.
#[derive(Debug, Default)]
pub struct Closure {
    /// The frames that read something, each with its callers.
    pub(crate) readers: Readers,
    /// Whether the text may end here.
    pub accepting: bool,
    /// The least [height](Stacks::height) of a configuration that was looked into for it.
    pub(crate) lowest: u32,
}

/// Frames that read, each with its callers; mostly there is one.
pub(crate) type Readers = SmallVec<[(FrameId, ConfigId); 2]>;

/// All configurations of one grammar, found lazily. Reads never lock.
#[derive(Debug)]
pub struct Stacks {
    pub(crate) frames: Frames,
    configs: boxcar::Vec<Config>,
    known: Index,
    /// The memory that lists of pairs and of united configurations take, in bytes.
    pub(crate) list_bytes: AtomicUsize,
    /// The most bytes that configurations may take; beyond them no more are found.
    pub(crate) most_bytes: usize,
    /// The unions of configurations that were found.
    pub(crate) unions: DashMap<Box<[ConfigId]>, ConfigId, FxBuildHasher>,
}

/// What has to be followed, the last one first.
type OpenFrame = SmallVec<[(FrameId, ConfigId); 8]>;

/// About how much memory a configuration takes, with how it is found, the block of one step and what it
/// shows, in bytes.
pub(crate) const CONFIG_BYTES: usize = 600;

/// A frame with its callers.
const PAIR_BYTES: usize = size_of::<(FrameId, ConfigId)>();

/// The cost of a new configuration, in rounds of a plain loop.
const NEW: usize = 48;

/// The most readers that are compared with each other, which is faster than sorting that few.
const FEW_READERS: usize = 16;

const UNKNOWN_STATE: u32 = u32::MAX;

/// What stands in lists of frames where callers are left out.
const BELOW: FrameId = FrameId::MAX;
const DEAD: u32 = u32::MAX - 1;

fn alive(next: u32) -> Option<ConfigId> {
    (next != DEAD).then_some(next)
}

/// No byte or token was asked for.
const NONE: u64 = u64::MAX;

/// A byte or token and where it leads.
fn step_of(read: u32, next: u32) -> u64 {
    u64::from(read) << 32 | u64::from(next)
}

impl Stacks {
    /// Only where every sequence begins, and what is found from there within `most_bytes`.
    pub(crate) fn new(frames: Frames, most_bytes: usize) -> Stacks {
        let stacks = Stacks {
            frames,
            configs: boxcar::Vec::new(),
            known: Index::default(),
            unions: DashMap::default(),
            list_bytes: AtomicUsize::new(0),
            most_bytes,
        };
        // END and FINISHED hold no pairs, but are two things; neither is found by its pairs.
        for _ in [END, FINISHED] {
            stacks
                .configs
                .push(Config::new(Box::default(), 0, OnceCell::new()));
        }
        stacks
    }

    /// How many configurations were found.
    pub fn count(&self) -> usize {
        self.configs.count()
    }

    /// Whether a number is that of a configuration in which a sequence can be; below the bottom nothing is.
    pub(crate) fn holds(&self, number: u32) -> bool {
        number != END && self.configs.get(number as usize).is_some()
    }

    /// The pairs of a configuration.
    pub(crate) fn pairs(&self, config: ConfigId) -> &[(FrameId, ConfigId)] {
        &self.configs[config as usize].pairs
    }

    /// The regular language that a frame is in and where, if it is in one.
    pub(crate) fn view(&self, frame: FrameId) -> View<'_> {
        self.frames.view(frame)
    }

    /// Whether some languages are no regular ones, so that not all distances in them are known.
    pub(crate) fn has_judges(&self) -> bool {
        !self.frames.nfa.judged.is_empty()
    }

    /// Whether keys must differ, or items meet demands, so that some distances are those of a way that may
    /// not be the shortest.
    pub fn counts_keys(&self) -> bool {
        let mut series = self.frames.nfa.series.iter();
        series.any(|plan| plan.has_demands() || plan.rest.iter().any(|rest| rest.key.is_some()))
    }

    /// Whether the word of a frame that is judged ends after these bytes.
    pub(crate) fn word_ends(&self, frame: FrameId, written: &[u8]) -> bool {
        self.frames.word_ends(frame, written)
    }

    /// The shortest bytes after which the key of a frame could only become one that was written before. Some
    /// may be left out of which `fits` is false.
    pub(crate) fn taken(&self, frame: FrameId, fits: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        self.frames.taken(frame, fits)
    }

    /// The configuration that stands for one whose tokens are the same, if that is known.
    pub(crate) fn known_representative(&self, config: ConfigId) -> Option<ConfigId> {
        match config {
            END | FINISHED => Some(config),
            _ => match self.configs[config as usize]
                .representative
                .load(Ordering::Relaxed)
            {
                UNKNOWN_STATE => None,
                like => Some(like),
            },
        }
    }

    /// From now on this configuration stands for that one, and for itself.
    pub(crate) fn set_representative(&self, config: ConfigId, like: ConfigId) {
        self.configs[like as usize]
            .representative
            .store(like, Ordering::Relaxed);
        self.configs[config as usize]
            .representative
            .store(like, Ordering::Relaxed);
    }

    /// What a configuration is called in every process, if that was asked for.
    pub(crate) fn known_name(&self, config: ConfigId) -> Option<u64> {
        let name = self.configs[config as usize].name.load(Ordering::Relaxed);
        (name != 0).then_some(name)
    }

    /// From now on it is known what a configuration is called.
    pub(crate) fn remember_name(&self, config: ConfigId, name: u64) {
        self.configs[config as usize].name.store(name, Ordering::Relaxed);
    }

    /// Interns a set of pairs. Pairs with the same frame are merged: their callers are united.
    pub(crate) fn intern(&self, mut pairs: impl AsMut<[(FrameId, ConfigId)]>) -> ConfigId {
        let pairs = pairs.as_mut();
        pairs.sort_unstable();
        // Equal pairs are neighbours, and so are those of one frame.
        match pairs.windows(2).any(|two| two[0].0 == two[1].0) {
            true => {
                spend(pairs.len());
                let mut pairs = pairs.to_vec();
                pairs.dedup();
                self.intern_as_is(&self.merge(pairs))
            }
            false => self.intern_as_is(pairs),
        }
    }

    pub(crate) fn intern_as_is(&self, pairs: &[(FrameId, ConfigId)]) -> ConfigId {
        let hash = hash_of(pairs);
        let is = |config| self.pairs(config) == pairs;
        let known = self.known.find(hash, is);
        known.unwrap_or_else(|| {
            self.pay_for(pairs.len());
            self.known
                .find_or_add(hash, (), |(), config| is(config), |()| self.add(pairs))
        })
    }

    /// Pays for a configuration that is not known yet. Never called while others wait for a number.
    fn pay_for(&self, pairs: usize) {
        spend(NEW + pairs);
        let bytes = self.list_bytes.fetch_add(pairs * PAIR_BYTES, Ordering::Relaxed);
        if self.count() * CONFIG_BYTES + bytes > self.most_bytes {
            end_by("grammar_bytes", self.most_bytes);
        }
    }

    fn add(&self, pairs: &[(FrameId, ConfigId)]) -> ConfigId {
        let height = match *pairs {
            [(_, callers)] => self.height(callers).saturating_add(1),
            _ => 0,
        };
        // Where the only frame reads and can do nothing else, nothing has to be found.
        let closure = match *pairs {
            [(frame, _)] if self.frames.get(frame).is_plain() => OnceCell::with_value(Closure {
                readers: SmallVec::from_slice(pairs),
                accepting: false,
                lowest: height,
            }),
            _ => OnceCell::new(),
        };
        self.configs.push(Config::new(pairs.into(), height, closure)) as ConfigId
    }

    /// How many single frames lie above one another from a configuration to the bottom, or to where there are
    /// several.
    pub(crate) fn height(&self, config: ConfigId) -> u32 {
        self.configs[config as usize].height
    }

    /// How many levels of callers have been looked into, if the lowest of them has this height; `None` if
    /// that was the bottom, or where there are several frames.
    pub(crate) fn depth(&self, config: ConfigId, lowest: u32) -> Option<u32> {
        (lowest > 0).then(|| (self.height_of_callers(config) + 1).saturating_sub(lowest))
    }

    /// The frames in the upper `depth` levels of a configuration. What is found without looking further down
    /// is the same in all configurations in which these are equal.
    pub(crate) fn upper(&self, config: ConfigId, depth: u32) -> Option<Box<[FrameId]>> {
        let lowest = (self.height_of_callers(config) + 1)
            .checked_sub(depth)
            .filter(|&lowest| lowest > 0)?;
        let mut frames = Vec::new();
        for &(frame, callers) in self.pairs(config) {
            frames.push(frame);
            let mut callers = callers;
            while self.height(callers) >= lowest {
                let (frame, below) = self.pairs(callers)[0];
                frames.push(frame);
                callers = below;
            }
            frames.push(BELOW);
        }
        Some(frames.into())
    }

    /// How deep masks looked below the first frame of a configuration, wherever that was; a bit for each
    /// depth.
    pub(crate) fn depths(&self, config: ConfigId) -> u64 {
        let top = self.pairs(config).first();
        top.map_or(0, |&(frame, _)| {
            self.frames.get(frame).depths.load(Ordering::Relaxed)
        })
    }

    /// From now on it is known that a mask looked so deep below the first frame of a configuration.
    pub(crate) fn add_depth(&self, config: ConfigId, depth: u32) {
        if let Some(&(frame, _)) = self.pairs(config).first()
            && self.depths(config) >> depth & 1 == 0
        {
            self.frames
                .get(frame)
                .depths
                .fetch_or(1 << depth, Ordering::Relaxed);
        }
    }

    fn height_of_callers(&self, config: ConfigId) -> u32 {
        let heights = self
            .pairs(config)
            .iter()
            .map(|&(_, callers)| self.height(callers));
        heights.max().unwrap_or(0)
    }

    /// What the configuration can do next, if it was asked before.
    pub(crate) fn known_closure(&self, config: ConfigId) -> Option<&Closure> {
        self.configs[config as usize].closure.get()
    }

    /// What the configuration can do next.
    pub fn closure(&self, config: ConfigId) -> &Closure {
        if let Some(known) = self.configs[config as usize].closure.get() {
            return known;
        }
        for below in self.ends_below(config) {
            let known = &self.configs[below as usize];
            known.closure.get_or_init(|| self.expand(below));
        }
        let known = &self.configs[config as usize];
        known.closure.get_or_init(|| self.expand(config))
    }

    /// The callers that a configuration may return to without reading, as far as it is not known what they
    /// can do next; each comes after its own callers, which are numbered before it.
    fn ends_below(&self, config: ConfigId) -> Vec<ConfigId> {
        let mut found = Vec::new();
        let mut seen = Seen::default();
        let (mut at, mut config) = (0, config);
        loop {
            spend(1 + self.pairs(config).len());
            for &(frame, callers) in self.pairs(config) {
                let is_end = callers != END && self.frames.get(frame).accepting;
                let is_known = || self.configs[callers as usize].closure.get().is_some();
                if is_end && !is_known() && seen.insert(callers) {
                    found.push(callers);
                }
            }
            let Some(&next) = found.get(at) else { break };
            (at, config) = (at + 1, next);
        }
        found.sort_unstable();
        found
    }

    fn expand(&self, config: ConfigId) -> Closure {
        let mut closure = Closure {
            readers: Readers::new(),
            accepting: config == END,
            lowest: self.height(config),
        };
        let mut seen = Seen::default();
        let mut open: OpenFrame = self.pairs(config).iter().rev().copied().collect();
        while let Some((frame, callers)) = open.pop() {
            if !seen.insert((frame, callers)) {
                continue;
            }
            spend(1);
            let known = self.frames.get(frame);
            if known.reads {
                closure.readers.push((frame, callers));
            }
            for call in self.frames.calls(frame).iter().rev() {
                let below = if call.then == RETURN {
                    callers
                } else {
                    self.intern_as_is(&[(call.then, callers)])
                };
                open.push((call.callee, below));
            }
            if known.accepting {
                self.give_back(callers, &mut open, &mut closure);
            }
        }
        self.merge_readers(&mut closure.readers);
        closure
    }

    /// Goes on with the callers of a complete frame; mostly it is known already what they can do next.
    fn give_back(&self, callers: ConfigId, open: &mut OpenFrame, closure: &mut Closure) {
        let config = &self.configs[callers as usize];
        match config.closure.get() {
            _ if callers == END => {
                closure.accepting = true;
                closure.lowest = 0;
            }
            Some(known) => {
                spend(known.readers.len());
                closure.lowest = closure.lowest.min(known.lowest);
                closure.readers.extend_from_slice(&known.readers);
                closure.accepting |= known.accepting;
            }
            None => {
                closure.lowest = closure.lowest.min(config.height);
                open.extend_from_slice(&config.pairs);
            }
        }
    }

    /// Readers of one frame are one reader with the callers of all. Others keep their order.
    fn merge_readers(&self, readers: &mut Readers) {
        let mut ahead = readers.iter().enumerate();
        if readers.len() <= FEW_READERS
            && !ahead.any(|(at, one)| readers[..at].iter().any(|other| other.0 == one.0))
        {
            return;
        }
        let mut sorted = readers.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let merged: FxHashMap<FrameId, ConfigId> = self.merge(sorted).into_iter().collect();
        let mut seen = Seen::default();
        readers.retain(|(frame, callers)| {
            *callers = merged[frame];
            seen.insert(*frame)
        });
    }

    /// Where a token leads, if it is the first that was asked for.
    #[inline]
    pub(crate) fn known_step_token(&self, config: ConfigId, token: u32) -> Option<ConfigId> {
        let first = self.configs[config as usize].token.load(Ordering::Relaxed);
        (first >> 32 == u64::from(token)).then_some(first as u32)
    }

    /// The configuration after a token with these bytes, or `None` if no text goes on with it. The first one
    /// from a configuration is remembered.
    pub(crate) fn step_token(&self, config: ConfigId, token: u32, bytes: &[u8]) -> Option<ConfigId> {
        let next = self.step_bytes(config, bytes)?;
        let known = &self.configs[config as usize].token;
        if known.load(Ordering::Relaxed) == NONE {
            known.store(step_of(token, next), Ordering::Relaxed);
        }
        Some(next)
    }

    /// The configuration after a byte, or `None` if no text goes on with it. Memoised.
    #[inline]
    pub fn step(&self, config: ConfigId, byte: u8) -> Option<ConfigId> {
        match self.known_step(config, byte) {
            UNKNOWN_STATE => alive(self.find_step(config, byte)),
            next => alive(next),
        }
    }

    /// Whether it is known where a byte leads.
    pub(crate) fn is_known(&self, config: ConfigId, byte: u8) -> bool {
        self.known_step(config, byte) != UNKNOWN_STATE
    }

    #[inline]
    fn known_step(&self, config: ConfigId, byte: u8) -> u32 {
        let known = &self.configs[config as usize];
        let first = known.first.load(Ordering::Relaxed);
        if first >> 32 == u64::from(byte) {
            return first as u32;
        }
        let block = known.row.get().and_then(|row| row[byte as usize >> 4].get());
        block.map_or(UNKNOWN_STATE, |block| {
            block[byte as usize & 15].load(Ordering::Relaxed)
        })
    }

    /// Remembers where a byte leads, be it nowhere. Another thread may put another byte in the first place,
    /// and then what was found here is found again.
    pub(crate) fn remember(&self, config: ConfigId, byte: u8, next: u32) {
        let known = &self.configs[config as usize];
        if known.first.load(Ordering::Relaxed) == NONE {
            return known.first.store(step_of(byte.into(), next), Ordering::Relaxed);
        }
        let row = known.row.get_or_init(|| Box::new([const { OnceBox::new() }; 16]));
        let block =
            row[byte as usize >> 4].get_or_init(|| Box::new([const { AtomicU32::new(UNKNOWN_STATE) }; 16]));
        block[byte as usize & 15].store(next, Ordering::Relaxed);
    }

    /// Two threads may both get here; they find the same number, since configurations are interned.
    #[cold]
    fn find_step(&self, config: ConfigId, byte: u8) -> u32 {
        let next = self.step_readers(&self.closure(config).readers, byte);
        let next = next.unwrap_or(DEAD);
        self.remember(config, byte, next);
        next
    }

    fn step_readers(&self, readers: &[(FrameId, ConfigId)], byte: u8) -> Option<ConfigId> {
        let next = readers
            .iter()
            .filter_map(|&(frame, callers)| Some((self.frames.read(frame, byte)?, callers)));
        self.settle(next)
    }

    /// Interns what was read; a frame that is complete and nothing else gives way to its callers.
    pub(crate) fn settle(&self, next: impl Iterator<Item = (FrameId, ConfigId)>) -> Option<ConfigId> {
        let mut pairs: OpenFrame = SmallVec::new();
        for (frame, callers) in next {
            match (frame, callers) {
                (RETURN, END) => pairs.push((RETURN, END)),
                (RETURN, _) => {
                    let callers = &self.configs[callers as usize].pairs;
                    spend(callers.len());
                    pairs.extend_from_slice(callers);
                }
                _ => pairs.push((frame, callers)),
            }
        }
        (!pairs.is_empty()).then(|| self.intern(pairs))
    }

    /// Finds something for a configuration out of its pairs and what is known or found for their callers; all
    /// that was found on the way. Callers are older than what they called, so this ends; a list, because
    /// stacks may be deep.
    pub(crate) fn fold_callers<T: Copy + Default>(
        &self,
        config: ConfigId,
        known: impl Fn(ConfigId) -> Option<T>,
        mut find: impl FnMut(&[(FrameId, ConfigId)], &dyn Fn(ConfigId) -> T) -> T,
    ) -> FxHashMap<ConfigId, T> {
        let mut open = vec![config];
        let mut found: FxHashMap<ConfigId, T> = FxHashMap::default();
        while let Some(&config) = open.last() {
            let known = |config| found.get(&config).copied().or_else(|| known(config));
            let pairs = self.pairs(config);
            spend(1 + pairs.len());
            let mut callers = pairs.iter().map(|pair| pair.1);
            if let Some(unknown) = callers.find(|&callers| known(callers).is_none()) {
                open.push(unknown);
                continue;
            }
            let value = find(pairs, &|callers| known(callers).unwrap_or_default());
            found.insert(config, value);
            open.pop();
        }
        found
    }

    /// The configuration after a special token.
    pub(crate) fn step_special(&self, config: ConfigId, special: u32) -> Option<ConfigId> {
        let readers = &self.closure(config).readers;
        let next = readers.iter();
        self.settle(
            next.filter_map(|&(frame, callers)| Some((self.frames.read_special(frame, special)?, callers))),
        )
    }
}
