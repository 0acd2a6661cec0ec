//! The required properties that an open object still lacks.

use super::progress::Progress;
use crate::grammar::ItemOrder;
use crate::pushdown::frame::{FrameId, FrameKey};
use crate::pushdown::plan::nfa::Callee;
use crate::pushdown::stack::{ConfigId, END, Stacks};

impl Stacks {
    /// Returns the number of an object list and its missing properties, if the frame is between two of its
    /// items and the shortest completion writes these properties, at least one, and no other items.
    pub(crate) fn missing_properties(&self, frame: FrameId) -> Option<(u32, Vec<usize>)> {
        let FrameKey::ObjectList(list, progress) = self.frames.get(frame).key else {
            return None;
        };
        let plan = &self.frames.nfa.object_lists[list as usize];
        let is_between = progress.started && !progress.separated;
        if !is_between || plan.has_demands() || plan.order == ItemOrder::Leading {
            return None;
        }
        let missing = self.missing(list, progress);
        let needed = plan.min.saturating_sub(progress.count);
        (!missing.is_empty() && missing.len() as u64 >= needed).then_some((list, missing))
    }

    fn missing(&self, list: u32, progress: Progress) -> Vec<usize> {
        let plan = &self.frames.nfa.object_lists[list as usize];
        let properties = 0..plan.properties.len();
        let is_missing = |&index: &usize| {
            plan.properties[index].required && !self.frames.is_written(list, progress, index)
        };
        properties.filter(is_missing).collect()
    }

    /// Returns the configuration before a separator and a property, after which the text ends.
    pub(crate) fn before_property(&self, list: u32, property: usize) -> ConfigId {
        let plan = &self.frames.nfa.object_lists[list as usize];
        let start = |rule| self.frames.start(Callee::Rule(rule));
        let ways = plan.properties[property].ways.iter();
        let alone = self.intern(ways.map(|&(rule, _)| (start(rule), END)).collect::<Vec<_>>());
        match plan.separator {
            Some(separator) => self.intern([(start(separator), alone)]),
            None => alone,
        }
    }
}
