//! The frames of next keys: the properties of an object with a common prefix.

use super::next_key::{NextKeyAutomaton, NextKeyState, Permit, Way};
use super::progress::{Outlook, Progress};
use crate::grammar::ItemOrder;
use crate::pushdown::frame::{Call, Calls, FrameId, FrameKey, Frames, RETURN};
use crate::pushdown::plan::nfa::Callee;

impl Frames {
    /// Returns the automaton of the properties of an object list, built on first use.
    pub(crate) fn next_key_automaton(&self, object_list: u32) -> &NextKeyAutomaton {
        self.next_keys[object_list as usize].get_or_init(|| NextKeyAutomaton::new(&self.nfa, object_list))
    }

    /// Returns the call that reads the properties that may come next, if there are any.
    pub(crate) fn next_key_call(
        &self,
        object_list: u32,
        progress: Progress,
        outlook: Outlook,
    ) -> Option<Call> {
        let at = NextKeyState {
            object_list,
            progress,
            permit: self.permit(object_list, progress, outlook),
            node: 0,
        };
        self.is_open(&at).then(|| Call {
            callee: self.intern(FrameKey::NextKey(at)),
            then: RETURN,
        })
    }

    /// Returns which properties may come next such that the object list can still end.
    fn permit(&self, object_list: u32, progress: Progress, outlook: Outlook) -> Permit {
        let plan = &self.nfa.object_lists[object_list as usize];
        if plan.order == ItemOrder::Any {
            let count = progress.count + 1;
            let after = |required: u64, optional: u64| {
                let required = outlook.required.checked_sub(required);
                let optional = outlook.optional.checked_sub(optional);
                required.zip(optional).is_some_and(|(required, optional)| {
                    plan.can_end(
                        count,
                        &Outlook {
                            required,
                            optional,
                            ..outlook
                        },
                    )
                })
            };
            return Permit {
                first: 0,
                end: plan.properties.len() as u32,
                required: after(1, 0),
                optional: after(0, 1),
            };
        }
        let mut permit = Permit {
            first: progress.done,
            end: progress.done,
            required: false,
            optional: false,
        };
        // Optional properties are allowed up to some index or not at all, and a required one comes last.
        for index in plan.next_properties(
            progress,
            |index| self.is_written(object_list, progress, index),
            outlook,
        ) {
            permit.end = index as u32 + 1;
            permit.required |= plan.properties[index].required;
            permit.optional |= !plan.properties[index].required;
        }
        permit
    }

    /// Returns the state at a node of the next key that began with this frame.
    pub(crate) fn next_key_state(&self, frame: FrameId, node: u32) -> NextKeyState {
        match self.get(frame).key {
            FrameKey::NextKey(at) => NextKeyState { node, ..at },
            _ => unreachable!("asked only of the frames of next keys"),
        }
    }

