//! Lists with counts, order, distinct keys and demands, written out as plain regular languages.

use std::collections::BTreeSet;

use lexiform_automata::grammar::{
    Additional, Cfg, Demand, ExprId, ItemOrder, Meets, ObjectList, Part, Property, Regular, Way,
};
use proptest::prelude::*;

use super::lower;
use super::regular::{Pattern, Re};

/// An object list of patterns; keys are from a finite set, so that "no key twice" can be written out.
#[derive(Clone, Debug)]
pub(crate) struct List {
    properties: Vec<(Vec<(Pattern, Meets)>, bool)>,
    additional: Vec<(Vec<&'static str>, Pattern, Meets)>,
    taken: Vec<&'static str>,
    demands: Vec<Demand>,
    order: ItemOrder,
    min: u64,
    max: Option<u64>,
}

/// What was written so far, as far as it matters.
#[derive(Clone, PartialEq, Eq)]
struct Written {
    /// Properties that may still be written, and whether each must be.
    open: Vec<(usize, bool)>,
    keys: BTreeSet<&'static str>,
    count: u64,
    /// How many items met each demand, as far as it matters.
    met: Vec<u64>,
    started: bool,
}

/// A list of optional properties and of items that are told apart by their keys, all of them patterns; some
/// keys are taken.
pub(crate) fn list(
    properties: &[&str],
    additional: &[(&str, &str)],
    taken: &[&str],
    min: u64,
    order: ItemOrder,
) -> Cfg {
    lower::grammar_of(|builder| {
        let mut regular = |pattern: &str| {
            let hir = regex_syntax::parse(pattern).expect("a pattern");
            let parts = vec![Part::Match(hir.into())];
            let regular = builder.add_regular(Regular::of(parts));
            (regular, builder.regular(regular))
        };
        let property = |item| Property {
            ways: vec![Way { item, meets: 0 }],
            required: false,
        };
        let properties = properties
            .iter()
            .map(|pattern| property(regular(pattern).1))
            .collect();
        let additional = additional.iter().map(|(key, item)| Additional {
            key: Some(regular(key).0),
            item: regular(item).1,
            meets: 0,
        });
        let additional = additional.collect();
        let separator = builder.bytes(",");
        builder.object_list(ObjectList {
            properties,
            additional,
            taken: taken.iter().map(|key| key.as_bytes().into()).collect(),
            separator,
            order,
            min,
            max: None,
            demands: Vec::new(),
        })
    })
}

impl List {
    pub(crate) fn grammar(&self) -> Cfg {
        lower::grammar_of(|builder| {
            let mut properties = Vec::new();
            for (patterns, required) in &self.properties {
                let way = |(pattern, meets): &(Pattern, Meets)| Way {
                    item: lower::expression(pattern, builder),
                    meets: *meets,
                };
                let ways = patterns.iter().map(way).collect();
                let required = *required;
                properties.push(Property { ways, required });
            }
            let mut additional = Vec::new();
            for (keys, pattern, meets) in &self.additional {
                let key = (!keys.is_empty()).then(|| {
                    let hir = regex_syntax::parse(&keys.join("|")).expect("keys are words");
                    builder.add_regular(Regular::of(vec![Part::Match(hir.into())]))
                });
                let (item, meets): (ExprId, Meets) = (lower::expression(pattern, builder), *meets);
                additional.push(Additional { key, item, meets });
            }
            let separator = builder.bytes(",");
            builder.object_list(ObjectList {
                properties,
                additional,
                taken: self.taken.iter().map(|key| key.as_bytes().into()).collect(),
                separator,
                order: self.order,
                min: self.min,
                max: self.max,
                demands: self.demands.clone(),
            })
        })
    }

    pub(crate) fn language(&self) -> Re {
        let open = self
            .properties
            .iter()
            .enumerate()
            .map(|(at, (_, required))| (at, *required))
            .collect();
        self.after(&Written {
            open,
            keys: BTreeSet::new(),
            count: 0,
            met: vec![0; self.demands.len()],
            started: false,
        })
    }

