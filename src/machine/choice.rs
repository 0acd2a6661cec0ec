//! The members of a series, read together as far as they begin alike.
//!
//! An object with a thousand properties may go on with a thousand keys. Following each by itself would cost a thousand
//! frames for every set of keys that is left, and a thousand look-ups for every byte. So members are read by one
//! automaton, which depends on the series alone, until a single one is left or its rule does more than read bytes;
//! from there on the rule of the member reads itself.
//!
//! ```text
//!   "name" "namespace" "id"        ○ ─"─► ○ ─n─► ○ ─a─► ○ ─m─► ○ ─e─► ○ ─"─► ● name
//!                                         │                           └──s─► ● namespace
//!                                         └──i─► ● id
//! ```
//!
//! Which members may still be written is a matter of the register: a branch is open as long as one of the members in
//! it is. A [`Permit`] says which those are, in a few numbers.

use rustc_hash::{FxHashMap, FxHashSet};

use super::bytes::ByteSet;
use super::frame::{Call, Calls, FrameId, FrameKey, Frames};
use super::nfa::{Callee, Label, Nfa};
use super::series::{Outlook, Register};
use crate::grammar::{Meets, SeriesOrder};

/// The automaton of the members of one series. Its first node is the start.
#[derive(Debug)]
pub(super) struct Choice {
    ways: Box<[Way]>,
    nodes: Vec<Node>,
}

/// One way to write a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) member: u32,
    pub(super) rule: u32,
    pub(super) meets: Meets,
}

/// A way and the node of its rule where it stands.
type Stand = (u32, u32);

#[derive(Debug)]
struct Node {
    /// The ways that begin like this, in order.
    stands: Box<[Stand]>,
    /// Those of them that their own rules read from here on.
    own: Box<[Stand]>,
    /// Where the bytes lead that the others read, as ranges in order.
    edges: Vec<(u8, u8, u32)>,
    bytes: ByteSet,
}

/// Which members of a series may come next: of those that are not written the ones from `first` to `end`, as far as
/// such members may come at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Permit {
    first: u32,
    end: u32,
    required: bool,
    optional: bool,
}

/// Where a choice stands: the series with its register and permit, and the node of the automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Choosing {
    pub(super) series: u32,
    pub(super) register: Register,
    pub(super) permit: Permit,
    pub(super) node: u32,
}

/// Stands are kept for so many nodes at each way; what is longer is read by the rules themselves.
const DEEPEST: usize = 64;

impl Choice {
    /// Builds the automaton. O(stands), which are at most a constant number for each way.
    pub(super) fn new(nfa: &Nfa, series: u32) -> Choice {
        let members = nfa.series[series as usize].members.iter().zip(0u32..);
        let ways = members.flat_map(|(member, index)| {
            let way = move |&(rule, meets): &(u32, Meets)| Way {
                member: index,
                rule,
                meets,
            };
            member.ways.iter().map(way)
        });
        let ways: Box<[Way]> = ways.collect();
        let start = ways.iter().zip(0u32..);
        let start: Vec<Stand> = start
            .map(|(way, index)| (index, nfa.rules[way.rule as usize].start))
            .collect();
        let mut known = FxHashMap::from_iter([(start.clone(), 0)]);
        let mut found = vec![start];
        let (mut nodes, mut room) = (Vec::new(), ways.len() * DEEPEST);
        while let Some(stands) = found.get(nodes.len()).cloned() {
            room = room.saturating_sub(stands.len());
            nodes.push(Node::new(nfa, stands, room > 0, |stands| {
                *known.entry(stands).or_insert_with_key(|stands| {
                    found.push(stands.clone());
                    found.len() as u32 - 1
                })
            }));
        }
        Choice { ways, nodes }
    }

    /// The byte with which all members begin, where they are read together.
    pub(super) fn opening(&self) -> Option<u8> {
        let start = self.nodes.first()?;
        match start.edges[..] {
            [(first, last, _)] if first == last && start.own.is_empty() => Some(first),
            _ => None,
        }
    }

    /// The members that go on behind their opening byte with one of these bytes, as far as that is known.
    pub(super) fn members_behind(&self, opening: u8, bytes: &ByteSet) -> FxHashSet<u32> {
        let Some(node) = self.nodes[0].next(opening) else {
            return FxHashSet::default();
        };
        let node = &self.nodes[node as usize];
        let reached = node.edges.iter();
        let reached = reached.filter(|&&(first, last, _)| (first..=last).any(|byte| bytes.contains(byte)));
        let stands = reached.flat_map(|&(.., next)| &self.nodes[next as usize].stands);
        let stands = stands.chain(&node.own);
        stands.map(|&(way, _)| self.ways[way as usize].member).collect()
    }

