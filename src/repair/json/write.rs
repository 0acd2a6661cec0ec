//! Writes values into a grammar: each key and each scalar whole, or not at all.
//!
//! The writer walks the machine of the grammar with the bytes that it writes. A part that the grammar does
//! not accept is dropped, by returning to the state of the walk before it. Required parts are completed along
//! the shortest way to the end of the grammar, one member or item at a time.

use std::ops::Range;

use super::read::{Member, Read, Value};
use super::scalar::{Spelling, quoted_spellings, spellings};
use crate::repair::characters::ascii;
use crate::repair::remaining::Remaining;
use crate::repair::task::{Change, ChangeKind, RepairError, Task};
use lexiform_automata::matcher::Grammar;
use lexiform_automata::pushdown::ConfigId;
use lexiform_syntax::answer::JsonScanner;

/// The most members or items that are completed in one place.
const MOST_COMPLETED: usize = 256;
/// The most bytes of one completed member or item.
const LONGEST_COMPLETION: usize = 1 << 14;
/// The number of bytes between two checks for cancellation.
const LOOK_EVERY: usize = 4096;

/// A walk through a grammar, with the text it has written.
pub(super) struct Writer<'g> {
    grammar: &'g Grammar,
    task: &'g Task<'g>,
    remaining: Remaining,
    config: ConfigId,
    written: Vec<u8>,
    /// The keys on the path to the value that is currently written.
    pub(super) path: Vec<String>,
    changes: Vec<Change>,
    /// The number of characters of values that were dropped or completed.
    loss: usize,
    /// The number of keys and scalars that were kept.
    kept: usize,
    /// The number of bytes that were tried.
    tried: usize,
}

/// The position of a member or an item within its brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The first one.
    First,
    /// A later one, which takes a comma before it.
    Later,
}

/// A state of a walk to return to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    config: ConfigId,
    written: usize,
    changes: usize,
    loss: usize,
    kept: usize,
    path: usize,
}

impl<'g> Writer<'g> {
    /// Returns a writer at the start of a grammar.
    pub(super) fn new(grammar: &'g Grammar, task: &'g Task<'g>) -> Result<Writer<'g>, RepairError> {
        let remaining = grammar.ask_once(|| Remaining::new(grammar.machine(), true))?;
        Ok(Writer {
            grammar,
            task,
            remaining,
            config: grammar.machine().start(),
            written: Vec::new(),
            path: Vec::new(),
            changes: Vec::new(),
            loss: 0,
            kept: 0,
            tried: 0,
        })
    }

    /// Returns the number of characters that were dropped and completed.
    pub(super) fn loss(&self) -> usize {
        self.loss
    }

    /// Returns the number of keys and scalars that were kept.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Returns the text, if it is valid UTF-8, and the changes.
    pub(super) fn into_parts(self) -> (Option<String>, Vec<Change>) {
        (String::from_utf8(self.written).ok(), self.changes)
    }

    /// Writes a value as the whole text.
    pub(super) fn whole(&mut self, read: &Read) -> Result<bool, RepairError> {
        Ok(self.value(read)? && self.is_end()?)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            config: self.config,
            written: self.written.len(),
            changes: self.changes.len(),
            loss: self.loss,
            kept: self.kept,
            path: self.path.len(),
        }
    }

    pub(super) fn back_to(&mut self, mark: Mark) {
        self.config = mark.config;
        self.written.truncate(mark.written);
        self.changes.truncate(mark.changes);
        self.path.truncate(mark.path);
        (self.loss, self.kept) = (mark.loss, mark.kept);
    }

    fn note(&mut self, kind: ChangeKind, text: &str) {
        if self.changes.len() < Change::MOST {
            let pointer: String = self
                .path
                .iter()
                .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
                .collect();
            self.changes.push(Change::new(kind, pointer, text));
        }
    }

    /// Counts a byte that is tried, and checks the limits.
    fn count(&mut self) -> Result<(), RepairError> {
        self.tried += 1;
        let limit = self.task.limits.nodes;
        if self.tried > limit {
            return Err(RepairError::TooFar { cost: 0, limit });
        }
        if self.tried % LOOK_EVERY == 1 && self.task.limits.cancel.is_asked() {
            return Err(RepairError::Cancelled);
        }
        Ok(())
    }

    fn after(&mut self, config: ConfigId, byte: u8) -> Result<Option<ConfigId>, RepairError> {
        self.count()?;
        let stacks = self.grammar.machine().stacks();
        Ok(self.grammar.ask(|| stacks.step(config, byte))?)
    }

