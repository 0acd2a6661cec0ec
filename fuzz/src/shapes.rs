//! Sources in the shapes that cost readers most: chains, fan-outs, products, counts and long lists, in sizes
//! up to the thousands, so that growth shows.
//!
//! A shape is made of a template with holes: the hole of one is filled by the next, written inside one
//! another or through names. The bytes of an input choose templates and sizes.

mod ebnf;
mod regex;
mod schema;

use arbitrary::Unstructured;

/// No source is longer, in bytes: what is longer is refused from its length.
const LONGEST: usize = 900_000;

/// What an input decides, byte by byte; after its end every choice is the first one.
pub(crate) struct Draw<'a>(Unstructured<'a>);

impl<'a> Draw<'a> {
    fn new(input: &'a [u8]) -> Self {
        Draw(Unstructured::new(input))
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0.int_in_range(0..=sides.max(1) - 1).unwrap_or(0)
    }

    pub(crate) fn pick<'t, T: ?Sized>(&mut self, list: &[&'t T]) -> &'t T {
        list[self.roll(list.len())]
    }

    /// How many: a few mostly, and thousands at times. The second byte moves it, so that thresholds are met
    /// exactly.
    pub(crate) fn size(&mut self) -> usize {
        const SIZES: [usize; 16] = [
            1, 2, 3, 4, 6, 10, 16, 24, 40, 100, 250, 600, 1_100, 2_500, 6_000, 20_000,
        ];
        let size = SIZES[self.roll(SIZES.len())];
        size + self.roll(256) * size / 256
    }

    /// Few: for what multiplies with other sizes.
    pub(crate) fn few(&mut self) -> usize {
        1 + self.roll(8)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends while there is room; what is longer would be refused from its length, and teach nothing.
pub(crate) fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    let mut text = String::new();
    for part in parts {
        if text.len() + part.len() > LONGEST {
            break;
        }
        if !text.is_empty() {
            text.push_str(between);
        }
        text.push_str(&part);
    }
    text
}

/// A template within itself, so many times: `before` so many times, the core, and `after` as often.
pub(crate) fn nested(before: &str, core: &str, after: &str, depth: usize) -> String {
    let depth = depth.min(LONGEST / (before.len() + after.len()).max(1));
    [&before.repeat(depth), core, &after.repeat(depth)].concat()
}

/// A grammar in EBNF.
pub fn ebnf(input: &[u8]) -> String {
    ebnf::source(&mut Draw::new(input))
}

/// A JSON Schema.
pub fn schema(input: &[u8]) -> String {
    schema::source(&mut Draw::new(input))
}

/// A regular expression; it may be of one dialect alone.
pub fn regex(input: &[u8]) -> String {
    regex::source(&mut Draw::new(input))
}
