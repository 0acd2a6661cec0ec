//! Drafts: only what the constraint allows, and forced text in the model's own tokens.

use std::sync::Arc;

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::draft::{
    Constraint, Draft, Drafter, Forced, LongestMatch, Lookup, Origin, PromptLookup, Text, Tokenise,
};

/// A finite language over the tokens of a vocabulary; a state is a prefix of one of its words.
struct Words {
    vocabulary: Arc<Vocabulary>,
    prefixes: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

const ENDED: usize = usize::MAX;

impl Words {
    fn new(vocabulary: &Arc<Vocabulary>, words: &[&str]) -> Self {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut prefixes: Vec<Vec<u8>> = words
            .iter()
            .flat_map(|word| (0..=word.len()).map(|at| word[..at].to_vec()))
            .collect();
        prefixes.sort();
        prefixes.dedup();
        Words {
            vocabulary: vocabulary.clone(),
            prefixes,
            words,
        }
    }
}

impl Constraint for Words {
    type State = usize;

    fn step(&self, state: usize, token: u32) -> Option<usize> {
        if self.vocabulary.is_eos(token) {
            return self.is_accepting(state).then_some(ENDED);
        }
        self.step_bytes(state, self.vocabulary.bytes(token))
    }

    fn step_bytes(&self, state: usize, bytes: &[u8]) -> Option<usize> {
        let after = [self.prefixes.get(state)?, bytes].concat();
        self.prefixes.binary_search(&after).ok()
    }

    fn forced(&self, state: usize) -> Vec<u8> {
        let mut forced = Vec::new();
        let mut at = Some(state);
        while let Some(state) = at.take_if(|state| !self.is_accepting(*state)) {
            let mut next = (0..=u8::MAX).filter(|&byte| self.step_bytes(state, &[byte]).is_some());
            if let (Some(byte), None) = (next.next(), next.next()) {
                forced.push(byte);
                at = self.step_bytes(state, &[byte]);
            }
        }
        forced
    }

    fn key(&self, state: usize) -> u64 {
        state as u64
    }