    /// Writes some bytes, all of them or none; returns whether they were written.
    pub(super) fn takes(&mut self, bytes: &[u8]) -> Result<bool, RepairError> {
        let mark = self.mark();
        for &byte in bytes {
            match self.after(self.config, byte)? {
                Some(next) => self.config = next,
                None => {
                    self.back_to(mark);
                    return Ok(false);
                }
            }
            self.written.push(byte);
        }
        Ok(true)
    }

    /// Writes white space of the given text, if the grammar allows it.
    fn space(&mut self, space: Range<usize>) -> Result<(), RepairError> {
        let task = self.task;
        self.takes(task.text[space].as_bytes()).map(drop)
    }

    /// Writes the separator between a member or an item and the one before it.
    fn separator(&mut self, slot: Slot) -> Result<bool, RepairError> {
        match slot {
            Slot::First => Ok(true),
            Slot::Later => self.takes(b","),
        }
    }

    fn is_end(&self) -> Result<bool, RepairError> {
        let stacks = self.grammar.machine().stacks();
        Ok(self.grammar.ask(|| stacks.closure(self.config).accepting)?)
    }

    /// Checks whether a value may end here: a prefix of a number may not be a number itself.
    fn may_end(&mut self) -> Result<bool, RepairError> {
        if self.is_end()? {
            return Ok(true);
        }
        for byte in *b",}]" {
            if self.after(self.config, byte)?.is_some() {
                return Ok(true);
            }
        }
        // White space may be required before one of these.
        Ok(self.after(self.config, b' ')?.is_some() || self.after(self.config, b'\n')?.is_some())
    }

    /// Writes a value. If the grammar does not allow it, nothing is written.
    fn value(&mut self, read: &Read) -> Result<bool, RepairError> {
        match &read.value {
            Value::Object(members, space) => self.object(members, space.clone()),
            Value::Array(items, space) => self.array(items, space.clone()),
            Value::Text(_) | Value::Word { .. } => self.scalar(read),
        }
    }

