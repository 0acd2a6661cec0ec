//! Masks of Lexiform and of another engine at the same text, and an instance for each kind of disagreement.
//!
//! ```text
//!   sums differ ─► both masks ─► tokens that one side alone allows ─► the place of the first refused byte
//!                                └─► a whole text with such a token ─► the validator says who is right
//! ```
//!
//! Where Lexiform alone allows a token, its grammar completes the text; where the other engine alone does,
//! that engine writes on by its own masks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lexiform::vocab::Vocabulary;
use lexiform::{Compiler, Grammar, Source};
use serde_json::Value;

use super::cases::Case;
use super::place::Place;
use super::process::Peer;
use super::protocol::{Answer, Judged, Question, from_hex};
use super::worker::{options, shortest};

/// Pairs of different masks of one schema that are looked at; the others are counted.
const LOOKED_AT: usize = 2;
/// Examples that are kept of each kind of disagreement.
const EXAMPLES: usize = 2;
/// The most tokens of a text that shows a disagreement.
const LONGEST: usize = 64;
/// The most tokens that an engine is asked about at one place.
const ASKED: usize = 64;

/// The side that alone allows a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Ours,
    Theirs,
}

/// What a validator says of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Valid,
    /// It is not an instance, or no JSON, for this reason.
    Invalid(String),
    /// There is no validator for the schema.
    Unknown(String),
}

/// A token that one side alone allows.
#[derive(Clone, Debug)]
pub(super) struct Example {
    pub(super) schema: String,
    pub(super) before: String,
    /// The text of the token; empty for the end.
    pub(super) token: String,
    /// A whole text with the token, and whether it is valid; `None` if none was found.
    pub(super) whole: Option<(String, Judgement)>,
}

/// Who is wrong about a token that one side alone allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// Both allow the text, one of them in other tokens.
    Nobody,
    /// It is valid, but Lexiform leaves this white space, or another spelling of a character, out by choice.
    Choice,
    Lexiform,
    TheOther,
    /// No whole text was found, or it cannot be judged.
    Unknown,
}

impl Example {
    /// Returns who is wrong.
    pub(super) fn blame(&self, side: Side, place: Place) -> Blame {
        let judgement = self.whole.as_ref().map(|(_, judgement)| judgement);
        match (side, judgement) {
            _ if place == Place::Cut => Blame::Nobody,
            (_, None | Some(Judgement::Unknown(_))) => Blame::Unknown,
            (Side::Theirs, Some(Judgement::Valid)) if matches!(place, Place::Space | Place::Escape) => {
                Blame::Choice
            }
            (Side::Theirs, Some(Judgement::Valid)) => Blame::Lexiform,
            (Side::Ours, Some(Judgement::Invalid(_))) => Blame::Lexiform,
            (Side::Ours, Some(Judgement::Valid)) => Blame::TheOther,
            (Side::Theirs, Some(Judgement::Invalid(_))) => Blame::TheOther,
        }
    }
}

/// How often engines disagree at a kind of place.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) tokens: u64,
    pub(super) masks: u64,
    pub(super) schemas: BTreeSet<String>,
    pub(super) examples: Vec<Example>,
}

/// The disagreements of one engine with Lexiform.
#[derive(Clone, Debug, Default)]
pub(super) struct Disputes {
    /// The masks that both computed at the same text.
    pub(super) masks: u64,
    pub(super) different: u64,
    /// The pairs of different masks that were looked at.
    pub(super) looked_at: u64,
    pub(super) kinds: BTreeMap<(Side, Place), Tally>,
}

/// What the judge of disagreements needs: Lexiform itself, and the vocabulary.
pub(super) struct Judge {
    compiler: Compiler,
    vocabulary: Arc<Vocabulary>,
    /// The tokens with which a text is brought to its end, the first that is allowed: what closes a value
    /// before what goes on with it, and anything before white space.
    closing: Vec<u32>,
}

