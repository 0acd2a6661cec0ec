//! Lowers numbers: intervals, steps and finite sets as languages of decimal digits.
//!
//! If only the sign of a number matters, it may have any spelling of JSON. Where values are compared, the
//! allowed spellings are those that can be ordered digit by digit, which every JSON writer uses:
//!
//! ```text
//!   plain        12.50   0.001   -7       digits with at most one point
//!   scientific   1.25e1  1e-05   -7E+0    one digit before the point, not 0
//! ```
//!
//! No regular language contains all spellings of such numbers: in `1000…e-3` the exponent depends on the
//! number of digits before it. So every value can be written, and [`leaves_spellings_out`] says for the
//! report where some spellings cannot.
//!
//! Everything is computed on digits, so bounds may have thousands of them.

use regex_syntax::hir::Hir;

use crate::schema::decimal::{Decimal, Plain};
use crate::schema::forms::{Bound, GoalId, NumberShape};
use crate::schema::options::Numbers;
use crate::schema::text::hir::{any, any_digit, concat, digit, never, optional, star, text};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::grammar::{ExprId, Part, Regular};

use super::automaton;
use super::digits::{
    fraction, fraction_at_least, fraction_at_most, signed_exponent_at_least, signed_exponent_at_most,
    signed_exponent_equal, whole_above, whole_below,
};
use super::numeral::{
    Spelling, all_spellings, as_doubles, as_integers, constants, e, exponent, integer, positive_integer,
    signed, zero,
};
use super::writer::Writer;

impl Writer<'_> {
    /// Returns the expression for the texts of a set of numbers.
    pub(super) fn number(&mut self, shape: &NumberShape, goal: GoalId) -> ExprId {
        if let Some(&known) = self.numbers.get(shape) {
            return known;
        }
        let expr = if shape.too_fine
            || shape
                .step
                .iter()
                .chain(&shape.not_steps)
                .any(|step| step.scaled().is_none())
        {
            let message = "a `multipleOf` with more than 18 digits is not supported";
            self.problem(ProblemKind::Unsupported, goal, message);
            self.builder.never()
        } else if shape.is_counted() {
            if self.multiple_states > MOST_STATES_TOGETHER {
                let message = format!(
                    "the `multipleOf` keywords need more than {MOST_STATES_TOGETHER} states together, which is not supported"
                );
                self.problem(ProblemKind::Limit, goal, message);
                return self.builder.never();
            }
            match automaton::write(
                shape,
                self.options.numbers,
                &mut self.builder,
                &mut self.multiple_states,
            ) {
                Ok(written) => written,
                Err(message) => self.nearest_multiples(shape, goal, message),
            }
        } else {
            self.regular(Regular::of(parts(shape, self.options.numbers)))
        };
        self.numbers.insert(shape.clone(), expr);
        expr
    }
}

impl Writer<'_> {
    /// Returns the multiples that are nearest to a bound, or to zero, if there are too many to list.
    fn nearest_multiples(&mut self, shape: &NumberShape, goal: GoalId, message: &str) -> ExprId {
        let one = Decimal::one();
        let step = shape.step.as_ref().unwrap_or(&one);
        let (lower, upper) = (shape.lower.as_ref(), shape.upper.as_ref());
        let from = |bound: &Decimal, down: bool| step.multiples_from(bound, down, NEAREST);
        let found = match (lower, upper) {
            (Some(lower), _) => from(&lower.value, false),
            (None, Some(upper)) => from(&upper.value, true),
            (None, None) => {
                let zero = Decimal::zero();
                from(&zero, false)
                    .zip(from(&zero, true))
                    .map(|(up, down)| [up, down].concat())
            }
        };
        let mut only = found.unwrap_or_default();
        only.retain(|value| shape.contains(value));
        if only.is_empty() {
            self.problem(ProblemKind::Unsupported, goal, message);
            return self.builder.never();
        }
        let message = "only the multiples next to a bound or to zero are allowed: the steps and bounds of this number need too \
            large an automaton";
        self.narrowed(goal, message);
        let shape = NumberShape {
            only: Some(only),
            plain: shape.plain,
            ..NumberShape::default()
        };
        self.regular(Regular::of(parts(&shape, self.options.numbers)))
    }
}

/// The most states of the automata of all multiples together, including those that were too large.
const MOST_STATES_TOGETHER: usize = 100_000;

/// The number of multiples that are written if there are too many to list.
const NEAREST: i128 = 1_000;

