//! Determines which goals have a value: a least fixed point over the goals of the parts.
//!
//! A recursive schema such as "an object that must contain another like itself" has no finite value; its goal
//! never becomes productive. The automata decide whether a regular set of strings is empty.

use std::rc::Rc;

use lexiform_automata::limits::Cancel;

use super::array::Array;
use super::goal::GoalId;
use super::object::Object;
use super::way::Way;
use super::{Normal, NormalForms};

/// Returns, for each goal, whether it has a value, as far as this module can tell.
pub(crate) fn productive(normals: &[Rc<Normal>], reached: &[GoalId], cancel: &Cancel) -> Vec<bool> {
    let mut found = vec![false; normals.len()];
    settle(normals, reached, &mut found, cancel);
    found
}

/// Extends `found` by all further goals that have a value.
pub(super) fn settle(normals: &[Rc<Normal>], reached: &[GoalId], found: &mut [bool], cancel: &Cancel) {
    loop {
        let mut changed = false;
        // Parts are reached after the values that contain them, so going backwards settles most goals in one
        // round.
        for &goal in reached.iter().rev() {
            if !found[goal.index()] && has_value(&normals[goal.index()], found) {
                found[goal.index()] = true;
                changed = true;
            }
        }
        if !changed || cancel.is_asked() {
            return;
        }
    }
}

fn has_value(normal: &Normal, found: &[bool]) -> bool {
    normal.has_scalars()
        || normal.arrays.iter().any(|array| array_has_value(array, found))
        || normal
            .objects
            .iter()
            .any(|object| object_has_value(object, found))
}

/// Checks whether an array has a value, given which goals have one. The numbers of parts that meet demands
/// are left to the machine.
fn array_has_value(array: &Array, found: &[bool]) -> bool {
    let live = |ways: &Vec<Way>| ways.iter().any(|way| found[way.goal.index()]);
    let leading = array
        .prefix
        .iter()
        .take(usize::try_from(array.min).unwrap_or(usize::MAX));
    let after = array.min.saturating_sub(array.prefix.len() as u64);
    let count = array.distinct.iter().filter(|goal| found[goal.index()]).count() as u64;
    array.max.is_none_or(|max| array.min <= max)
        && leading.clone().all(live)
        && (after <= count || live(&array.additional))
        && meets_all(
            array.demands.iter().map(|demand| demand.min > 0),
            array.prefix.iter().chain([&array.additional]).flatten(),
            found,
        )
}

/// Checks whether an object has a value, given which goals have one. The numbers of parts that meet demands
/// are left to the machine.
pub(super) fn object_has_value(object: &Object, found: &[bool]) -> bool {
    let live = |ways: &[Way]| ways.iter().any(|way| found[way.goal.index()]);
    let count = object
        .properties
        .iter()
        .filter(|property| live(&property.ways))
        .count() as u64;
    let required = object
        .properties
        .iter()
        .filter(|property| property.required)
        .count() as u64;
    object
        .properties
        .iter()
        .all(|property| !property.required || live(&property.ways))
        && object.max.is_none_or(|max| required <= max && object.min <= max)
        && (count >= object.min || object.additional.iter().any(|class| live(&class.ways)))
        && meets_all((0..object.demands).map(|_| true), object.ways(), found)
}

/// Checks whether each demand that must be met is met by some way that has a value.
fn meets_all<'a>(
    demands: impl Iterator<Item = bool>,
    ways: impl Iterator<Item = &'a Way>,
    found: &[bool],
) -> bool {
    let live = ways.filter(|way| found[way.goal.index()]);
    let met = live.fold(0, |met, way| met | way.meets);
    demands
        .enumerate()
        .all(|(bit, needed)| !needed || met >> bit & 1 == 1)
}

impl NormalForms {
    /// Returns `true` if a goal has a value, as far as the algebra can tell.
    pub(crate) fn is_live(&self, goal: GoalId) -> bool {
        self.productive[goal.index()]
    }

    /// Returns a part that every value of a goal needs but that has no value, if that is why the goal has
    /// none.
    pub(crate) fn needed_and_empty(&self, goal: GoalId) -> Option<GoalId> {
        needed_and_empty(&self.normals[goal.index()], &self.productive)
    }
}

/// Returns a part that every value of a form needs but that has no value, if that is why the form has none.
pub(crate) fn needed_and_empty(normal: &Normal, found: &[bool]) -> Option<GoalId> {
    let empty = |ways: &[Way]| {
        let first = ways.first().map(|way| way.goal)?;
        let none = ways.iter().all(|way| !found[way.goal.index()]);
        none.then_some(first)
    };
    let properties = normal.objects.iter().flat_map(|object| &object.properties);
    let mut properties = properties.filter(|property| property.required);
    let mut items = normal.arrays.iter().flat_map(|array| {
        let least = usize::try_from(array.min).unwrap_or(usize::MAX);
        let additional = (least > array.prefix.len()).then_some(&array.additional);
        array.prefix.iter().take(least).chain(additional)
    });
    let property = properties.find_map(|property| empty(&property.ways));
    property.or_else(|| items.find_map(|ways| empty(ways)))
}