    /// The bytes that some members go on with at a node.
    pub(super) fn bytes(&self, node: u32) -> &ByteSet {
        &self.nodes[node as usize].bytes
    }
}

impl Node {
    /// The node of these stands; `number` finds the nodes that it leads to.
    fn new(nfa: &Nfa, stands: Vec<Stand>, reads_on: bool, mut number: impl FnMut(Vec<Stand>) -> u32) -> Node {
        let is_plain = |&(_, node): &Stand| {
            let edges = &nfa.nodes[node as usize];
            !edges.is_empty() && edges.iter().all(|edge| matches!(edge.label, Label::Bytes(..)))
        };
        let reads_on = reads_on && stands.len() > 1;
        let (plain, own): (Vec<Stand>, Vec<Stand>) =
            stands.iter().partition(|stand| reads_on && is_plain(stand));
        let mut edges = Vec::new();
        let mut bytes = ByteSet::default();
        for (first, last) in nfa.byte_ranges(plain.iter().map(|&(_, node)| node)) {
            let next: Vec<Stand> = plain.iter().flat_map(|&stand| next(nfa, stand, first)).collect();
            if !next.is_empty() {
                bytes.insert_range(first, last);
                edges.push((first, last, number(next)));
            }
        }
        Node {
            stands: stands.into(),
            own: own.into(),
            edges,
            bytes,
        }
    }

    fn next(&self, byte: u8) -> Option<u32> {
        let at = self.edges.partition_point(|&(_, last, _)| last < byte);
        let &(first, _, next) = self.edges.get(at)?;
        (first <= byte).then_some(next)
    }
}

/// Where a stand goes with a byte; a rule that goes two ways stands twice.
fn next(nfa: &Nfa, (way, node): Stand, byte: u8) -> impl Iterator<Item = Stand> + '_ {
    let covers = move |label| matches!(label, Label::Bytes(first, last) if first <= byte && byte <= last);
    let edges = nfa.nodes[node as usize].iter();
    edges
        .filter(move |edge| covers(edge.label))
        .map(move |edge| (way, edge.to))
}

impl Frames {
    /// The automaton of the members of a series. Built when it is first asked for.
    pub(super) fn choice(&self, series: u32) -> &Choice {
        self.choices[series as usize].get_or_init(|| Choice::new(&self.nfa, series))
    }

    /// The call that reads the members that may come next, if any may.
    pub(super) fn choice_call(&self, series: u32, register: Register, outlook: Outlook) -> Option<Call> {
        let choosing = Choosing {
            series,
            register,
            permit: self.permit(series, register, outlook),
            node: 0,
        };
        self.is_open(&choosing).then(|| Call {
            callee: self.intern(FrameKey::Choice(choosing)),
            then: super::frame::RETURN,
        })
    }