/// Returns the numbers in a unique spelling for each value, or `None` if the shape is not a regular language
/// here.
pub(super) fn unique_spellings(shape: &NumberShape) -> Option<Vec<Part>> {
    if shape.too_fine || shape.is_counted() {
        return None;
    }
    let decimals = || concat([star(any_digit()), digit(b'1', b'9')]);
    let fraction = || concat([text("."), decimals()]);
    let magnitude = any([
        concat([text("0"), fraction()]),
        concat([positive_integer(), optional(fraction())]),
    ]);
    // Among items that differ, a value has one spelling, however long it is.
    let mut parts = parts(shape, Numbers::Any);
    parts.push(Part::Match(any([text("0"), signed(magnitude)]).into()));
    Some(parts)
}

/// Returns `true` if values are distinguished by more than their sign and by being zero, which no exponent
/// changes.
fn is_compared(shape: &NumberShape) -> bool {
    let bounds = shape.lower.iter().chain(&shape.upper).map(|bound| &bound.value);
    bounds.chain(&shape.except).any(|value| !value.is_zero())
}

/// Returns `true` if some spellings of the numbers of a shape are left out. The spellings without a point and
/// an exponent, which draft 4 requires for integers, are never left out.
pub(crate) fn leaves_spellings_out(shape: &NumberShape) -> bool {
    if shape.plain == Some(true) {
        return false;
    }
    match &shape.only {
        Some(only) => only.iter().any(|value| !value.is_zero()),
        None => shape.step.is_some() || !shape.not_steps.is_empty() || is_compared(shape),
    }
}

fn parts(shape: &NumberShape, numbers: Numbers) -> Vec<Part> {
    if let Some(only) = &shape.only {
        return vec![Part::Match(constants(only, shape.plain, numbers).into())];
    }
    let compared = is_compared(shape);
    let whole = shape.step.is_some();
    let whole_number = match compared && !shape.except.is_empty() {
        true => Spelling::WholeToldApart,
        false => Spelling::Whole,
    };
    let in_digits = numbers == Numbers::Double && shape.is_in_digits();
    let spelled = match shape.plain {
        _ if in_digits => Spelling::Digits,
        Some(true) => Spelling::Integer,
        Some(false) if compared => Spelling::ComparablePoint,
        Some(false) => Spelling::Point,
        None if whole => whole_number,
        None if !shape.not_steps.is_empty() => Spelling::NotWhole,
        None if compared => Spelling::Comparable,
        None => Spelling::Any,
    };
    let mut parts = vec![Part::Match(spelled.expression())];
    // The spelling that draft 4 requires does not constrain the value.
    if shape.plain == Some(false) && whole {
        parts.push(Part::Match(whole_number.expression()));
    }
    if shape.plain.is_some() && !shape.not_steps.is_empty() {
        parts.push(Part::Match(Spelling::NotWhole.expression()));
    }
    if numbers == Numbers::Double {
        let bounded = if in_digits {
            as_integers(shape)
        } else {
            as_doubles(shape)
        };
        parts.extend(bounded.map(Part::Match));
    }
    if let Some(lower) = &shape.lower {
        parts.push(Part::Match(at_least(lower).into()));
    }
    if let Some(upper) = &shape.upper {
        parts.push(Part::Match(at_most(upper).into()));
    }
    if !shape.except.is_empty() {
        parts.push(Part::Not(any(shape.except.iter().map(all_spellings)).into()));
    }
    parts
}

/// Returns the numbers from a bound up.
fn at_least(bound: &Bound) -> Hir {
    let magnitude = bound.value.magnitude();
    if bound.value.is_negative() {
        return any([
            concat([text("-"), magnitude_at_most(&magnitude, bound.exclusive)]),
            unsigned(),
        ]);
    }
    let minus_zero = if bound.exclusive || !magnitude.is_zero() {
        never()
    } else {
        concat([text("-"), zero()])
    };
    any([minus_zero, magnitude_at_least(&magnitude, bound.exclusive)])
}

/// Returns the numbers from a bound down.
fn at_most(bound: &Bound) -> Hir {
    let magnitude = bound.value.magnitude();
    let negative = |magnitude: Hir| concat([text("-"), magnitude]);
    if bound.value.is_negative() {
        return negative(magnitude_at_least(&magnitude, bound.exclusive));
    }
    if magnitude.is_zero() && bound.exclusive {
        return negative(magnitude_at_least(&magnitude, true));
    }
    any([
        negative(unsigned()),
        magnitude_at_most(&magnitude, bound.exclusive),
    ])
}

fn unsigned() -> Hir {
    concat([integer(), optional(fraction()), optional(exponent())])
}

