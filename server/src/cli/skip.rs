//! `--draft-skip`: the layers that the model skips when it drafts for itself.

use std::str::FromStr;

use lexiform::vocab::Tokenizer;
use lexiform_engine::SkippedLayers;

/// The text by which layers are chosen: a tool call, a document and some prose, as a service writes them.
const TEXT: &str = include_str!("skip.txt");

/// The layers to skip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftSkip {
    /// These layers, counted from 0.
    Named(Vec<usize>),
    /// This many layers, chosen as those that the model can best do without.
    Best(usize),
}

impl FromStr for DraftSkip {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong =
            || format!("{text:?} is neither layers, such as 2-4,7, nor a number of them, such as best:3");
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        if let Some(count) = text.strip_prefix("best:") {
            return Ok(DraftSkip::Best(number(count)?));
        }
        let mut layers = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last > MOST_LAYERS {
                return Err(wrong());
            }
            layers.extend(first..=last);
        }
        Ok(DraftSkip::Named(layers))
    }
}

/// The largest layer number that can be named; no model has as many layers.
const MOST_LAYERS: usize = 9_999;

impl DraftSkip {
    /// Returns the skipped layers for a model with this tokenizer.
    pub fn layers(&self, tokenizer: &Tokenizer) -> SkippedLayers {
        match self {
            DraftSkip::Named(layers) => SkippedLayers::Named(layers.clone()),
            DraftSkip::Best(count) => SkippedLayers::Likeliest {
                count: *count,
                // A tokenizer without tokens for it leaves no text to choose by; the error is reported where
                // the text is needed.
                text: tokenizer.encode(TEXT).unwrap_or_default(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_named_or_counted() {
        let read = |text: &str| text.parse::<DraftSkip>();
        assert_eq!(read("best:12"), Ok(DraftSkip::Best(12)));
        assert_eq!(read("3"), Ok(DraftSkip::Named(vec![3])));
        assert_eq!(read("2-4,7"), Ok(DraftSkip::Named(vec![2, 3, 4, 7])));
        for wrong in [
            "",
            "best:",
            "best:x",
            "4-2",
            "1,,2",
            "-1",
            "0-99999999999",
            "18446744073709551616",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
