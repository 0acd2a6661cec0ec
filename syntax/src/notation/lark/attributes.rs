//! Parses what stands in brackets after the name of a rule, and the numbers and conditions of rules with a
//! parameter.

use super::items::{Attributes, Bits, Comparison, Condition, Name, Number, is_terminal};
use super::parser::{Parser, kind_of};
use super::scanner::Bad;
use crate::notation::tree::Node;

/// The deepest nesting of conditions.
const MOST_CONDITIONS: usize = 50;

impl Parser<'_, '_> {
    /// Parses `lazy, stop="x"]`.
    pub(super) fn attributes(&mut self, rule: &Name) -> Result<Attributes, Bad> {
        if is_terminal(&rule.text) {
            let message = format!(
                "`{}` is a {}, which has no attributes",
                rule.text,
                kind_of(&rule.text)
            );
            return Err((rule.at, message));
        }
        self.scanner.open += 1;
        let (mut attributes, mut seen) = (Attributes::default(), Vec::new());
        loop {
            let name = self.name("the name of an attribute")?;
            if seen.contains(&name.text) {
                return Err((name.at, format!("`{}` is given twice", name.text)));
            }
            let has_value = self.scanner.eat_after_blanks("=");
            self.scanner.blanks();
            match (name.text.as_str(), has_value) {
                // What is captured does not change the texts of the language.
                ("capture", false) => {}
                ("capture" | "stop_capture", true) => self.capture_name(&name)?,
                ("lazy", false) => attributes.is_lazy = true,
                ("stop" | "suffix", true) => self.stop(&name, &mut attributes)?,
                ("max_tokens" | "temperature", true) => {
                    let message = format!("the attribute `{}` is not supported", name.text);
                    return Err((name.at, message));
                }
                (other, _) => {
                    let known = "`lazy`, `stop=…`, `suffix=…` and `capture`";
                    return Err((name.at, format!("unknown attribute `{other}`; there are {known}")));
                }
            }
            seen.push(name.text);
            if !self.scanner.eat_after_blanks(",") {
                break;
            }
        }
        self.required("]", "after the attributes")?;
        self.scanner.open = self.scanner.open.saturating_sub(1);
        if seen.iter().any(|name| name == "stop_capture") && attributes.stop.is_none() {
            return Err((
                rule.at,
                "`stop_capture` stands beside `stop` or `suffix`".to_owned(),
            ));
        }
        Ok(attributes)
    }

    fn capture_name(&mut self, name: &Name) -> Result<(), Bad> {
        let at = self.scanner.at;
        if self.scanner.peek() != Some('"') {
            return self.expected("a name in quotes");
        }
        let text = self.scanner.string()?;
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        match !text.is_empty() && text.chars().all(is_letter) {
            true => Ok(()),
            false => Err((
                at,
                format!(
                    "the name of `{}` has letters, digits, `_`, `-` and `.`",
                    name.text
                ),
            )),
        }
    }

    fn stop(&mut self, name: &Name, attributes: &mut Attributes) -> Result<(), Bad> {
        if attributes.stop.is_some() {
            return Err((
                name.at,
                "a rule has either `stop` or `suffix`, and one of them".to_owned(),
            ));
        }
        let at = self.scanner.at;
        attributes.stop = Some(match self.scanner.peek() {
            Some('"') => self.text()?,
            Some('/') => self.expression()?,
            _ => {
                let terminal = self.name("a text, an expression or the name of a terminal")?;
                if !is_terminal(&terminal.text) {
                    return Err((at, format!("`{}` is not a terminal", terminal.text)));
                }
                Node::name(at, terminal.text)
            }
        });
        Ok(())
    }

