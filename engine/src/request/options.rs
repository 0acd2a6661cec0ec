//! Options: texts of a closed list that may follow a prompt, which are weighed instead of drawn.
//!
//! The token sequences of all options form one tree, so common prefixes are computed once:
//!
//! ```text
//!   yes, probably     0 ─ yes 1 ─ , 2 ─┬─ probably 3 ■          ■ an option ends here
//!   yes, certainly      │              └─ certainly 4 ■
//!   no                  └─ no 5 ■
//! ```
//!
//! The tree is fed below the prompt like a draft, and every node gets the row that it would get as a separate
//! text. This is how TreeRanker (arXiv 2508.02455) ranks completions, with the probabilities of whole options
//! in place of a greedy pass.

use std::ops::Range;

use lexiform::vocab::Vocabulary;

/// The maximum number of tokens of all options together, with common prefixes counted once.
pub const MOST_OPTION_TOKENS: usize = 1 << 16;

/// A node of a tree of options.
#[derive(Clone, Debug, PartialEq)]
struct OptionNode {
    token: u32,
    parent: usize,
    /// The number of tokens from the prompt to here, this one included.
    depth: usize,
    /// One more than the index of the last node below it.
    end: usize,
    /// `true` if an option ends here.
    is_end: bool,
}

/// A closed list of texts whose probabilities are computed, as the tree of their token sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The nodes in preorder; the first is the prompt, and siblings are in the order of their tokens.
    nodes: Vec<OptionNode>,
    /// The nodes at which the sequences of each option end.
    ends: Vec<Vec<usize>>,
}

/// The reason why a list of options cannot be weighed. Options are identified by their numbers, from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The list is empty.
    #[error("there are no options")]
    None,
    /// No sequence of the vocabulary's tokens writes an option.
    #[error("the model's tokens cannot write option {option}")]
    Unwritable {
        /// The number of the option.
        option: usize,
    },
    /// The options have too many tokens.
    #[error(
        "up to option {option}, the options have {tokens} different beginnings in tokens; the limit is {limit}"
    )]
    TooMany {
        /// The option that exceeds the limit.
        option: usize,
        /// The number of nodes of the tree up to that option.
        tokens: usize,
        /// [`MOST_OPTION_TOKENS`].
        limit: usize,
    },
    /// An option has too many tokenisations to be summed up.
    #[error(
        "option {option} has too many tokenisations: {tokens} different beginnings in tokens; the limit is {limit}"
    )]
    TooManyTokenisations {
        /// The number of the option.
        option: usize,
        /// The number of nodes of the tree of its tokenisations; `usize::MAX` if they are too many to count.
        tokens: usize,
        /// [`MOST_OPTION_TOKENS`].
        limit: usize,
    },
}

impl Options {
    /// Returns options that are one token sequence each, that of the model's tokenizer. The probability of an
    /// option is then that of writing it in these tokens.
    ///
    /// # Errors
    /// Fails if there are no options, or if they have more than [`MOST_OPTION_TOKENS`].
    pub fn canonical(sequences: &[Vec<u32>]) -> Result<Self, OptionsError> {
        let sequences = sequences.iter().cloned().enumerate();
        Self::of(sequences.map(|(option, tokens)| (tokens, option)).collect())
    }

    /// Returns all beginnings of these token sequences as options, the sequences included: their weights tell
    /// the probabilities of single tokens apart. [`along`](Self::along) returns their numbers.
    ///
    /// # Errors
    /// Fails as [`canonical`](Self::canonical) does.
    pub fn beginnings(sequences: &[Vec<u32>]) -> Result<Self, OptionsError> {
        let mut options = Self::canonical(sequences)?;
        options.ends = (1..options.nodes.len()).map(|node| vec![node]).collect();
        options.nodes[1..].iter_mut().for_each(|node| node.is_end = true);
        Ok(options)
    }

    /// Returns the numbers of the [beginnings](Self::beginnings) of a sequence, the shortest first. They end
    /// where the tree has no more of the sequence.
    pub fn along(&self, sequence: &[u32]) -> Vec<usize> {
        let mut node = 0;
        let below = |&token: &u32| {
            node = self.child(node, token)?;
            Some(node - 1)
        };
        sequence.iter().map_while(below).collect()
    }

