//! Reads the pairs of a parser whose grammars are rules with choices of sequences of parts, as those of most
//! notations are.
//!
//! ```text
//!   definition { name … choice }   choice { sequence … }   sequence { part … }   item { primary operator … }
//! ```

use pest::RuleType;
use pest::iterators::{Pair, Pairs};

use super::counts;
use crate::notation::lower::Problems;
use crate::notation::tree::{Definition, Node};
use lexiform_automata::error::ProblemKind;

/// A reader of pairs. What notations do not have in common is left to the implementations.
pub(crate) trait PairReader<R: RuleType> {
    /// The rule of the parser for the body of a definition.
    const BODY: R;

    /// Returns the problems that were found.
    fn problems(&mut self) -> &mut Problems;

    /// Reads a part without operators.
    fn primary(&mut self, pair: Pair<'_, R>) -> Node;

    /// Reads a part of a sequence.
    fn part(&mut self, pair: Pair<'_, R>) -> Node {
        self.item(pair)
    }

    /// Returns the name that a text stands for.
    fn name(text: &str) -> String {
        text.to_owned()
    }

    /// Reads all definitions of a grammar.
    fn definitions(&mut self, grammar: Pairs<'_, R>) -> Vec<Definition> {
        let pairs = grammar.flat_map(Pair::into_inner);
        pairs.filter_map(|pair| self.definition(pair)).collect()
    }

    /// Reads a definition; other pairs have no name.
    fn definition(&mut self, pair: Pair<'_, R>) -> Option<Definition> {
        let mut inner = pair.into_inner();
        let name = inner.next()?;
        let body = inner.find(|pair| pair.as_rule() == Self::BODY)?;
        Some(Definition {
            name: Self::name(name.as_str()),
            at: name.as_span().start(),
            body: self.choice(body),
        })
    }

    /// Reads a choice of sequences.
    fn choice(&mut self, pair: Pair<'_, R>) -> Node {
        let at = pair.as_span().start();
        let ways = pair.into_inner().map(|way| self.sequence(way));
        Node::choice(at, ways.collect())
    }

    /// Reads a sequence of parts.
    fn sequence(&mut self, pair: Pair<'_, R>) -> Node {
        let at = pair.as_span().start();
        let parts = pair.into_inner().map(|part| self.part(part));
        Node::seq(at, parts.collect())
    }

    /// Reads a part with the operators after it.
    fn item(&mut self, pair: Pair<'_, R>) -> Node {
        let at = pair.as_span().start();
        let mut inner = pair.into_inner();
        let mut node = match inner.next() {
            Some(primary) => self.primary(primary),
            None => Node::empty(at),
        };
        for operator in inner {
            let at = operator.as_span().start();
            if let Some((min, max)) = counts::operator(operator, self.problems()) {
                node = node.repeat(min, max, at);
            }
        }
        node
    }

    /// Reads the choice within brackets.
    fn bracketed(&mut self, pair: Pair<'_, R>) -> Node {
        let at = pair.as_span().start();
        let body = pair.into_inner().next();
        body.map_or(Node::empty(at), |body| self.choice(body))
    }

    /// Reports a grammar of this notation without a rule `root`.
    fn check_root(&mut self, definitions: &[Definition], notation: &str) {
        if !definitions.iter().any(|definition| definition.name == "root") {
            let message =
                format!("there is no rule `root`, which is where every grammar in {notation} starts");
            self.problems().add(ProblemKind::Reference, 0, message);
        }
    }
}
