//! The macros of XGrammar's EBNF.
//!
//! ```text
//!   TagDispatch(("<a>", a), ("<b>", b), excludes=("</s>",))
//!     ─►  ( up-to-<a> a | up-to-<b> b )* free
//!         up-to-<a>: any text that ends with its first tag, which is <a>
//!         free:      any text without a tag
//! ```
//!
//! Neither of the two contains a text out of `excludes`. A tag within another one is refused, because
//! XGrammar begins the rule of either.

use pest::iterators::Pair;

use super::expression;
use super::spelling::TEXT;
use super::tokens::Rule;
use crate::notation::lower::Problems;
use crate::notation::tree::{Definition, Node, NodeKind};
use crate::regex::node::any_set;
use lexiform_automata::error::ProblemKind;
use lexiform_automata::grammar::TokenSet;
use lexiform_automata::limits::Limits;

/// The most texts of a `Substring`: each begins a run of its own.
const MOST_CHUNKS: usize = 2_000;
/// The most tags and excluded texts of a `TagDispatch`: each tag is an expression with all of them in it.
const MOST_TAGS: usize = 200;

/// Reads the call of a macro. The rules that it needs are added to `rules`.
pub(super) fn read(
    pair: Pair<'_, Rule>,
    limits: &Limits,
    rules: &mut Vec<Definition>,
    problems: &mut Problems,
) -> Node {
    let at = pair.as_span().start();
    let mut inner = pair.into_inner();
    let name = inner.next().map_or("", |name| name.as_str());
    let inner = inner.filter(|pair| pair.as_rule() == Rule::argument);
    let mut call = Call {
        at,
        name,
        positional: Vec::new(),
        named: Vec::new(),
        rules,
        problems,
    };
    for argument in inner {
        call.argument(argument);
    }
    let read = match name {
        "TagDispatch" => call.tag_dispatch(),
        "TokenTagDispatch" => call.token_tag_dispatch(),
        "Token" => call.tokens(false),
        "ExcludeToken" => call.tokens(true),
        "Regex" => call.regex(limits),
        _ => call.substring(),
    };
    read.unwrap_or(Node::empty(at))
}

/// A call with its arguments.
struct Call<'a, 't> {
    at: usize,
    name: &'t str,
    positional: Vec<Argument<'t>>,
    named: Vec<(&'t str, Argument<'t>)>,
    rules: &'a mut Vec<Definition>,
    problems: &'a mut Problems,
}

/// An argument with its offset.
struct Argument<'t> {
    at: usize,
    value: Value<'t>,
}

