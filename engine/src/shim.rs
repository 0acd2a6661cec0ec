//! Stands in for the library's grammar until it lands: a finite set of texts.

use lexiform::vocab::Vocabulary;
use std::sync::Arc;

/// A set of texts.
#[derive(Clone, Debug)]
pub struct Grammar {
    texts: Arc<Vec<Vec<u8>>>,
    vocabulary: Arc<Vocabulary>,
    prefixes: Arc<Vec<Vec<u8>>>,
}

/// A prefix of a text.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct State(u32);

/// Allowed tokens.
#[derive(Debug)]
pub struct Mask {
    words: Vec<u32>,
}

impl Mask {
    /// Whether the token is allowed.
    pub fn contains(&self, token: u32) -> bool {
        self.words
            .get(token as usize / 32)
            .is_some_and(|word| word >> (token % 32) & 1 == 1)
    }
    /// Packed.
    pub fn words(&self) -> &[u32] {
        &self.words
    }
    /// Allowed tokens.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

impl Grammar {
    /// The grammar of these texts.
    pub fn of_texts(vocabulary: &Arc<Vocabulary>, texts: &[&str]) -> Self {
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        let mut prefixes: Vec<Vec<u8>> = texts
            .iter()
            .flat_map(|text| (0..=text.len()).map(|end| text[..end].to_vec()))
            .collect();
        prefixes.sort();
        prefixes.dedup();
        Grammar {
            texts: texts.into(),
            vocabulary: vocabulary.clone(),
            prefixes: prefixes.into(),
        }
    }
    /// Start.
    pub fn start(&self) -> State {
        State(0)
    }
    /// Mask.
    pub fn mask(&self, state: State) -> Arc<Mask> {
        let mut words = vec![0; self.vocabulary.len().div_ceil(32)];
        for token in 0..self.vocabulary.len() as u32 {
            if self.step(state, token).is_some() {
                words[token as usize / 32] |= 1 << (token % 32);
            }
        }
        Arc::new(Mask { words })
    }
    /// Step.
    pub fn step(&self, state: State, token: u32) -> Option<State> {
        let prefix = self.prefixes.get(state.0 as usize)?;
        if self.vocabulary.is_eos(token) {
            return self.texts.contains(prefix).then_some(State(u32::MAX));
        }
        let bytes = self.vocabulary.bytes(token);
        if bytes.is_empty() {
            return None;
        }
        let longer = [prefix, bytes].concat();
        self.prefixes
            .binary_search(&longer)
            .ok()
            .map(|index| State(index as u32))
    }
    /// Accepting.
    pub fn is_accepting(&self, state: State) -> bool {
        self.prefixes
            .get(state.0 as usize)
            .is_some_and(|prefix| self.texts.contains(prefix))
    }
    /// Finished.
    pub fn is_finished(&self, state: State) -> bool {
        state.0 == u32::MAX
    }
    /// Forced bytes.
    pub fn forced(&self, state: State) -> Vec<u8> {
        let Some(prefix) = self.prefixes.get(state.0 as usize) else {
            return Vec::new();
        };
        let mut rests = self
            .texts
            .iter()
            .filter(|text| text.starts_with(prefix))
            .map(|text| &text[prefix.len()..]);
        let first = rests.next().unwrap_or_default();
        let common = |rest: &[u8]| first.iter().zip(rest).take_while(|(a, b)| a == b).count();
        let length = rests.map(common).min().unwrap_or(first.len());
        first[..length].to_vec()
    }
    /// Vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }
}
