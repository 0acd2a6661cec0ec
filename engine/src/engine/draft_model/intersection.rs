//! A small model with a different vocabulary whose rows are mapped to the tokens that both models have:
//! token-level intersection, TLI of [Timor et al. 2025](https://arxiv.org/abs/2502.05202).
//!
//! ```text
//!   the text in its tokens, and drafts one by one ─► a row over its tokens ─► the logits of tokens that the model has, too ─► drafts
//! ```
//!
//! A token that only one of the two models has is never drafted: in the row it has no mass, and the rest is a
//! distribution over the model's tokens like that of any draft model. So it is drawn from and verified by the
//! same [rules](super::tokens), and the law does not change. Tokens are the same if they write the same
//! bytes, control tokens if they have the same name; the end-of-text tokens of both are the same.
//!
//! The text is tokenised by the draft model's tokenizer ([`Translation`]), together with the drafts of other
//! sources. The drafts of this model follow token by token, whether or not its tokenizer would produce them.

use crate::engine::draft_model::reader::{Passage, Reader};
use crate::engine::draft_model::tokens::TokenModel;
use crate::engine::draft_model::translation::{Joined, Translated, Translation};
use crate::error::EngineError;
use crate::model::logits::Logits;
use crate::sequence::Sequence;
use crate::speculation::draft::{Draft, Source, path};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::draft::NodeId;
use std::collections::HashMap;

/// The maximum number of tokens of a text that are translated for one pass. Tokenizers are slow, and this
/// happens on the decode thread.
pub(super) const PIECE: usize = 512;

/// A map from each of the model's tokens to the same token of the draft model, if there is one.
pub(super) struct Intersection(Vec<Option<u32>>);

impl Intersection {
    pub(super) fn new(vocabulary: &Vocabulary, own: &Vocabulary) -> Self {
        let same = |token: u32| {
            let bytes = vocabulary.bytes(token);
            match vocabulary.kind(token) {
                // Of tokens that write the same bytes, only the first is mapped: otherwise the row would
                // count the mass twice.
                TokenKind::Text if vocabulary.token_of(bytes) == Some(token) => own.token_of(bytes),
                TokenKind::Special | TokenKind::Mark => {
                    let name = std::str::from_utf8(bytes).ok().filter(|name| !name.is_empty());
                    name.and_then(|name| own.special(name))
                }
                _ => None,
            }
        };
        let tokens = 0..u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
        let mut of: Vec<Option<u32>> = tokens.map(same).collect();
        // End tokens with different names.
        if let (Some(&end), Some(&own_end)) = (vocabulary.eos().first(), own.eos().first()) {
            of[end as usize].get_or_insert(own_end);
        }
        Intersection(of)
    }

    /// Returns the draft model's token that is the same as this one, if there is one.
    fn own(&self, token: u32) -> Option<u32> {
        self.0.get(token as usize).copied().flatten()
    }

    /// Returns rows of the draft model as rows of the model: tokens that the draft model lacks cannot be
    /// drawn.
    fn rows(&self, own: &Logits) -> Logits {
        let logit = |row: &[f32], own: Option<u32>| {
            own.and_then(|own| row.get(own as usize).copied())
                .unwrap_or(f32::NEG_INFINITY)
        };
        let mut values = Vec::with_capacity(own.len() * self.0.len());
        for number in 0..own.len() {
            let row = own.row(number);
            values.extend(self.0.iter().map(|&own| logit(row, own)));
        }
        Logits::new(values, self.0.len())
    }
}

/// A draft model whose rows are mapped to the intersection, while it drafts.
pub(super) struct IntersectionModel<'a> {
    pub(super) reader: &'a mut Reader,
    pub(super) translation: &'a Translation,
    pub(super) texts: &'a mut HashMap<u64, Translated>,
    pub(super) intersection: &'a Intersection,
}