    /// Returns the properties that begin with the text that has been read.
    pub(crate) fn properties_at(&self, at: &NextKeyState) -> impl Iterator<Item = u32> + '_ {
        let automaton = self.next_key_automaton(at.object_list);
        let stands = automaton.nodes[at.node as usize].stands.iter();
        stands.map(|&(way, _)| automaton.ways[way as usize].property)
    }

    /// Returns a next key with another progress, in which the same properties are left of those that begin
    /// with the text read so far.
    pub(crate) fn next_key_with(&self, at: &NextKeyState, progress: Progress) -> NextKeyState {
        let outlook = self.outlook(at.object_list, progress);
        let permit = match self.nfa.object_lists[at.object_list as usize].order {
            ItemOrder::Any => self.permit(at.object_list, progress, outlook),
            ItemOrder::Listed | ItemOrder::Leading => at.permit,
        };
        NextKeyState {
            progress,
            permit,
            ..*at
        }
    }

    fn allows(&self, at: &NextKeyState, way: &Way) -> bool {
        let property = &self.nfa.object_lists[at.object_list as usize].properties[way.property as usize];
        let may_come = if property.required {
            at.permit.required
        } else {
            at.permit.optional
        };
        may_come
            && (at.permit.first..at.permit.end).contains(&way.property)
            && !self.is_written(at.object_list, at.progress, way.property as usize)
    }

    /// Returns `true` if some property that begins with this text is left. O(properties that are not left).
    fn is_open(&self, at: &NextKeyState) -> bool {
        let automaton = self.next_key_automaton(at.object_list);
        let mut stands = automaton.nodes[at.node as usize].stands.iter();
        stands.any(|&(way, _)| self.allows(at, &automaton.ways[way as usize]))
    }

    /// Returns `true` if its automaton reads bytes itself.
    pub(crate) fn next_key_reads(&self, at: &NextKeyState) -> bool {
        !self.next_key_automaton(at.object_list).nodes[at.node as usize]
            .edges
            .is_empty()
    }

    /// Returns `true` if some property is left to its own rule here.
    pub(crate) fn leaves_next_key(&self, at: &NextKeyState) -> bool {
        !self.next_key_automaton(at.object_list).nodes[at.node as usize]
            .own
            .is_empty()
    }

    /// Returns `true` if its automaton reads bytes itself and no property is left to its own rule here.
    pub(crate) fn only_reads_next_key(&self, at: &NextKeyState) -> bool {
        self.next_key_reads(at) && !self.leaves_next_key(at)
    }

    /// Returns the next key after one more byte.
    pub(crate) fn read_next_key(&self, at: &NextKeyState, byte: u8) -> Option<NextKeyState> {
        let node = self.next_key_automaton(at.object_list).nodes[at.node as usize].next(byte)?;
        let next = NextKeyState { node, ..*at };
        self.is_open(&next).then_some(next)
    }

    /// Returns the ways that their own rules read from here on, each with its rule and current node.
    pub(crate) fn own_ways(&self, at: NextKeyState) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let automaton = self.next_key_automaton(at.object_list);
        let own = automaton.nodes[at.node as usize].own.iter();
        own.filter_map(move |&(index, node)| {
            let way = &automaton.ways[index as usize];
            self.allows(&at, way).then_some((index, way.rule, node))
        })
    }

    /// Returns `true` if a rule begins at the node.
    pub(crate) fn begins(&self, rule: u32, node: u32) -> bool {
        self.nfa.rules[rule as usize].start == node
    }

    /// Returns the frame of the object list after a property that was written in one of its ways.
    pub(crate) fn frame_after_way(&self, at: &NextKeyState, way: u32) -> FrameId {
        self.frame_after_property(at, &self.next_key_automaton(at.object_list).ways[way as usize])
    }

    pub(crate) fn frame_after_property(&self, at: &NextKeyState, way: &Way) -> FrameId {
        let after = self.after_property(at.object_list, at.progress, way.property as usize, way.meets);
        self.object_list_frame(at.object_list, after)
    }

    /// Returns the frame of a rule at one of its nodes, which may be its start.
    pub(crate) fn standing(&self, rule: u32, node: u32) -> FrameId {
        match self.begins(rule, node) {
            true => self.start(Callee::Rule(rule)),
            false => self.frame_at(rule, node),
        }
    }

    pub(crate) fn own_calls(&self, at: NextKeyState) -> Calls {
        let call = |(way, rule, node)| Call {
            callee: self.standing(rule, node),
            then: self.frame_after_way(&at, way),
        };
        self.own_ways(at).map(call).collect()
    }

    /// Returns the ways that are left, each with the current node of its rule.
    pub(crate) fn open_ways(&self, at: NextKeyState) -> impl Iterator<Item = (Way, u32)> + '_ {
        let automaton = self.next_key_automaton(at.object_list);
        let stands = automaton.nodes[at.node as usize].stands.iter();
        let open = stands.map(move |&(way, node)| (automaton.ways[way as usize], node));
        open.filter(move |(way, _)| self.allows(&at, way))
    }
}
