//! Compares the masks of both engines bit by bit, at every text that both have reached.
//!
//! A token that only one engine allows is *disputed*. Its bytes are given to the other engine one at a time
//! until one is refused; this byte and the text before it determine the cause of the dispute
//! ([`classes`](crate::classes)).

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, State};
use llguidance::Matcher;

use crate::cases::Case;
use crate::classes::{Class, Dispute, Judge, Side};

/// The results over all schemas.
#[derive(Default)]
pub struct Comparison {
    schemas: usize,
    states: u64,
    equal: u64,
    classes: BTreeMap<Class, Tally>,
}

/// The number of occurrences of a class.
#[derive(Default)]
struct Tally {
    tokens: u64,
    states: u64,
    schemas: usize,
    last_schema: Option<usize>,
    examples: Vec<String>,
}

/// The maximum number of examples of an explained class.
const EXAMPLES: usize = 2;
/// The maximum number of examples of an unexplained class.
const UNEXPLAINED_EXAMPLES: usize = 40;

/// The classes of one pair of masks, with the number of tokens and an example of each.
type Found = BTreeMap<Class, (u64, String)>;

impl Comparison {
    /// Compares the masks after every token of every instance, as far as both engines accept it.
    pub fn add(&mut self, case: &Case, mut judge: Judge, matcher: &Matcher) {
        self.schemas += 1;
        let mut known = HashMap::new();
        for instance in &case.instances {
            let mut walk = Walk {
                case,
                text: Vec::new(),
                state: judge.grammar.start(),
                matcher: matcher.clone(),
            };
            self.compare(&mut walk, &mut judge, &mut known);
            for &token in &instance.tokens {
                if !walk.step(&judge.grammar, token) {
                    break;
                }
                self.compare(&mut walk, &mut judge, &mut known);
            }
        }
    }

    fn compare(&mut self, walk: &mut Walk<'_>, judge: &mut Judge, known: &mut HashMap<(State, u64), Found>) {
        let Ok(theirs) = walk.matcher.compute_mask_or_eos() else {
            return;
        };
        let ours = judge.grammar.mask(walk.state);
        self.states += 1;
        let disputed = disputed(ours.words(), theirs.as_slice());
        if disputed.is_empty() {
            self.equal += 1;
            return;
        }
        let mut hasher = DefaultHasher::new();
        disputed.hash(&mut hasher);
        let key = (walk.state, hasher.finish());
        // The same disputed tokens in the same state of our machine have the same classes; most disputes
        // repeat.
        let found = known
            .entry(key)
            .or_insert_with(|| walk.classify(judge, &disputed));
        for (class, (tokens, example)) in found {
            let tally = self.classes.entry(*class).or_default();
            tally.tokens += *tokens;
            tally.states += 1;
            tally.schemas += usize::from(tally.last_schema.replace(self.schemas) != Some(self.schemas));
            let room = if class.is_explained() {
                EXAMPLES
            } else {
                UNEXPLAINED_EXAMPLES
            };
            if tally.examples.len() < room && !tally.examples.contains(example) {
                tally.examples.push(example.clone());
            }
        }
    }

    /// Returns the classes as a table, with the examples below it.
    pub fn report(&self) -> String {
        let mut text = format!(
            "masks compared bit by bit: {} of {} states of {} schemas\n\n| class | tokens | states | schemas |\n|---|--:|--:|--:|\n",
            self.states - self.equal,
            self.states,
            self.schemas
        );
        text = text.replacen("bit by bit: ", "bit by bit, they differ in ", 1);
        for (class, tally) in &self.classes {
            text += &format!(
                "| {class} | {} | {} | {} |\n",
                tally.tokens, tally.states, tally.schemas
            );
        }
        let unexplained: u64 = self
            .classes
            .iter()
            .filter(|(class, _)| !class.is_explained())
            .map(|(_, tally)| tally.tokens)
            .sum();
        text += &format!("\nunexplained: {unexplained} tokens\n\n");
        for (class, tally) in &self.classes {
            text += &format!("{class}\n");
            tally
                .examples
                .iter()
                .for_each(|it| text += &format!("    {it}\n"));
        }
        text
    }
}