    /// Returns options that may be spelled in any tokens: the probability of an option is the sum over all
    /// token sequences that write exactly its bytes. A sequence whose last token extends beyond the option
    /// writes something else and does not count.
    ///
    /// # Errors
    /// Fails if there are no options, if the vocabulary cannot write one, or if their sequences have more
    /// than [`MOST_OPTION_TOKENS`]. The number of sequences grows exponentially with the text, so options
    /// must be short.
    pub fn all_tokenisations<T: AsRef<[u8]>>(
        texts: &[T],
        vocabulary: &Vocabulary,
    ) -> Result<Self, OptionsError> {
        let mut sequences = Vec::new();
        let (mut left, limit) = (MOST_OPTION_TOKENS, MOST_OPTION_TOKENS);
        for (option, text) in texts.iter().enumerate() {
            let tokenisations = vocabulary.tokenisations(text.as_ref());
            if tokenisations.count() == 0 {
                return Err(OptionsError::Unwritable { option });
            }
            let tokens = tokenisations.prefixes();
            if tokens > limit {
                return Err(OptionsError::TooManyTokenisations {
                    option,
                    tokens,
                    limit,
                });
            }
            // Checked before the sequences are listed: two options with many sequences share few prefixes.
            left = left.checked_sub(tokens).ok_or_else(|| OptionsError::TooMany {
                option,
                tokens: limit - left + tokens,
                limit,
            })?;
            sequences.extend(tokenisations.iter().map(|tokens| (tokens, option)));
        }
        Self::of(sequences)
    }

    fn of(mut sequences: Vec<(Vec<u32>, usize)>) -> Result<Self, OptionsError> {
        let count = sequences.iter().map(|(_, option)| option + 1).max();
        let mut ends = vec![Vec::new(); count.ok_or(OptionsError::None)?];
        // In this order a sequence comes after its prefixes, so building the tree in preorder requires only
        // the last path.
        sequences.sort();
        let root = OptionNode {
            token: 0,
            parent: 0,
            depth: 0,
            end: 0,
            is_end: false,
        };
        let (mut nodes, mut path) = (vec![root], vec![0]);
        for (tokens, option) in sequences {
            let same = path[1..].iter().zip(&tokens);
            let common = same
                .take_while(|(node, token)| nodes[**node].token == **token)
                .count();
            path.truncate(common + 1);
            for (depth, &token) in tokens.iter().enumerate().skip(common) {
                nodes.push(OptionNode {
                    token,
                    parent: path[depth],
                    depth: depth + 1,
                    end: 0,
                    is_end: false,
                });
                path.push(nodes.len() - 1);
            }
            if nodes.len() - 1 > MOST_OPTION_TOKENS {
                return Err(OptionsError::TooMany {
                    option,
                    tokens: nodes.len() - 1,
                    limit: MOST_OPTION_TOKENS,
                });
            }
            nodes[path[tokens.len()]].is_end = true;
            ends[option].push(path[tokens.len()]);
        }
        let mut options = Options { nodes, ends };
        options.close();
        Ok(options)
    }

    /// Computes where each subtree ends.
    fn close(&mut self) {
        for node in (0..self.nodes.len()).rev() {
            self.nodes[node].end = self.nodes[node].end.max(node + 1);
            let (parent, end) = (self.nodes[node].parent, self.nodes[node].end);
            self.nodes[parent].end = self.nodes[parent].end.max(end);
        }
    }

    /// Returns the number of options.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns `false`: there is always at least one option.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of tokens of all options together, with common prefixes counted once.
    pub fn tokens(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Returns the number of tokens of the longest option.
    pub fn longest(&self) -> usize {
        self.nodes.iter().map(|node| node.depth).max().unwrap_or(0)
    }

    /// Returns the tokens of the tree, in no particular order.
    pub(crate) fn each_token(&self) -> impl Iterator<Item = u32> + '_ {
        self.nodes[1..].iter().map(|node| node.token)
    }

    /// Returns the number of nodes, including the prompt.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn token(&self, node: usize) -> u32 {
        self.nodes[node].token
    }

    /// Returns the parent of a node; the prompt is its own parent.
    pub(crate) fn parent(&self, node: usize) -> usize {
        self.nodes[node].parent
    }

    pub(crate) fn depth(&self, node: usize) -> usize {
        self.nodes[node].depth
    }

    /// Returns the nodes below this one, in preorder.
    pub(crate) fn below(&self, node: usize) -> Range<usize> {
        node + 1..self.nodes[node].end
    }

    /// Returns the nodes directly below this one, in the order of their tokens.
    pub(crate) fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let below = self.below(node);
        let first = Some(below.start).filter(|first| *first < below.end);
        std::iter::successors(first, move |child| {
            Some(self.nodes[*child].end).filter(|next| *next < below.end)
        })
    }

    /// Returns the node of this token directly below another one.
    pub(crate) fn child(&self, node: usize, token: u32) -> Option<usize> {
        self.children(node)
            .find(|child| self.nodes[*child].token == token)
    }

    /// Returns `true` if an option ends here.
    pub(crate) fn is_end(&self, node: usize) -> bool {
        self.nodes[node].is_end
    }

    /// Returns the nodes at which the sequences of each option end.
    pub(crate) fn ends(&self) -> &[Vec<usize>] {
        &self.ends
    }

    /// Returns the node at `depth` tokens after the prompt, on the path to this one.
    pub(crate) fn ancestor(&self, node: usize, depth: usize) -> usize {
        let mut node = node;
        while self.nodes[node].depth > depth {
            node = self.nodes[node].parent;
        }
        node
    }

    /// Returns a node and its ancestors up to, but not including, `from`; the lowest first.
    pub(crate) fn between(&self, from: usize, node: usize) -> impl Iterator<Item = usize> + '_ {
        let above = |&node: &usize| Some(self.nodes[node].parent);
        std::iter::successors(Some(node), above).take_while(move |node| *node != from)
    }

    /// Returns the tokens from an ancestor, exclusive, down to a node, inclusive.
    pub(crate) fn path(&self, from: usize, node: usize) -> Vec<u32> {
        let mut tokens: Vec<u32> = self
            .between(from, node)
            .map(|node| self.nodes[node].token)
            .collect();
        tokens.reverse();
        tokens
    }
}

