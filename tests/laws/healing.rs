//! Token healing, exactly: the text after a healed prompt has the model's law over all tokenizations of the
//! removed bytes, and if the model writes the tokens of a tokenizer, it has the law of texts that begin with
//! the prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use lexiform::Grammar;
use lexiform::vocab::{Healed, TokenKind, Vocabulary};
use lexiform::{Options, Source, compile};
use lexiform_law::{
    Allowed, Attempt, Chooser, Every, Law as Choice, Sampler, Step, Table, Trie, Walk, Warper, Warping,
    Weight, law_of,
};

use crate::global::{Outcomes, Way, reachable_by};
use crate::model::{Law, Word, normalised, variation};
use crate::number::{Cases, Exact, total};

const END: u32 = 5;
/// `c`, `a`, `b`: the last two could begin `abc`.
const PROMPT: [u32; 3] = [2, 0, 1];
/// More than any word here has tokens.
const LONGEST: u32 = 10;

fn vocabulary() -> Arc<Vocabulary> {
    let text = ["a", "b", "c", "bc", "abc"].map(|bytes| (TokenKind::Text, bytes));
    let tokens = [&text[..], &[(TokenKind::Special, "<end>")]].concat();
    Arc::new(Vocabulary::new(&tokens, &[END]).expect("a vocabulary"))
}

/// The row of a model after these tokens.
type Rows<'a> = &'a dyn Fn(&[u32]) -> Vec<Exact>;

/// Any row after any tokens, the same ones for one seed.
fn random_rows(seed: u64) -> impl Fn(&[u32]) -> Vec<Exact> {
    move |prefix| {
        let mix = |state: u64, token: &u32| (state ^ u64::from(token + 1)).wrapping_mul(0x0100_0000_01b3);
        Cases(prefix.iter().fold(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), mix)).row(6)
    }
}

/// A law of texts that a longest-match tokenizer spells.
struct Spelled {
    texts: BTreeMap<Vec<u8>, Exact>,
    words: Law,
}

impl Spelled {
    /// Of all texts of at most five letters.
    fn random(seed: u64) -> Spelled {
        let vocabulary = vocabulary();
        let (mut texts, mut last) = (vec![Vec::new()], vec![Vec::new()]);
        for _ in 0..5 {
            let longer = |text: &Vec<u8>| b"abc".map(|letter| [&text[..], &[letter]].concat());
            last = last.iter().flat_map(longer).collect();
            texts.extend(last.clone());
        }
        let weights = Cases(seed).row(texts.len());
        let words = texts
            .iter()
            .map(|text| spelled(&vocabulary, text))
            .zip(weights.clone());
        Spelled {
            words: words.collect(),
            texts: texts.into_iter().zip(weights).collect(),
        }
    }

    /// The model's row: what comes next in the spellings that begin so.
    fn row(&self, prefix: &[u32]) -> Vec<Exact> {
        let below = |token: u32| {
            let begins = |word: &&Word| word.starts_with(prefix) && word.get(prefix.len()) == Some(&token);
            let words = self.words.iter().filter(|(word, _)| begins(word));
            total(words.map(|(_, probability)| probability))
        };
        let row: Vec<Exact> = (0..=END).map(below).collect();
        let sum = total(&row);
        match sum.is_positive() {
            true => row.into_iter().map(|mass| mass / sum.clone()).collect(),
            // The model never comes here.
            false => (0..=END)
                .map(|token| if token == END { Exact::one() } else { Exact::zero() })
                .collect(),
        }
    }

    /// The law of what follows a text in those texts that go on in one of these ways.
    fn after(&self, prompt: &[u8], ways: &[&[u8]]) -> Law {
        let probability = |way: &&[u8]| self.texts[&[prompt, way].concat()].clone();
        normalised(ways.iter().map(|way| (letters(way), probability(way))).collect())
    }
}

/// The tokens of a text, the longest at each place, and the end.
fn spelled(vocabulary: &Vocabulary, text: &[u8]) -> Word {
    let (mut word, mut at) = (Word::new(), 0);
    while at < text.len() {
        let (length, tokens) = vocabulary
            .trie()
            .prefixes(&text[at..])
            .last()
            .expect("every letter is a token");
        word.push(tokens[0]);
        at += length;
    }
    word.push(END);
    word
}

/// Texts as words of a law.
fn letters(text: &[u8]) -> Word {
    text.iter().map(|&byte| u32::from(byte)).collect()
}

/// A prompt of which so many tokens stay, and the grammar of what follows: the bytes of the others, then
/// this.
struct Cut {
    kept: Vec<u32>,
    removed: Vec<u8>,
    grammar: Grammar,
}

