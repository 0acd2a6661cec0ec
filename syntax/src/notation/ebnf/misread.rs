//! Constructs that are valid here but mean something else in another notation. They are refused, never
//! silently misread.
//!
//! ```text
//!   root = "a" , [ digit ] ;       ISO 14977, Lark, ABNF: an optional digit      here: a letter of "digit" or a blank
//!   hex: "a".."f"                  Lark, ANTLR: a range of characters            here: four characters
//!   ?value: "x"                    Lark: an inlined rule                         here: a `?` after the part before
//! ```
//!
//! Rules that are written with `::=` follow the W3C or GBNF, which mean the same as here; the notation of the
//! others is unknown. If two readings are possible, the rule is refused, so that a grammar that compiles
//! means what it says here.

use foldhash::{HashSet, HashSetExt};

use super::lexemes::{Kind, Lexeme, Lexemes, is_name};

/// The rules that every grammar in ABNF has without defining them (RFC 5234, appendix B).
const ABNF_RULES: [&str; 16] = [
    "ALPHA", "BIT", "CHAR", "CR", "CRLF", "CTL", "DIGIT", "DQUOTE", "HEXDIG", "HTAB", "LF", "LWSP", "OCTET",
    "SP", "VCHAR", "WSP",
];

/// Returns all misreadings of a grammar, with the offsets at which they begin.
pub(super) fn find(text: &str) -> Vec<(usize, String)> {
    let lexemes: Vec<Lexeme> = Lexemes::new(text).collect();
    let starts: Vec<usize> = (1..lexemes.len())
        .filter(|&at| lexemes[at].kind == Kind::Define && lexemes[at - 1].kind == Kind::Name)
        .collect();
    let mut names: HashSet<&str> = HashSet::with_capacity(starts.len());
    names.extend(starts.iter().map(|&define| lexemes[define - 1].of(text)));
    let mut found = Vec::new();
    for (number, &define) in starts.iter().enumerate() {
        let end = starts.get(number + 1).map_or(lexemes.len(), |next| next - 1);
        let rule = Rule {
            text,
            names: &names,
            before: &lexemes[..define - 1],
            definition: lexemes[define],
            body: &lexemes[define + 1..end],
            earlier: number.checked_sub(1).map(|number| lexemes[starts[number]]),
        };
        found.extend(rule.heads(lexemes[define - 1]));
        found.extend(rule.terminator());
        for at in 0..rule.body.len() {
            let part = rule.part_misread(at);
            found.extend(part.map(|message| (rule.body[at].start, message)));
        }
    }
    found
}

/// A rule of a grammar as its lexemes.
struct Rule<'t> {
    text: &'t str,
    /// The names of all rules.
    names: &'t HashSet<&'t str>,
    /// The lexemes before the rule.
    before: &'t [Lexeme],
    /// The `::=` of the rule.
    definition: Lexeme,
    /// The `::=` of the previous rule.
    earlier: Option<Lexeme>,
    body: &'t [Lexeme],
}

