//! Configurations: sets of stacks of frames, shared and interned.
//!
//! A configuration is a set of pairs *(frame, configuration of the callers)*. Pairs with the same frame are
//! merged after every step, so an ambiguous grammar shares frames instead of multiplying stacks (a
//! graph-structured stack, Tomita 1985); a deterministic one has a single pair. Interning makes the number
//! of a configuration its identity: equal numbers have equal futures, and steps are memoised. The first step
//! is stored in the configuration itself, since most configurations are left by one byte only; others are
//! stored in a row of 256 entries, in blocks of 16.
//!
//! ```text
//!   {"a": [1          (array item, ⟨ (object property, ⟨ (done, END) ⟩) ⟩)
//!                       └ frame ┘   └────── callers ────────────────┘
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use dashmap::DashMap;
use once_cell::race::OnceBox;
use once_cell::sync::OnceCell;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::frame::{FrameId, Frames, RETURN, View};
use crate::pushdown::intern::index::{Index, hash_of};
use crate::work::{end_by, spend};

/// The id of an interned configuration.
pub type ConfigId = u32;

/// The configuration below the start rule, in which nothing is left to read.
pub(crate) const END: ConfigId = 0;
/// The configuration after an end token.
pub(crate) const FINISHED: ConfigId = 1;

type Pairs = Box<[(FrameId, ConfigId)]>;

/// A set of stacks of frames with its memoised steps.
#[derive(Debug)]
struct Config {
    pairs: Pairs,
    closure: OnceCell<Closure>,
    /// The first token that was stepped over, and its target.
    token: AtomicU64,
    /// The first byte that was stepped over, and its target.
    first: AtomicU64,
    row: OnceBox<StepRow>,
    /// The representative of all configurations that tokens cannot tell apart from this one, once it is
    /// computed.
    representative: AtomicU32,
    /// The name in all processes, once it is computed; 0 before.
    name: AtomicU64,
    /// The number of single frames above one another down to the bottom, or to a level with several frames.
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

/// The memoised configurations after each byte; the high half of a byte selects the block.
type StepRow = [OnceBox<[AtomicU32; 16]>; 16];

/// The possible next steps of a configuration, after following calls and returns as far as nothing is read.
#[derive(Debug, Default)]
pub struct Closure {
    /// The frames that read, each with its callers.
    pub(crate) readers: Readers,
    /// `true` if the text may end here.
    pub accepting: bool,
    /// The lowest [height](Stacks::height) of the configurations that were looked at to compute this.
    pub(crate) lowest: u32,
}

/// Frames that read, each with its callers; usually one.
pub(crate) type Readers = SmallVec<[(FrameId, ConfigId); 2]>;

/// All configurations of one grammar, found lazily. Reads never lock.
#[derive(Debug)]
pub struct Stacks {
    pub(crate) frames: Frames,
    configs: boxcar::Vec<Config>,
    known: Index,
    /// The bytes of the lists of pairs and of united configurations.
    pub(crate) list_bytes: AtomicUsize,
    /// The maximum number of bytes of configurations; beyond it, no more are created.
    pub(crate) most_bytes: usize,
    /// The cached unions of configurations.
    pub(crate) unions: DashMap<Box<[ConfigId]>, ConfigId, FxBuildHasher>,
}

/// The pairs to follow, last one first.
type OpenFrame = SmallVec<[(FrameId, ConfigId); 8]>;

/// About the bytes of a configuration, with its index entry, one block of steps and its closure.
pub(crate) const CONFIG_BYTES: usize = 600;

/// The bytes of a frame with its callers.
const PAIR_BYTES: usize = size_of::<(FrameId, ConfigId)>();

/// The cost of a new configuration, in rounds of a plain loop.
const NEW: usize = 48;

const UNKNOWN_STATE: u32 = u32::MAX;

/// The marker for omitted callers in lists of frames.
const BELOW: FrameId = FrameId::MAX;
const DEAD: u32 = u32::MAX - 1;

fn alive(next: u32) -> Option<ConfigId> {
    (next != DEAD).then_some(next)
}

/// No byte or token was stepped over yet.
const NONE: u64 = u64::MAX;

/// Packs a byte or token and its target.
fn step_of(read: u32, next: u32) -> u64 {
    u64::from(read) << 32 | u64::from(next)
}

impl Stacks {
    /// Creates the configurations END and FINISHED, and bounds all configurations to `most_bytes` bytes.
    pub(crate) fn new(frames: Frames, most_bytes: usize) -> Stacks {
        let stacks = Stacks {
            frames,
            configs: boxcar::Vec::new(),
            known: Index::default(),
            unions: DashMap::default(),
            list_bytes: AtomicUsize::new(0),
            most_bytes,
        };
        // END and FINISHED have no pairs but are distinct; neither is found by its pairs.
        for _ in [END, FINISHED] {
            stacks
                .configs
                .push(Config::new(Box::default(), 0, OnceCell::new()));
        }
        stacks
    }

