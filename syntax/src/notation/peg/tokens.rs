//! The parser that pest generates from `grammar.pest`, and the names of its rules in messages.

#[allow(missing_docs, unreachable_pub)]
mod generated {
    /// The parser that pest generates from `grammar.pest`.
    #[derive(pest_derive::Parser)]
    #[grammar = "notation/peg/grammar.pest"]
    pub(in super::super) struct Tokens;
}
pub(super) use generated::{Rule, Tokens};

/// Returns the name of a rule of `grammar.pest` in messages.
pub(super) fn described(rule: Rule) -> &'static str {
    match rule {
        Rule::grammar | Rule::definition => "a rule (`name = { … }`)",
        Rule::name => "a name",
        Rule::defines => "`=`",
        Rule::opening => "`{`",
        Rule::unbrace => "`}`",
        Rule::close => "`)`",
        Rule::EOI => "the end of the grammar",
        Rule::postfix | Rule::counts => "`?`, `*`, `+` or a count",
        Rule::comma => "`,`",
        Rule::number => "a number",
        Rule::modifier => "`_`, `@`, `$` or `!`",
        Rule::character => "a character in single quotes",
        _ => "a part (text, range, rule name, group …)",
    }
}