impl Rule<'_> {
    /// Returns the message for the part at a place, if it could be misread.
    fn part_misread(&self, at: usize) -> Option<String> {
        let checks: [fn(&Self, usize) -> Option<String>; 7] = [
            Self::optional_part,
            Self::range,
            Self::any_case,
            Self::alternatives_by_slashes,
            Self::unknown_flag,
            Self::repetition_before,
            Self::long_point,
        ];
        checks.iter().find_map(|check| check(self, at))
    }

    /// Returns `true` if the rule is written with `::=`.
    fn is_bnf(&self) -> bool {
        self.definition.of(self.text) == "::="
    }

    fn part(&self, at: usize) -> Option<&Lexeme> {
        self.body.get(at)
    }

    fn text_of(&self, at: usize) -> &str {
        self.part(at).map_or("", |lexeme| lexeme.of(self.text))
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.part(at).map(|lexeme| lexeme.kind)
    }

    /// Checks whether a part touches the next one.
    fn touches_next(&self, at: usize) -> bool {
        let both = self.part(at).zip(self.part(at + 1));
        both.is_some_and(|(one, next)| one.end == next.start)
    }

    fn touches_earlier(&self, at: usize) -> bool {
        at > 0 && self.touches_next(at - 1)
    }

    /// Finds a prefix of the name of the rule: `?name:` of Lark, and `name=` within a rule of ANTLR.
    fn heads(&self, name: Lexeme) -> Option<(usize, String)> {
        let last = self.before.last()?;
        let written = name.of(self.text);
        if last.kind == Kind::Sign(b'?') && last.end == name.start {
            let define = self.definition.of(self.text);
            let message = format!(
                "`?{written}{define}` is a rule of Lark; here the `?` would belong to the part before it. Write `{written}{define}`"
            );
            return Some((last.start, message));
        }
        let begins_a_line = self.text[last.end..name.start].contains('\n');
        let is_within = !begins_a_line && last.kind != Kind::Sign(b';');
        let is_other = self
            .earlier
            .is_some_and(|earlier| earlier.of(self.text) != self.definition.of(self.text));
        (is_within && is_other).then(|| {
            let message = format!(
                "`{written}{}` within a rule names a part in other notations; here it begins a rule, which starts on a line of its own",
                self.definition.of(self.text)
            );
            (name.start, message)
        })
    }

    /// Finds a `.` that ends a rule in Wirth's notation and in ISO 14977.
    fn terminator(&self) -> Option<(usize, String)> {
        let last = self.body.last()?;
        let is_end = last.kind == Kind::Sign(b'.') && self.body.len() > 1;
        let ends_so = matches!(self.definition.of(self.text), "=" | ":=");
        (is_end && ends_so).then(|| {
            let message = "a `.` at the end of a rule ends it in other notations and is any character here; end the rule with `;`";
            (last.start, message.to_owned())
        })
    }

    /// `[ part ]`.
    fn optional_part(&self, at: usize) -> Option<String> {
        let class = self
            .part(at)
            .filter(|part| part.kind == Kind::Class)?
            .of(self.text);
        let inside = class.strip_prefix('[')?.strip_suffix(']')?;
        let is_one = match self.is_bnf() {
            // No class needs a blank on both sides.
            true => inside.starts_with(' ') && inside.ends_with(' ') && self.names_a_rule(inside),
            false => self.may_be_a_part(inside),
        };
        let shown = inside.trim();
        is_one.then(|| match shown.chars().count() {
            0..=40 => format!(
                "`[{inside}]` is a character class here; write `({shown})?` for an optional part, or a class with `\\x20` and `\\\"` for blanks and quotes"
            ),
            _ => "`[ … ]` is a character class here; write `( … )?` for an optional part".to_owned(),
        })
    }

    /// Checks whether the content of brackets could be parts of a rule in another notation.
    fn may_be_a_part(&self, inside: &str) -> bool {
        let shown = inside.trim();
        let escape = inside.find('\\').unwrap_or(inside.len());
        let quote = inside.find(['"', '\'']).unwrap_or(inside.len());
        let is_expression = shown.len() > 1 && shown.starts_with('/') && !shown.ends_with('\\');
        // In other notations a backslash occurs only in quotes or in an expression, and no part begins with
        // `^`.
        let is_class = shown.starts_with('^') || (escape < quote && !is_expression);
        let has_sign = inside.contains([' ', '\t', '\n', '\r', '"', '\'']);
        // An expression may be followed by its flags, a count, another part or nothing, but never by the rest
        // of a range, and it hardly ends with the sign of one.
        let ends_expression = |at: usize| {
            let (before, rest) = shown.split_at(at);
            rest.starts_with('/') && !rest[1..].starts_with('-') && !before.ends_with('-')
        };
        let mut ends = shown.char_indices().skip(1).map(|(at, _)| at);
        let is_closed_expression = is_expression && ends.any(ends_expression);
        !is_class && (has_sign || is_closed_expression || self.names_a_rule(inside))
    }

    fn names_a_rule(&self, inside: &str) -> bool {
        let words = inside.split(|c: char| !u8::try_from(c).is_ok_and(|byte| is_name(&byte)));
        let mut words = words.filter(|word| !word.is_empty());
        words.any(|word| self.names.contains(word)) || ABNF_RULES.contains(&inside.trim())
    }

    /// `"a".."f"`.
    fn range(&self, at: usize) -> Option<String> {
        let is_character = |at| matches!(self.kind(at), Some(Kind::Literal | Kind::Point));
        let is_dot = |at| self.kind(at) == Some(Kind::Sign(b'.'));
        let dots = (at + 1..self.body.len()).take_while(|&dot| is_dot(dot)).count();
        let last = at + 1 + dots;
        let are_joined = (2..=3).contains(&dots) && self.touches_next(at + 1);
        (is_character(at) && are_joined && is_character(last)).then(|| {
            let (first, last) = (self.text_of(at), self.text_of(last));
            format!(
                "`{first}..{last}` is a range in other notations, and here every `.` is any character; write a class such as `[a-f]`, or leave a blank between the dots"
            )
        })
    }

    /// `"a"i`.
    fn any_case(&self, at: usize) -> Option<String> {
        let is_flagged = self.kind(at) == Some(Kind::Literal) && self.touches_next(at);
        (is_flagged && self.text_of(at + 1) == "i").then(|| {
            let literal = self.text_of(at);
            format!("`{literal}i` is a text of Lark in either case; write an expression such as `/a/i`")
        })
    }

    /// `/a/u`.
    fn unknown_flag(&self, at: usize) -> Option<String> {
        let is_flagged = self.kind(at) == Some(Kind::Expression) && self.touches_next(at);
        (is_flagged && self.kind(at + 1) == Some(Kind::Name)).then(|| {
            "a name touches a regular expression, whose flags are `i`, `m`, `s` and `x`; leave a blank between the two"
                .to_owned()
        })
    }

    /// `"a" *b`.
    fn repetition_before(&self, at: usize) -> Option<String> {
        let is_star = self.kind(at) == Some(Kind::Sign(b'*')) && !self.touches_earlier(at);
        let is_part = match self.kind(at + 1) {
            Some(Kind::Sign(sign)) => sign == b'(',
            kind => kind.is_some(),
        };
        (!self.is_bnf() && is_star && self.touches_next(at) && is_part).then(|| {
            "a `*` before a part repeats it in ABNF; here it would repeat the part before. Write it after what it repeats"
                .to_owned()
        })
    }

    /// `a / b / c`.
    fn alternatives_by_slashes(&self, at: usize) -> Option<String> {
        let expression = self.part(at).filter(|part| part.kind == Kind::Expression)?;
        let inside = expression.of(self.text).strip_prefix('/')?.strip_suffix('/')?;
        let is_apart = inside.starts_with(' ') && inside.ends_with(' ');
        let is_between = self.touches_earlier(at) && self.touches_next(at);
        let is_part = |at: usize| {
            matches!(
                self.kind(at),
                Some(Kind::Name | Kind::Literal | Kind::Sign(b'(' | b')'))
            )
        };
        let is_joined = !self.is_bnf() && is_between && is_part(at - 1) && is_part(at + 1);
        (is_apart || is_joined).then(|| {
            "`/ … /` is a regular expression here; alternatives are split by `|`. For a blank in an expression write `\\x20`"
                .to_owned()
        })
    }

    /// `#xadd`, which may also be a comment.
    fn long_point(&self, at: usize) -> Option<String> {
        let is_point = self.kind(at) == Some(Kind::Point) && self.touches_next(at);
        (is_point && self.kind(at + 1) == Some(Kind::Name)).then(|| {
            let point = self.text_of(at);
            format!(
                "`{point}` is a character, which a name touches; leave a blank after the character, or after the `#` of a comment"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the beginning of each place that is refused in a grammar.
    fn refused(text: &str) -> Vec<&str> {
        let found = find(text);
        let rest = found
            .iter()
            .map(|&(offset, _)| text[offset..].split(['\n', ' ']).next().unwrap_or_default());
        rest.collect()
    }

    #[test]
    fn what_another_notation_reads_otherwise_is_refused() {
        for (text, places) in [
            // Optional parts of ISO 14977, Lark and ABNF.
            ("root = \"a\" , [ digit ] ; digit = \"0\" | \"1\" ;", &["["][..]),
            ("root: A [\",\" A]\nA: \"a\"", &["[\",\""]),
            ("root: \"a\" [b]\nb: \"b\"", &["[b]"]),
            ("root: \"a\" [(b|c)+]\nb: \"b\" c: \"c\"", &["[(b|c)+]"]),
            ("root = \"a\" [DIGIT]", &["[DIGIT]"]),
            ("root: [/\\d+/]", &["[/\\d+/]"]),
            ("root := [ 'a' ]", &["["]),
            ("root ::= \"a\" [ digit ]\ndigit ::= [0-9]", &["["]),
            // Ranges.
            ("root: \"a\"..\"f\"", &["\"a\"..\"f\""]),
            ("root ::= #x41 ... #x5A", &["#x41"]),
            ("root ::= 'a' .. 'f'", &["'a'"]),
            // Flags.
            ("root: \"a\"i\ni: \"b\"", &["\"a\"i"]),
            ("root: /a/iu\nu: \"b\"", &["/a/iu"]),
            // Rules that are inlined, and parts with names.
            ("root: a\n?a: \"x\"", &["?a:"]),
            ("root : x=a '+' y=a ;\na : 'n' ;", &["x=a"]),
            ("root = left:a \"+\"\na = \"n\"", &["left:a"]),
            // ABNF.
            ("root = \"a\" *b\nb = \"b\"", &["*b"]),
            ("root = \"a\" *(b)\nb = \"b\"", &["*(b)"]),
            ("root = \"a\" / \"b\" / \"c\"", &["/"]),
            ("root = a/b/a\na = \"a\" b = \"b\"", &["/b/a"]),
            // Wirth's notation.
            ("root = \"a\" b .\nb = \"b\" .", &[".", "."]),
            // A character or a comment.
            ("root ::= \"a\" #xabout\nout ::= \"b\"", &["#xabout"]),
        ] {
            assert_eq!(refused(text), places, "{text}");
        }
    }

    #[test]
    fn what_means_the_same_everywhere_or_can_only_be_ours_is_read() {
        for text in [
            "plain : [^\",\\r\\n]* /[ \"]/ [a-z] [0-9_-]+ . \"a\" . \"b\" .+",
            "ws: [ \\t\\n]* [\\\"'] [\\]\\[ ]",
            "ws ::= [ \\t\\n]* [ \"'] [abc] [a b]\nabc ::= .",
            "any = . ; esc = \"\\\\\" . ; last = \"x\" .+",
            "root ::= a b *\n  c? | \"a\" * \"b\"\na ::= \"x\" b ::= \"y\" c ::= (a)*b",
            "a ::= \"x\"?\nb ::= \"i\" i\ni ::= /a/ i | /a/i i",
            "a = b; b : \"x\"; c ::= \"y\"\nd = #x41 #x42 # x\n",
            "a ::= \"/\" /[a-z]+/ \"/\" #xmas\n",
        ] {
            assert_eq!(refused(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_long_text_in_brackets_is_not_repeated() {
        let text = format!("root: [{} \"a\"]", "\"b\" ".repeat(100));
        let [(6, message)] = &find(&text)[..] else {
            panic!("one place");
        };
        assert!(message.len() < 100, "{message}");
    }
}
