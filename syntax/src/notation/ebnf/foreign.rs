//! Recognises other notations at the place where a grammar fails to parse, and names the notation and the
//! equivalent in this one.
//!
//! This runs only after the parser has failed, so it can improve a message and never refuses anything.

use super::lexemes::{Kind, Lexemes, is_name};

/// The text around the place at which the parser gave up.
struct Around<'t> {
    before: &'t str,
    rest: &'t str,
}

/// Recognises the text at a place as another notation, and returns the message.
type Sign = fn(&Around<'_>) -> Option<String>;

/// The signs, in the order in which they are checked.
const SIGNS: [Sign; 12] = [
    never_closed,
    angle_brackets,
    directive,
    inlined_rule,
    alias,
    repetition,
    exception,
    count_before,
    numbers_of_abnf,
    slash,
    arrow,
    words_of_antlr,
];

/// Returns the message for a grammar that does not parse at this offset, if the notation there is recognised.
pub(super) fn hint(text: &str, offset: usize) -> Option<String> {
    let (before, rest) = text.split_at_checked(offset)?;
    let before = before.trim_end();
    SIGNS.iter().find_map(|sign| sign(&Around { before, rest }))
}

impl<'t> Around<'t> {
    /// Returns the name before the place.
    fn name_before(&self) -> &'t str {
        let start = self.before.rfind(|c| !is_letter(c)).map_or(0, |at| {
            at + self.before[at..].chars().next().map_or(1, char::len_utf8)
        });
        &self.before[start..]
    }
}

fn is_letter(c: char) -> bool {
    u8::try_from(c).is_ok_and(|byte| is_name(&byte))
}

/// Returns the name at the beginning of a text.
fn name(text: &str) -> &str {
    &text[..text.find(|c| !is_letter(c)).unwrap_or(text.len())]
}

fn digits(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())]
}

/// `"a` and `[a`.
fn never_closed(around: &Around<'_>) -> Option<String> {
    let first = Lexemes::new(around.rest)
        .next()
        .filter(|first| first.start == 0)?;
    let inside = first.of(around.rest).get(1..)?;
    match first.kind {
        Kind::Literal => {
            let open = &around.rest[..1];
            let is_closed = inside.ends_with(open) && !inside.contains('\n');
            (!is_closed).then(|| format!("this `{open}` is never closed on its line"))
        }
        Kind::Class => (!inside.ends_with(']')).then(|| "this `[` is never closed".to_owned()),
        _ => None,
    }
}

/// `<name> ::=` of BNF, and texts such as `<think>`.
fn angle_brackets(around: &Around<'_>) -> Option<String> {
    let inside = around.rest.strip_prefix('<')?;
    if inside.starts_with('-') {
        return None;
    }
    let (name, rest) = inside.split_once('>').filter(|(name, _)| !name.contains('\n'))?;
    let is_rule = rest.trim_start().starts_with(['=', ':']) || around.before.is_empty();
    Some(match is_rule {
        true => format!(
            "`<{name}>` is a name in BNF; here it stands without angle brackets: write `{}`",
            name.replace(' ', "-")
        ),
        false => format!(
            "`<{name}>` is neither a rule nor a text here: write the name of a rule without angle brackets, a text in quotes, or a special token as `<|name|>`"
        ),
    })
}

/// `%import` of Lark.
fn directive(around: &Around<'_>) -> Option<String> {
    let word = name(around.rest.strip_prefix('%')?);
    if word.len() < 2 || !word.starts_with(|c: char| c.is_ascii_alphabetic()) || is_abnf_number(word) {
        return None;
    }
    Some(format!(
        "`%{word}` is a directive of Lark, and this grammar is read as EBNF: name the notation `lark`"
    ))
}

/// `?name:`, `!name:` and `name.2:` of Lark.
fn inlined_rule(around: &Around<'_>) -> Option<String> {
    if let Some(rest) = around.rest.strip_prefix(['?', '!']) {
        let name = name(rest);
        let is_rule = !name.is_empty() && rest[name.len()..].trim_start().starts_with([':', '=', '.']);
        let sign = &around.rest[..1];
        return Some(match (is_rule, sign) {
            (true, _) => format!("`{sign}{name}` is a rule of Lark; write it without the `{sign}`"),
            (false, "!") => "`!` is not supported: write what may stand there".to_owned(),
            (false, _) => {
                "a `?` follows the part that is optional; `? … ?` of ISO 14977 is not supported".to_owned()
            }
        });
    }
    let (before, rest) = match around.rest.strip_prefix('.') {
        Some(rest) => (around.before, rest),
        None => (around.before.strip_suffix('.')?, around.rest),
    };
    let priority = digits(rest);
    let name = Around { before, rest }.name_before();
    let is_one =
        !priority.is_empty() && !name.is_empty() && rest[priority.len()..].trim_start().starts_with(':');
    is_one.then(|| {
        format!("`{name}.{priority}` is a rule of Lark with a priority; write it without the `.{priority}`")
    })
}