/// The probability of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighed {
    /// The number of the option.
    pub option: usize,
    /// `ln P` of the option after the prompt under the warped model, before the mask; with
    /// [`Reporting::weigh_end`](super::Reporting::weigh_end), including that the text ends there. Minus
    /// infinity if the grammar does not allow the option: tokens after a forbidden one are not computed.
    pub log_probability: f64,
    /// `ln` of its probability under the local law: of each token among those that may be drawn in its place.
    /// Without a grammar and filters, equal to `log_probability`.
    pub log_share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginnings_of_sequences_are_numbered_along_them() {
        let sequences = [vec![7, 8, 9], vec![7], vec![3, 8], vec![7, 8, 5]];
        let options = Options::beginnings(&sequences).expect("four");
        // `3`, `3 8`, `7`, `7 8`, `7 8 5` and `7 8 9`, in the order of the tree.
        assert_eq!((options.len(), options.tokens()), (6, 6));
        let along = sequences.map(|sequence| options.along(&sequence));
        assert_eq!(along, [vec![2, 3, 5], vec![2], vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(options.along(&[7, 5]), [2]);
        for sequence in [vec![7], vec![3, 8], vec![7, 8, 5]] {
            let ends: Vec<usize> = options.along(&sequence);
            let nodes = ends.iter().map(|&option| options.ends()[option][0]);
            assert_eq!(
                nodes.map(|node| options.token(node)).collect::<Vec<_>>(),
                sequence
            );
        }
    }

    fn tree(sequences: &[&[u32]]) -> Options {
        let sequences: Vec<Vec<u32>> = sequences.iter().map(|tokens| tokens.to_vec()).collect();
        Options::canonical(&sequences).expect("few options")
    }

    #[test]
    fn what_options_begin_with_stands_in_the_tree_once() {
        let options = tree(&[&[5, 2, 9], &[5, 2], &[1], &[5, 2, 4, 4], &[5, 2]]);
        let nodes: Vec<(u32, usize, usize)> = (1..options.nodes())
            .map(|node| (options.token(node), options.parent(node), options.depth(node)))
            .collect();
        assert_eq!(
            nodes,
            [(1, 0, 1), (5, 0, 1), (2, 2, 2), (4, 3, 3), (4, 4, 4), (9, 3, 3)]
        );
        assert_eq!(options.ends(), [vec![6], vec![3], vec![1], vec![5], vec![3]]);
        assert_eq!((options.tokens(), options.longest(), options.len()), (6, 4, 5));
        let children = |node| options.children(node).collect::<Vec<_>>();
        assert_eq!(
            (children(0), children(3), children(1)),
            (vec![1, 2], vec![4, 6], vec![])
        );
        assert_eq!((options.below(2), options.below(4)), (3..7, 5..6));
        assert_eq!((options.path(2, 5), options.ancestor(5, 2)), (vec![2, 4, 4], 3));
    }

    #[test]
    fn what_is_too_much_is_named() {
        assert_eq!(Options::canonical(&[]), Err(OptionsError::None));
        let long = vec![vec![1; 3], (0..=MOST_OPTION_TOKENS as u32).collect()];
        let tokens = MOST_OPTION_TOKENS + 1;
        let limit = MOST_OPTION_TOKENS;
        assert!(matches!(
            Options::canonical(&long),
            Err(OptionsError::TooMany { option: 1, .. } | OptionsError::TooMany { option: 0, .. })
        ));
        let one = vec![(0..tokens as u32).collect()];
        let option = 0;
        assert_eq!(
            Options::canonical(&one),
            Err(OptionsError::TooMany {
                option,
                tokens,
                limit
            })
        );
    }
}
