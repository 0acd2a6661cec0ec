//! Patterns as targets take them: checks the text of a source, and prints expressions anew.
//!
//! The engines of targets differ in what they read, and most of them read a pattern as the whole string. A
//! pattern of the source is kept if the target reads it as JSON Schema does; otherwise the expression that
//! the compiler made of it is printed with literals, classes, groups, alternation and counts only, between
//! `^` and `$`. Formats that a target does not know are printed the same way.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::profile::Patterns;

/// The longest pattern that is written: those of some formats would fill a page.
const LONGEST: usize = 1_500;

/// Returns `true` if a target reads a pattern of a source as JSON Schema does.
pub(super) fn is_taken(pattern: &str, rules: &Patterns) -> bool {
    let Some(read) = Features::of(pattern) else {
        return false;
    };
    let is_whole = pattern.starts_with('^') && pattern.ends_with('$') && !read.has_top_alternation;
    !read.is_special
        && read.largest_count <= rules.repeat
        && (!rules.anchored
            || is_whole && !read.has_shorthand && !read.has_dot && !read.has_odd_escape && read.anchors == 2)
}

/// Returns `true` if a pattern may be one that [`printed`] wrote for the target.
pub(super) fn is_printed(pattern: &str, rules: &Patterns) -> bool {
    // A dot is a shorthand of its own, and part of `\.`.
    let plain = match &*rules.anything {
        "." => pattern.to_owned(),
        anything => pattern.replace(anything, "a"),
    };
    let is_whole = plain.starts_with('^') && plain.ends_with('$');
    let read = Features::of(&plain);
    is_whole
        && read.is_some_and(|read| {
            !read.has_top_alternation
                && !read.has_shorthand
                && (!read.has_dot || rules.anything == ".")
                && !read.has_odd_escape
                && read.largest_count <= rules.repeat
        })
}

/// What a pattern uses, judged by its text.
#[derive(Default)]
struct Features {
    /// Look-around, boundaries, back references, properties, named groups or lazy repetitions.
    is_special: bool,
    has_top_alternation: bool,
    /// `\d`, `\w`, `\s`, which engines read differently, as they do `.`.
    has_shorthand: bool,
    has_dot: bool,
    /// Escapes of characters that need none.
    has_odd_escape: bool,
    largest_count: u32,
    anchors: usize,
}

impl Features {
    /// Reads a pattern, or returns `None` if it is not well formed enough to be judged.
    fn of(pattern: &str) -> Option<Features> {
        let mut read = Features::default();
        let mut chars = pattern.chars().peekable();
        let (mut depth, mut in_class, mut previous) = (0u32, false, ' ');
        while let Some(c) = chars.next() {
            match c {
                '\\' => read.escape(chars.next()?, in_class),
                '[' if !in_class => in_class = true,
                ']' if in_class => in_class = false,
                _ if in_class => {}
                '(' => {
                    depth += 1;
                    if chars.peek() == Some(&'?') {
                        chars.next();
                        read.is_special |= chars.next()? != ':';
                    }
                }
                ')' => depth = depth.checked_sub(1)?,
                '|' => read.has_top_alternation |= depth == 0,
                '.' => read.has_dot = true,
                '^' | '$' => read.anchors += 1,
                '?' => read.is_special |= matches!(previous, '*' | '+' | '?' | '}'),
                '{' => read.count(&mut chars)?,
                _ => {}
            }
            previous = if c == '{' { '}' } else { c };
        }
        (depth == 0 && !in_class).then_some(read)
    }

    fn escape(&mut self, escaped: char, in_class: bool) {
        let usual = if in_class {
            "[]\\nrtu"
        } else {
            "^$.|?*+()[]{}\\nrtu"
        };
        self.has_odd_escape |= !usual.contains(escaped);
        match escaped {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => self.has_shorthand = true,
            c if c.is_ascii_punctuation() => {}
            'n' | 'r' | 't' | 'f' | 'v' | 'u' => {}
            _ => self.is_special = true,
        }
    }

    /// Reads a count after `{`.
    fn count(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
        let text: String = chars.by_ref().take_while(|&c| c != '}').collect();
        for number in text.split(',').filter(|number| !number.is_empty()) {
            self.largest_count = self.largest_count.max(number.parse().ok()?);
        }
        Some(())
    }
}

/// Prints an expression for whole strings, or returns `None` if the target does not take it or it is long.
pub(super) fn printed(hir: &Hir, rules: &Patterns) -> Option<String> {
    let mut printer = Printer {
        rules,
        out: String::from("^"),
    };
    printer.print(hir, Within::Sequence)?;
    printer.out.push('$');
    (printer.out.len() <= LONGEST).then_some(printer.out)
}

