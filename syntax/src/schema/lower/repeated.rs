//! Arrays of which some two items are equal, told by their texts.
//!
//! As where all items must differ, an item is known by its text in one spelling, and the machine remembers those that were
//! written until one comes again. Scalars are known so, and arrays and objects that are a small regular language as a
//! whole; others stand among them in any spelling and are not compared.

use std::rc::Rc;

use crate::schema::forms::{Array, Way};
use lexiform_automata::grammar::{ExprId, Keys, Member, Rest, Series, SeriesOrder};

use super::flat::Style;
use super::writer::{Piece, Writer};

impl Writer<'_> {
    /// The texts of such an array after its opening bracket.
    pub(super) fn repeating_array(&mut self, array: &Array) -> ExprId {
        let mut members = Vec::new();
        for place in &array.prefix {
            let ways = self.item_ways(place);
            let required = false;
            members.push(Member { ways, required });
        }
        let close = self.builder.bytes("]");
        let live = array.rest.iter().filter(|way| self.forms.is_live(way.goal));
        let live: Vec<Way> = live.copied().collect();
        let lists = self.lists_to_repeat(&live);
        let mut ways = Vec::new();
        for rest in lists {
            let items = self.builder.series(Series {
                members: members.clone(),
                rest,
                taken: Vec::new(),
                keys: Keys::Repeat,
                separator: self.space.comma,
                order: SeriesOrder::Leading,
                min: array.min,
                max: array.max,
                demands: Vec::new(),
            });
            ways.push(self.builder.seq([self.space.edge, items, self.space.edge, close]));
        }
        self.builder.choice(ways)
    }

    /// The items of a list, once for each way to space them where that makes a difference.
    fn lists_to_repeat(&mut self, ways: &[Way]) -> Vec<Vec<Rest>> {
        let mut lists = Vec::new();
        if ways.iter().any(|way| self.has_structure(way)) {
            for &style in self.styles() {
                let whole = ways.iter().map(|way| self.whole_item(way, style));
                lists.extend(whole.collect::<Option<Vec<Rest>>>());
            }
        }
        if lists.is_empty() {
            lists.push(ways.iter().flat_map(|way| self.items_to_repeat(way)).collect());
        }
        lists
    }

    /// All values of a way by their texts, if they are a small regular language.
    fn whole_item(&mut self, way: &Way, style: Style) -> Option<Rest> {
        let whole = self.flat(way.goal, style)?;
        Some(Rest {
            key: Some(self.builder.add_regular(whole.regular())),
            item: self.builder.empty(),
            meets: 0,
        })
    }

    /// The values of a way: scalars by their texts, and others in any spelling.
    fn items_to_repeat(&mut self, way: &Way) -> Vec<Rest> {
        let normal = Rc::clone(&self.forms.normals[way.goal.index()]);
        let mut unknown = Vec::new();
        for shape in normal.numbers.iter().filter(|shape| shape.is_counted()) {
            unknown.push(self.number(shape, way.goal));
        }
        if self.has_structure(way) {
            unknown.push(self.piece(way.goal, Piece::Structured));
        }
        let mut rest = self.scalar_keys(way);
        rest.extend(unknown.into_iter().map(|item| Rest {
            key: None,
            item,
            meets: 0,
        }));
        rest
    }
}
