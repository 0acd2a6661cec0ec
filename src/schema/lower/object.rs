//! Objects.

use std::rc::Rc;

use crate::grammar::{ExprId, Member, Rest, Series, SeriesOrder};
use crate::schema::KeyOrder;
use crate::schema::goal::GoalId;
use crate::schema::normal::Object;

use super::Writer;

impl Writer<'_> {
    /// The texts of a set of objects.
    pub(super) fn object(&mut self, object: &Object, goal: GoalId) -> ExprId {
        let close = self.builder.bytes("}");
        let mut ways = Vec::new();
        if object.min == 0 && !object.members.iter().any(|member| member.required) {
            ways.push(close);
        }
        if let Some(entries) = self.entries(object, goal) {
            ways.push(
                self.builder
                    .seq([self.space.edge, entries, self.space.edge, close]),
            );
        }
        let open = self.builder.bytes("{");
        let ways = self.builder.choice(ways);
        self.builder.seq([open, ways])
    }

    /// One key with its value or more; `None` where no key can be there or a required one cannot.
    fn entries(&mut self, object: &Object, goal: GoalId) -> Option<ExprId> {
        if object
            .members
            .iter()
            .any(|member| member.required && !self.forms.is_live(member.goal))
        {
            return None;
        }
        let (forms, colon) = (self.forms, self.space.colon);
        let mut members = Vec::new();
        for member in object.members.iter().filter(|member| forms.is_live(member.goal)) {
            let (key, value) = (self.literal(&member.name), self.goal(member.goal));
            let item = self.builder.seq([key, colon, value]);
            members.push(Member {
                item,
                required: member.required,
            });
        }
        let mut rest = Vec::new();
        let names: Vec<Rc<str>> = object.members.iter().map(|member| member.name.clone()).collect();
        for class in object.rest.iter().filter(|class| forms.is_live(class.goal)) {
            let near: Vec<Rc<str>> = names
                .iter()
                .filter(|name| self.may_be_in(&class.key, name))
                .cloned()
                .collect();
            let key = Some(self.key(&class.key, &near, goal));
            let value = self.goal(class.goal);
            let item = self.builder.seq([colon, value]);
            rest.push(Rest { key, item });
        }
        let (min, max) = (object.min.max(1), object.max);
        let enough = !rest.is_empty() || members.len() as u64 >= min;
        if !enough || max.is_some_and(|max| max < min) {
            return None;
        }
        let order = match self.options.key_order {
            KeyOrder::Schema => SeriesOrder::Listed,
            KeyOrder::Any => SeriesOrder::Any,
        };
        Some(self.builder.series(Series {
            members,
            rest,
            separator: self.space.comma,
            order,
            min,
            max,
        }))
    }

    /// Whether a name could belong to a class of keys and must be taken out of it.
    fn may_be_in(&self, key: &crate::schema::normal::StringShape, name: &str) -> bool {
        key.texts.iter().all(|&(text, sign)| {
            self.forms
                .texts
                .contains(text, name)
                .is_none_or(|within| within == sign)
        })
    }
}
