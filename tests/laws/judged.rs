//! Judges of texts: the law of the texts that their verdicts describe, and how often they are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::monitor::{
    Failure, Judge, Judged, Monitor, MonitorState, Product, Question, Verdict, sample,
};
use lexiform_law::{
    Allowed, Chooser, Law, Part, Place, Row, Seeded, Step, Table, Walk, Warper, Warping, law_of,
};

use crate::number::{Cases, Exact, ratio};

/// The last token ends a text; "é" is written in two tokens or in one.
const TOKENS: [&[u8]; 7] = [b"a", b"b", b"ab", b"\xC3", b"\xA9", "é".as_bytes(), b"<eos>"];
const END: u32 = TOKENS.len() as u32 - 1;

fn vocabulary() -> Arc<Vocabulary> {
    let kind = |number| match number == END as usize {
        true => TokenKind::Special,
        false => TokenKind::Text,
    };
    let tokens: Vec<(TokenKind, &[u8])> = (0..).map(kind).zip(TOKENS).collect();
    Arc::new(Vocabulary::new(&tokens, &[END]).expect("a vocabulary"))
}

/// The way in which a judge tells its language.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Telling {
    /// Every text is judged.
    Judging,
    /// The whole language is listed at the beginning, and what goes on after a complete item at that item.
    Listing,
    /// Letters are listed one by one.
    Letters,
}

/// A judge of a finite language, and the questions that it was asked.
struct Words {
    words: BTreeSet<&'static str>,
    telling: Telling,
    together: usize,
    asked: Arc<Mutex<Vec<Vec<Question>>>>,
}

impl Words {
    fn new(words: &[&'static str], telling: Telling, together: usize) -> Self {
        Words {
            words: words.iter().copied().collect(),
            telling,
            together,
            asked: Arc::default(),
        }
    }

    fn verdict(&self, question: &Question) -> Verdict {
        let text = question.text.as_str();
        let rests = self.words.iter().filter_map(|word| word.strip_prefix(text));
        let rests: BTreeSet<&str> = rests.collect();
        let letters = || {
            rests
                .iter()
                .filter_map(|rest| Some(Arc::from(&rest[..rest.chars().next()?.len_utf8()])))
        };
        match (question.is_whole, self.telling) {
            (true, _) if rests.contains("") => Verdict::Open,
            (true, _) => Verdict::Forbidden,
            _ if rests.is_empty() => Verdict::Forbidden,
            // A list leaves no end here.
            _ if rests.contains("") || self.telling == Telling::Judging => Verdict::Open,
            (_, Telling::Letters) => Verdict::Next(letters().collect()),
            _ => Verdict::Next(rests.iter().map(|&rest| rest.into()).collect()),
        }
    }
}

impl Judge for Words {
    fn judge(&self, texts: &[Question]) -> Result<Vec<Verdict>, Failure> {
        self.asked.lock().expect("no panic").push(texts.to_vec());
        Ok(texts.iter().map(|text| self.verdict(text)).collect())
    }

