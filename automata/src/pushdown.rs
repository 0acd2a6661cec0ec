//! The lazily determinised byte machine that every grammar is compiled to.
//!
//! ```text
//!   Cfg ─► plan          rules as automata over bytes and calls, and their properties
//!       ─► frame         determinised states within one rule, terminal or list (object)
//!       ─► stack         configurations: interned sets of stacks of frames; a step is a table look-up
//!          lookahead     configurations for texts that are only tried, dropped with the mask
//!          equivalence   configurations that no token can tell apart, and their names
//!          distance      the fewest steps to the end
//! ```
//!
//! Three properties hold by construction. *No dead ends*: everything that cannot be completed is removed
//! before the first step, so every configuration that exists can be completed. *History does not matter*: a
//! configuration is a value, interned by its content. *No recursion, no growth without reading*: left
//! recursion is a loop, a tail call does not push, and all walks use explicit lists.
//!
//! A rule that calls itself at its end is such a tail call, even if it is left-recursive: after `s`, the
//! second half of `s ::= s s` is read as part of the first.

mod ascii;
mod closure;
mod copy;
mod describe;
mod distance;
mod equivalence;
mod frame;
mod intern;
mod lookahead;
mod merge;
mod multibyte_step;
mod object;
mod plan;
mod stack;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashSet;

pub use ascii::{more_bytes, second_bytes};
pub use describe::{Expected, Way};
pub use distance::Distances;
pub(crate) use distance::OvershootBound;
pub(crate) use equivalence::TokenFacts;
use equivalence::{Classes, Equivalence};
pub(crate) use frame::{FrameId, View};
pub(crate) use lookahead::{Head, Local, Lookahead, SetLengths};
pub(crate) use object::key_set::KeySet;
pub(crate) use stack::FINISHED;
use stack::{CONFIG_BYTES, END};
pub use stack::{ConfigId, Stacks};

use crate::error::{CompileError, Exhausted, Place, Problem, ProblemKind};
use crate::grammar::{Cfg, Expr, Regular, RegularId, Rule, TokenSymbol};
use crate::language::{ByteSet, Terminal, TerminalError};
use crate::limits::{Account, Limits};
use crate::work;

/// A source of compiled regular languages, which lets grammars with equal languages share them.
pub trait TerminalSource {
    /// Returns the compiled language.
    fn terminal(&self, regular: &Regular, limits: &Limits) -> Result<Arc<Terminal>, TerminalError>;
}

/// A grammar as a machine over bytes. It is immutable to callers; its tables fill lazily and concurrently.
#[derive(Debug)]
pub struct Machine {
    stacks: stack::Stacks,
    start: ConfigId,
    classes: Classes,
}

impl Machine {
    /// Compiles a grammar to a machine.
    ///
    /// # Errors
    /// Returns an error if no text belongs to the language, or if a limit is reached.
    pub fn new(cfg: &Cfg, source: &dyn TerminalSource, limits: &Limits) -> Result<Machine, CompileError> {
        let cancel = &limits.cancel;
        let mut held = cancel.account();
        held.grow(cfg.bytes());
        let terminals = cancel.unless(compile_terminals(cfg, source, limits, &mut held))?;
        let mut nfa = cancel.unless(plan::nfa::build(cfg, limits, &mut held))?;
        let allowed = ("distance_work", limits.distance_work);
        let analysis = work::within(allowed, || plan::analysis::analyse(&mut nfa, &terminals, cancel));
        let analysis = analysis.unwrap_or_else(|exhausted| Err(too_expensive(exhausted)));
        let analysis = cancel.unless(analysis)?;
        let frames = frame::Frames::new(nfa, analysis, terminals);
        let classes = Classes::new(&frames);
        Ok(Machine::over(
            frames,
            classes,
            limits.grammar_bytes.saturating_mul(AT_ONCE).max(LEAST_BYTES),
        ))
    }

    fn over(frames: frame::Frames, classes: Classes, most_bytes: usize) -> Machine {
        let start_rule = plan::nfa::Callee::Rule(frames.nfa.start);
        let may_be_empty = frames.analysis.is_nullable(start_rule);
        let stacks = stack::Stacks::new(frames, most_bytes);
        let mut pairs = vec![(stacks.frames.start(start_rule), END)];
        if may_be_empty {
            pairs.push((frame::RETURN, END));
        }
        let start = stacks.intern(pairs);
        Machine {
            stacks,
            start,
            classes,
        }
    }

    /// Returns a machine of the same grammar with empty tables. O(1).
    pub(crate) fn fresh(&self) -> Machine {
        Machine::over(
            self.stacks.frames.fresh(),
            self.classes.fresh(),
            self.stacks.most_bytes,
        )
    }

    /// Returns a machine that accepts all texts of this one, but in which the keys of an object need not
    /// differ. It does not remember written keys, so texts that differ only in their keys lead to the same
    /// configuration. O(1).
    pub fn forgetting_keys(&self) -> Machine {
        let mut frames = self.stacks.frames.fresh();
        frames.forgets_keys = true;
        frames.content = Arc::default();
        Machine::over(frames, self.classes.fresh(), self.stacks.most_bytes)
    }

    /// Returns the configuration of this machine that is equivalent to one of another machine of the same
    /// grammar.
    pub(crate) fn adopt(&self, other: &Machine, config: ConfigId) -> ConfigId {
        self.stacks.adopt(&other.stacks, config)
    }

