//! The items of a grammar as they are written.

use crate::notation::tree::Node;

/// All items of a source, and what its expressions use.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) rules: Vec<RuleItem>,
    pub(super) ignored: Vec<Node>,
    pub(super) imports: Vec<Import>,
    pub(super) declared: Vec<Name>,
    /// The uses of templates and of rules with a parameter. In expressions they stand as the name that
    /// [`placeholder`] makes of their index.
    pub(super) uses: Vec<Use>,
    /// The sources in braces after `%lark`, each with the place at which it begins. In expressions they stand
    /// as the name that [`nested_name`] makes of their index.
    pub(super) nested: Vec<Name>,
    /// `true` if ignored texts may stand at the very beginning, too; `None` if the source does not say.
    pub(super) initial_skip: Option<bool>,
}

/// A name with its place.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) at: usize,
}

/// How a rule relates to one of the same name that was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Define,
    /// `%override`: the rule replaces the other.
    Override,
    /// `%extend`: its alternatives are added to those of the other.
    Extend,
}

/// A rule or a terminal.
#[derive(Clone, Debug)]
pub(super) struct RuleItem {
    pub(super) name: Name,
    pub(super) mode: Mode,
    /// The parameters of a template.
    pub(super) parameters: Vec<String>,
    /// `true` for `name::_`, which has a number as its parameter.
    pub(super) is_parametric: bool,
    pub(super) attributes: Attributes,
    pub(super) alternatives: Vec<Alternative>,
}

/// One of the texts that a rule derives.
#[derive(Clone, Debug)]
pub(super) struct Alternative {
    pub(super) body: Node,
    pub(super) condition: Option<Condition>,
}

/// What is said about a rule in brackets after its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    /// `lazy`: the rule ends as soon as it can.
    pub(super) is_lazy: bool,
    /// `stop=…` and `suffix=…`: the rule ends with the first text of this form.
    pub(super) stop: Option<Node>,
    /// `true` if the rule has a priority: where it may begin, the lexer does not choose by length.
    pub(super) has_priority: bool,
}

/// An import of rules from a library.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) at: usize,
    /// `["common"]` in `%import common.WS`.
    pub(super) path: Vec<String>,
    /// `true` for a path that begins with a point, which is relative to the source.
    pub(super) is_relative: bool,
    /// The rule of the library, and its name here.
    pub(super) names: Vec<(Name, String)>,
}

/// A use of a template, or of a rule with a parameter.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) name: Name,
    pub(super) with: Given,
}

/// What is given to a template or a rule with a parameter.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Arguments(Vec<Node>),
    Number(Number),
}

/// A part of the parameter: all bits, or those from one up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A number that is computed from the parameter.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Constant(u64),
    /// The parameter itself.
    Same,
    SetBit(u32),
    ClearBit(u32),
    BitAnd(u64),
    BitOr(u64),
    Increment(Bits),
    Decrement(Bits),
}

/// A condition on the parameter.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    True,
    BitSet(u32),
    BitClear(u32),
    AllOnes(Bits),
    AllZeros(Bits),
    /// The bits as a number, compared with a constant.
    Compare(Comparison, Bits, u64),
    /// The number of bits that are set, compared with a constant.
    Count(Comparison, Bits, u64),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Returns the name by which an expression refers to a use. No name in a source has braces.
pub(super) fn placeholder(index: usize) -> String {
    format!("{{{index}}}")
}

/// Returns the name by which an expression refers to a grammar in braces.
pub(super) fn nested_name(index: usize) -> String {
    format!("{{lark {index}}}")
}

/// Returns the index of a use from the name that [`placeholder`] made.
pub(super) fn use_of(name: &str) -> Option<usize> {
    name.strip_prefix('{')?.strip_suffix('}')?.parse().ok()
}

/// Returns `true` if a name is that of a terminal: its first letter is a capital.
pub(super) fn is_terminal(name: &str) -> bool {
    let local = name.rsplit('.').next().unwrap_or(name);
    let mut letters = local.chars().filter(|c| c.is_alphabetic());
    letters.next().is_some_and(char::is_uppercase)
}