    fn together(&self) -> usize {
        self.together
    }
}

fn bytes(text: &[u32]) -> Vec<u8> {
    text.iter()
        .flat_map(|&token| TOKENS[token as usize])
        .copied()
        .collect()
}

/// What a model says after a text: nothing of tokens that are parts of a character, which a judge cannot see,
/// and little enough of the others that all orders of them can be listed.
fn row(seed: u64, text: &[u32]) -> Table<Exact> {
    let number = text
        .iter()
        .fold(seed, |number, &token| number * 31 + u64::from(token) + 1);
    let shares = Cases(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).row(4);
    let mut row = vec![ratio(0, 1); TOKENS.len()];
    let long = if seed.is_multiple_of(2) { 2 } else { 5 };
    for (token, share) in [0, 1, long, END as usize].into_iter().zip(shares) {
        row[token] = share;
    }
    Table(row)
}

/// The tokens that may come next, by a look at all words.
fn mask(words: &[&str], text: &[u32]) -> [u32; 1] {
    let may = |token: u32| match token {
        END => words.iter().any(|word| word.as_bytes() == bytes(text)),
        token => {
            let longer = bytes(&[text, &[token]].concat());
            words.iter().any(|word| word.as_bytes().starts_with(&longer))
        }
    };
    [(0..=END)
        .filter(|&token| may(token))
        .fold(0, |mask, token| mask | 1 << token)]
}

fn walk<W: lexiform_law::Weight>() -> Walk<W> {
    let warper = Warper::new(Warping::default(), Law::Local).expect("a warping");
    Walk::local(&warper, true, &[END])
}

fn text(seed: u64, monitor: &dyn Monitor, chooser: &mut impl Chooser<Exact>) -> Option<Vec<u32>> {
    let (mut state, mut walk, mut text) = (monitor.start(), walk(), Vec::new());
    loop {
        let step = sample::step(&mut walk, &row(seed, &text), &mut *state, None, chooser);
        match step.expect("an answer") {
            Step::Token(drawn) => {
                state.advance(drawn.token).expect("an answer");
                text.push(drawn.token);
            }
            Step::End(_) => return Some(text),
            Step::Stuck(_) => return None,
            Step::Restart => panic!("the local law never goes back"),
        }
    }
}

fn masked(seed: u64, words: &[&str]) -> BTreeMap<Option<Vec<u32>>, Exact> {
    law_of(|chooser| {
        let mut text = Vec::new();
        loop {
            let mask = mask(words, &text);
            let row = row(seed, &text);
            let token = row.part(Allowed::Words(&mask)).draw(Place::new(0, 0), chooser)?;
            if token == END {
                return Some(text);
            }
            text.push(token);
        }
    })
}

#[test]
fn however_a_language_is_told_the_law_is_that_of_its_masks() {
    let languages: [&[&str]; 4] = [&["a", "b"], &["ab", "a", "b"], &["é", "aé"], &["b", "ab"]];
    for (seed, words) in (1..).zip(languages) {
        let expected = masked(seed, words);
        for telling in [Telling::Judging, Telling::Listing, Telling::Letters] {
            for together in [1, 2] {
                let judged = Judged::new(&vocabulary(), Words::new(words, telling, together));
                let law = law_of(|chooser| text(seed, &judged, chooser));
                assert_eq!(law, expected, "{words:?} {telling:?} {together}");
            }
        }
    }
}

#[test]
fn what_is_asked_about_together_changes_no_text_of_a_seed() {
    let float = |seed: u64, text: &[u32]| Table(row(seed, text).0.iter().map(to_f64).collect::<Vec<f64>>());
    let words = ["ab", "aé", "ba", "bab"];
    let drawn = |seed: u64, telling, together| {
        let judged = Judged::new(&vocabulary(), Words::new(&words, telling, together));
        let (mut state, mut walk, mut text) = (judged.start(), walk::<f64>(), Vec::new());
        let mut chooser = Seeded::new(seed, 0);
        loop {
            let row = float(3, &text);
            match sample::step(&mut walk, &row, &mut *state, None, &mut chooser).expect("an answer") {
                Step::Token(token) => {
                    state.advance(token.token).expect("an answer");
                    text.push(token.token);
                }
                Step::End(_) => return (text, walk.log_weight()),
                _ => return (text, f64::NEG_INFINITY),
            }
        }
    };
    for seed in 0..40 {
        assert_eq!(
            drawn(seed, Telling::Judging, 1),
            drawn(seed, Telling::Judging, 5),
            "{seed}"
        );
    }
}

/// A judge is asked once for a token, about nothing twice, and never on the way to an item of a list.
#[test]
fn a_judge_is_asked_once_for_a_token_and_about_nothing_twice() {
    let words = Words::new(&["abab"], Telling::Listing, 8);
    let asked = words.asked.clone();
    let mut state = Judged::new(&vocabulary(), words).start();
    let questions = || -> Vec<Vec<(String, bool)>> {
        let of = |texts: &Vec<Question>| texts.iter().map(|it| (it.text.clone(), it.is_whole)).collect();
        asked.lock().expect("no panic").iter().map(of).collect()
    };
    state.prepare(&[0, 1, 2, END]).expect("an answer");
    let first: Vec<(String, bool)> = [("", false), ("a", false), ("b", false), ("ab", false), ("", true)]
        .map(|(text, end)| (text.to_owned(), end))
        .into();
    assert_eq!(questions(), [first]);
    for token in [2, 0] {
        assert_eq!(state.allows(1, None), Ok(false));
        state.advance(token).expect("allowed");
    }
    assert_eq!(questions().len(), 1, "{:?}", questions());
    state.advance(1).expect("allowed");
    assert_eq!(state.allows(END, None), Ok(true));
    let last = [("abab".to_owned(), false)];
    assert_eq!(questions()[1..], [last.to_vec(), vec![("abab".to_owned(), true)]]);
    // A copy of the state, and a text that begins anew, ask nothing that was answered.
    let mut copy = state.fork();
    assert_eq!(copy.allows(END, None), Ok(true));
    assert_eq!(questions().len(), 3);
}

/// A list is followed byte by byte; without one, a text that ends inside a character is judged without it.
#[test]
fn a_character_may_be_written_in_several_tokens() {
    let words = Words::new(&["é", "a"], Telling::Listing, 1);
    let asked = words.asked.clone();
    let mut state = Judged::new(&vocabulary(), words).start();
    state.advance(3).expect("the first byte of an item");
    let mut mask = [0b111_1111];
    assert!(state.narrow_known(&mut mask));
    assert_eq!(mask, [1 << 4]);
    state.advance(4).expect("its last byte");
    assert_eq!(state.allows(END, None), Ok(true));
    let asked: Vec<Question> = asked.lock().expect("no panic").concat();
    assert!(
        asked
            .iter()
            .all(|question| ["", "é"].contains(&question.text.as_str())),
        "{asked:?}"
    );
}

#[test]
fn a_verdict_that_was_asked_for_ahead_does_not_open_a_list() {
    struct Lists;
    impl Judge for Lists {
        fn judge(&self, texts: &[Question]) -> Result<Vec<Verdict>, Failure> {
            let verdict = |question: &Question| match question.text.as_str() {
                "" => Verdict::Next(vec!["ab".into()]),
                _ => Verdict::Open,
            };
            Ok(texts.iter().map(verdict).collect())
        }
    }
    let mut state = Judged::new(&vocabulary(), Lists).start();
    state.prepare(&[0, 1]).expect("an answer");
    state.advance(0).expect("allowed");
    assert_eq!(
        (state.allows(0, None), state.allows(1, None)),
        (Ok(false), Ok(true))
    );
}

#[test]
fn a_verdict_of_allowed_ends_the_questions() {
    struct Free(Arc<Mutex<usize>>);
    impl Judge for Free {
        fn judge(&self, texts: &[Question]) -> Result<Vec<Verdict>, Failure> {
            *self.0.lock().expect("no panic") += texts.len();
            Ok(texts
                .iter()
                .map(|text| {
                    if text.text == "a" {
                        Verdict::Allowed
                    } else {
                        Verdict::Open
                    }
                })
                .collect())
        }
    }
    let asked = Arc::default();
    let mut state = Judged::new(&vocabulary(), Free(Arc::clone(&asked))).start();
    state.advance(0).expect("allowed");
    for token in [1, 3, 4, END] {
        assert_eq!(state.allows(token, None), Ok(true));
        state.advance(token).expect("allowed");
    }
    assert_eq!(*asked.lock().expect("no panic"), 2);
}

#[test]
fn answers_that_are_none_are_failures() {
    struct Wrong(Vec<Verdict>);
    impl Judge for Wrong {
        fn judge(&self, _: &[Question]) -> Result<Vec<Verdict>, Failure> {
            Ok(self.0.clone())
        }
    }
    for verdicts in [
        vec![Verdict::Open],
        vec![Verdict::Open, Verdict::Next(vec!["".into()])],
    ] {
        let state = Judged::new(&vocabulary(), Wrong(verdicts));
        assert!(state.start().allows(0, None).is_err());
        let product = Product::new(vec![Arc::new(state)]);
        assert!(product.begin().allows(0, None).is_err());
    }
}

fn to_f64(number: &Exact) -> f64 {
    lexiform_law::Weight::ln(number).exp()
}
