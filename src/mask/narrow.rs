//! States that take few bytes, before their terminal has names.
//!
//! What a state allows is shared by the name of its language, and to name one state of a terminal is to name all of them. That
//! pays where a walk through the vocabulary is long. Behind `[` a list of thirty kinds of objects stands at the beginning of
//! thirty languages, each of which takes a brace and a quote: walking is fifty times faster than naming, and twenty-nine
//! of them are never met again.

use std::sync::Arc;

use super::cache::Tables;
use super::factor::{Entry, Factor};
use super::notes::Notes;
use crate::machine::{Cursor, Terminal};

/// A state that takes more bytes is not narrow.
const NARROW: u32 = 4;

/// What is known of a narrow state of a terminal without names, whose bounds are not felt.
pub(super) fn entry(terminal: &Terminal, cursor: Cursor, tables: &Tables) -> Option<Arc<Entry>> {
    // What is small is named at once.
    if terminal.is_named() || terminal.len() < tables.small() {
        return None;
    }
    let is_narrow = terminal.bytes_of(cursor.state)[0].len() <= NARROW;
    if !is_narrow || !terminal.is_plain(cursor, tables.horizon()) {
        return None;
    }
    let notes = terminal.notes::<Notes>()?;
    let known = |notes: &Notes| notes.narrow.lock().ok()?.get(&cursor.state).cloned();
    if let Some(known) = known(notes) {
        return Some(known);
    }
    let factor = Arc::new(Factor::narrow(terminal, cursor.state, tables));
    tables.grow(factor.bytes() + 96);
    let entry = Arc::new(Entry::Unbounded(factor));
    if let Ok(mut narrow) = notes.narrow.lock() {
        narrow.insert(cursor.state, entry.clone());
    }
    Some(entry)
}
