//! Several steps at once: along a draft, and through a tree of drafts.
//!
//! Engines that decode speculatively pass a tree of tokens in two arrays: the first child and the next
//! sibling of each node. Node 0 is the last token of the text itself, so the state of the sequence is the
//! state *after* node 0.
//!
//! ```text
//!            0            child    1  2 -1  4 -1
//!          ┌─┴─┐          sibling -1  3 -1 -1 -1
//!          1   3
//!          2   4          row 0: the mask after the text;  row 4: after the text, token 3 and token 4
//! ```

use super::{BatchRow, Ends, Grammar, Pool, State};
use crate::error::Exhausted;

/// The error of arrays that do not describe a draft tree.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeError {
    /// The arrays do not have one entry per node.
    #[error("a tree of {tokens} tokens has {children} children and {siblings} siblings")]
    Lengths {
        /// The number of tokens.
        tokens: usize,
        /// The number of entries in the array of children.
        children: usize,
        /// The number of entries in the array of siblings.
        siblings: usize,
    },
    /// An entry names a node that does not exist.
    #[error("node {node} names node {named}, and the tree has {len}")]
    NoSuchNode {
        /// The node that the entry belongs to.
        node: usize,
        /// The node that the entry names.
        named: i64,
        /// The number of nodes in the tree.
        len: usize,
    },
    /// A node is reached on two paths, or from itself.
    #[error("node {node} is reached twice")]
    ReachedTwice {
        /// The node.
        node: usize,
    },
}

/// A tree of drafted tokens; node 0 is the last token of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTree<'t> {
    tokens: &'t [i64],
    /// The reachable nodes, each after its parent, with the index of the parent in this list. The first is
    /// node 0.
    order: Vec<(usize, usize)>,
}

impl<'t> DraftTree<'t> {
    /// Creates a tree of tokens from the first child and the next sibling of each node, where a negative
    /// number means none. The token of node 0 is ignored.
    ///
    /// # Errors
    /// Returns an error if the arrays differ in length, name nodes that do not exist, or lead to a node
    /// twice.
    pub fn new(tokens: &'t [i64], child: &[i64], sibling: &[i64]) -> Result<DraftTree<'t>, TreeError> {
        let len = tokens.len();
        if child.len() != len || sibling.len() != len {
            return Err(TreeError::Lengths {
                tokens: len,
                children: child.len(),
                siblings: sibling.len(),
            });
        }
        let mut order = Vec::with_capacity(len);
        let mut is_reached = vec![false; len];
        let mut open: Vec<(usize, usize)> = (len > 0).then_some((0, 0)).into_iter().collect();
        while let Some((node, parent)) = open.pop() {
            if std::mem::replace(&mut is_reached[node], true) {
                return Err(TreeError::ReachedTwice { node });
            }
            let place = order.len();
            order.push((node, parent));
            open.extend(named(sibling[node], node, len)?.map(|next| (next, parent)));
            open.extend(named(child[node], node, len)?.map(|next| (next, place)));
        }
        Ok(DraftTree { tokens, order })
    }

    /// Returns the number of nodes, node 0 included.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns `true` if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

/// Returns the node that an entry names, or `None` if the entry is negative.
fn named(entry: i64, node: usize, len: usize) -> Result<Option<usize>, TreeError> {
    match usize::try_from(entry) {
        Err(_) => Ok(None),
        Ok(named) if named < len => Ok(Some(named)),
        Ok(_) => Err(TreeError::NoSuchNode {
            node,
            named: entry,
            len,
        }),
    }
}

impl Grammar {
    /// Returns the states along a draft, one after each token. The result is shorter than the draft if a
    /// token may not come next, or if a step would cost more than
    /// [`Limits::mask_work`](crate::limits::Limits::mask_work) allows.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use lexiform::{Options, Source, compile};
    /// # use lexiform::vocab::{TokenKind, Vocabulary};
    /// # let tokens = ["<eos>", "a", "b"].map(|text| (TokenKind::Text, text));
    /// # let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
    /// let (grammar, _) = compile(Source::Regex("aab"), &vocab, &Options::default())?;
    /// let states = grammar.walk(grammar.start(), &[1, 1, 1, 2], None);
    /// assert_eq!(states.len(), 2);
    /// assert!(grammar.allows(states[1], 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn walk(&self, state: State, tokens: &[u32], ends: Option<&Ends>) -> Vec<State> {
        let mut at = state;
        let states = tokens.iter().map_while(|&token| {
            at = self.step_for(at, token, ends).ok().flatten()?;
            Some(at)
        });
        states.collect()
    }

    /// Returns the state after each node of a tree and the number of tokens that lead to it; `None` if one of
    /// these tokens may not come.
    fn states_of(
        &self,
        state: State,
        tree: &DraftTree<'_>,
        ends: Option<&Ends>,
    ) -> Vec<Option<(State, usize)>> {
        let mut states: Vec<Option<(State, usize)>> = Vec::with_capacity(tree.order.len());
        for (place, &(node, parent)) in tree.order.iter().enumerate() {
            let after = |(state, depth): (State, usize)| {
                let token = u32::try_from(tree.tokens[node]).ok()?;
                Some((self.step_for(state, token, ends).ok().flatten()?, depth + 1))
            };
            states.push(match place {
                0 => Some((state, 0)),
                _ => states[parent].and_then(after),
            });
        }
        states
    }
}

impl Pool {
    /// Writes the mask after each node of a draft tree into the row of the node, with `stride` words per row,
    /// and returns the states after the nodes. `row` holds the state of the sequence, after node 0. The
    /// budget of a node at depth *d* is `row.budget` less *d* tokens.
    ///
    /// The rows of nodes that cannot be reached, because a token on the path may not come, are left
    /// unchanged, and so are the rows of nodes that end the sequence. The second part of the result lists the
    /// nodes whose mask would cost more than the limits allow; their words are cleared.
    ///
    /// # Panics
    /// Panics if the buffer is shorter than `tree.len() * stride`.
    pub fn fill_tree(
        &self,
        row: &BatchRow,
        tree: &DraftTree<'_>,
        stride: usize,
        words: &mut [u32],
    ) -> (Vec<Option<State>>, Vec<(usize, Exhausted)>) {
        let found = row.grammar.states_of(row.state, tree, row.ends.as_ref());
        let mut states = vec![None; tree.len()];
        let mut rows = Vec::new();
        for (&(node, _), found) in tree.order.iter().zip(found) {
            let Some((state, depth)) = found else { continue };
            states[node] = Some(state);
            if !row.grammar.is_finished(state) {
                let budget = row.budget.map(|budget| budget.saturating_sub(depth));
                rows.push((
                    node,
                    BatchRow {
                        state,
                        budget,
                        ..row.clone()
                    },
                ));
            }
        }
        (states, self.fill_rows(rows, stride, words))
    }
}