impl Cut {
    fn new(kept: usize, pattern: &str) -> Cut {
        let vocabulary = vocabulary();
        let removed: Vec<u8> = PROMPT[kept..]
            .iter()
            .flat_map(|&token| vocabulary.bytes(token))
            .copied()
            .collect();
        let options = Options {
            prefix: removed.clone(),
            ..Options::default()
        };
        let (grammar, _) = compile(Source::Regex(pattern), &vocabulary, &options).expect("it compiles");
        Cut {
            kept: PROMPT[..kept].to_vec(),
            removed,
            grammar,
        }
    }

    fn healed(pattern: &str) -> Cut {
        let Healed { kept, removed } = vocabulary().heal(&PROMPT);
        assert_eq!((kept, &removed[..]), (1, &b"ab"[..]));
        Cut::new(kept, pattern)
    }

    fn row(&self, rows: Rows<'_>, word: &[u32]) -> Vec<Exact> {
        rows(&[&self.kept[..], word].concat())
    }

    fn mask(&self, word: &[u32]) -> Vec<u32> {
        let step = |state, &token: &u32| self.grammar.step(state, token);
        let state = word
            .iter()
            .try_fold(self.grammar.start(), step)
            .expect("only what is allowed is drawn");
        self.grammar.mask(state).words().to_vec()
    }

    /// One attempt of the global law.
    fn attempt(&self, rows: Rows<'_>, trie: &mut Trie<Exact>, chooser: &mut Every<Exact>) -> Option<Word> {
        let (mut attempt, mut word) = (Attempt::begin(trie, 0), Word::new());
        loop {
            let (row, mask) = (Table(self.row(rows, &word)), self.mask(&word));
            match attempt.next(trie, &row, Allowed::Words(&mask), chooser) {
                Step::Token(drawn) => word.push(drawn.token),
                Step::End(drawn) => {
                    word.push(drawn.token);
                    return Some(word);
                }
                Step::Restart => return None,
                Step::Stuck(error) => panic!("an attempt is never stuck: {error}"),
            }
        }
    }

    /// The law of tokens that attempts have, which must be the same at each trie that one of them can leave.
    fn global(&self, rows: Rows<'_>) -> Law {
        let way: Way<'_> = &|trie, chooser| self.attempt(rows, trie, chooser);
        let tries = reachable_by(Trie::new(&[END], LONGEST, usize::MAX), 1, way);
        assert!(tries.len() > 2);
        let mut laws = tries
            .iter()
            .map(|trie| normalised(Outcomes::by(trie, way).accepted()));
        let first = laws.next().expect("the empty trie");
        assert!(
            laws.all(|law| law == first),
            "the law does not depend on earlier attempts"
        );
        first
    }

    /// The law of tokens that are drawn one by one from what is allowed.
    fn local(&self, rows: Rows<'_>) -> Law {
        law_of(|chooser| self.walk(rows, chooser))
    }

    fn walk(&self, rows: Rows<'_>, chooser: &mut impl Chooser<Exact>) -> Word {
        let warper = Warper::new(Warping::default(), Choice::Local).expect("the default is in range");
        let (mut walk, mut word) = (Walk::local(&warper, true, &[END]), Word::new());
        loop {
            let (row, mask) = (Table(self.row(rows, &word)), self.mask(&word));
            match walk.next(&row, Allowed::Words(&mask), chooser) {
                Step::Token(drawn) => word.push(drawn.token),
                Step::End(drawn) => {
                    word.push(drawn.token);
                    return word;
                }
                _ => panic!("every row gives something to what is allowed"),
            }
        }
    }

    /// The product of the masses that were allowed along a word.
    fn weight(&self, rows: Rows<'_>, word: &[u32]) -> Exact {
        let mass = |at: usize| {
            let mask = self.mask(&word[..at]);
            let row = self.row(rows, &word[..at]);
            let allowed = row.iter().enumerate();
            let allowed = allowed.filter(|(token, _)| Allowed::Words(&mask).contains(*token as u32));
            total(allowed.map(|(_, probability)| probability))
        };
        (0..word.len()).fold(Exact::one(), |product, at| product * mass(at))
    }

    /// The model's probability of a word after the tokens that stay.
    fn probability(&self, rows: Rows<'_>, word: &[u32]) -> Exact {
        let next = |at: usize| self.row(rows, &word[..at])[word[at] as usize].clone();
        (0..word.len()).fold(Exact::one(), |product, at| product * next(at))
    }