    /// Returns about how many bytes the frames, configurations and unions found so far take.
    pub(crate) fn bytes(&self) -> usize {
        let (frames, configurations) = self.size();
        let configurations = configurations + self.stacks.unions.len();
        let remembered = self.stacks.frames.remembered();
        let lists = self.stacks.list_bytes.load(Ordering::Relaxed);
        frames * FRAME_BYTES + configurations * CONFIG_BYTES + remembered * VALUE_BYTES + lists
    }

    /// Returns the configuration before the first byte.
    pub fn start(&self) -> ConfigId {
        self.start
    }

    /// Returns the representative of a configuration: one that allows the same tokens, and is the same for
    /// many configurations.
    pub(crate) fn representative(&self, config: ConfigId, facts: &impl TokenFacts) -> ConfigId {
        Equivalence::new(&self.stacks, &self.classes, facts).representative(config)
    }

    /// Returns the configurations of this machine.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Returns the tokens that the grammar names, indexed by number.
    pub(crate) fn specials(&self) -> &[TokenSymbol] {
        &self.stacks.frames.nfa.specials
    }

    /// Returns `true` if all texts consist of bytes of which `is_usable` holds.
    pub(crate) fn reads_only(&self, is_usable: impl Fn(u8) -> bool) -> bool {
        let mut bytes = ByteSet::default();
        let usable = (0..=u8::MAX).filter(|&byte| is_usable(byte));
        usable.for_each(|byte| bytes.insert_range(byte, byte));
        self.stacks.frames.reads_only(&bytes)
    }

    /// Returns how many frames and configurations have been found so far.
    pub fn size(&self) -> (usize, usize) {
        (self.stacks.frames.len(), self.stacks.count())
    }
}

/// About the bytes of a frame with its key in the table, its edges and its calls.
const FRAME_BYTES: usize = 400;

/// The factor on `grammar_bytes` up to which the configurations of a grammar may grow until sequences move to
/// another grammar.
const AT_ONCE: usize = 2;

/// The bytes that configurations may always take, so that a sequence can continue in a grammar that is
/// replaced at once.
const LEAST_BYTES: usize = 32 << 20;

/// About the bytes of a value that a frame remembers, such as a byte of a key, with its entry in the table.
const VALUE_BYTES: usize = 40;

/// The factor on the bytes of one automaton that all automata of a grammar may take together.
const TOGETHER: usize = 2;

/// Returns the problem of a grammar for which it takes too long to find out whether it can be completed.
fn too_expensive(Exhausted { limit, allowed }: Exhausted) -> Problem {
    let message = format!(
        "it takes too long to find out which lists can be completed; the limit `{limit}` is {allowed}"
    );
    Problem::new(ProblemKind::Limit, Place::Whole, message)
}

/// Returns the place of the first rule that uses a regular language.
fn place_of(cfg: &Cfg, regular: usize) -> Place {
    let wanted = |id: RegularId| id.index() == regular;
    let names = |rule: &&Rule| {
        let (mut open, mut seen) = (vec![rule.body], FxHashSet::default());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match cfg.expr(id) {
                Expr::Regular(id) if wanted(*id) => return true,
                Expr::Validated(validated) if wanted(validated.beginnings()) => return true,
                Expr::Seq(parts) | Expr::Choice(parts) => open.extend(parts),
                Expr::Repeat { body, .. } => open.push(*body),
                Expr::ObjectList(object_list) => {
                    let object_list = &cfg.object_lists[object_list.index()];
                    if object_list
                        .additional
                        .iter()
                        .filter_map(|additional| additional.key)
                        .any(wanted)
                    {
                        return true;
                    }
                    let ways = object_list.properties.iter().flat_map(|property| &property.ways);
                    open.extend(
                        ways.map(|way| way.item)
                            .chain(object_list.additional.iter().map(|additional| additional.item)),
                    );
                    open.push(object_list.separator);
                }
                _ => {}
            }
        }
        false
    };
    let rule = cfg.rules.iter().find(names).filter(|rule| !rule.name.is_empty());
    rule.map_or(Place::Whole, |rule| Place::Rule(rule.name.clone()))
}

fn compile_terminals(
    cfg: &Cfg,
    source: &dyn TerminalSource,
    limits: &Limits,
    held: &mut Account,
) -> Result<Vec<Option<Arc<Terminal>>>, CompileError> {
    let mut problems = Vec::new();
    let mut terminals = Vec::with_capacity(cfg.regulars.len());
    let mut bytes = 0usize;
    for (index, regular) in cfg.regulars.iter().enumerate() {
        match source.terminal(regular, limits) {
            Ok(terminal) => {
                bytes += terminal.bytes();
                if !held.grow(terminal.bytes()) {
                    limits.cancel.note_place(|| place_of(cfg, index));
                }
                terminals.push(Some(terminal));
            }
            Err(TerminalError::Empty) => terminals.push(None),
            Err(error) => {
                limits.cancel.note_place(|| place_of(cfg, index));
                let kind = match error {
                    TerminalError::Limit { .. } => ProblemKind::Limit,
                    _ => ProblemKind::Unsupported,
                };
                problems.push(Problem::new(kind, place_of(cfg, index), error.to_string()));
            }
        }
        let most = limits.regular_bytes.saturating_mul(TOGETHER);
        if bytes > most {
            let message = format!(
                "the regular expressions up to here need more than {most} bytes of automata together"
            );
            problems.push(Problem::new(ProblemKind::Limit, place_of(cfg, index), message));
        }
        let limited = problems.iter().any(|problem| problem.kind == ProblemKind::Limit);
        if limited || limits.cancel.is_asked() {
            // Each of the other languages might cost as much as this one.
            break;
        }
    }
    if problems.is_empty() {
        Ok(terminals)
    } else {
        Err(CompileError { problems })
    }
}