/// A schema at which engines disagree.
struct Scene<'a> {
    case: &'a Case,
    grammar: Grammar,
    validator: Result<jsonschema::Validator, String>,
}

/// A text at which both engines stand.
struct Spot<'a> {
    scene: &'a Scene<'a>,
    instance: usize,
    position: usize,
    text: Vec<u8>,
}

impl Judge {
    pub(super) fn new(vocabulary: Arc<Vocabulary>) -> Self {
        let first = ["\"", "}", "]", "\"}", "\"]", ":", "0", "e", "l", ","].map(str::to_owned);
        let visible = (b'!'..=b'~').map(|byte| char::from(byte).to_string());
        let closing: Vec<u32> = first
            .into_iter()
            .chain(visible)
            .filter_map(|text| vocabulary.token_of(text.as_bytes()))
            .collect();
        Self {
            closing,
            compiler: Compiler::new(vocabulary.clone()),
            vocabulary,
        }
    }

    /// Compares the masks of a schema that both engines compiled.
    pub(super) fn compare(
        &self,
        case: &Case,
        (ours, our_peer): (&Judged, &mut dyn Peer),
        (theirs, their_peer): (&Judged, &mut dyn Peer),
        disputes: &mut Disputes,
    ) {
        let mut seen = BTreeSet::new();
        let mut spots = Vec::new();
        for (instance, (ours, theirs)) in ours.walks.iter().zip(&theirs.walks).enumerate() {
            for (position, pair) in ours.masks.iter().zip(&theirs.masks).enumerate() {
                disputes.masks += 1;
                disputes.different += u64::from(pair.0 != pair.1);
                if pair.0 != pair.1 && seen.insert(pair) && spots.len() < LOOKED_AT {
                    spots.push((instance, position));
                }
            }
        }
        if spots.is_empty() {
            return;
        }
        let Some(scene) = self.scene(case) else { return };
        for (instance, position) in spots {
            let spot = self.spot(&scene, instance, position);
            if let Some(masks) = both_masks(&spot, our_peer, their_peer) {
                disputes.looked_at += 1;
                self.look(&spot, &masks, their_peer, disputes);
            }
        }
    }