/// Returns the tokens that only one side allows.
fn disputed(ours: &[u32], theirs: &[u32]) -> Vec<(u32, Side)> {
    let mut all = Vec::new();
    for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let mut left = ours ^ theirs;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let side = if ours >> bit & 1 == 1 {
                Side::Ours
            } else {
                Side::Theirs
            };
            all.push((index as u32 * 32 + bit, side));
        }
    }
    all
}

/// The position of both engines.
struct Walk<'a> {
    case: &'a Case,
    text: Vec<u8>,
    state: State,
    matcher: Matcher,
}

impl Walk<'_> {
    fn step(&mut self, grammar: &Grammar, token: u32) -> bool {
        let Some(next) = grammar.step(self.state, token) else {
            return false;
        };
        let theirs = self
            .matcher
            .validate_tokens(&[token])
            .is_ok_and(|taken| taken == 1);
        if !theirs || self.matcher.consume_token(token).is_err() {
            return false;
        }
        self.state = next;
        self.text.extend_from_slice(grammar.vocabulary().bytes(token));
        true
    }

    fn classify(&mut self, judge: &mut Judge, disputed: &[(u32, Side)]) -> Found {
        let vocabulary = judge.grammar.vocabulary().clone();
        let mut refused: HashMap<(Side, Vec<u8>), Class> = HashMap::new();
        let mut found = Found::new();
        for &(token, side) in disputed {
            let class = self.class_of(judge, &vocabulary, &mut refused, token, side);
            let entry = found
                .entry(class)
                .or_insert_with(|| (0, self.example(&vocabulary, token, side)));
            entry.0 += 1;
        }
        found
    }

    fn class_of(
        &mut self,
        judge: &mut Judge,
        vocabulary: &Vocabulary,
        refused: &mut HashMap<(Side, Vec<u8>), Class>,
        token: u32,
        side: Side,
    ) -> Class {
        if vocabulary.is_eos(token) {
            return Class::End;
        }
        if vocabulary.kind(token) != TokenKind::Text {
            return Class::Special;
        }
        let bytes = vocabulary.bytes(token);
        let known = (1..=bytes.len()).find_map(|end| refused.get(&(side, bytes[..end].to_vec())));
        if let Some(class) = known {
            return *class;
        }
        let ours = self.taken_by_us(&judge.grammar, bytes);
        if (side == Side::Ours) != (ours == bytes.len()) {
            return Class::MaskAgainstStep;
        }
        let taken = match side {
            Side::Ours => self.taken_by_them(vocabulary, bytes),
            Side::Theirs => ours,
        };
        if taken == bytes.len() {
            return Class::Cut;
        }
        let dispute = Dispute::new(&self.text, &bytes[..=taken], side);
        let class = judge.class(&dispute);
        refused.insert((side, bytes[..=taken].to_vec()), class);
        class
    }

    /// Returns the number of these bytes that llguidance accepts here, each as a separate token.
    fn taken_by_them(&mut self, vocabulary: &Vocabulary, bytes: &[u8]) -> usize {
        let tokens: Option<Vec<u32>> = bytes.iter().map(|byte| vocabulary.token_of_byte(*byte)).collect();
        tokens.map_or(0, |tokens| self.matcher.validate_tokens(&tokens).unwrap_or(0))
    }

    fn taken_by_us(&self, grammar: &Grammar, bytes: &[u8]) -> usize {
        let mut state = self.state;
        let takes = |byte: &&u8| {
            let next = grammar.step_bytes(state, &[**byte]);
            state = next.unwrap_or(state);
            next.is_some()
        };
        bytes.iter().take_while(takes).count()
    }

    fn example(&self, vocabulary: &Vocabulary, token: u32, side: Side) -> String {
        const SHOWN: usize = 70;
        let from = self.text.len().saturating_sub(SHOWN);
        format!(
            "{}: {side} alone allows `{}` after `{}`",
            self.case.name,
            vocabulary.bytes(token).escape_ascii(),
            String::from_utf8_lossy(&self.text[from..]).escape_debug(),
        )
    }
}
