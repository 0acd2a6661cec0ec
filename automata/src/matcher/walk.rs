//! Many steps at once: along a draft, and through a tree of drafts.
//!
//! Engines that speculate hand over a tree of tokens in two arrays: the first child of each node, and its
//! next sibling. Node 0 is the last token of the text itself, so that the state of the sequence is the state
//! *after* node 0.
//!
//! ```text
//!            0            child    1  2 -1  4 -1
//!          ┌─┴─┐          sibling -1  3 -1 -1 -1
//!          1   3
//!          2   4          row 0: what may come after the text;  row 4: after the text, token 3 and token 4
//! ```

use super::{BatchRow, Ends, Grammar, Pool, State};
use crate::error::Exhausted;

/// Why two arrays are no tree of a draft.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeError {
    /// The arrays do not have an entry for each node.
    #[error("a tree of {tokens} tokens has {children} children and {siblings} siblings")]
    Lengths {
        /// The tokens.
        tokens: usize,
        /// The entries of the array of children.
        children: usize,
        /// The entries of the array of siblings.
        siblings: usize,
    },
    /// An entry names a node that is not there.
    #[error("node {node} names node {named}, and the tree has {len}")]
    NoSuchNode {
        /// The node whose entry it is.
        node: usize,
        /// What it names.
        named: i64,
        /// The nodes of the tree.
        len: usize,
    },
    /// A node is reached in two ways, or from itself.
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
    /// The nodes that are reached, each after its parent, with the parent's place in this list; the first is
    /// node 0.
    order: Vec<(usize, usize)>,
}

impl<'t> DraftTree<'t> {
    /// The tree of these tokens, with the first child and the next sibling of each node; a negative number
    /// stands for none. The token of node 0 is not looked at.
    ///
    /// # Errors
    /// When the arrays differ in length, name nodes that are not there, or lead to a node twice.
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

    /// The number of nodes, node 0 included.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no node at all.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

/// The node that an entry names.
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
    /// The states along a draft: the one after each of its tokens, as far as they may come. Shorter than the
    /// draft where a token may not come, or where to know would cost more than
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

    /// The state after each node of a tree, with the tokens that lead to it; `None` where one of them may not
    /// come.
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
    /// Writes the mask after each node of a draft tree into the row of the node, `stride` words for each, and
    /// returns the states after the nodes. `row` says where the sequence stands: after node 0. A node at
    /// depth *d* has *d* tokens less to spend than `row.budget` says.
    ///
    /// Rows of nodes that cannot be reached, because a token on the way may not come, are left as they are,
    /// and so are those of nodes that end the sequence. Nodes whose mask would cost more than the limits
    /// allow are named in the second part of the result, and their words are cleared.
    ///
    /// # Panics
    /// When the buffer is shorter than `tree.len() * stride`.
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