/// Returns the drafts up to one of them: the tokens of other sources, and after them those that the draft
/// model has drafted itself.
fn parts(sequence: &Sequence, tip: Option<NodeId>) -> (Vec<u32>, Vec<u32>) {
    let path = path(&sequence.draft.drafts, tip);
    let drafts = path.into_iter().map(|node| &sequence.draft.drafts[node]);
    let (own, others): (Vec<_>, Vec<_>) = drafts.partition(|draft| draft.source == Source::Model);
    let tokens = |drafts: Vec<&Draft>| drafts.iter().map(|draft| draft.token).collect();
    (tokens(others), tokens(own))
}

impl TokenModel for IntersectionModel<'_> {
    type Passage = Passage;

    fn prepare(&mut self, sequence: &mut Sequence, tip: Option<NodeId>) -> bool {
        let (behind, own) = parts(sequence, tip);
        let length = sequence.text.tokens.len() + behind.len();
        let translated = self.texts.entry(sequence.id.number).or_default();
        // After drafts of this model, the text is the same as in the previous pass.
        if own.is_empty() {
            let unchanged = sequence.draft.unchanged.min(translated.read());
            let text = Joined {
                text: &sequence.text.tokens,
                behind: &behind,
                len: length.min(unchanged + PIECE),
            };
            self.translation.follow(translated, text, unchanged);
            sequence.draft.unchanged = sequence.text.tokens.len();
        }
        if translated.read() != length || translated.tokens.is_empty() {
            return false;
        }
        let mut passage = self.passage(sequence, tip);
        if let Some(translated) = self.texts.get_mut(&sequence.id.number) {
            passage.unchanged = translated.take_unchanged();
        }
        self.reader.reaches(passage.text.len() + passage.drafts.len()) && self.reader.prepare(&passage)
    }

    fn passage(&self, sequence: &Sequence, tip: Option<NodeId>) -> Passage {
        let text = self
            .texts
            .get(&sequence.id.number)
            .map(|text| text.tokens.clone());
        let text = text.unwrap_or_default();
        let (_, own) = parts(sequence, tip);
        Passage {
            id: sequence.id.number,
            scope: sequence.text.table.scope().clone(),
            unchanged: text.len(),
            text,
            drafts: own
                .into_iter()
                .filter_map(|token| self.intersection.own(token))
                .collect(),
            parents: None,
            rows: 1,
            scale: sequence.draw.warper.scale(),
        }
    }

    fn forward(&mut self, passages: &[Passage]) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        let (logits, rows) = self.reader.forward(passages)?;
        Ok((self.intersection.rows(&logits), rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(tokens: &[(TokenKind, &str)], eos: u32) -> Vocabulary {
        Vocabulary::new(tokens, &[eos]).expect("some tokens")
    }

    /// Guards against mass that is counted twice, and against end tokens that are lost because they have
    /// different names.
    #[test]
    fn what_both_have_is_what_writes_the_same_or_has_the_same_name() {
        use TokenKind::{Special, Text, Unused};
        let model = [
            (Text, "a"),
            (Text, "ab"),
            (Text, "a"),
            (Unused, ""),
            (Special, "<s>"),
            (Text, "<x>"),
            (Special, "<end>"),
        ];
        let own = [
            (Special, "</s>"),
            (Special, "<s>"),
            (Special, "<x>"),
            (Text, "ab"),
            (Text, "b"),
            (Text, "a"),
        ];
        let intersection = Intersection::new(&vocabulary(&model, 6), &vocabulary(&own, 0));
        let same = [Some(5), Some(3), None, None, Some(1), None, Some(0)];
        assert_eq!(intersection.0, same);
        let rows = intersection.rows(&Logits::new(
            vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0],
            6,
        ));
        let none = f32::NEG_INFINITY;
        assert_eq!(rows.row(0), [5.0, 3.0, none, none, 1.0, none, 0.0]);
        assert_eq!(rows.row(1), [15.0, 13.0, none, none, 11.0, none, 10.0]);
        assert_eq!(intersection.own(7), None);
    }
}
