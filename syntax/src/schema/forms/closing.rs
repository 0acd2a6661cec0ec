//! Closes objects: removes the classes of keys that the schema does not mention from objects that list their
//! keys.
//!
//! This is the last step before the forms are written, because only finished forms contain all constraints on
//! one object. The algebra before it compares and denies schemas as they are: two objects that share no value
//! when both are closed may share one that a `oneOf` forbids.
//!
//! An object that has a value keeps one: it stays open if it would have none without the unlisted keys.

use std::rc::Rc;

use lexiform_automata::limits::Cancel;

use super::Normal;
use super::goal::GoalId;
use super::object::{AdditionalClass, Closing, Object};
use super::productive::{object_has_value, settle};

/// The number of rounds in which objects that have to stay open are searched for. After that, all objects
/// without a value stay open.
const MOST_ROUNDS: usize = 64;

/// The classes that were removed from an object to close it.
struct CutObject {
    goal: GoalId,
    /// The index of the object in the form of the goal.
    at: usize,
    closing: Closing,
    classes: Vec<AdditionalClass>,
}

impl CutObject {
    fn object<'n>(&self, normals: &'n [Rc<Normal>]) -> &'n Object {
        &normals[self.goal.index()].objects[self.at]
    }

    /// Returns `true` if the object has a value only if it stays open.
    fn is_needed(&self, normals: &[Rc<Normal>], found: &[bool], round: usize) -> bool {
        let object = self.object(normals);
        if object_has_value(object, found) {
            return false;
        }
        let mut open = object.clone();
        open.additional.extend(self.classes.iter().cloned());
        round >= MOST_ROUNDS || object_has_value(&open, found)
    }

    fn restore(self, normals: &mut [Rc<Normal>]) {
        let normal = Rc::make_mut(&mut normals[self.goal.index()]);
        normal.objects[self.at].additional.extend(self.classes);
    }
}

/// The result of closing the objects.
pub(crate) struct Closed {
    /// For each goal, `true` if it has a value, as far as this module can tell.
    pub(crate) productive: Vec<bool>,
    /// The reasons why objects were closed, in the order of the goals.
    pub(crate) by: Vec<Closing>,
}

/// Closes the objects that have a [`Closing`], and determines which goals have a value.
pub(crate) fn close(normals: &mut [Rc<Normal>], reached: &[GoalId], cancel: &Cancel) -> Closed {
    let mut cuts = cut(normals, reached);
    let mut found = vec![false; normals.len()];
    for round in 0.. {
        settle(normals, reached, &mut found, cancel);
        let (needed, kept): (Vec<CutObject>, Vec<CutObject>) = cuts
            .into_iter()
            .partition(|cut| cut.is_needed(normals, &found, round));
        cuts = kept;
        if needed.is_empty() || cancel.is_asked() {
            break;
        }
        needed.into_iter().for_each(|cut| cut.restore(normals));
    }
    Closed {
        productive: found,
        by: cuts.into_iter().map(|cut| cut.closing).collect(),
    }
}

/// Removes the classes of unmentioned keys from all objects that have a [`Closing`].
fn cut(normals: &mut [Rc<Normal>], reached: &[GoalId]) -> Vec<CutObject> {
    let mut cuts = Vec::new();
    for &goal in reached {
        let normal = &mut normals[goal.index()];
        if normal.objects.iter().all(|object| object.closing.is_none()) {
            continue;
        }
        for (at, object) in Rc::make_mut(normal).objects.iter_mut().enumerate() {
            if let Some(closing) = object.closing.take() {
                let classes = object.additional.split_off(closing.matched);
                cuts.push(CutObject {
                    goal,
                    at,
                    closing,
                    classes,
                });
            }
        }
    }
    cuts
}