/// `-> name` of Lark and ANTLR.
fn alias(around: &Around<'_>) -> Option<String> {
    let name = name(around.rest.strip_prefix("->")?.trim_start());
    Some(format!(
        "`-> {name}` names what is read in Lark and ANTLR and changes no text; leave it out"
    ))
}

/// `~3` and `~2..4` of Lark, `~[a]` of ANTLR.
fn repetition(around: &Around<'_>) -> Option<String> {
    let rest = around.rest.strip_prefix('~')?.trim_start();
    if rest.starts_with(['[', '\'', '"', '(']) {
        return Some("`~` is the complement in ANTLR; write a class such as `[^a]`".to_owned());
    }
    let least = digits(rest);
    let most = rest[least.len()..].trim_start().strip_prefix("..");
    let most = most.map(|most| digits(most.trim_start()));
    Some(match (least, most) {
        ("", _) => "`~` is not supported; a part is repeated with `{3}` or `{2,4}`".to_owned(),
        (least, Some(most)) => {
            format!("`~{least}..{most}` is a repetition of Lark; write `{{{least},{most}}}`")
        }
        (least, None) => format!("`~{least}` is a repetition of Lark; write `{{{least}}}`"),
    })
}

/// `a - b` of ISO 14977 and of the W3C, `{ a }-` of ISO 14977, and `&a` of parsing expressions.
fn exception(around: &Around<'_>) -> Option<String> {
    if around.rest.starts_with('&') {
        return Some("`&` looks ahead in parsing expression grammars and is not supported".to_owned());
    }
    let is_bare = around
        .rest
        .strip_prefix('-')?
        .trim_start()
        .starts_with(['|', ';', ',', ')', '}']);
    Some(match around.before.ends_with('}') && is_bare {
        true => "`{ … }-` of ISO 14977 repeats at least once; write `( … )+`".to_owned(),
        false => "`- x` (all texts but those of x) is not supported; write what is allowed, such as the class `[^x]`".to_owned(),
    })
}

/// `3 * x` of ISO 14977, `1*x` and `2x` of ABNF.
fn count_before(around: &Around<'_>) -> Option<String> {
    let least = digits(around.rest);
    let rest = around.rest[least.len()..].trim_start();
    let Some(rest) = rest.strip_prefix('*') else {
        let is_count = !least.is_empty() && rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '(');
        return is_count.then(|| format!("a count stands after its part; write `{{{least}}}` after it"));
    };
    let most = digits(rest);
    Some(match (least, most) {
        ("", "") => "`*` stands after the part that is repeated".to_owned(),
        ("1", "") => {
            "a count stands after its part: for `1*x` of ABNF write `x+`, for `1 * x` of ISO 14977 `x`"
                .to_owned()
        }
        (least, "") if around.rest[least.len()..].starts_with('*') => {
            format!("a count stands after its part: for `{least}*x` of ABNF write `x{{{least},}}`")
        }
        (least, "") => {
            format!("a count stands after its part: for `{least} * x` of ISO 14977 write `x{{{least}}}`")
        }
        (least, most) => format!("a count stands after its part: write `x{{{least},{most}}}`"),
    })
}

/// Checks whether a word after a `%` is a number of ABNF, or the prefix of a text.
fn is_abnf_number(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters.next();
    match first {
        Some('x' | 'X') => letters.next().is_some_and(|c| c.is_ascii_hexdigit()),
        Some('d' | 'D' | 'b' | 'B') => letters.next().is_some_and(|c| c.is_ascii_digit()),
        Some('i' | 's') => letters.next().is_none(),
        _ => false,
    }
}