/// Prints strings of a number of units.
pub(super) fn printed_units(unit: &Hir, min: u64, max: Option<u64>, rules: &Patterns) -> Option<String> {
    let mut printer = Printer {
        rules,
        out: String::from("^"),
    };
    printer.print(unit, Within::Repetition)?;
    printer.count(u32::try_from(min).ok()?, max.map(u32::try_from).transpose().ok()?)?;
    printer.out.push('$');
    (printer.out.len() <= LONGEST).then_some(printer.out)
}

/// Prints any strings of a number of characters.
pub(super) fn printed_lengths(min: u64, max: Option<u64>, rules: &Patterns) -> Option<String> {
    let mut printer = Printer {
        rules,
        out: format!("^{}", rules.anything),
    };
    printer.count(u32::try_from(min).ok()?, max.map(u32::try_from).transpose().ok()?)?;
    printer.out.push('$');
    Some(printer.out)
}

/// What an expression stands in, which decides whether it needs a group.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Within {
    Alternation,
    Sequence,
    Repetition,
}

struct Printer<'r> {
    rules: &'r Patterns,
    out: String,
}

impl Printer<'_> {
    fn print(&mut self, hir: &Hir, within: Within) -> Option<()> {
        if self.out.len() > LONGEST {
            return None;
        }
        match hir.kind() {
            HirKind::Empty if within == Within::Repetition => self.out.push_str("(?:)"),
            HirKind::Empty => {}
            HirKind::Literal(literal) => self.literal(std::str::from_utf8(&literal.0).ok()?, within),
            HirKind::Class(class) => self.class(class)?,
            HirKind::Look(Look::Start) if self.out == "^" => {}
            HirKind::Look(Look::End) => return None,
            HirKind::Look(_) => return None,
            HirKind::Repetition(repetition) => {
                let is_grouped = within == Within::Repetition;
                self.open(is_grouped);
                self.print(&repetition.sub, Within::Repetition)?;
                self.count(repetition.min, repetition.max)?;
                self.close(is_grouped);
            }
            HirKind::Capture(capture) => self.print(&capture.sub, within)?,
            HirKind::Concat(parts) => {
                let is_grouped = within == Within::Repetition;
                self.open(is_grouped);
                parts
                    .iter()
                    .try_for_each(|part| self.print(part, Within::Sequence))?;
                self.close(is_grouped);
            }
            HirKind::Alternation(parts) => {
                let is_grouped = within != Within::Alternation;
                self.open(is_grouped);
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        self.out.push('|');
                    }
                    self.print(part, Within::Alternation)?;
                }
                self.close(is_grouped);
            }
        }
        Some(())
    }

    fn open(&mut self, is_grouped: bool) {
        if is_grouped {
            self.out.push_str("(?:");
        }
    }

    fn close(&mut self, is_grouped: bool) {
        if is_grouped {
            self.out.push(')');
        }
    }

    fn literal(&mut self, text: &str, within: Within) {
        let is_grouped = within == Within::Repetition && text.chars().count() > 1;
        self.open(is_grouped);
        text.chars().for_each(|c| self.character(c, false));
        self.close(is_grouped);
    }

    fn character(&mut self, c: char, in_class: bool) {
        let is_special = match in_class {
            true => matches!(c, '\\' | ']' | '['),
            false => "\\^$.|?*+()[]{}".contains(c),
        };
        match c {
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            c if (c as u32) < 0x20 || (0x7f..0xa0).contains(&(c as u32)) || is_separator(c) => {
                self.out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => {
                if is_special {
                    self.out.push('\\');
                }
                self.out.push(c);
            }
        }
    }

    fn class(&mut self, class: &Class) -> Option<()> {
        let ranges: Vec<(char, char)> = match class {
            Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
            Class::Bytes(class) => {
                let ascii = class.iter().map(|range| {
                    let is_ascii = range.end() < 0x80;
                    is_ascii.then_some((char::from(range.start()), char::from(range.end())))
                });
                ascii.collect::<Option<_>>()?
            }
        };
        match ranges[..] {
            [] => return None,
            [('\0', char::MAX)] => {
                let anything = self.rules.anything.clone();
                self.out.push_str(&anything);
                return Some(());
            }
            [(first, last)] if first == last => {
                self.character(first, false);
                return Some(());
            }
            _ => {}
        }
        let is_negated = ranges.first().is_some_and(|range| range.0 == '\0')
            && ranges.last().is_some_and(|range| range.1 == char::MAX);
        self.out.push_str(if is_negated { "[^" } else { "[" });
        self.ranges(if is_negated { gaps(&ranges) } else { ranges });
        self.out.push(']');
        Some(())
    }

    /// Prints the ranges of a class. `^` and `-` come last, where they need no escape, which some engines do
    /// not know.
    fn ranges(&mut self, ranges: Vec<(char, char)>) {
        let (mut has_caret, mut has_dash) = (false, false);
        for (mut first, mut last) in ranges {
            for sign in ['^', '-'] {
                let is_end = first == sign || last == sign;
                if is_end {
                    has_caret |= sign == '^';
                    has_dash |= sign == '-';
                }
                if first == last && is_end {
                    first = '\u{1}';
                    last = '\0';
                } else if first == sign {
                    first = following(sign).unwrap_or(sign);
                } else if last == sign {
                    last = preceding(sign).unwrap_or(sign);
                }
            }
            if first > last {
                continue;
            }
            self.character(first, true);
            if first != last {
                if last as u32 > first as u32 + 1 {
                    self.out.push('-');
                }
                self.character(last, true);
            }
        }
        // Alone, they are "-^": a class may not begin with "^".
        let is_empty = self.out.ends_with('[') || self.out.ends_with("[^");
        match (has_caret, has_dash) {
            (true, true) if is_empty => self.out.push_str("-^"),
            (true, true) => self.out.push_str("^-"),
            (true, false) => self.out.push('^'),
            (false, true) => self.out.push('-'),
            (false, false) => {}
        }
    }

    fn count(&mut self, min: u32, max: Option<u32>) -> Option<()> {
        if min > self.rules.repeat.max(1) || max.is_some_and(|max| max > self.rules.repeat.max(1)) {
            return None;
        }
        match (min, max) {
            (0, None) => self.out.push('*'),
            (1, None) => self.out.push('+'),
            (0, Some(1)) => self.out.push('?'),
            (1, Some(1)) => {}
            (min, None) => self.out.push_str(&format!("{{{min},}}")),
            (min, Some(max)) if min == max => self.out.push_str(&format!("{{{min}}}")),
            (min, Some(max)) => self.out.push_str(&format!("{{{min},{max}}}")),
        }
        Some(())
    }
}

