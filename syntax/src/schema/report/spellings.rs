//! Determines, keyword by keyword, the spellings of values that are left out although the options allow them.
//!
//! ```text
//!   type: integer    1.5e1  150e-1    an exponent that moves the point
//!   minimum: 3       25e0   0.25e2    one after more or less than one digit
//!   multipleOf: 3    1.2e1            any exponent
//!   const: 3         3e0    30e-1     any exponent, unless the number is very large or small
//!   uniqueItems      "\u0061" 1.0     any unnecessary escape, and all but the plain spelling of a number
//! ```
//!
//! If numbers are written [as doubles](Numbers::Double), `type` and constants leave out more, and the report
//! says that instead.
//!
//! The exponents that are kept with `type: integer` are those of `12e3`, and of `1.5e16` with up to 16 digits
//! after the point, as programs write large numbers. For all numbers, exponents that most parsers read as
//! infinity (`1e400`) are left out: those beyond 308 after one digit before the point, and those beyond 99
//! after more. No keyword causes this, so none is reported for it. Nothing else is left out where only the
//! sign of a number matters (`minimum: 0`, `not: {const: 0}`), whatever the exponent is. Only the normal
//! forms show whether numbers are compared, and they no longer contain the keywords; so a keyword is reported
//! if it may leave out spellings, in a schema in which some numbers do.
//!
//! # Why exactness is about values
//!
//! The set of all spellings of the integers, or of the numbers up to 100, is not regular once exponents move
//! the digits (`1200e-2`). Every number has its plain spelling and the exponent spellings that programs
//! write. Strict mode does not refuse this: it would refuse every integer.

use std::rc::Rc;

use foldhash::HashMap;

use crate::regex::Escapes;
use crate::schema::forms::{Normal, NormalForms, Way};
use crate::schema::lower::leaves_spellings_out;
use crate::schema::node::{Keyword, Kind, Node, NodeId, Tree, Types, Values, Whole};
use crate::schema::options::{Numbers, Options};

const INTEGER: &str = "some exponent spellings are never written (`1.5e1`, `120e-1`)";
const BOUND: &str =
    "exponent spellings without exactly one digit before the point are never written (`25e0`, `0.25e2`)";
const MULTIPLE: &str = "most exponent spellings are never written (`1.2e1`)";
const CONSTANT: &str = "needless exponents, and exponent spellings without exactly one digit before the point, are never written \
    (`3e0`, `30e-1`)";

const DIGITS: &str =
    "integers are written in digits only, in at most 20 (`34`, never `34.0`, `34e0` or `-0`)";
const DOUBLE: &str = "numbers are written with at most 17 significant digits and three digits of exponent";
const NEEDED: &str = "constants are written without needless zeros and exponents (`3`, never `3.0` or `3e0`)";

const STRINGS: &str = "items that are strings are written in one spelling each, without needless escapes and with lower-case \
    hexadecimal digits";
const NUMBERS: &str = "items that are numbers are written in one spelling each, without an exponent or a needless fraction (`1`, \
    never `1.0` or `1e0`)";
const BOTH: &str = "items that are strings or numbers are written in one spelling each, without needless escapes, exponents or \
    fractions (`\"a\"`, `1`)";

/// Returns the keywords that leave spellings out, by pointer, with a description of what they leave out. Only
/// the first `sources` schemas are from the source.
pub(super) fn left_out(
    forms: &NormalForms,
    sources: usize,
    options: &Options,
) -> HashMap<String, &'static str> {
    let mut found: HashMap<String, &'static str> = HashMap::default();
    found.extend(told_by_texts(forms, options.escapes));
    let mut shapes = forms.normals.iter().flat_map(|normal| &normal.numbers);
    let all = options.numbers == Numbers::Double;
    if !shapes.any(|shape| all || leaves_spellings_out(shape)) {
        return found;
    }
    let tree = &forms.tree;
    for id in (0..sources).map(|index| NodeId(index as u32)) {
        let node = tree.node(id);
        let numbers = numbers(node);
        for (name, keyword) in node.keywords.iter().filter(|(name, _)| !name.is_empty()) {
            let as_doubles = as_doubles(keyword, numbers, tree).filter(|_| all);
            if let Some(how) = as_doubles.or_else(|| how(keyword, numbers, tree)) {
                found.insert(tree.keyword_pointer(id, name), how);
            }
        }
    }
    found
}