fn magnitude_at_most(limit: &Decimal, strictly: bool) -> Hir {
    if limit.is_zero() {
        return if strictly { never() } else { zero() };
    }
    let (first, rest) = limit.digits().split_at(1);
    let smaller = concat([
        digit(b'1', b'9'),
        optional(fraction()),
        e(),
        signed_exponent_at_most(limit.exponent() - 1),
    ]);
    let same = concat([
        any([
            concat([digit(b'1', first[0] - 1), optional(fraction())]),
            concat([text(first), fraction_at_most(rest, strictly)]),
        ]),
        e(),
        signed_exponent_equal(limit.exponent()),
    ]);
    any([plain_at_most(&limit.plain(), strictly), zero(), smaller, same])
}

fn magnitude_at_least(limit: &Decimal, strictly: bool) -> Hir {
    if limit.is_zero() {
        let some = concat([text("0."), star(text("0")), digit(b'1', b'9'), star(any_digit())]);
        let large = concat([digit(b'1', b'9'), star(any_digit()), optional(fraction())]);
        let positive = concat([any([some, large]), optional(exponent())]);
        return if strictly { positive } else { unsigned() };
    }
    let (first, rest) = limit.digits().split_at(1);
    let larger = concat([
        digit(b'1', b'9'),
        optional(fraction()),
        e(),
        signed_exponent_at_least(limit.exponent() + 1),
    ]);
    let same = concat([
        any([
            concat([digit(first[0] + 1, b'9'), optional(fraction())]),
            concat([text(first), fraction_at_least(rest, strictly)]),
        ]),
        e(),
        signed_exponent_equal(limit.exponent()),
    ]);
    any([plain_at_least(&limit.plain(), strictly), larger, same])
}

fn plain_at_most(limit: &Plain, strictly: bool) -> Hir {
    let whole = &limit.whole;
    let mut ways = vec![concat([whole_below(whole), optional(fraction())])];
    ways.push(concat([text(whole), fraction_at_most(&limit.fraction, strictly)]));
    any(ways)
}

fn plain_at_least(limit: &Plain, strictly: bool) -> Hir {
    let whole = &limit.whole;
    let mut ways = vec![concat([whole_above(whole), optional(fraction())])];
    ways.push(concat([
        text(whole),
        fraction_at_least(&limit.fraction, strictly),
    ]));
    any(ways)
}

#[cfg(test)]
mod tests {
    use regex_automata::nfa::thompson::{Compiler, pikevm::PikeVM};
    use regex_syntax::hir::Look;

    use super::*;
    use crate::schema::lower::digits::padded_between;

    fn any_parts(shape: &NumberShape) -> Vec<Part> {
        parts(shape, Numbers::Any)
    }

    fn matches(parts: &[Part], text: &str) -> bool {
        parts.iter().all(|part| {
            let (Part::Match(hir) | Part::Not(hir)) = part else {
                panic!("numbers have no units")
            };
            let whole = concat([Hir::look(Look::Start), Hir::clone(hir), Hir::look(Look::End)]);
            let machine =
                PikeVM::new_from_nfa(Compiler::new().build_from_hir(&whole).expect("small")).expect("valid");
            machine.is_match(&mut machine.create_cache(), text) == matches!(part, Part::Match(_))
        })
    }

    const SPELLINGS: &str = "0 -0 0.0 1 1.0 -1 9 10 10.5 11 99 100 100.01 101 0.1 0.09 0.10 0.11 1e0 1e1 1e2 1.01e2 9.9e-1 1e-05 \
        -1e-05 1E+2 1.0e+02 -2.5 -2.50 -2.51 -3 1e16 1e+16 1.5e+300 0.5 -0.5 12345678901234567890 12345678901234567890.5 2.5 7e0";

    #[test]
    fn bounds_agree_with_exact_comparison() {
        for limit in [
            "0",
            "1",
            "-1",
            "10",
            "100",
            "0.1",
            "-2.5",
            "99.5",
            "1e16",
            "1e-05",
            "12345678901234567890",
        ] {
            let value = Decimal::parse(limit).expect("a number");
            for exclusive in [false, true] {
                let bound = Bound {
                    value: value.clone(),
                    exclusive,
                };
                let lower = any_parts(&NumberShape {
                    lower: Some(bound.clone()),
                    ..NumberShape::default()
                });
                let upper = any_parts(&NumberShape {
                    upper: Some(bound),
                    ..NumberShape::default()
                });
                for spelling in SPELLINGS.split(' ') {
                    let number = Decimal::parse(spelling).expect("a number");
                    let (above, below) = (number > value, number < value);
                    let equal = number == value && !exclusive;
                    assert_eq!(
                        matches(&lower, spelling),
                        above || equal,
                        "{spelling} against {limit}, {exclusive}"
                    );
                    assert_eq!(
                        matches(&upper, spelling),
                        below || equal,
                        "{spelling} against {limit}, {exclusive}"
                    );
                }
            }
        }
    }