    /// Returns how many configurations were found.
    pub fn count(&self) -> usize {
        self.configs.count()
    }

    /// Returns `true` if a number belongs to a configuration in which a sequence can be, which excludes END.
    pub(crate) fn holds(&self, number: u32) -> bool {
        number != END && self.configs.get(number as usize).is_some()
    }

    /// Returns the pairs of a configuration.
    pub(crate) fn pairs(&self, config: ConfigId) -> &[(FrameId, ConfigId)] {
        &self.configs[config as usize].pairs
    }

    /// Returns the place for the closure of a configuration.
    pub(super) fn closure_cell(&self, config: ConfigId) -> &OnceCell<Closure> {
        &self.configs[config as usize].closure
    }

    /// Returns the regular language that a frame is in and its position there, if it is in one.
    pub(crate) fn view(&self, frame: FrameId) -> View<'_> {
        self.frames.view(frame)
    }

    /// Returns `true` if some languages are not regular, so that not all distances in them are known.
    pub(crate) fn has_validators(&self) -> bool {
        !self.frames.nfa.validated.is_empty()
    }

    /// Returns `true` if keys must differ or items meet demands, so that some distances belong to
    /// completions that may not be the shortest.
    pub fn counts_keys(&self) -> bool {
        let mut object_lists = self.frames.nfa.object_lists.iter();
        object_lists.any(|plan| {
            plan.has_demands() || plan.additional.iter().any(|additional| additional.key.is_some())
        })
    }

    /// Returns `true` if some words must not be followed by some bytes.
    pub(crate) fn has_guards(&self) -> bool {
        self.frames.guards.are_there()
    }

    /// Returns `true` if the word of a validated frame ends after these bytes.
    pub(crate) fn word_ends(&self, frame: FrameId, written: &[u8]) -> bool {
        self.frames.word_ends(frame, written)
    }

    /// Returns the shortest byte sequences after which the key of a frame could only become one that was
    /// written before. Sequences for which `fits` is false may be omitted.
    pub(crate) fn taken(&self, frame: FrameId, fits: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        self.frames.taken(frame, fits)
    }

    /// Returns the representative of a configuration, if it is known.
    pub(crate) fn known_representative(&self, config: ConfigId) -> Option<ConfigId> {
        match config {
            END | FINISHED => Some(config),
            _ => match self.configs[config as usize]
                .representative
                .load(Ordering::Relaxed)
            {
                UNKNOWN_STATE => None,
                representative => Some(representative),
            },
        }
    }

    /// Sets the representative of a configuration, which also represents itself.
    pub(crate) fn set_representative(&self, config: ConfigId, representative: ConfigId) {
        self.configs[representative as usize]
            .representative
            .store(representative, Ordering::Relaxed);
        self.configs[config as usize]
            .representative
            .store(representative, Ordering::Relaxed);
    }

    /// Returns the name of a configuration, if it is known.
    pub(crate) fn known_name(&self, config: ConfigId) -> Option<u64> {
        let name = self.configs[config as usize].name.load(Ordering::Relaxed);
        (name != 0).then_some(name)
    }

    /// Caches the name of a configuration.
    pub(crate) fn remember_name(&self, config: ConfigId, name: u64) {
        self.configs[config as usize].name.store(name, Ordering::Relaxed);
    }