fn is_separator(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Returns the characters between ranges that begin with the first character and end with the last.
fn gaps(ranges: &[(char, char)]) -> Vec<(char, char)> {
    let pairs = ranges.iter().zip(ranges.iter().skip(1));
    let gap = |(before, after): (&(char, char), &(char, char))| {
        let first = following(before.1)?;
        let last = preceding(after.0)?;
        (first <= last).then_some((first, last))
    };
    pairs.filter_map(gap).collect()
}

fn preceding(c: char) -> Option<char> {
    (0..c as u32).rev().find_map(char::from_u32)
}

fn following(c: char) -> Option<char> {
    (c as u32 + 1..=char::MAX as u32).find_map(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::own_expression;

    fn rules(anchored: bool) -> Patterns {
        Patterns {
            anchored,
            anything: "[\\s\\S]".to_owned(),
            repeat: 100,
            beside: Vec::new(),
        }
    }

    #[test]
    fn expressions_are_printed_for_whole_strings() {
        for (expression, expected) in [
            ("[a-z]+", "^[a-z]+$"),
            ("(?:ab|c){2}x?", "^(?:ab|c){2}x?$"),
            ("[^a]*", "^[^a]*$"),
            (".*@.*", "^[\\s\\S]*@[\\s\\S]*$"),
            ("[0-9]{4}\\.[.]", "^[0-9]{4}\\.\\.$"),
            ("a|bc", "^(?:a|bc)$"),
            ("[-a-c^]/", "^[a-c^-]/$"),
            ("[-^]", "^[-^]$"),
            ("[+-\\-]", "^[+,-]$"),
            ("[^^]", "^[^^]$"),
        ] {
            let printed = printed(&own_expression(expression), &rules(true));
            assert_eq!(printed.as_deref(), Some(expected));
        }
        assert_eq!(printed(&own_expression("a{101}"), &rules(true)), None);
    }

    #[test]
    fn patterns_of_the_source_are_judged_by_what_they_use() {
        for (pattern, open, whole) in [
            ("^[a-z]+$", true, true),
            ("[a-z]+", true, false),
            ("^a|b$", true, false),
            ("^(a|b)$", true, true),
            ("^\\d+$", true, false),
            ("^[a-z\\-]\\/$", true, false),
            ("^a\\.[\\]]$", true, true),
            ("^a(?=b)", false, false),
            ("\\bword", false, false),
            ("^a{1000}$", false, false),
            ("^\\p{L}$", false, false),
            ("(a", false, false),
        ] {
            assert_eq!(is_taken(pattern, &rules(false)), open, "{pattern}");
            assert_eq!(is_taken(pattern, &rules(true)), whole, "{pattern}");
        }
    }
}
