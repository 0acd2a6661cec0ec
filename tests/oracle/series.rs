//! Lists with counts, order and distinct keys, written out as plain regular languages.

use std::collections::BTreeSet;

use lexiform::grammar::{Cfg, ExprId, Member, Part, Regular, Rest, Series, SeriesOrder};
use proptest::prelude::*;

use super::lower;
use super::regular::{Pattern, Re};

/// A series of patterns; keys are from a finite set, so that "no key twice" can be written out.
#[derive(Clone, Debug)]
pub(crate) struct List {
    members: Vec<(Pattern, bool)>,
    rest: Vec<(Vec<&'static str>, Pattern)>,
    order: SeriesOrder,
    min: u64,
    max: Option<u64>,
}

/// What was written so far, as far as it matters.
#[derive(Clone, PartialEq, Eq)]
struct Written {
    /// Members that may still be written, and whether each must be.
    open: Vec<(usize, bool)>,
    keys: BTreeSet<&'static str>,
    count: u64,
    started: bool,
}

impl List {
    pub(crate) fn grammar(&self) -> Cfg {
        lower::grammar_of(|builder| {
            let member = |(pattern, required): &(Pattern, bool)| (pattern.clone(), *required);
            let mut members = Vec::new();
            for (pattern, required) in self.members.iter().map(member) {
                members.push(Member {
                    item: lower::expression(&pattern, builder),
                    required,
                });
            }
            let mut rest = Vec::new();
            for (keys, pattern) in &self.rest {
                let key = (!keys.is_empty()).then(|| {
                    let hir = regex_syntax::parse(&keys.join("|")).expect("keys are words");
                    builder.add_regular(Regular {
                        parts: vec![Part::Match(hir)],
                    })
                });
                let item: ExprId = lower::expression(pattern, builder);
                rest.push(Rest { key, item });
            }
            let separator = builder.bytes(",");
            builder.series(Series {
                members,
                rest,
                separator,
                order: self.order,
                min: self.min,
                max: self.max,
            })
        })
    }

    pub(crate) fn language(&self) -> Re {
        let open = self
            .members
            .iter()
            .enumerate()
            .map(|(at, (_, required))| (at, *required))
            .collect();
        self.after(&Written {
            open,
            keys: BTreeSet::new(),
            count: 0,
            started: false,
        })
    }

    /// What may be written from here on: nothing, or one more item and what may follow it.
    fn after(&self, written: &Written) -> Re {
        let ends = written.count >= self.min && written.open.iter().all(|(_, required)| !required);
        let mut others = vec![if ends { Re::Empty } else { Re::Never }];
        let mut loops = Vec::new();
        if self.max.is_none_or(|max| written.count < max) {
            for (item, next) in self.choices(written) {
                let separator = Re::text(if written.started { "," } else { "" });
                let item = Re::seq(separator, item);
                match next == *written {
                    true => loops.push(item),
                    false => others.push(Re::seq(item, self.after(&next))),
                }
            }
        }
        Re::seq(Re::repeat(Re::any(loops), 0, None), Re::any(others))
    }

    fn choices(&self, written: &Written) -> Vec<(Re, Written)> {
        // Without an upper bound, a count beyond the lower one makes no difference.
        let clamp = self.max.unwrap_or(self.min);
        let next = Written {
            count: (written.count + 1).min(clamp),
            started: true,
            ..written.clone()
        };
        let mut choices = Vec::new();
        for (at, (member, _)) in written.open.iter().enumerate() {
            let skipped = match self.order {
                SeriesOrder::Listed => &written.open[..at],
                SeriesOrder::Any => &[],
            };
            if skipped.iter().all(|(_, required)| !required) {
                let mut open = written.open.clone();
                open.drain(at - skipped.len()..=at);
                choices.push((
                    self.members[*member].0.language(),
                    Written { open, ..next.clone() },
                ));
            }
        }
        let closed = Written {
            open: match self.order {
                SeriesOrder::Listed => Vec::new(),
                SeriesOrder::Any => written.open.clone(),
            },
            ..next
        };
        if self.order == SeriesOrder::Any || written.open.iter().all(|(_, required)| !required) {
            choices.extend(self.rest.iter().flat_map(|rest| rest_choices(rest, &closed)));
        }
        choices
    }
}

fn rest_choices((keys, item): &(Vec<&'static str>, Pattern), next: &Written) -> Vec<(Re, Written)> {
    if keys.is_empty() {
        return vec![(item.language(), next.clone())];
    }
    let unused = keys.iter().filter(|&key| !next.keys.contains(key));
    let choice = |key: &&'static str| {
        let mut next = next.clone();
        next.keys.insert(key);
        (Re::seq(Re::text(key), item.language()), next)
    };
    unused.map(choice).collect()
}

/// Random lists over `a`, `b`, `,` and `:`.
pub(crate) fn lists() -> impl Strategy<Value = List> {
    let literal = prop::sample::select(vec!["a", "b", "ab", "bb", "a,b"]);
    let word =
        literal.prop_map(|text| Pattern::Seq(text.chars().map(|it| Pattern::Chars(vec![it])).collect()));
    let run = (1u32..3, prop::option::of(0u32..2));
    let run = run.prop_map(|(min, more)| {
        Pattern::Repeat(
            Box::new(Pattern::Chars(vec!['a', 'b'])),
            min,
            more.map(|more| min + more),
        )
    });
    let item = prop_oneof![3 => word, 1 => run].boxed();
    // A key may begin another, and two rests may share keys.
    let keys = prop::sample::subsequence(vec!["a:", "b:", "ab:", "a"], 0..=4);
    let members = prop::collection::vec((item.clone(), any::<bool>()), 0..=3);
    let rest = prop::collection::vec((keys, item), 0..=2);
    let order = prop_oneof![Just(SeriesOrder::Listed), Just(SeriesOrder::Any)];
    (
        members,
        rest,
        order,
        0u64..3,
        prop::option::weighted(0.7, 0u64..3),
    )
        .prop_map(|(members, rest, order, min, more)| {
            // In any order, a list without bounds around keys has no short form; it gets a bound.
            let more = more.or((order == SeriesOrder::Any).then_some(2));
            List {
                members,
                rest,
                order,
                min,
                max: more.map(|more| min + more),
            }
        })
}
