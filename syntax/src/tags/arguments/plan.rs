//! The values that a schema allows at each place of arguments, as far as reading needs them: a copy of parts
//! of the normal forms that can be sent between threads.

use std::cell::Cell;
use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};
use regex_automata::nfa::thompson::pikevm::PikeVM;

use crate::schema::{GoalId, Normal, NormalForms, NumberShape, Object, StringShape, TextId, Way};

/// The most memory of the machines of a plan, in bytes.
const MACHINE_BYTES: usize = 1 << 20;
/// The states that a machine passes, times the bytes of a string, in one step of reading.
const STATES_PER_STEP: usize = 256;

/// The index of a goal in a plan.
pub(super) type Place = usize;

/// The goals of a schema that are read from frames; the first one is the root.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) goals: Vec<Goal>,
    /// The memory of the machines, in bytes.
    pub(super) machine_bytes: usize,
}

/// The values that are allowed at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Goal {
    /// `true` if any string is allowed.
    pub(super) has_any_string: bool,
    pub(super) strings: Vec<Strings>,
    pub(super) null: bool,
    pub(super) no: bool,
    pub(super) yes: bool,
    pub(super) numbers: Vec<NumberShape>,
    pub(super) has_arrays: bool,
    pub(super) has_objects: bool,
    /// The objects and arrays that are written in frames.
    pub(super) objects: Vec<Properties>,
    pub(super) arrays: Vec<Items>,
}

/// A set of objects in frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Properties {
    pub(super) listed: HashMap<String, Vec<Place>>,
    pub(super) required: Vec<String>,
    /// The classes of other names.
    pub(super) others: Vec<(Strings, Vec<Place>)>,
}

/// A set of arrays in frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    pub(super) prefix: Vec<Vec<Place>>,
    pub(super) others: Vec<Place>,
    pub(super) min: u64,
}

/// A set of strings.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    min: u64,
    max: Option<u64>,
    /// The machines of its texts, each with a sign; `None` for one that is too large.
    texts: Vec<(Option<PikeVM>, bool)>,
    only: Option<Vec<String>>,
    except: Vec<String>,
}

impl Strings {
    /// Copies a set; machines are copied as long as there is room for them.
    fn of(shape: &StringShape, forms: &NormalForms, room: &mut usize) -> Strings {
        let owned =
            |texts: &[Rc<str>]| -> Vec<String> { texts.iter().map(|text| text.to_string()).collect() };
        let machine = |&(text, sign): &(TextId, bool)| {
            let machine = forms.texts.matcher(text);
            let machine = machine.filter(|machine| machine.get_nfa().memory_usage() <= *room);
            *room -= machine.map_or(0, |machine| machine.get_nfa().memory_usage());
            (machine.cloned(), sign)
        };
        Strings {
            min: shape.min,
            max: shape.max,
            texts: shape.texts.iter().map(machine).collect(),
            only: shape.only.as_deref().map(owned),
            except: owned(&shape.except),
        }
    }

    /// Returns `true` if the set contains a string. A text whose machine is too large counts as matched.
    /// `steps` is reduced by the work; at zero nothing is contained any more.
    pub(super) fn contains(&self, string: &str, steps: &Cell<usize>) -> bool {
        let count = string.chars().count() as u64;
        let matches = |(machine, sign): &(Option<PikeVM>, bool)| match machine {
            Some(machine) => {
                let work = machine.get_nfa().states().len().saturating_mul(string.len());
                steps.set(steps.get().saturating_sub(work / STATES_PER_STEP));
                steps.get() > 0 && machine.is_match(&mut machine.create_cache(), string) == *sign
            }
            None => true,
        };
        let is = |text: &String| text == string;
        count >= self.min
            && self.max.is_none_or(|max| count <= max)
            && self.only.as_ref().is_none_or(|only| only.iter().any(is))
            && !self.except.iter().any(is)
            && self.texts.iter().all(matches)
    }
}

impl Plan {
    /// Copies what reading needs; the parts of values that are written as JSON are left out, and `is_nested`
    /// says whether inner objects and arrays are written in frames.
    pub(super) fn of(forms: &NormalForms, is_nested: bool) -> Plan {
        let mut places = Places {
            forms,
            known: HashMap::new(),
            open: Vec::new(),
            room: MACHINE_BYTES,
        };
        let root = places.place(forms.root);
        let mut goals: Vec<Goal> = Vec::new();
        // Goals are opened in the order of their places.
        while let Some(&goal) = places.open.get(goals.len()) {
            let normal = &forms.normals[goal.index()];
            let is_framed = is_nested || goals.len() == root;
            goals.push(places.goal(normal, is_framed));
        }
        Plan {
            goals,
            machine_bytes: MACHINE_BYTES - places.room,
        }
    }
}

/// The goals that have a place.
struct Places<'f> {
    forms: &'f NormalForms,
    known: HashMap<GoalId, Place>,
    open: Vec<GoalId>,
    /// The memory that is left for machines, in bytes.
    room: usize,
}

impl Places<'_> {
    fn place(&mut self, goal: GoalId) -> Place {
        let next = self.open.len();
        let place = *self.known.entry(goal).or_insert(next);
        if place == next {
            self.open.push(goal);
        }
        place
    }

    fn places(&mut self, ways: &[Way]) -> Vec<Place> {
        let live = ways.iter().filter(|way| self.forms.is_live(way.goal));
        let goals: Vec<GoalId> = live.map(|way| way.goal).collect();
        goals.into_iter().map(|goal| self.place(goal)).collect()
    }

    fn goal(&mut self, normal: &Normal, is_framed: bool) -> Goal {
        let shapes = normal.strings.iter();
        let mut goal = Goal {
            has_any_string: normal.strings.iter().any(StringShape::is_any),
            strings: shapes
                .map(|shape| Strings::of(shape, self.forms, &mut self.room))
                .collect(),
            null: normal.null,
            no: normal.no,
            yes: normal.yes,
            numbers: normal.numbers.clone(),
            has_arrays: !normal.arrays.is_empty(),
            has_objects: !normal.objects.is_empty(),
            ..Goal::default()
        };
        if is_framed {
            goal.objects = normal.objects.iter().map(|object| self.object(object)).collect();
            let items = normal.arrays.iter().map(|array| Items {
                prefix: array.prefix.iter().map(|ways| self.places(ways)).collect(),
                others: self.places(&array.additional),
                min: array.min,
            });
            goal.arrays = items.collect();
        }
        goal
    }

    fn object(&mut self, object: &Object) -> Properties {
        let required = object.properties.iter().filter(|property| property.required);
        let required = required.map(|property| property.name.to_string()).collect();
        let listed = object.properties.iter();
        let listed = listed.map(|property| (property.name.to_string(), self.places(&property.ways)));
        let listed = listed.collect();
        let others = object.additional.iter();
        let others = others.map(|class| {
            (
                Strings::of(&class.key, self.forms, &mut self.room),
                self.places(&class.ways),
            )
        });
        Properties {
            listed,
            required,
            others: others.collect(),
        }
    }
}
