//! Gives each text to one word and ends the words where the lexer ends them, so that the rules say by
//! themselves what the lexer decides.

use super::contexts::{Graph, is_word};
use super::items::is_terminal;
use super::longest::{Lexer, Lexing};
use crate::notation::lower::Problems;
use crate::notation::tree::{Definition, Node, NodeKind};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::limits::Limits;

/// Narrows the words of all rules, so that each text is one of the words that may begin at a place, and ends
/// them where the lexer does. Returns the ignored texts, which end there too.
pub(super) fn settle(
    definitions: &mut [Definition],
    start: &str,
    lexing: &Lexing<'_>,
    limits: &Limits,
    problems: &mut Problems,
) -> Vec<Node> {
    let graph = Graph::new(definitions);
    let lexer = Lexer {
        lexing,
        definitions,
        names: &graph.names,
        steps: &graph.steps,
    };
    let gaps = lexer.gaps();
    if !graph.has_rivals(lexing.dialect) && gaps.is_empty() {
        return lexing.ignored.to_vec();
    }
    let contexts = graph.contexts(start, limits);
    let beaten_by = (contexts.as_ref()).and_then(|contexts| graph.beaten_by(contexts, lexing.dialect));
    let (Some(contexts), Some(beaten_by)) = (contexts, beaten_by) else {
        if graph.has_rivals(lexing.dialect) && !limits.cancel.is_asked() {
            let message = "telling the words of this grammar apart takes too many steps";
            problems.add(ProblemKind::Limit, 0, message);
        }
        return lexing.ignored.to_vec();
    };
    let everywhere = graph.everywhere(&contexts);
    let settled: Vec<Node> = (0..graph.words.len())
        .map(|word| {
            let exceptions = graph.exceptions(word, &beaten_by[word], lexing.dialect, definitions);
            lexer.settled(
                &graph.words[word],
                exceptions,
                &graph.rivals(&everywhere[word]),
                &gaps,
            )
        })
        .collect();
    let ignored = lexer.ignored(&gaps);
    let mut settled = settled.into_iter();
    for definition in definitions.iter_mut().filter(|it| !is_terminal(&it.name)) {
        definition.body = with_words(&definition.body, &mut settled);
    }
    ignored
}

/// Returns a part with other words, in the order in which [`Graph::part`] numbered them.
fn with_words(node: &Node, words: &mut impl Iterator<Item = Node>) -> Node {
    let at = node.at;
    if is_word(node) {
        return words.next().unwrap_or_else(|| node.clone());
    }
    match &node.kind {
        NodeKind::Seq(parts) => Node::seq(at, parts.iter().map(|part| with_words(part, words)).collect()),
        NodeKind::Choice(parts) => {
            Node::choice(at, parts.iter().map(|part| with_words(part, words)).collect())
        }
        NodeKind::Repeat(body, min, max) => with_words(body, words).repeat(*min, *max, at),
        _ => node.clone(),
    }
}