    fn scene<'a>(&self, case: &'a Case) -> Option<Scene<'a>> {
        let compiled = self
            .compiler
            .compile(Source::JsonSchema(&case.schema), &options());
        Some(Scene {
            case,
            grammar: compiled.ok()?.0,
            validator: validator(&case.schema),
        })
    }

    fn spot<'a>(&self, scene: &'a Scene<'a>, instance: usize, position: usize) -> Spot<'a> {
        let tokens = scene
            .case
            .instances
            .get(instance)
            .map_or(&[][..], |it| &it.tokens);
        let tokens = tokens.get(..position).unwrap_or(tokens);
        Spot {
            scene,
            instance,
            position,
            text: self.text(tokens),
        }
    }

    fn text(&self, tokens: &[u32]) -> Vec<u8> {
        tokens
            .iter()
            .flat_map(|token| self.vocabulary.bytes(*token))
            .copied()
            .collect()
    }

    /// Returns the bytes of a token; none for the end.
    fn bytes(&self, token: u32) -> &[u8] {
        match self.vocabulary.is_eos(token) {
            true => &[],
            false => self.vocabulary.bytes(token),
        }
    }

    fn look(
        &self,
        spot: &Spot<'_>,
        (ours, theirs): &(Vec<u32>, Vec<u32>),
        their_peer: &mut dyn Peer,
        disputes: &mut Disputes,
    ) {
        let disputed = disputed(ours, theirs);
        let cuts = other_cuts(spot, &disputed, theirs, their_peer);
        let mut found: BTreeMap<(Side, Place), (u64, u32)> = BTreeMap::new();
        for (token, side) in disputed {
            let place = match cuts.contains(&token) {
                true => Place::Cut,
                false => self.place(spot, token, side, theirs),
            };
            found.entry((side, place)).or_insert((0, token)).0 += 1;
        }
        for ((side, place), (tokens, first)) in found {
            let tally = disputes.kinds.entry((side, place)).or_default();
            tally.tokens += tokens;
            tally.masks += 1;
            tally.schemas.insert(spot.scene.case.name.clone());
            let is_new = tally
                .examples
                .iter()
                .all(|known| known.schema != spot.scene.case.name);
            if tally.examples.len() < EXAMPLES && is_new {
                tally.examples.push(self.example(spot, first, side, their_peer));
            }
        }
    }

    /// Returns the place of the first byte of a token that the other side refuses.
    fn place(&self, spot: &Spot<'_>, token: u32, side: Side, theirs: &[u32]) -> Place {
        let bytes = self.bytes(token);
        if bytes.is_empty() {
            return Place::End;
        }
        let taken = match side {
            Side::Theirs => self.taken_by_us(spot, bytes),
            Side::Ours => self.taken_by_them(theirs, bytes),
        };
        let before = [&spot.text[..], &bytes[..taken]].concat();
        let byte = bytes.get(taken).copied();
        match Place::of(&before, byte) {
            Place::Structure | Place::Number
                if side == Side::Theirs && is_behind_space(spot, &before, byte) =>
            {
                Place::Space
            }
            place => place,
        }
    }

    /// Returns how many bytes of a token Lexiform reads before it refuses one.
    fn taken_by_us(&self, spot: &Spot<'_>, bytes: &[u8]) -> usize {
        let grammar = &spot.scene.grammar;
        let start = grammar.step_bytes(grammar.start(), &spot.text);
        let takes =
            |length: usize| start.is_some_and(|at| grammar.step_bytes(at, &bytes[..length]).is_some());
        (1..=bytes.len())
            .take_while(|length| takes(*length))
            .count()
            .min(bytes.len() - 1)
    }

    /// Returns the length of the longest part of a token with which it begins and which is an allowed token:
    /// a mask says no more of the text within tokens.
    fn taken_by_them(&self, theirs: &[u32], bytes: &[u8]) -> usize {
        let allowed = |length: &usize| {
            let tokens = self.vocabulary.tokens_of(&bytes[..*length]);
            tokens.iter().any(|token| has(theirs, *token))
        };
        (1..bytes.len()).rev().find(allowed).unwrap_or(0)
    }

    fn example(&self, spot: &Spot<'_>, token: u32, side: Side, their_peer: &mut dyn Peer) -> Example {
        let rest = match side {
            _ if self.vocabulary.is_eos(token) => Some(Vec::new()),
            Side::Ours => self.completed_by_us(spot, token),
            Side::Theirs => self.completed_by_them(spot, token, their_peer),
        };
        let whole = rest.map(|rest| {
            let text = [&spot.text[..], &self.text(&rest)].concat();
            let judgement = judged(&spot.scene.validator, &text);
            (String::from_utf8_lossy(&text).into_owned(), judgement)
        });
        Example {
            schema: spot.scene.case.name.clone(),
            before: String::from_utf8_lossy(&spot.text).into_owned(),
            token: String::from_utf8_lossy(self.bytes(token)).into_owned(),
            whole,
        }
    }

    /// Returns a shortest completion that begins with this token.
    fn completed_by_us(&self, spot: &Spot<'_>, token: u32) -> Option<Vec<u32>> {
        let grammar = &spot.scene.grammar;
        let at = grammar.step_bytes(grammar.start(), &spot.text)?;
        let rest = shortest(grammar, grammar.step(at, token)?, LONGEST)?;
        Some([&[token], &rest[..]].concat())
    }

    fn completed_by_them(&self, spot: &Spot<'_>, token: u32, peer: &mut dyn Peer) -> Option<Vec<u32>> {
        let question = Question::Complete {
            instance: spot.instance,
            position: spot.position,
            token,
            prefer: self.closing.clone(),
            most: LONGEST,
        };
        match peer.ask(&question) {
            Ok(Answer::Completed { tokens }) => tokens,
            _ => None,
        }
    }
}

