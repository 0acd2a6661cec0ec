//! What a judge of a language must answer, independently of the library.

use std::cell::RefCell;
use std::collections::HashMap;

/// What holds of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Some text of the language begins with this one.
    pub(crate) viable: bool,
    /// The text is in the language.
    pub(crate) accepted: bool,
}

/// Decides about texts from the definition of a language.
pub(crate) trait Judge {
    /// What holds of this text.
    fn verdict(&self, text: &[u8]) -> Verdict;
}

/// A judge that remembers its verdicts: the same text is reached by many tokenisations.
pub(crate) struct Memo<J> {
    judge: J,
    verdicts: RefCell<HashMap<Vec<u8>, Verdict>>,
}

impl<J: Judge> Memo<J> {
    pub(crate) fn new(judge: J) -> Self {
        Memo {
            judge,
            verdicts: RefCell::default(),
        }
    }
}

impl<J: Judge> Judge for Memo<J> {
    fn verdict(&self, text: &[u8]) -> Verdict {
        if let Some(&known) = self.verdicts.borrow().get(text) {
            return known;
        }
        let verdict = self.judge.verdict(text);
        self.verdicts.borrow_mut().insert(text.to_vec(), verdict);
        verdict
    }
}

/// All texts of at most `len` of these letters.
pub(crate) fn texts(letters: &[&str], len: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..len {
        last = last
            .iter()
            .flat_map(|text| letters.iter().map(move |letter| format!("{text}{letter}")))
            .collect();
        all.extend_from_slice(&last);
    }
    all
}
