//! Lowers grammars in a notation that is named or recognised.
//!
//! Rules are written in one of a few ways (`name ::= …`, `name: …`, `name = …`), and each is that of a family
//! of notations. All notations of the family try to read the source. If several can and mean different
//! grammars, the source is refused until its notation is named, so that no grammar is read in a way that its
//! author did not mean.

mod reader;

pub(super) use reader::with_tree;
pub use reader::{GrammarOptions, Notation};

use self::reader::lower_as;
use crate::schema;
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;

/// A way to write rules: the notations that have it.
struct Family {
    notations: &'static [Notation],
}

const COLON: Family = Family {
    notations: &[Notation::Lark, Notation::Ebnf],
};
const EQUALS: Family = Family {
    notations: &[Notation::Ebnf, Notation::Iso, Notation::Abnf, Notation::Pest],
};
/// `::=` without a rule `root`, with which the other notations begin.
const BACKUS: Family = Family {
    notations: &[Notation::Ebnf, Notation::W3c],
};
const BACKUS_FROM_ROOT: Family = Family {
    notations: &[Notation::Ebnf, Notation::Gbnf, Notation::XGrammar],
};

/// Directives and parts that llguidance's dialect has and the lark parser does not.
const LLGUIDANCE: [&str; 9] = [
    "%llguidance",
    "%grammar_options",
    "%json",
    "%regex",
    "%lark",
    "%if",
    "<[",
    "<|",
    "[lazy]",
];
/// Directives of Lark in both dialects.
const LARK: [&str; 5] = ["%import", "%ignore", "%declare", "%override", "%extend"];

/// Lowers a grammar in the notation that the options name, or in the one that is recognised.
///
/// # Errors
/// Returns all problems of the source with their places, in the notation that it seems to be in, and an error
/// if two notations read it differently.
pub fn lower(
    text: &str,
    options: &GrammarOptions,
    schema: &schema::Options,
    limits: &Limits,
) -> Result<Cfg, CompileError> {
    lower_recognised(text, options, schema, limits).map(|(_, cfg)| cfg)
}

/// Lowers a grammar like [`lower`], and returns its notation, too.
///
/// # Errors
/// Returns the same errors as [`lower`].
pub(super) fn lower_recognised(
    text: &str,
    options: &GrammarOptions,
    schema: &schema::Options,
    limits: &Limits,
) -> Result<(Notation, Cfg), CompileError> {
    let as_notation = |notation| {
        let cfg = lower_as(text, notation, options, schema, limits)?;
        Ok((notation, cfg))
    };
    if let Some(notation) = options.notation {
        return as_notation(notation);
    }
    let signs = Signs::of(text);
    if let Some(notation) = signs.certain {
        return as_notation(notation);
    }
    let mut read: Vec<(Notation, Cfg)> = Vec::new();
    let mut errors = Vec::new();
    for &notation in signs.family.notations {
        match as_notation(notation) {
            Ok(found) => read.push(found),
            Err(error) => errors.push((notation, error)),
        }
        if limits.cancel.is_asked() {
            break;
        }
    }
    let others = read.iter().skip(1);
    let differing = others
        .filter(|(_, cfg)| !is_same(&read[0].1, cfg))
        .map(|(notation, _)| notation.name())
        .next();
    if let Some(other) = differing {
        let first = read[0].0.name();
        let message = format!(
            "the notations `{first}` and `{other}` both read this grammar, and mean different texts: name one"
        );
        return Err(Problem::new(ProblemKind::Syntax, Place::Whole, message).into());
    }
    if let Some(found) = read.into_iter().next() {
        return Ok(found);
    }
    // What could be parsed is what it is in, whatever else is wrong.
    let is_parsed = |(_, error): &(Notation, CompileError)| {
        let mut problems = error.problems.iter();
        problems.all(|problem| problem.kind != ProblemKind::Syntax)
    };
    let at = errors.iter().position(is_parsed);
    let at = at.or_else(|| errors.iter().position(|(notation, _)| signs.is_likely(*notation)));
    if errors.is_empty() {
        return as_notation(Notation::Ebnf);
    }
    let (notation, mut error) = errors.swap_remove(at.unwrap_or(0));
    if notation != Notation::Ebnf {
        for problem in &mut error.problems {
            problem.message = format!("read as `{notation}`: {}", problem.message);
        }
    }
    Err(error)
}

/// Returns `true` if two grammars were lowered to the same rules, whatever the names of the rules are.
fn is_same(one: &Cfg, other: &Cfg) -> bool {
    let bodies = |cfg: &Cfg| cfg.rules.iter().map(|rule| rule.body).collect::<Vec<_>>();
    one.start == other.start
        && one.exprs == other.exprs
        && one.regulars == other.regulars
        && one.object_lists == other.object_lists
        && bodies(one) == bodies(other)
}

/// What a glance at a source shows.
struct Signs {
    /// The notation, if some sign belongs to one only.
    certain: Option<Notation>,
    family: Family,
    /// `true` if the rule `start` is written as in Lark.
    is_lark: bool,
}