/// Returns the keywords that distinguish scalars of which there are too many to list. Finitely many scalars
/// are enumerated in all their spellings.
fn told_by_texts(forms: &NormalForms, escapes: Escapes) -> impl Iterator<Item = (String, &'static str)> {
    let arrays = forms.normals.iter().flat_map(|normal| &normal.arrays);
    arrays.filter_map(move |array| {
        let node = array.unique?;
        let items = array
            .additional
            .iter()
            .map(|way: &Way| &forms.normals[way.goal.index()]);
        let strings = |normal: &Rc<Normal>| escapes != Escapes::Canonical && !normal.strings.is_empty();
        let numbers = |normal: &Rc<Normal>| normal.numbers.iter().any(|shape| shape.plain != Some(true));
        let how = match (items.clone().any(strings), items.clone().any(numbers)) {
            (false, false) => return None,
            (true, false) => STRINGS,
            (false, true) => NUMBERS,
            (true, true) => BOTH,
        };
        Some((forms.tree.keyword_pointer(node, "uniqueItems"), how))
    })
}

/// Returns `true` if the `type` beside the other keywords allows numbers that have more than one spelling.
fn numbers(node: &Node) -> bool {
    node.keywords.iter().all(|(_, keyword)| match keyword {
        Keyword::Type { types, whole } => {
            types.has(Kind::Number) || types.has_integers() && *whole == Whole::Value
        }
        _ => true,
    })
}

/// Returns a description of the further spellings that are left out if numbers are written as doubles.
fn as_doubles(keyword: &Keyword, numbers: bool, tree: &Tree) -> Option<&'static str> {
    match keyword {
        Keyword::Type { types, .. } if types.has(Kind::Number) => Some(DOUBLE),
        Keyword::Type { types, .. } if types.has_integers() => Some(DIGITS),
        Keyword::Values(values) => names_number(values, numbers, tree).then_some(NEEDED),
        _ => None,
    }
}

fn how(keyword: &Keyword, numbers: bool, tree: &Tree) -> Option<&'static str> {
    let (there, how) = match keyword {
        Keyword::Type { types, whole } => (is_integer(*types, *whole), INTEGER),
        Keyword::Minimum { value, .. } | Keyword::Maximum { value, .. } => {
            (numbers && !value.is_zero(), BOUND)
        }
        Keyword::MultipleOf(_) => (numbers, MULTIPLE),
        Keyword::Values(values) => (names_number(values, numbers, tree), CONSTANT),
        _ => return None,
    };
    there.then_some(how)
}

fn is_integer(types: Types, whole: Whole) -> bool {
    types.has_integers() && !types.has(Kind::Number) && whole == Whole::Value
}

/// Checks whether there is a number other than 0 among the values or inside them.
fn names_number(values: &Values, numbers: bool, tree: &Tree) -> bool {
    let some = |values: &Values| values.numbers.iter().any(|number| !number.is_zero());
    let mut open: Vec<NodeId> = [&values.arrays[..], &values.objects].concat();
    if numbers && some(values) {
        return true;
    }
    while let Some(id) = open.pop() {
        for (_, keyword) in tree.node(id).keywords.iter() {
            match keyword {
                Keyword::Values(values) if some(values) => return true,
                Keyword::Items { prefix, .. } => open.extend(prefix),
                Keyword::Properties(keys) => open.extend(keys.named.iter().map(|(_, value)| value)),
                _ => {}
            }
        }
    }
    false
}