    /// Which members may come next, so that the series can still end.
    fn permit(&self, series: u32, register: Register, outlook: Outlook) -> Permit {
        let plan = &self.nfa.series[series as usize];
        if plan.order == SeriesOrder::Any {
            let count = register.count + 1;
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
                end: plan.members.len() as u32,
                required: after(1, 0),
                optional: after(0, 1),
            };
        }
        let mut permit = Permit {
            first: register.done,
            end: register.done,
            required: false,
            optional: false,
        };
        // Optional members are allowed up to some place or not at all, and a required one comes last.
        for index in plan.next_members(
            register,
            |index| self.is_written(series, register, index),
            outlook,
        ) {
            permit.end = index as u32 + 1;
            permit.required |= plan.members[index].required;
            permit.optional |= !plan.members[index].required;
        }
        permit
    }

    /// A place in the choice that began with this frame.
    pub(super) fn choosing(&self, frame: FrameId, node: u32) -> Choosing {
        match self.get(frame).key {
            FrameKey::Choice(at) => Choosing { node, ..at },
            _ => unreachable!("asked only of the frames of choices"),
        }
    }

    /// The members that begin like what was read of a choice.
    pub(super) fn members_at(&self, at: &Choosing) -> impl Iterator<Item = u32> + '_ {
        let choice = self.choice(at.series);
        let stands = choice.nodes[at.node as usize].stands.iter();
        stands.map(|&(way, _)| choice.ways[way as usize].member)
    }

    /// A choice with another register, in which the same members are left that begin like what was read.
    pub(super) fn choosing_with(&self, at: &Choosing, register: Register) -> Choosing {
        let outlook = self.outlook(at.series, register);
        let permit = match self.nfa.series[at.series as usize].order {
            SeriesOrder::Any => self.permit(at.series, register, outlook),
            SeriesOrder::Listed | SeriesOrder::Leading => at.permit,
        };
        Choosing {
            register,
            permit,
            ..*at
        }
    }

    fn allows(&self, at: &Choosing, way: &Way) -> bool {
        let member = &self.nfa.series[at.series as usize].members[way.member as usize];
        let may_come = if member.required {
            at.permit.required
        } else {
            at.permit.optional
        };
        may_come
            && (at.permit.first..at.permit.end).contains(&way.member)
            && !self.is_written(at.series, at.register, way.member as usize)
    }

    /// Whether some member is left that begins like this. O(members that are not).
    fn is_open(&self, at: &Choosing) -> bool {
        let choice = self.choice(at.series);
        let mut stands = choice.nodes[at.node as usize].stands.iter();
        stands.any(|&(way, _)| self.allows(at, &choice.ways[way as usize]))
    }

    /// Whether the choice reads bytes itself.
    pub(super) fn choice_reads(&self, at: &Choosing) -> bool {
        !self.choice(at.series).nodes[at.node as usize].edges.is_empty()
    }

    /// Whether some member is left to its own rule here.
    pub(super) fn leaves_choice(&self, at: &Choosing) -> bool {
        !self.choice(at.series).nodes[at.node as usize].own.is_empty()
    }

    /// Whether the choice reads bytes itself and no member is left to its own rule here.
    pub(super) fn only_chooses(&self, at: &Choosing) -> bool {
        self.choice_reads(at) && !self.leaves_choice(at)
    }

    /// The choice after one more byte.
    pub(super) fn choose(&self, at: &Choosing, byte: u8) -> Option<Choosing> {
        let node = self.choice(at.series).nodes[at.node as usize].next(byte)?;
        let next = Choosing { node, ..*at };
        self.is_open(&next).then_some(next)
    }

    /// The ways that are read by their own rules from here on, each with its rule and the node where it stands.
    pub(super) fn chosen(&self, at: Choosing) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let choice = self.choice(at.series);
        let own = choice.nodes[at.node as usize].own.iter();
        own.filter_map(move |&(index, node)| {
            let way = &choice.ways[index as usize];
            self.allows(&at, way).then_some((index, way.rule, node))
        })
    }

    /// The ways that are left and that the choice reads itself: each with its rule and the node where it stands.
    pub(super) fn read_here(&self, at: Choosing) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let choice = self.choice(at.series);
        let Node { stands, own, .. } = &choice.nodes[at.node as usize];
        let here = stands.iter().filter(|stand| !own.contains(stand));
        here.filter_map(move |&(index, node)| {
            let way = &choice.ways[index as usize];
            self.allows(&at, way).then_some((index, way.rule, node))
        })
    }

    /// Whether a rule begins at the node.
    pub(super) fn begins(&self, rule: u32, node: u32) -> bool {
        self.nfa.rules[rule as usize].start == node
    }

    /// The frame of the series behind a member that was written in one of its ways.
    pub(super) fn behind_way(&self, at: &Choosing, way: u32) -> FrameId {
        self.behind_member(at, &self.choice(at.series).ways[way as usize])
    }

    pub(super) fn behind_member(&self, at: &Choosing, way: &Way) -> FrameId {
        let after = self.after_member(at.series, at.register, way.member as usize, way.meets);
        self.series_frame(at.series, after)
    }

    /// The frame of a rule at one of its nodes, be it where it begins.
    pub(super) fn standing(&self, rule: u32, node: u32) -> FrameId {
        match self.begins(rule, node) {
            true => self.start(Callee::Rule(rule)),
            false => self.frame_at(rule, node),
        }
    }

    pub(super) fn chosen_calls(&self, at: Choosing) -> Calls {
        let call = |(way, rule, node)| Call {
            callee: self.standing(rule, node),
            then: self.behind_way(&at, way),
        };
        self.chosen(at).map(call).collect()
    }

    /// The ways that are left, each with the node of its rule where it stands.
    pub(super) fn open_ways(&self, at: Choosing) -> impl Iterator<Item = (Way, u32)> + '_ {
        let choice = self.choice(at.series);
        let stands = choice.nodes[at.node as usize].stands.iter();
        let open = stands.map(move |&(way, node)| (choice.ways[way as usize], node));
        open.filter(move |(way, _)| self.allows(&at, way))
    }
}
