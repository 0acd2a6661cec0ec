//! Constraints of a host that judges texts: a program that may be far away, and that is asked about several
//! texts at once.
//!
//! ```text
//!   SELECT name FROM                 Next [users, orders]   one of these comes now
//!   SELECT name FROM us              not asked: it is on the way to one of them
//!   SELECT name FROM users W         Open                   asked again when there is more
//!   SELECT name FROM users;          Allowed                whatever comes; not asked again
//!   DROP                             Forbidden
//! ```
//!
//! The set of texts is the one that the verdicts describe: a text is in it if none of its beginnings is
//! forbidden, each list is followed by one of its items, and the whole is not forbidden. Verdicts are about
//! the text and not about its tokens; a beginning that ends inside a character is judged without the bytes of
//! that character.

mod known;
mod verdict;
mod way;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Coverage, Failure, Monitor, MonitorState};
use known::Known;
use lexiform_automata::vocab::{TokenKind, Vocabulary};
pub use verdict::{Question, Verdict};
use way::Way;

/// A host that judges texts. Equal questions must get equal answers; recent answers are remembered for all
/// texts under one constraint, and not asked for again.
pub trait Judge: Send + Sync + 'static {
    /// Returns a verdict for each text, in their order.
    ///
    /// # Errors
    /// The host has no answer.
    fn judge(&self, texts: &[Question]) -> Result<Vec<Verdict>, Failure>;

    /// Returns how many tokens to ask about at once where two may suffice. More than one pays for a host that
    /// takes as long for several texts as for one.
    fn together(&self) -> usize {
        1
    }
}

/// A constraint that a [`Judge`] decides. Special tokens other than end tokens are not allowed.
#[derive(Debug)]
pub struct Judged<J> {
    vocabulary: Arc<Vocabulary>,
    judge: Arc<J>,
    remembered: Arc<Mutex<Known>>,
    leaves_marks: bool,
}

impl<J: Judge> Judged<J> {
    /// Creates the constraint of this judge, for texts written in the tokens of a vocabulary.
    pub fn new(vocabulary: &Arc<Vocabulary>, judge: J) -> Self {
        Judged {
            vocabulary: vocabulary.clone(),
            judge: Arc::new(judge),
            remembered: Arc::default(),
            leaves_marks: false,
        }
    }

    /// Leaves it to other constraints where special tokens and marks may come. The judge sees them in the
    /// text, by their names.
    #[must_use]
    pub fn leaving_marks(self) -> Self {
        Judged {
            leaves_marks: true,
            ..self
        }
    }
}

impl<J: Judge> Monitor for Judged<J> {
    fn start(&self) -> Box<dyn MonitorState> {
        Box::new(JudgedState {
            vocabulary: self.vocabulary.clone(),
            judge: self.judge.clone(),
            remembered: self.remembered.clone(),
            leaves_marks: self.leaves_marks,
            text: Vec::new(),
            way: None,
            known: HashMap::new(),
        })
    }
}

/// More text after the present one, and whether it is to end there.
type More = (Vec<u8>, bool);

/// A text, and what its judge has said about it.
struct JudgedState<J> {
    vocabulary: Arc<Vocabulary>,
    judge: Arc<J>,
    /// What the judge has said about any text.
    remembered: Arc<Mutex<Known>>,
    leaves_marks: bool,
    text: Vec<u8>,
    /// How the text may go on; `None` if its judge has not been asked yet, which is so at the beginning.
    way: Option<Way>,
    /// The verdicts about texts that go on from here.
    known: HashMap<More, Verdict>,
}

/// What is needed to decide about a token.
enum Need {
    /// Nothing.
    Decided(bool),
    /// The verdict about the text with this token.
    Verdict(More),
}