    /// Parses what is given to a rule with a parameter: `0x1f`, `_`, `set_bit(3)` or `incr([0:4])`.
    pub(super) fn number(&mut self) -> Result<Number, Bad> {
        if self.scanner.eat("_") {
            return Ok(Number::Same);
        }
        if self.scanner.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok(Number::Constant(self.constant()?));
        }
        let name = self.name("a number, `_` or a function of the parameter")?;
        self.required("(", "after the function")?;
        self.scanner.open += 1;
        self.scanner.blanks();
        let number = match name.text.as_str() {
            "set_bit" => Number::SetBit(self.bit(63)?),
            "clear_bit" => Number::ClearBit(self.bit(63)?),
            "bit_and" => Number::BitAnd(self.constant()?),
            "bit_or" => Number::BitOr(self.constant()?),
            "incr" => Number::Increment(self.bits()?),
            "decr" => Number::Decrement(self.bits()?),
            other => return Err((name.at, format!("unknown function `{other}`"))),
        };
        self.required(")", "after the argument")?;
        self.scanner.open = self.scanner.open.saturating_sub(1);
        Ok(number)
    }

    fn constant(&mut self) -> Result<u64, Bad> {
        let at = self.scanner.at;
        let value = match self.scanner.eat("0x") || self.scanner.eat("0X") {
            true => {
                let rest = self.scanner.rest();
                let length = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
                self.scanner.at += length;
                u64::from_str_radix(&rest[..length], 16).ok()
            }
            false => self.scanner.digits().parse().ok(),
        };
        value.ok_or((at, "expected a number of at most 64 bits".to_owned()))
    }

    fn bit(&mut self, most: u64) -> Result<u32, Bad> {
        let at = self.scanner.at;
        match self.constant()? {
            bit if bit <= most => Ok(bit as u32),
            bit => Err((at, format!("{bit} is too large; it is at most {most}"))),
        }
    }

    /// `_` or `[start:end]`.
    fn bits(&mut self) -> Result<Bits, Bad> {
        let at = self.scanner.at;
        if self.scanner.eat("_") {
            return Ok(Bits { start: 0, end: 64 });
        }
        if !self.scanner.eat("[") {
            return self.expected("`_` or bits such as `[0:4]`");
        }
        let start = self.bit(63)?;
        self.required(":", "between the first bit and the one after the last")?;
        let end = self.bit(64)?;
        self.required("]", "after the bits")?;
        match start < end {
            true => Ok(Bits { start, end }),
            false => Err((at, format!("the end {end} is not beyond the start {start}"))),
        }
    }

    /// Parses a condition such as `and(bit_clear(0), lt([0:4], 3))`.
    pub(super) fn condition(&mut self, depth: usize) -> Result<Condition, Bad> {
        let name = self.name("a condition")?;
        if depth > MOST_CONDITIONS {
            return Err((name.at, "conditions nest too deeply".to_owned()));
        }
        if name.text == "true" {
            return Ok(Condition::True);
        }
        self.required("(", "after the name of a condition")?;
        self.scanner.open += 1;
        self.scanner.blanks();
        let condition = match name.text.as_str() {
            "bit_set" => Condition::BitSet(self.bit(63)?),
            "bit_clear" => Condition::BitClear(self.bit(63)?),
            "is_ones" => Condition::AllOnes(self.bits()?),
            "is_zeros" => Condition::AllZeros(self.bits()?),
            "not" => Condition::Not(Box::new(self.condition(depth + 1)?)),
            "and" => Condition::And(self.conditions(depth)?),
            "or" => Condition::Or(self.conditions(depth)?),
            other => self.comparison(other, &name)?,
        };
        self.required(")", "after a condition")?;
        self.scanner.open = self.scanner.open.saturating_sub(1);
        Ok(condition)
    }

    fn conditions(&mut self, depth: usize) -> Result<Vec<Condition>, Bad> {
        let mut all = vec![self.condition(depth + 1)?];
        while self.scanner.eat_after_blanks(",") {
            all.push(self.condition(depth + 1)?);
        }
        Ok(all)
    }

    fn comparison(&mut self, word: &str, name: &Name) -> Result<Condition, Bad> {
        let (is_count, sign) = match word.strip_prefix("bit_count_") {
            Some(sign) => (true, sign),
            None => (false, word),
        };
        let comparison = match sign {
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "lt" => Comparison::Lt,
            "le" => Comparison::Le,
            "gt" => Comparison::Gt,
            "ge" => Comparison::Ge,
            _ => return Err((name.at, format!("unknown condition `{word}`"))),
        };
        let bits = self.bits()?;
        self.required(",", "between the bits and a number")?;
        self.scanner.blanks();
        let constant = self.constant()?;
        Ok(match is_count {
            true => Condition::Count(comparison, bits, constant),
            false => Condition::Compare(comparison, bits, constant),
        })
    }
}

impl Bits {
    fn mask(self) -> u64 {
        (u64::MAX >> (64 - (self.end - self.start))) << self.start
    }

    fn of(self, value: u64) -> u64 {
        (value & self.mask()) >> self.start
    }
}

impl Number {
    /// Returns the number for a value of the parameter.
    pub(super) fn of(&self, value: u64) -> u64 {
        match *self {
            Number::Constant(constant) => constant,
            Number::Same => value,
            Number::SetBit(bit) => value | 1 << bit,
            Number::ClearBit(bit) => value & !(1 << bit),
            Number::BitAnd(mask) => value & mask,
            Number::BitOr(mask) => value | mask,
            // They stay within their bits and end at the largest and the smallest number.
            Number::Increment(bits) => match bits.of(value) == bits.of(u64::MAX) {
                true => value,
                false => value + (1 << bits.start),
            },
            Number::Decrement(bits) => match bits.of(value) {
                0 => value,
                _ => value - (1 << bits.start),
            },
        }
    }
}

impl Comparison {
    fn holds(self, one: u64, other: u64) -> bool {
        match self {
            Comparison::Eq => one == other,
            Comparison::Ne => one != other,
            Comparison::Lt => one < other,
            Comparison::Le => one <= other,
            Comparison::Gt => one > other,
            Comparison::Ge => one >= other,
        }
    }
}

impl Condition {
    /// Returns whether the condition holds for a value of the parameter.
    pub(super) fn holds(&self, value: u64) -> bool {
        match self {
            Condition::True => true,
            Condition::BitSet(bit) => value >> bit & 1 == 1,
            Condition::BitClear(bit) => value >> bit & 1 == 0,
            Condition::AllOnes(bits) => bits.of(value) == bits.of(u64::MAX),
            Condition::AllZeros(bits) => bits.of(value) == 0,
            Condition::Compare(comparison, bits, constant) => comparison.holds(bits.of(value), *constant),
            Condition::Count(comparison, bits, constant) => {
                let count = bits.of(value).count_ones();
                comparison.holds(u64::from(count), *constant)
            }
            Condition::Not(condition) => !condition.holds(value),
            Condition::And(all) => all.iter().all(|condition| condition.holds(value)),
            Condition::Or(all) => all.iter().any(|condition| condition.holds(value)),
        }
    }
}