    fn scalar(&mut self, read: &Read) -> Result<bool, RepairError> {
        let task = self.task;
        for spelling in spellings(read, task.text) {
            if self.spelled(&spelling)? {
                if spelling.cost > 0 {
                    self.note(ChangeKind::Respelled, &task.text[read.span.clone()]);
                }
                self.kept += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a value in one spelling, and completes it if it was cut off.
    fn spelled(&mut self, spelling: &Spelling) -> Result<bool, RepairError> {
        let mark = self.mark();
        let is_written = self.takes(spelling.text.as_bytes())?
            && match spelling.cut {
                true => self.complete(Some(spelling.text.as_bytes()))?,
                false => self.may_end()?,
            };
        if !is_written {
            self.back_to(mark);
        }
        Ok(is_written)
    }

    fn object(&mut self, members: &[Member], space: Range<usize>) -> Result<bool, RepairError> {
        let mark = self.mark();
        if !self.takes(b"{")? {
            return Ok(false);
        }
        let order = self.ordered(members)?;
        if !order.is_sorted() {
            self.note(ChangeKind::Reordered, "");
        }
        let (mut written, mut slot) = (0, Slot::First);
        for number in order {
            // White space stays in its place, while members move.
            let space = members[written].space.clone();
            if self.member(&members[number], space, slot)? {
                written += 1;
                slot = Slot::Later;
            }
        }
        let is_closed = self.close(b'}', space, slot)?;
        if !is_closed {
            self.back_to(mark);
        }
        Ok(is_closed)
    }

    /// Writes a member, or drops it.
    fn member(&mut self, member: &Member, space: Range<usize>, slot: Slot) -> Result<bool, RepairError> {
        let mark = self.mark();
        let has_place = self.key(member, space, slot)?;
        self.path.push(member.key.content.clone());
        let is_placed = has_place
            && match &member.value {
                Some(value) => self.value(value)?,
                // A key that was cut off has been completed together with its value.
                None => member.key.cut,
            };
        if is_placed {
            self.kept += 1;
            self.path.pop();
            return Ok(true);
        }
        self.back_to(mark);
        self.path.push(member.key.content.clone());
        let text = &self.task.text[member.key_span.start..member.end];
        self.loss += text.chars().count();
        self.note(ChangeKind::Dropped, text);
        self.path.pop();
        Ok(false)
    }

    /// Writes a key with its colon. Members that must come before it are completed, as long as the object
    /// cannot end yet.
    pub(super) fn key(
        &mut self,
        member: &Member,
        space: Range<usize>,
        slot: Slot,
    ) -> Result<bool, RepairError> {
        let mark = self.mark();
        let mut slot = slot;
        for _ in 0..MOST_COMPLETED {
            let before = self.mark();
            if self.separator(slot)? && self.key_here(member, space.clone())? {
                return Ok(true);
            }
            self.back_to(before);
            let can_end = self.after(self.config, b'}')?.is_some();
            if can_end || !self.separator(slot)? || !self.complete(None)? {
                break;
            }
            slot = Slot::Later;
        }
        self.back_to(mark);
        Ok(false)
    }

    fn key_here(&mut self, member: &Member, space: Range<usize>) -> Result<bool, RepairError> {
        let task = self.task;
        self.space(space)?;
        let is_cut = member.key.cut && member.value.is_none();
        for spelling in quoted_spellings(&member.key, &task.text[member.key_span.clone()]) {
            if spelling.cut != is_cut {
                continue;
            }
            let mark = self.mark();
            if !self.takes(spelling.text.as_bytes())? {
                continue;
            }
            if is_cut && self.complete(Some(spelling.text.as_bytes()))? {
                return Ok(true);
            }
            if !is_cut && self.takes(b":")? {
                self.space(member.value_space.clone())?;
                return Ok(true);
            }
            self.back_to(mark);
        }
        Ok(false)
    }

    fn array(&mut self, items: &[(Range<usize>, Read)], space: Range<usize>) -> Result<bool, RepairError> {
        let mark = self.mark();
        if !self.takes(b"[")? {
            return Ok(false);
        }
        let mut slot = Slot::First;
        for (number, (space, item)) in items.iter().enumerate() {
            let before = self.mark();
            self.path.push(number.to_string());
            let has_place = self.separator(slot)?;
            if has_place {
                self.space(space.clone())?;
            }
            if has_place && self.value(item)? {
                self.path.pop();
                slot = Slot::Later;
                continue;
            }
            self.back_to(before);
            self.path.push(number.to_string());
            let text = &self.task.text[item.span.clone()];
            self.loss += text.chars().count();
            self.note(ChangeKind::Dropped, text);
            self.path.pop();
        }
        let is_closed = self.close(b']', space, slot)?;
        if !is_closed {
            self.back_to(mark);
        }
        Ok(is_closed)
    }

    /// Writes a closing bracket, after the members or items that are still required.
    fn close(&mut self, bracket: u8, space: Range<usize>, slot: Slot) -> Result<bool, RepairError> {
        let mut slot = slot;
        for _ in 0..MOST_COMPLETED {
            let mark = self.mark();
            self.space(space.clone())?;
            let mut is_closed = self.takes(&[bracket])?;
            if !is_closed {
                self.back_to(mark);
                is_closed = self.takes(&[bracket])?;
            }
            if is_closed {
                let bracket = char::from(bracket);
                if !self.task.text[space.end..].starts_with(bracket) {
                    self.note(ChangeKind::Added, &bracket.to_string());
                }
                return Ok(true);
            }
            if !self.separator(slot)? || !self.complete(None)? {
                return Ok(false);
            }
            slot = Slot::Later;
        }
        Ok(false)
    }

    /// Follows the shortest way to the end of the grammar until a whole member, item or value is written:
    /// from its beginning, or from where it was cut off.
    pub(super) fn complete(&mut self, begun: Option<&[u8]>) -> Result<bool, RepairError> {
        let from = self.written.len();
        let mut inside = JsonScanner::default();
        begun.unwrap_or_default().iter().for_each(|&byte| {
            inside.step(byte);
        });
        for _ in 0..LONGEST_COMPLETION {
            let has_begun = begun.is_some() || self.written.len() > from;
            let next = self.shortest()?;
            let is_over = inside.is_outside() && next.is_none_or(|(byte, _)| b",}]".contains(&byte));
            if is_over {
                let text = String::from_utf8_lossy(&self.written[from..]).into_owned();
                self.loss += text.chars().count();
                if !text.is_empty() {
                    self.note(ChangeKind::Added, &text);
                }
                return Ok(has_begun);
            }
            let Some((byte, config)) = next else {
                return Ok(false);
            };
            inside.step(byte);
            self.written.push(byte);
            self.config = config;
        }
        Ok(false)
    }

    /// Returns the first byte of the shortest way to the end, or `None` if the text may end.
    fn shortest(&mut self) -> Result<Option<(u8, ConfigId)>, RepairError> {
        let machine = self.grammar.machine();
        let distance = |config| self.grammar.ask(|| self.remaining.bytes(machine, config));
        let here = distance(self.config)?;
        if here == 0 {
            return Ok(None);
        }
        let mut best: Option<(u64, u8, ConfigId)> = None;
        for byte in ascii().chain(0x80..=0xF4) {
            let Some(next) = self.after(self.config, byte)? else {
                continue;
            };
            let machine = self.grammar.machine();
            let left = self.grammar.ask(|| self.remaining.bytes(machine, next))?;
            if best.is_none_or(|(least, ..)| left < least) {
                best = Some((left, byte, next));
            }
            if left < here {
                break;
            }
        }
        Ok(best.map(|(_, byte, next)| (byte, next)))
    }
}