    fn is_accepting(&self, state: usize) -> bool {
        self.prefixes
            .get(state)
            .is_some_and(|prefix| self.words.contains(prefix))
    }
}

/// The tokens of the tests; the last one ends.
fn vocabulary() -> Arc<Vocabulary> {
    let text = [
        "{", "\"", "na", "me", "name", "\":", " ", " \"", "\"A", " \"A", "A", "d", "a", "B", "}", "\"}", "n",
        "m", "e", ":",
    ];
    let mut tokens: Vec<(TokenKind, &str)> = text.iter().map(|token| (TokenKind::Text, *token)).collect();
    tokens.push((TokenKind::Special, "<end>"));
    let end = text.len() as u32;
    Arc::new(Vocabulary::new(&tokens, &[end]).expect("the vocabulary is sound"))
}

fn written(vocabulary: &Vocabulary, draft: &Draft<'_, Words>) -> Vec<String> {
    draft
        .tokens()
        .map(|token| String::from_utf8_lossy(vocabulary.bytes(token)).into_owned())
        .collect()
}

fn forced(words: &[&str], budget: usize) -> Vec<String> {
    let vocabulary = vocabulary();
    let words = Words::new(&vocabulary, words);
    let mut draft: Draft<'_, Words> = Draft::new(Some((&words, 0)), vocabulary.eos(), budget);
    Forced::new(LongestMatch(vocabulary.clone()), vocabulary.clone()).propose(Text::default(), &mut draft);
    assert!(draft.nodes().iter().all(|node| node.origin == Origin::Forced));
    written(&vocabulary, &draft)
}

#[test]
fn forced_text_stops_before_a_token_that_could_reach_further() {
    // After the key the text is ` "`; what follows is free, and ` "A` is a token: the model may prefer it.
    assert_eq!(
        forced(&["{\"name\": \"Ada\"}", "{\"name\": \"Bda\"}"], 9),
        ["{", "\"", "name", "\":"]
    );
    // Without a word that begins with A, no longer token is allowed, and the quotation mark is safe.
    assert_eq!(
        forced(&["{\"name\": \"da\"}", "{\"name\": \"Bda\"}"], 9),
        ["{", "\"", "name", "\":", " \""]
    );
}

#[test]
fn a_single_completion_is_forced_to_its_end() {
    assert_eq!(
        forced(&["{\"name\":}"], 9),
        ["{", "\"", "name", "\":", "}", "<end>"]
    );
    assert_eq!(forced(&["{\"name\":}"], 3), ["{", "\"", "name"]);
}

#[test]
fn forced_text_stops_before_half_a_character() {
    // The words share the first byte of their last letter.
    assert_eq!(forced(&["Aé", "Aè"], 9), ["A"]);
}

#[test]
fn nothing_is_drafted_where_nothing_is_forced() {
    assert_eq!(forced(&["A", "B"], 9), Vec::<String>::new());
    // After the A the text may end, but need not.
    assert_eq!(forced(&["A", "Ad"], 9), ["A"]);
}

#[test]
fn the_longest_token_is_taken_at_each_place() {
    let cut = |text: &str| LongestMatch(vocabulary()).tokens(text.as_bytes());
    assert_eq!(cut("name\":"), Some(vec![4, 5]));
    assert_eq!(cut(" \"Ad"), Some(vec![9, 11]));
    assert_eq!(cut(""), Some(vec![]));
    assert_eq!(cut("xyz"), None);
}

#[test]
fn forced_text_is_cut_as_in_running_text() {
    let vocabulary = vocabulary();
    let words = Words::new(&vocabulary, &["name"]);
    // The answer so far is `n`: in running text the tokenizer would join it with what follows, so the rest
    // stands alone.
    let state = words.step_bytes(0, b"n").expect("n begins a word");
    let mut draft: Draft<'_, Words> = Draft::new(Some((&words, state)), vocabulary.eos(), 9);
    let text = Text {
        prompt: &[],
        answer: &[16],
    };
    Forced::new(LongestMatch(vocabulary.clone()), vocabulary.clone()).propose(text, &mut draft);
    assert_eq!(written(&vocabulary, &draft), ["a", "me", "<end>"]);
}

fn lookup(prompt: &[u32]) -> Lookup {
    Lookup::new(PromptLookup::default(), prompt, Vec::new())
}

fn looked_up(prompt: &[u32], answer: &[u32], budget: usize) -> Vec<u32> {
    let mut draft: Draft<'_, Words> = Draft::new(None, &[20], budget);
    lookup(prompt).propose(Text { prompt, answer }, &mut draft);
    draft.tokens().collect()
}

#[test]
fn lookup_copies_what_followed_the_longest_suffix() {
    // `1 2 3` stood first, `3` alone stood later: the longer match wins.
    assert_eq!(looked_up(&[1, 2, 3, 7, 8, 9, 3, 5], &[1, 2, 3], 3), [7, 8, 9]);
    // Of equal matches the latest.
    assert_eq!(looked_up(&[4, 3, 5, 3, 6], &[3], 2), [6, 3]);
    assert_eq!(looked_up(&[1, 2, 3], &[9], 3), Vec::<u32>::new());
    assert_eq!(looked_up(&[], &[], 3), Vec::<u32>::new());
    // Repetition is drafted in full, and nothing after an ending token.
    assert_eq!(looked_up(&[], &[7, 8, 7, 8], 5), [7, 8, 7, 8, 7]);
    assert_eq!(looked_up(&[5, 20, 6], &[5], 5), [20]);
}

#[test]
fn a_draft_refuses_what_the_constraint_forbids() {
    let vocabulary = vocabulary();
    let words = Words::new(&vocabulary, &["Ada", "AdB"]);
    let mut draft: Draft<'_, Words> = Draft::new(Some((&words, 0)), vocabulary.eos(), 9);
    // The prompt continues `A d d`, which no word does.
    let text = Text {
        prompt: &[10, 11, 11, 10],
        answer: &[],
    };
    Forced::new(LongestMatch(vocabulary.clone()), vocabulary.clone()).propose(text, &mut draft);
    lookup(&[10, 11, 11, 10]).propose(text, &mut draft);
    assert_eq!(written(&vocabulary, &draft), ["A", "d"]);
    let states: Vec<bool> = draft.states().map(|state| state.is_some()).collect();
    assert_eq!(states, [true; 3]);
    assert_eq!(draft.nodes()[1].parent, Some(0));
    assert!(!draft.offer(13, Origin::Model) || written(&vocabulary, &draft) == ["A", "d", "B"]);
}