/// Returns `true` if Lexiform takes a byte once the white space before it is left out.
fn is_behind_space(spot: &Spot<'_>, before: &[u8], byte: Option<u8>) -> bool {
    let kept = before.trim_ascii_end();
    let text = [kept, byte.as_slice()].concat();
    let grammar = &spot.scene.grammar;
    kept.len() < before.len() && grammar.step_bytes(grammar.start(), &text).is_some()
}

fn both_masks(spot: &Spot<'_>, ours: &mut dyn Peer, theirs: &mut dyn Peer) -> Option<(Vec<u32>, Vec<u32>)> {
    let question = Question::Mask {
        instance: spot.instance,
        position: spot.position,
    };
    let mask = |peer: &mut dyn Peer| match peer.ask(&question) {
        Ok(Answer::Mask { words: Some(words) }) => from_hex(&words),
        _ => None,
    };
    Some((mask(ours)?, mask(theirs)?))
}

/// Returns the tokens that the other engine accepts though its mask lacks them. At forced text, some masks
/// hold one cut of it alone.
fn other_cuts(
    spot: &Spot<'_>,
    disputed: &[(u32, Side)],
    theirs: &[u32],
    peer: &mut dyn Peer,
) -> BTreeSet<u32> {
    let ours = disputed.iter().filter(|(_, side)| *side == Side::Ours);
    let tokens: Vec<u32> = ours.map(|(token, _)| *token).take(ASKED).collect();
    let is_forced = theirs.iter().map(|word| word.count_ones()).sum::<u32>() == 1;
    if tokens.is_empty() || !is_forced {
        return BTreeSet::new();
    }
    let question = Question::Takes {
        instance: spot.instance,
        position: spot.position,
        tokens: tokens.clone(),
    };
    match peer.ask(&question) {
        Ok(Answer::Takes { taken }) => {
            let taken = tokens.into_iter().zip(taken).filter(|(_, taken)| *taken);
            taken.map(|(token, _)| token).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn has(words: &[u32], token: u32) -> bool {
    words
        .get(token as usize / 32)
        .is_some_and(|word| word >> (token % 32) & 1 == 1)
}

/// Returns the tokens that only one side allows.
fn disputed(ours: &[u32], theirs: &[u32]) -> Vec<(u32, Side)> {
    let tokens = 0..32 * ours.len().min(theirs.len()) as u32;
    tokens
        .filter_map(|token| match (has(ours, token), has(theirs, token)) {
            (true, false) => Some((token, Side::Ours)),
            (false, true) => Some((token, Side::Theirs)),
            _ => None,
        })
        .collect()
}

/// Returns a validator that asserts formats, as the collections do.
fn validator(schema: &str) -> Result<jsonschema::Validator, String> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema).map_err(|error| error.to_string())
}

/// Judges the bytes of a whole text. Bytes that are no UTF-8 are no JSON.
fn judged(validator: &Result<jsonschema::Validator, String>, text: &[u8]) -> Judgement {
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) => return Judgement::Invalid(format!("it is no JSON: {error}")),
    };
    match validator {
        Err(reason) => Judgement::Unknown(reason.clone()),
        Ok(validator) => match validator.validate(&value) {
            Ok(()) => Judgement::Valid,
            Err(error) => Judgement::Invalid(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against judging a text in which broken bytes were replaced.
    #[test]
    fn bytes_that_are_no_text_are_no_json() {
        let any = validator("true");
        assert!(matches!(judged(&any, b"\"a\""), Judgement::Valid));
        assert!(matches!(judged(&any, b"\"\xff\""), Judgement::Invalid(_)));
    }
}