enum Value<'t> {
    Text(String),
    Number(u32),
    /// A name, `true` or `false`.
    Name(&'t str),
    Tuple(Vec<Argument<'t>>),
}

/// What begins a rule in free text or among free tokens.
struct Trigger<T> {
    at: usize,
    mark: T,
    rule: Node,
}

impl<'t> Call<'_, 't> {
    fn argument(&mut self, pair: Pair<'t, Rule>) {
        let mut key = None;
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::key => key = Some(pair.as_str()),
                Rule::equals => {}
                _ => {
                    let value = self.value(pair);
                    match key {
                        Some(key) => self.named.push((key, value)),
                        None => self.positional.push(value),
                    }
                }
            }
        }
    }

    /// Reads a value. Recurses as deep as tuples nest, which is bounded.
    fn value(&mut self, pair: Pair<'t, Rule>) -> Argument<'t> {
        let (text, at) = (pair.as_str(), pair.as_span().start());
        let value = match pair.as_rule() {
            Rule::literal => Value::Text(TEXT.text(&text[1..text.len() - 1], at + 1, self.problems)),
            Rule::number => Value::Number(text.parse().unwrap_or_else(|_| {
                let message = "the number of the token is too large";
                self.problems.add(ProblemKind::Limit, at, message);
                0
            })),
            Rule::tuple => {
                let values = pair.into_inner().filter(|pair| pair.as_rule() != Rule::close);
                Value::Tuple(values.map(|pair| self.value(pair)).collect())
            }
            _ => Value::Name(text),
        };
        Argument { at, value }
    }

    /// Reports an argument that is not what the macro takes.
    fn expected<T>(&mut self, at: usize, what: &str) -> Option<T> {
        let message = format!("`{}` takes {what} here", self.name);
        self.problems.syntax(at, message);
        None
    }

    /// Takes the named argument with this key.
    fn take(&mut self, key: &str) -> Option<Argument<'t>> {
        let index = self.named.iter().position(|(name, _)| *name == key)?;
        Some(self.named.remove(index).1)
    }

    /// Takes a named argument that is `true` or `false`.
    fn flag(&mut self, key: &str, default: bool) -> Option<bool> {
        match self.take(key) {
            None => Some(default),
            Some(Argument { at, value }) => match value {
                Value::Name("true") => Some(true),
                Value::Name("false") => Some(false),
                _ => self.expected(at, "`true` or `false`"),
            },
        }
    }

    /// Takes the values of a named tuple.
    fn tuple(&mut self, key: &str) -> Option<Vec<Argument<'t>>> {
        match self.take(key) {
            None => Some(Vec::new()),
            Some(Argument { at, value }) => match value {
                Value::Tuple(values) => Some(values),
                _ => self.expected(at, "a tuple such as `(\"a\",)`"),
            },
        }
    }

    /// Refuses the named arguments that were not taken.
    fn close(&mut self) {
        for (key, argument) in std::mem::take(&mut self.named) {
            let message = format!("`{key}` of `{}` is not supported", self.name);
            self.problems.unsupported(argument.at, message);
        }
    }

    fn text(&mut self, Argument { at, value }: Argument<'t>) -> Option<String> {
        match value {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => self.expected(at, "a text"),
        }
    }

    fn number(&mut self, Argument { at, value }: Argument<'t>) -> Option<u32> {
        match value {
            Value::Number(number) => Some(number),
            _ => self.expected(at, "the number of a token"),
        }
    }

    /// Reads the pairs of what begins a rule and the rule.
    fn triggers<T>(
        &mut self,
        mark: fn(&mut Self, Argument<'t>) -> Option<T>,
        what: &str,
    ) -> Option<Vec<Trigger<T>>> {
        let mut triggers = Vec::new();
        for Argument { at, value } in std::mem::take(&mut self.positional) {
            let Value::Tuple(values) = value else {
                return self.expected(at, what);
            };
            let mut values = values.into_iter();
            let (Some(first), Some(rule), None) = (values.next(), values.next(), values.next()) else {
                return self.expected(at, what);
            };
            let Value::Name(name) = rule.value else {
                return self.expected(rule.at, "the name of a rule");
            };
            let mark = mark(self, first)?;
            let rule = Node::name(rule.at, name);
            triggers.push(Trigger { at, mark, rule });
        }
        Some(triggers)
    }

    fn tag_dispatch(&mut self) -> Option<Node> {
        let triggers = self.triggers(Self::text, "pairs such as `(\"tag\", rule)`")?;
        let is_loop = self.flag("loop_after_dispatch", true)?;
        let excludes = self.tuple("excludes")?;
        self.close();
        let excludes: Option<Vec<String>> = excludes.into_iter().map(|text| self.text(text)).collect();
        let (excludes, at) = (excludes?, self.at);
        self.check_count(triggers.len() + excludes.len(), MOST_TAGS)?;
        self.check_apart(&triggers)?;
        let all = |least| Node::leaf(at, NodeKind::Set(any_set())).repeat(least, None, at);
        // Any text with one of these in it, after which at least so much follows.
        let with = |texts: &mut dyn Iterator<Item = &String>, least| {
            let texts = texts.map(|text| Node::text(at, text)).collect();
            Node::seq(at, vec![all(0), Node::choice(at, texts), all(least)])
        };
        let tags = || triggers.iter().map(|trigger| &trigger.mark);
        let free = all(0).except(with(&mut tags().chain(&excludes), 0), at);
        let ways = triggers.iter().map(|Trigger { mark, rule, .. }| {
            let head = Node::seq(at, vec![all(0), Node::text(at, mark)]);
            let (early, excluded) = (with(&mut tags(), 1), with(&mut excludes.iter(), 0));
            let head = head.except(Node::choice(at, vec![early, excluded]), at);
            Node::seq(at, vec![head, rule.clone()])
        });
        Some(dispatch(Node::choice(at, ways.collect()), free, is_loop, at))
    }

    /// Refuses a tag that is a part of another one.
    fn check_apart(&mut self, triggers: &[Trigger<String>]) -> Option<()> {
        for Trigger { mark, at, .. } in triggers {
            let mut others = triggers.iter().map(|other| &other.mark);
            if let Some(other) = others.find(|other| *other != mark && other.contains(mark)) {
                let message = format!("the tag {mark:?} is a part of the tag {other:?}");
                self.problems.unsupported(*at, message);
                return None;
            }
        }
        Some(())
    }

    fn token_tag_dispatch(&mut self) -> Option<Node> {
        let triggers = self.triggers(Self::number, "pairs such as `(5, rule)`")?;
        let is_loop = self.flag("loop_after_dispatch", true)?;
        let excludes = self.tuple("excludes")?;
        self.close();
        let at = self.at;
        let mut others = set(triggers.iter().map(|trigger| trigger.mark));
        let mut marks: Vec<u32> = triggers.iter().map(|trigger| trigger.mark).collect();
        marks.sort_unstable();
        for exclude in excludes {
            let (exclude_at, id) = (exclude.at, self.number(exclude)?);
            if marks.binary_search(&id).is_ok() {
                return self.expected(exclude_at, "only tokens that begin no rule");
            }
            others.ids.push((id, id));
        }
        others.is_complement = true;
        let free = Node::leaf(at, NodeKind::Tokens(others)).repeat(0, None, at);
        let ways = triggers.into_iter().map(|Trigger { mark, rule, .. }| {
            let head = Node::leaf(at, NodeKind::Tokens(set([mark])));
            Node::seq(at, vec![head, rule])
        });
        let way = Node::seq(at, vec![free.clone(), Node::choice(at, ways.collect())]);
        Some(dispatch(way, free, is_loop, at))
    }

    fn tokens(&mut self, is_complement: bool) -> Option<Node> {
        self.close();
        let ids = std::mem::take(&mut self.positional);
        if ids.is_empty() {
            return self.expected(self.at, "the numbers of tokens");
        }
        let ids: Option<Vec<u32>> = ids.into_iter().map(|id| self.number(id)).collect();
        let set = TokenSet {
            is_complement,
            ..set(ids?)
        };
        Some(Node::leaf(self.at, NodeKind::Tokens(set)))
    }

    /// Reads an expression that a whole part matches.
    fn regex(&mut self, limits: &Limits) -> Option<Node> {
        if self.flag("json_string", false)? {
            let message = "`json_string` of `Regex` is not supported";
            self.problems.unsupported(self.at, message);
        }
        self.close();
        let mut arguments = std::mem::take(&mut self.positional).into_iter();
        let (Some(pattern), None) = (arguments.next(), arguments.next()) else {
            return self.expected(self.at, "one text");
        };
        let at = pattern.at;
        let Value::Text(pattern) = pattern.value else {
            return self.expected(at, "a text");
        };
        match expression::read(&pattern, limits) {
            Ok(pattern) => Some(Node::pattern(at, pattern)),
            Err(error) => {
                self.problems.add(error.kind, at, error.message);
                None
            }
        }
    }

    /// Reads texts of which any run of neighbours is accepted, also none of them.
    fn substring(&mut self) -> Option<Node> {
        self.close();
        let (at, mut chunks) = (self.at, Vec::new());
        for Argument { at, value } in std::mem::take(&mut self.positional) {
            match value {
                Value::Text(text) => chunks.push(Node::text(at, text)),
                _ => return self.expected(at, "a text"),
            }
        }
        self.check_count(chunks.len(), MOST_CHUNKS)?;
        // A run is a rule of its own, with a name that nobody can write. It may end before each text.
        let name = |index: usize| format!("{} at {at}, text {}", self.name, index + 1);
        let runs = (0..chunks.len()).map(|index| Node::name(at, name(index)));
        let runs = Node::choice(at, std::iter::once(Node::empty(at)).chain(runs).collect());
        let count = chunks.len();
        for (index, chunk) in chunks.into_iter().enumerate() {
            let next = (index + 1 < count).then(|| Node::name(at, name(index + 1)));
            let more = Node::seq(at, std::iter::once(chunk).chain(next).collect());
            self.rules.push(Definition {
                name: name(index),
                at,
                body: Node::choice(at, vec![Node::empty(at), more]),
            });
        }
        Some(runs)
    }

    /// Reports more tags or texts than a macro may have.
    fn check_count(&mut self, count: usize, most: usize) -> Option<()> {
        if count <= most {
            return Some(());
        }
        let message = format!("`{}` has more than {most} texts", self.name);
        self.problems.add(ProblemKind::Limit, self.at, message);
        None
    }
}

/// Returns free text or free tokens, with the way to the end of a rule in it.
fn dispatch(way: Node, free: Node, is_loop: bool, at: usize) -> Node {
    match is_loop {
        true => Node::seq(at, vec![way.repeat(0, None, at), free]),
        false => Node::choice(at, vec![way, free]),
    }
}

fn set(ids: impl IntoIterator<Item = u32>) -> TokenSet {
    TokenSet {
        ids: ids.into_iter().map(|id| (id, id)).collect(),
        ..TokenSet::default()
    }
}