/// `%x41` and `%s"a"` of ABNF.
fn numbers_of_abnf(around: &Around<'_>) -> Option<String> {
    let rest = around.rest.strip_prefix('%')?;
    let word = name(rest);
    Some(match word {
        "s" => "`%s\"a\"` of ABNF is `\"a\"` here".to_owned(),
        "i" => "`%i\"a\"` of ABNF is `/a/i` here".to_owned(),
        word if is_abnf_number(word) => {
            format!(
                "`%{word}` is a character of ABNF; write `#x41` for the one with the number 41 in hexadecimal digits, and `[a-z]` for a range"
            )
        }
        _ => return None,
    })
}

/// `a / b` of ABNF and of parsing expression grammars.
fn slash(around: &Around<'_>) -> Option<String> {
    around.rest.strip_prefix('/')?;
    Some(match around.before.ends_with('=') {
        true => "this `/` is never closed on its line; for `=/` of ABNF write all alternatives in one rule, split by `|`".to_owned(),
        false => "this `/` begins a regular expression that is never closed on its line; alternatives are split by `|`".to_owned(),
    })
}

/// `name <- …` of parsing expression grammars, and `name → …`.
fn arrow(around: &Around<'_>) -> Option<String> {
    let arrow = ["<-", "→", "⇒", "=>"]
        .into_iter()
        .find(|arrow| around.rest.starts_with(arrow))?;
    Some(format!(
        "a rule is written `{} ::= …`, not with `{arrow}`",
        around.name_before()
    ))
}

/// `grammar Name;` and `fragment NAME :` of ANTLR.
fn words_of_antlr(around: &Around<'_>) -> Option<String> {
    let word = around.name_before();
    let next = name(around.rest);
    let is_header = matches!(
        word,
        "grammar" | "lexer" | "parser" | "options" | "fragment" | "import"
    );
    (is_header && (!next.is_empty() || around.rest.starts_with('{'))).then(|| {
        format!("`{word}` is a word of ANTLR, which is not read here; leave it out and write the rules alone")
    })
}

#[cfg(test)]
mod tests {
    use super::super::lower;
    use lexiform_automata::limits::Limits;

    /// A grammar that does not parse, and a part of its message.
    const CASES: [(&str, &str); 29] = [
        ("?start: sum", "`?start` is a rule of Lark"),
        ("!start: sum", "`!start` is a rule of Lark"),
        ("start: a\nb.2: \"x\"", "`b.2` is a rule of Lark with a priority"),
        ("start.5: \"x\"", "write it without the `.5`"),
        ("start: \"a\" -> add", "`-> add` names what is read"),
        ("start: WS\n%ignore WS", "`%ignore` is a directive of Lark"),
        ("%import common.WS", "`%import` is a directive of Lark"),
        ("start: \"a\"~3", "write `{3}`"),
        ("start: \"a\" ~ 2..4", "write `{2,4}`"),
        ("root ::= <think> \"a\"", "`<think>` is neither a rule nor a text"),
        ("<root> ::= \"a\"", "write `root`"),
        ("root ::= \"a\"\n<two words> ::= \"b\"", "write `two-words`"),
        ("grammar Expr;\nexpr : 'a' ;", "`grammar` is a word of ANTLR"),
        ("expr : A ;\nfragment A : 'a' ;", "`fragment` is a word of ANTLR"),
        ("expr : ~[a] ;", "`[^a]`"),
        ("root = %x41-5A", "`%x41-5A` is a character of ABNF"),
        ("root = 1*DIGIT", "write `x+`"),
        ("root = 2*4DIGIT", "write `x{2,4}`"),
        ("root = 3 * x ;", "write `x{3}`"),
        ("root = *DIGIT", "`*` stands after the part"),
        ("root = 2DIGIT", "write `{2}`"),
        ("root = %i\"a\"", "`/a/i`"),
        ("root = \"a\" / \"b\"", "alternatives are split by `|`"),
        ("root =/ \"b\"", "`=/` of ABNF"),
        ("root = letter - \"a\" ;", "`- x` (all texts but those of x)"),
        ("root = { letter }- ;", "write `( … )+`"),
        ("root = ? any character ? ;", "`? … ?` of ISO 14977"),
        ("root <- 'a' b", "a rule is written `root ::= …`"),
        ("root ::= \"a", "this `\"` is never closed"),
    ];

    #[test]
    fn other_notations_are_named() {
        for (text, part) in CASES {
            let error = lower(text, &Limits::default()).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