    #[test]
    fn integers_are_values_not_spellings() {
        let whole = any_parts(&NumberShape {
            step: Some(Decimal::one()),
            ..NumberShape::default()
        });
        let not_whole = any_parts(&NumberShape {
            not_steps: vec![Decimal::one()],
            ..NumberShape::default()
        });
        for spelling in SPELLINGS.split(' ') {
            let is_whole = Decimal::parse(spelling).expect("a number").is_integer();
            if spelling != "1.01e2" {
                assert_eq!(matches(&whole, spelling), is_whole, "{spelling}");
            }
            assert_eq!(matches(&not_whole, spelling), !is_whole, "{spelling}");
        }
    }

    #[test]
    fn finite_sets_and_their_complements() {
        let values = ["0", "1", "-2.5", "1e16"].map(|text| Decimal::parse(text).expect("a number"));
        let only = any_parts(&NumberShape {
            only: Some(values.to_vec()),
            ..NumberShape::default()
        });
        let except = any_parts(&NumberShape {
            except: values.to_vec(),
            ..NumberShape::default()
        });
        for spelling in SPELLINGS.split(' ') {
            let within = values.contains(&Decimal::parse(spelling).expect("a number"));
            assert_eq!(matches(&except, spelling), !within, "{spelling}");
            assert!(!matches(&only, spelling) || within, "{spelling}");
        }
        for spelling in ["0", "1", "1.0", "-2.50", "1e16", "1e+16", "10000000000000000"] {
            assert!(matches(&only, spelling), "{spelling}");
        }
    }

    #[test]
    fn numbers_between_two_are_those_and_no_others() {
        for (least, most) in [
            (0, 0),
            (0, 9),
            (3, 7),
            (7, 12),
            (16, 99),
            (16, 307),
            (99, 100),
            (98, 1001),
        ] {
            let between = [Part::Match(padded_between(least, most).into())];
            for number in 0..1100 {
                for spelling in [number.to_string(), format!("00{number}")] {
                    let expected = (least..=most).contains(&number);
                    assert_eq!(
                        matches(&between, &spelling),
                        expected,
                        "{spelling} in {least}..={most}"
                    );
                }
            }
        }
    }

    /// Checks the exponents that may be written, and those for which a double with that many digits is
    /// infinite.
    #[test]
    fn exponents_stay_within_doubles() {
        let bound = |text: &str| {
            let value = Decimal::parse(text).expect("a number");
            let exclusive = true;
            Some(Bound { value, exclusive })
        };
        let number = NumberShape::default();
        let step = Some(Decimal::one());
        let except = vec![Decimal::parse("7").expect("a number")];
        let shapes = [
            number.clone(),
            NumberShape {
                step: step.clone(),
                ..number.clone()
            },
            NumberShape {
                lower: bound("3"),
                ..number.clone()
            },
            NumberShape {
                lower: bound("0"),
                ..number.clone()
            },
            NumberShape {
                upper: bound("1e310"),
                ..number.clone()
            },
            NumberShape {
                plain: Some(false),
                ..number.clone()
            },
            NumberShape {
                step,
                except: except.clone(),
                ..number.clone()
            },
            NumberShape { except, ..number },
        ];
        let digits = ["", "0", "000", "00000000000000000000"];
        let mantissas = [
            "1",
            "1.5",
            "1.7976931348623157",
            "1.7976931348623159",
            "1.8",
            "9.99",
            "34.8",
            "120",
            "9",
        ];
        for shape in shapes.map(|shape| any_parts(&shape)) {
            for exponent in (0..420).chain([999, 1000, 17183, 100_000_000]) {
                for (mantissa, zeros) in mantissas
                    .iter()
                    .flat_map(|one| digits.iter().map(move |zeros| (one, zeros)))
                {
                    for sign in ["", "+"] {
                        let spelling = format!("{mantissa}e{sign}{zeros}{exponent}");
                        let value: f64 = spelling.parse().expect("a number");
                        assert!(!matches(&shape, &spelling) || value.is_finite(), "{spelling}");
                    }
                }
            }
        }
        let any = any_parts(&NumberShape::default());
        let written = "1e308 1E+308 9.9e307 1.7976931348623157e308 1.5e+308 12e99 0.5e99 0e99 34.8E17 1e-17183 1e0307 1e-400";
        for spelling in written.split(' ') {
            assert!(matches(&any, spelling), "{spelling}");
        }
    }
}
