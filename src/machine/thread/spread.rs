//! Many choices read as the members that they choose between.
//!
//! Objects that have most of their members in common, as the alternatives of a schema whose keys depend on each other,
//! are a choice each: a thousand readers, of which every byte would ask every one. Their members are written by few
//! rules, since what is written alike is one rule. So where choices are many, each rule is one reader, and who chose it
//! are its callers.
//!
//! ```text
//!   1  "name" "id"          "name" ─► 1, 2
//!   2  "name" "type"   ─►   "id"   ─► 1, 3
//!   3  "id" "type"          "type" ─► 2, 3
//! ```

use rustc_hash::FxHashMap;

use super::{At, Thread, Threads};

/// So many choices are followed by themselves.
const FEW: usize = 8;

impl Threads<'_> {
    /// Reads choices by the rules of their members, if there are many.
    pub(crate) fn spread(&mut self, readers: &mut Vec<Thread>) {
        let is_choice = |reader: &&Thread| matches!(reader.at, At::Choice { .. });
        if readers.len() <= FEW || readers.iter().filter(is_choice).count() <= FEW {
            return;
        }
        for (at, mut ways) in self.members_of(readers) {
            ways.sort_unstable();
            ways.dedup();
            let callers = match ways[..] {
                [way] => self.local.single(way),
                _ => self.local.union(ways),
            };
            readers.push(Thread { at, callers });
        }
    }

    /// Takes the choices out of the readers: the rules that they choose between, each with who chose it.
    fn members_of(&self, readers: &mut Vec<Thread>) -> Vec<(At, Vec<Thread>)> {
        let frames = &self.stacks.frames;
        let mut members: Vec<(At, Vec<Thread>)> = Vec::new();
        let mut places = FxHashMap::default();
        readers.retain(|&Thread { at, callers }| {
            let At::Choice { frame, node } = at else {
                return true;
            };
            for (way, rule, node) in frames.read_here(frames.choosing(frame, node)) {
                let place = *places.entry((rule, node)).or_insert_with(|| {
                    members.push((self.stacks.frames.place_along(rule, node), Vec::new()));
                    members.len() - 1
                });
                let at = At::Way { frame, way };
                members[place].1.push(Thread { at, callers });
            }
            false
        });
        members
    }
}
