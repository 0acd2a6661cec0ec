//! Arrays: tuples, counts, and what is demanded of some items.

use crate::project::form::{Form, FormId, Items, Notes};
use crate::project::profile::Prefix;
use crate::schema::{Array, GoalId, Way};

use super::{Fitting, Recoded};

impl Fitting<'_> {
    pub(super) fn array(&mut self, array: &Array, goal: GoalId) -> Option<Form> {
        if !array.demands.is_empty() {
            self.lose(goal, &["contains"], "`contains` is not enforced")
                .then_some(())?;
        }
        let mut items = self.items(array, goal);
        // Items of finitely many values are told apart by their values.
        let is_unique = array.unique.is_some() || !array.taken.is_empty() || !array.distinct.is_empty();
        if is_unique {
            if self.profile.array.unique {
                items.is_unique = true;
            } else if items.max.is_none_or(|max| max > 1)
                && !self.lose(goal, &["uniqueItems"], "`uniqueItems` is not enforced")
            {
                items.max = Some(1);
            }
        }
        self.prefix(&mut items, goal)?;
        self.counts(&mut items, goal)?;
        Some(Form::Array(items))
    }

    /// Returns the items of an array, as JSON Schema has them.
    fn items(&mut self, array: &Array, goal: GoalId) -> Items {
        let reached = array
            .max
            .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        let places: Vec<&Vec<Way>> = array.prefix.iter().take(reached).collect();
        let prefix: Vec<FormId> = places.into_iter().map(|ways| self.item(ways, goal)).collect();
        let distinct = array.distinct.iter().map(|&goal| Way { goal, meets: 0 });
        let after: Vec<Way> = array.additional.iter().copied().chain(distinct).collect();
        let is_open = !after.is_empty() && array.max.is_none_or(|max| max > prefix.len() as u64);
        let rest = is_open.then(|| self.item(&after, goal));
        let closed = (!is_open).then_some(prefix.len() as u64);
        let mut items = Items {
            max: [array.max, closed].into_iter().flatten().min(),
            min: array.min,
            is_unique: false,
            prefix,
            rest,
        };
        // A prefix whose places are all like the rest is none.
        if items
            .rest
            .is_some_and(|rest| items.prefix.iter().all(|&place| self.is_same(place, rest)))
        {
            items.prefix.clear();
        }
        items
    }

    /// Returns the form of an item. Any item stays any item, so that the array may leave it out.
    fn item(&mut self, ways: &[Way], goal: GoalId) -> FormId {
        match ways {
            [way] if self.is_any_goal(way.goal) && self.profile.any => {
                self.forms.add(Form::Any, Notes::default())
            }
            _ => self.ways(ways, goal),
        }
    }

    fn is_same(&self, left: FormId, right: FormId) -> bool {
        left == right || self.forms.get(left) == self.forms.get(right)
    }

    /// Writes a tuple as the target takes it.
    fn prefix(&mut self, items: &mut Items, goal: GoalId) -> Option<()> {
        let length = items.prefix.len() as u64;
        let is_taken = match self.profile.array.prefix {
            Prefix::Open => true,
            Prefix::Fixed => items.rest.is_none() && items.min == length && items.max == Some(length),
            Prefix::None => false,
        };
        if length == 0 || is_taken {
            return Some(());
        }
        let mut places: Vec<FormId> = Vec::new();
        for place in items.prefix.iter().copied().chain(items.rest) {
            if !places.iter().any(|&known| self.is_same(known, place)) {
                places.push(place);
            }
        }
        items.prefix.clear();
        if let [only] = places[..] {
            items.rest = Some(only);
            return Some(());
        }
        self.lose(
            goal,
            &["prefixItems", "items"],
            "which item stands at which place is not enforced",
        )
        .then_some(())?;
        items.rest = Some(self.forms.add(Form::Union(places), Notes::default()));
        Some(())
    }

    /// Leaves the counts that the target takes.
    fn counts(&mut self, items: &mut Items, goal: GoalId) -> Option<()> {
        if let Some(least) = self.profile.array.least.filter(|least| items.min > *least) {
            let message = format!("`minItems` is enforced up to {least}");
            self.lose(goal, &["minItems", "prefixItems", "contains"], &message)
                .then_some(())?;
            items.min = least;
        }
        if !self.takes_counts(items.min, items.max) {
            self.lose(
                goal,
                &["maxItems", "minItems"],
                "counts beyond what the target takes are not enforced",
            )
            .then_some(())?;
            let most = self.profile.limits.counts.unwrap_or(u64::MAX);
            items.min = items.min.min(most);
            items.max = items.max.filter(|max| *max <= most);
        }
        if items.max.is_some() && !self.profile.array.most {
            self.lose(
                goal,
                &["maxItems", "prefixItems", "items"],
                "`maxItems` is not enforced",
            )
            .then_some(())?;
            items.max = None;
        }
        // Such targets need a schema even for the items that there are not.
        if items.rest.is_none() && items.prefix.is_empty() && !self.profile.any {
            self.recode(
                goal,
                Recoded::Text,
                "items that cannot be there are strings that hold JSON text",
            );
            items.rest = Some(self.any_text());
        }
        Some(())
    }
}