    /// Interns a set of pairs. Pairs with the same frame are merged: their callers are united.
    pub(crate) fn intern(&self, mut pairs: impl AsMut<[(FrameId, ConfigId)]>) -> ConfigId {
        let pairs = pairs.as_mut();
        pairs.sort_unstable();
        // Equal pairs are adjacent, and so are pairs with the same frame.
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

    /// Pays for a new configuration. Never called while other threads wait for a number.
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
        // If the only frame reads and can do nothing else, the closure is known.
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

    /// Returns the number of single frames above one another from a configuration to the bottom, or to a
    /// level with several frames.
    pub(crate) fn height(&self, config: ConfigId) -> u32 {
        self.configs[config as usize].height
    }

    /// Returns how many levels of callers were looked at, if the lowest of them has this height; `None` if
    /// that was the bottom, or a level with several frames.
    pub(crate) fn depth(&self, config: ConfigId, lowest: u32) -> Option<u32> {
        (lowest > 0).then(|| (self.height_of_callers(config) + 1).saturating_sub(lowest))
    }

    /// Returns the frames in the upper `depth` levels of a configuration. Results computed without looking
    /// further down are the same for all configurations in which these frames are equal.
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

    /// Returns the depths below the first frame of a configuration that mask computations looked at, in any
    /// configuration with that frame; one bit for each depth.
    pub(crate) fn depths(&self, config: ConfigId) -> u64 {
        let top = self.pairs(config).first();
        top.map_or(0, |&(frame, _)| {
            self.frames.get(frame).depths.load(Ordering::Relaxed)
        })
    }

    /// Records that a mask computation looked this deep below the first frame of a configuration.
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

    /// Returns the configuration after a token, if it is the first token that was stepped over.
    #[inline]
    pub(crate) fn known_step_token(&self, config: ConfigId, token: u32) -> Option<ConfigId> {
        let first = self.configs[config as usize].token.load(Ordering::Relaxed);
        (first >> 32 == u64::from(token)).then_some(first as u32)
    }

    /// Returns the configuration after a token with these bytes, or `None` if no text continues with it. The
    /// first such step from a configuration is memoised.
    pub(crate) fn step_token(&self, config: ConfigId, token: u32, bytes: &[u8]) -> Option<ConfigId> {
        let next = self.step_bytes(config, bytes)?;
        let known = &self.configs[config as usize].token;
        if known.load(Ordering::Relaxed) == NONE {
            known.store(step_of(token, next), Ordering::Relaxed);
        }
        Some(next)
    }

    /// Returns the configuration after a byte, or `None` if no text continues with it. Memoised.
    #[inline]
    pub fn step(&self, config: ConfigId, byte: u8) -> Option<ConfigId> {
        match self.known_step(config, byte) {
            UNKNOWN_STATE => alive(self.find_step(config, byte)),
            next => alive(next),
        }
    }

    /// Returns `true` if the step over a byte is memoised.
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

    /// Memoises the step over a byte, which may lead nowhere. Another thread may store another byte in the
    /// first slot; this step is then recomputed.
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

    /// Two threads may compute the same step; they get the same number, since configurations are interned.
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

    /// Interns the pairs after a step. A frame that is complete and has no continuation is replaced by its
    /// callers.
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

    /// Computes a value for a configuration from its pairs and the values of their callers; returns all
    /// values computed on the way. Callers are older than the frames they called, so this terminates. It
    /// uses a list because stacks may be deep.
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

    /// Returns the configuration of the stacks of both.
    pub(crate) fn either(&self, one: ConfigId, other: ConfigId) -> ConfigId {
        match one == other {
            true => one,
            false => self.intern([self.pairs(one), self.pairs(other)].concat()),
        }
    }

    /// Returns the configuration after a special token.
    pub(crate) fn step_special(&self, config: ConfigId, special: u32) -> Option<ConfigId> {
        let readers = &self.closure(config).readers;
        let next = readers.iter();
        self.settle(
            next.filter_map(|&(frame, callers)| Some((self.frames.read_special(frame, special)?, callers))),
        )
    }
}