    /// The law of words as that of the texts that they write behind the removed bytes.
    fn told(&self, law: &Law) -> Law {
        let vocabulary = vocabulary();
        let mut told = Law::new();
        for (word, probability) in law {
            let text = word[..word.len() - 1]
                .iter()
                .flat_map(|&token| vocabulary.bytes(token));
            let text: Vec<u8> = text.copied().collect();
            let seen = text
                .strip_prefix(&self.removed[..])
                .expect("the removed bytes come first");
            let sum = told.entry(letters(seen)).or_insert_with(Exact::zero);
            *sum = sum.clone() + probability.clone();
        }
        told
    }

    /// From the definition: the probability of all tokenizations of the removed bytes and each way to go on,
    /// given the tokens that stay.
    fn defined(&self, rows: Rows<'_>, ways: &[&[u8]]) -> Law {
        let vocabulary = vocabulary();
        let mass = |way: &[u8]| {
            let tokenisations = vocabulary.tokenisations(&[&self.removed[..], way].concat());
            let words = tokenisations.iter().map(|tokens| [&tokens[..], &[END]].concat());
            total(
                &words
                    .map(|word| self.probability(rows, &word))
                    .collect::<Vec<_>>(),
            )
        };
        normalised(ways.iter().map(|way| (letters(way), mass(way))).collect())
    }
}

/// Grammars of what may follow, each with its texts.
const LANGUAGES: [(&str, &[&[u8]]); 3] = [
    ("[abc]?", &[b"", b"a", b"b", b"c"]),
    ("c|ca|bb", &[b"c", b"ca", b"bb"]),
    ("ca?|cc|b", &[b"c", b"ca", b"cc", b"b"]),
];

#[test]
fn continuations_have_the_law_of_all_tokenizations() {
    for seed in 0..8 {
        for (pattern, ways) in LANGUAGES {
            let (rows, cut) = (random_rows(seed), Cut::healed(pattern));
            let defined = cut.defined(&rows, ways);
            assert_eq!(cut.told(&cut.global(&rows)), defined, "{seed} {pattern}");
        }
    }
}

#[test]
fn where_a_tokenizer_spells_texts_healing_leaves_the_law_of_texts() {
    for seed in 0..8 {
        let model = Spelled::random(seed);
        let rows = |prefix: &[u32]| model.row(prefix);
        for (pattern, ways) in LANGUAGES {
            let texts = model.after(b"cab", ways);
            let law = |cut: Cut| cut.told(&cut.global(&rows));
            assert_eq!(law(Cut::healed(pattern)), texts, "{seed} {pattern}");
        }
    }
}

/// The mutants: the prompt as it is, and a token removed where two could be part of a longer one.
#[test]
fn without_healing_or_with_too_little_the_law_is_another() {
    let mut compared = 0;
    for seed in 0..8 {
        let model = Spelled::random(seed);
        let rows = |prefix: &[u32]| model.row(prefix);
        let (pattern, ways) = LANGUAGES[0];
        let texts = model.after(b"cab", ways);
        if !texts.contains_key(&letters(b"c")) {
            // A text of no probability tells nothing.
            continue;
        }
        compared += 1;
        for kept in [3, 2] {
            let cut = Cut::new(kept, pattern);
            let law = cut.told(&cut.global(&rows));
            // What needs the longer token is never written.
            assert!(!law.contains_key(&letters(b"c")), "{seed}, {kept} kept");
            assert!(variation(&law, &texts).is_positive(), "{seed}, {kept} kept");
        }
    }
    assert!(compared >= 4);
}

#[test]
fn the_weights_of_local_words_lead_to_the_global_law() {
    let mut differ = 0;
    for seed in 0..8 {
        let rows = |prefix: &[u32]| {
            // No zeros, so that a local walk is never stuck.
            let row = random_rows(seed)(prefix)
                .into_iter()
                .map(|p| p + crate::number::ratio(1, 10));
            let row: Vec<Exact> = row.collect();
            let sum = total(&row);
            row.into_iter().map(|p| p / sum.clone()).collect()
        };
        for (pattern, ways) in LANGUAGES {
            let cut = Cut::healed(pattern);
            let local = cut.local(&rows);
            let weighed = |(word, probability): (&Word, &Exact)| {
                let weighed = probability.clone() * cut.weight(&rows, word);
                assert_eq!(weighed, cut.probability(&rows, word));
                (word.clone(), weighed)
            };
            let weighed = normalised(local.iter().map(weighed).collect());
            assert_eq!(cut.told(&weighed), cut.defined(&rows, ways), "{seed} {pattern}");
            differ += usize::from(cut.told(&local) != cut.defined(&rows, ways));
        }
    }
    assert_eq!(differ, 8 * LANGUAGES.len(), "token by token it is another law");
}