impl<J: Judge> JudgedState<J> {
    /// Returns the bytes of a token that writes text.
    fn bytes(&self, token: u32) -> Option<&[u8]> {
        let is_text = self.vocabulary.kind(token) == TokenKind::Text;
        let bytes = is_text.then(|| self.vocabulary.bytes(token))?;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Returns `true` if other constraints decide whether a token may come.
    fn is_left(&self, token: u32) -> bool {
        let kind = self.vocabulary.kind(token);
        self.leaves_marks && matches!(kind, TokenKind::Special | TokenKind::Mark)
    }

    fn need(&self, token: u32) -> Need {
        if self.vocabulary.is_eos(token) {
            return match &self.way {
                Some(way) if way.free => Need::Decided(true),
                Some(way) if !way.open => Need::Decided(false),
                _ => Need::Verdict((Vec::new(), true)),
            };
        }
        let Some(bytes) = self.bytes(token) else {
            return Need::Decided(self.is_left(token));
        };
        match &self.way {
            Some(way) if way.free => Need::Decided(true),
            Some(way) if !way.open && !way.completes(bytes) => Need::Decided(way.leads(bytes)),
            _ => Need::Verdict((bytes.to_vec(), false)),
        }
    }

    /// Finds the verdicts about everything that these tokens need; the judge is asked once.
    fn ask(&mut self, tokens: &[u32]) -> Result<(), Failure> {
        let mut wanted: Vec<More> = Vec::new();
        if self.way.is_none() {
            wanted.push((Vec::new(), false));
        }
        for &token in tokens {
            if let Need::Verdict(more) = self.need(token)
                && !self.known.contains_key(&more)
                && !wanted.contains(&more)
            {
                wanted.push(more);
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let questions: Vec<Question> = wanted.iter().map(|more| self.question(more)).collect();
        let verdicts = self.verdicts(&questions)?;
        for (more, verdict) in wanted.into_iter().zip(verdicts) {
            let is_here = more.0.is_empty() && !more.1;
            match is_here {
                true => self.way = Some(Way::default().then(&verdict, cut(&self.text))),
                false => drop(self.known.insert(more, verdict)),
            }
        }
        Ok(())
    }

    /// Returns the verdicts about these texts, of which the judge is asked about those that it has not been
    /// asked about before.
    fn verdicts(&self, questions: &[Question]) -> Result<Vec<Verdict>, Failure> {
        let remembered = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<Option<Verdict>> = {
            let known = remembered();
            questions.iter().map(|question| known.get(question)).collect()
        };
        let mut new: Vec<Question> = Vec::new();
        for (question, _) in questions.iter().zip(&found).filter(|(_, found)| found.is_none()) {
            if !new.contains(question) {
                new.push(question.clone());
            }
        }
        if !new.is_empty() {
            // The lock is not held meanwhile: the host may take its time.
            let verdicts = checked(self.judge.judge(&new)?, new.len())?;
            for (question, found) in questions.iter().zip(&mut found) {
                if let Some(place) = new.iter().position(|new| new == question) {
                    *found = Some(verdicts[place].clone());
                }
            }
            remembered().extend(new.into_iter().zip(verdicts));
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn question(&self, (more, is_whole): &More) -> Question {
        let text = [&self.text[..], more].concat();
        let length = match is_whole {
            true => text.len(),
            false => text.len() - cut(&text).len(),
        };
        Question {
            text: String::from_utf8_lossy(&text[..length]).into_owned(),
            is_whole: *is_whole,
        }
    }
}

impl<J: Judge> MonitorState for JudgedState<J> {
    fn fork(&self) -> Box<dyn MonitorState> {
        Box::new(JudgedState {
            vocabulary: self.vocabulary.clone(),
            judge: self.judge.clone(),
            remembered: self.remembered.clone(),
            leaves_marks: self.leaves_marks,
            text: self.text.clone(),
            way: self.way.clone(),
            known: self.known.clone(),
        })
    }

    fn allows(&mut self, token: u32, _left: Option<usize>) -> Result<bool, Failure> {
        self.ask(&[token])?;
        Ok(match self.need(token) {
            Need::Decided(is_allowed) => is_allowed,
            // A longer item goes on, whatever is said of a shorter one.
            Need::Verdict((more, false)) if self.way.as_ref().is_some_and(|way| way.leads(&more)) => true,
            Need::Verdict(more) => match self.known.get(&more) {
                Some(Verdict::Open | Verdict::Allowed) => true,
                Some(verdict @ Verdict::Next(_)) => {
                    let text = [&self.text[..], &more.0].concat();
                    !more.1 && Way::default().then(verdict, cut(&text)).leads(&[])
                }
                Some(Verdict::Forbidden) | None => false,
            },
        })
    }

    fn advance(&mut self, token: u32) -> Result<(), Failure> {
        if !self.allows(token, None)? {
            return Err(Failure(format!("token {token} is not allowed here")));
        }
        if self.vocabulary.is_eos(token) {
            return Ok(());
        }
        if self.is_left(token) {
            // What comes after it is asked about anew.
            self.text.extend_from_slice(self.vocabulary.bytes(token));
            (self.way, self.known) = (None, HashMap::new());
            return Ok(());
        }
        let bytes = self.bytes(token).unwrap_or_default().to_vec();
        self.text.extend_from_slice(&bytes);
        let verdict = self.known.remove(&(bytes.clone(), false));
        let before = self.way.take().unwrap_or_default();
        // Inside an item, a verdict that was asked for before the list was known does not count.
        let is_judged = before.open || before.completes(&bytes);
        let way = before.after(&bytes);
        self.way = Some(match verdict.filter(|_| is_judged) {
            Some(verdict) => way.then(&verdict, cut(&self.text)),
            None => way,
        });
        let later = std::mem::take(&mut self.known).into_iter();
        let later = later.filter_map(|((more, is_whole), verdict)| {
            let rest = more.strip_prefix(&bytes[..])?.to_vec();
            Some(((rest, is_whole), verdict))
        });
        self.known = later.collect();
        Ok(())
    }

    /// Leaves the tokens that agree with a list; there is no mask for what is judged.
    fn narrow(&mut self, words: &mut [u32], _left: Option<usize>) -> Result<Coverage, Failure> {
        Ok(match self.narrow_known(words) {
            true => Coverage::Over,
            false => Coverage::Ask,
        })
    }

    fn narrow_known(&mut self, words: &mut [u32]) -> bool {
        let Some(way) = self.way.as_ref().filter(|way| !way.free && !way.open) else {
            return false;
        };
        for (place, word) in words.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let token = place as u32 * 32 + bit.trailing_zeros();
                let is_there = (token as usize) < self.vocabulary.len() && !self.vocabulary.is_eos(token);
                let bytes = is_there.then(|| self.bytes(token)).flatten();
                let agrees = bytes.is_some_and(|bytes| way.leads(bytes) || way.completes(bytes));
                let is_kept = agrees || is_there && self.is_left(token);
                if !is_kept {
                    *word ^= bit;
                }
            }
        }
        true
    }

    fn together(&self) -> usize {
        self.judge.together()
    }

    fn prepare(&mut self, tokens: &[u32]) -> Result<(), Failure> {
        self.ask(tokens)
    }
}

/// Returns the verdicts if they are what so many questions can have as answers.
fn checked(verdicts: Vec<Verdict>, asked: usize) -> Result<Vec<Verdict>, Failure> {
    if verdicts.len() != asked {
        let given = verdicts.len();
        return Err(Failure(format!("{given} verdicts for {asked} texts")));
    }
    let has_empty = |verdict: &Verdict| match verdict {
        Verdict::Next(items) => items.iter().any(|item| item.is_empty()),
        _ => false,
    };
    match verdicts.iter().any(has_empty) {
        true => Err(Failure("an item of what may come next is empty".to_owned())),
        false => Ok(verdicts),
    }
}

/// Returns the bytes at the end of a text that begin a character and do not complete it.
fn cut(text: &[u8]) -> &[u8] {
    let last = text.iter().rev().take(3).position(|byte| byte & 0xC0 != 0x80);
    let Some(place) = last.map(|back| text.len() - 1 - back) else {
        return &[];
    };
    match std::str::from_utf8(&text[place..]) {
        Err(error) if error.error_len().is_none() => &text[place..],
        _ => &[],
    }
}