    /// What may be written from here on: nothing, or one more item and what may follow it.
    fn after(&self, written: &Written) -> Re {
        let met = self.demands.iter().zip(&written.met);
        let ends = written.count >= self.min
            && written.open.iter().all(|(_, required)| !required)
            && met.clone().all(|(demand, met)| *met >= demand.min);
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
        for (at, (property, _)) in written.open.iter().enumerate() {
            let skipped = match self.order {
                ItemOrder::Listed | ItemOrder::Leading => &written.open[..at],
                ItemOrder::Any => &[],
            };
            let may_skip = self.order != ItemOrder::Leading || at == 0;
            if may_skip && skipped.iter().all(|(_, required)| !required) {
                let mut open = written.open.clone();
                open.drain(at - skipped.len()..=at);
                for (way, meets) in &self.properties[*property].0 {
                    let next = Written {
                        open: open.clone(),
                        ..next.clone()
                    };
                    choices.extend(self.meet(next, *meets).map(|next| (way.language(), next)));
                }
            }
        }
        let closed = Written {
            open: match self.order {
                ItemOrder::Any => written.open.clone(),
                _ => Vec::new(),
            },
            ..next
        };
        let passed = match self.order {
            ItemOrder::Any => true,
            ItemOrder::Listed => written.open.iter().all(|(_, required)| !required),
            ItemOrder::Leading => written.open.is_empty(),
        };
        for (keys, item, meets) in self.additional.iter().filter(|_| passed) {
            if let Some(mut next) = self.meet(closed.clone(), *meets) {
                let used = next.keys.clone();
                next.keys.extend(self.taken.iter().filter(|_| !keys.is_empty()));
                for (re, mut next) in rest_choices(keys, item, &next) {
                    // What is taken was not written.
                    next.keys
                        .retain(|key| used.contains(key) || !self.taken.contains(key));
                    choices.push((re, next));
                }
            }
        }
        choices
    }

    /// What is written once an item has met some demands; `None` where that is one too many.
    fn meet(&self, mut written: Written, meets: Meets) -> Option<Written> {
        for (bit, (demand, met)) in self.demands.iter().zip(&mut written.met).enumerate() {
            *met += u64::from(meets >> bit & 1);
            match demand.max {
                Some(max) if *met > max => return None,
                Some(_) => {}
                None => *met = (*met).min(demand.min),
            }
        }
        Some(written)
    }
}

fn rest_choices(keys: &[&'static str], item: &Pattern, next: &Written) -> Vec<(Re, Written)> {
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
    let ways = prop::collection::vec((item.clone(), 0u32..4), 1..=2);
    let properties = prop::collection::vec((ways, any::<bool>()), 0..=3);
    let additional = prop::collection::vec((keys, item, 0u32..4), 0..=2);
    let order = [ItemOrder::Listed, ItemOrder::Any, ItemOrder::Leading];
    let demand = (0u64..3, prop::option::weighted(0.3, 0u64..2));
    let demand = demand.prop_map(|(min, more)| Demand {
        min,
        max: more.map(|more| min + more),
    });
    (
        properties,
        additional,
        prop::collection::vec(demand, 0..=2),
        prop::sample::subsequence(vec!["a:", "ab:", "b"], 0..=2),
        prop::sample::select(order.to_vec()),
        0u64..3,
        prop::option::weighted(0.7, 0u64..3),
    )
        .prop_map(|(mut properties, additional, demands, taken, order, min, more)| {
            if order == ItemOrder::Leading {
                // None of them can be left out but at the end, so there is nothing to require.
                properties.iter_mut().for_each(|(_, required)| *required = false);
            }
            // In any order, a list without bounds around keys has no short form; it gets a bound.
            let more = more.or((order == ItemOrder::Any).then_some(2));
            List {
                properties,
                additional,
                taken,
                demands,
                order,
                min,
                max: more.map(|more| min + more),
            }
        })
}
