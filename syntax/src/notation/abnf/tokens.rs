//! The parser that pest generates from `grammar.pest`, and the names of its rules in messages.

#[allow(missing_docs, unreachable_pub)]
mod generated {
    /// The parser that pest generates from `grammar.pest`.
    #[derive(pest_derive::Parser)]
    #[grammar = "notation/abnf/grammar.pest"]
    pub(in super::super) struct Tokens;
}
pub(super) use generated::{Rule, Tokens};

/// Returns the name of a rule of `grammar.pest` in messages.
pub(super) fn described(rule: Rule) -> &'static str {
    match rule {
        Rule::grammar | Rule::definition => "a rule (`name = …`)",
        Rule::name | Rule::reference => "a name",
        Rule::defines => "`=`",
        Rule::more => "`=/`",
        Rule::end => "the end of the line",
        Rule::EOI => "the end of the grammar",
        Rule::close => "`)`",
        Rule::unbracket => "`]`",
        _ => "a part (literal, number, rule name, group …)",
    }
}