impl Signs {
    /// Returns `true` if a source that no notation reads was probably meant in this one. The reader of EBNF
    /// names most others in its messages.
    fn is_likely(&self, notation: Notation) -> bool {
        match self.is_lark {
            true => notation == Notation::Lark,
            false => notation == Notation::Ebnf,
        }
    }

    fn of(text: &str) -> Signs {
        let mut signs = Signs {
            certain: None,
            family: EQUALS,
            is_lark: text.lines().any(|line| {
                let line = line.trim_start().trim_start_matches(['?', '!']);
                line.starts_with("start") && definer(line) == Some(":")
            }),
        };
        let lines = || text.lines().map(str::trim_start);
        let is_directive =
            |words: &[&str]| lines().any(|line| words.iter().any(|word| line.starts_with(word)));
        let has_colon = lines().any(|line| definer(line) == Some(":"));
        let is_root = |line: &str| {
            line.strip_prefix("root")
                .is_some_and(|rest| rest.trim_start().starts_with("::="))
        };
        if lines().any(|line| definer(line) == Some("::=")) {
            signs.family = match lines().any(is_root) {
                true => BACKUS_FROM_ROOT,
                false => BACKUS,
            };
        } else if has_colon || is_directive(&LARK) || is_directive(&LLGUIDANCE) {
            signs.family = COLON;
            let is_dialect = lines().map(outside_of_quotes).any(|line| {
                let mut signs = LLGUIDANCE.iter();
                signs.any(|sign| line.contains(sign))
            });
            let is_lark = is_directive(&LARK);
            signs.certain = match (is_dialect && text.contains("start"), is_lark) {
                (true, _) => Some(Notation::Llguidance),
                (false, true) => Some(Notation::Lark),
                (false, false) => None,
            };
        } else if is_pest(text) {
            signs.certain = Some(Notation::Pest);
        }
        signs
    }
}

/// Returns `true` if a source has rules `name = _{ … }`, or rules `name = { … }` with a `~` in them, which no
/// other notation has.
fn is_pest(text: &str) -> bool {
    let lines = || text.lines().map(str::trim_start);
    let bodies = lines().filter(|line| definer(line) == Some("="));
    let bodies = bodies.filter_map(|line| line.split_once('=').map(|(_, body)| body.trim_start()));
    let begins = |body: &str| body.trim_start_matches(['_', '@', '$', '!']).starts_with('{');
    let mut bodies = bodies.filter(|body| begins(body)).peekable();
    let is_there = bodies.peek().is_some();
    // In a comment of ISO 14977, the sign means nothing.
    let has_comment = text.contains("(*");
    bodies.any(|body| !body.starts_with('{'))
        || is_there && !has_comment && lines().map(outside_of_quotes).any(|line| line.contains('~'))
}

/// Returns a line of Lark without its texts, expressions and comments.
fn outside_of_quotes(line: &str) -> String {
    let (mut rest, mut open, mut is_escaped) = (String::new(), None, false);
    for c in line.chars() {
        match (open, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(quote), c) if c == quote => open = None,
            (Some(_), _) => {}
            (None, '"' | '/') => open = Some(c),
            (None, '#') => break,
            (None, c) => rest.push(c),
        }
    }
    rest
}

/// Returns the sign after the name with which a line begins, if it defines a rule.
fn definer(line: &str) -> Option<&'static str> {
    let line = line.trim_start_matches(['?', '!', '<']);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let rest = line.trim_start_matches(is_name);
    if rest.len() == line.len() {
        return None;
    }
    // Parameters, priorities and attributes of Lark.
    let rest = rest.trim_start_matches('>').trim_start();
    let rest = match rest.starts_with(['.', '{', '[']) {
        true => rest.find(':').map_or(rest, |colon| &rest[colon..]),
        false => rest,
    };
    ["::=", ":=", "::", ":", "=/", "="]
        .into_iter()
        .find(|sign| rest.starts_with(sign))
        .map(|sign| if sign == "::" { ":" } else { sign })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_tell_notations_apart() {
        for (text, certain, notations) in [
            ("start: %json {}", Some(Notation::Llguidance), COLON.notations),
            (
                "%import common.WS\nstart: WS",
                Some(Notation::Lark),
                COLON.notations,
            ),
            ("?start.2: \"a\"", None, COLON.notations),
            ("start: \"<|\" /<[a]/ # %json", None, COLON.notations),
            ("start[lazy]: /a+/", Some(Notation::Llguidance), COLON.notations),
            ("root ::= \"a\"", None, BACKUS_FROM_ROOT.notations),
            ("a ::= \"a\"", None, BACKUS.notations),
            ("# root: 1\nroot = \"a\" ;", None, EQUALS.notations),
            ("a = { \"b\" }", None, EQUALS.notations),
            ("a = { \"b\" ~ \"c\" }", Some(Notation::Pest), EQUALS.notations),
            (
                "a = {\n  \"b\"\n}\nc = @{ \"~\" }",
                Some(Notation::Pest),
                EQUALS.notations,
            ),
            ("a = { \"b~\" } ;", None, EQUALS.notations),
            ("a = { \"b\" } ; (* ~ *)", None, EQUALS.notations),
        ] {
            let signs = Signs::of(text);
            assert_eq!(
                (signs.certain, signs.family.notations),
                (certain, notations),
                "{text}"
            );
        }
    }
}
