//! The parser that pest generates from `grammar.pest`, and the names of its rules in messages.

#[allow(missing_docs, unreachable_pub)]
mod generated {
    /// The parser that pest generates from `grammar.pest`.
    #[derive(pest_derive::Parser)]
    #[grammar = "notation/gbnf/grammar.pest"]
    pub(in super::super) struct Tokens;
}
pub(super) use generated::{Rule, Tokens};

/// Returns the name of a rule of `grammar.pest` in messages.
pub(super) fn described(rule: Rule) -> &'static str {
    match rule {
        Rule::grammar | Rule::definition => "a rule (`name ::= …`)",
        Rule::name | Rule::reference => "a name",
        Rule::defines => "`::=`",
        Rule::end => "the end of the line",
        Rule::EOI => "the end of the grammar",
        Rule::postfix | Rule::counts => "`?`, `*`, `+` or `{n,m}`",
        Rule::number => "a number",
        Rule::comma => "`,`",
        Rule::close => "`)`",
        Rule::tokens | Rule::token | Rule::named => "a token (`<[5]>`, `<name>`)",
        _ => "a part (literal, class, rule name, group …)",
    }
}
