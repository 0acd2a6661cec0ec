//! The regions of a JSON document: which one each token belongs to, and whether it was drafted.

use lexiform_engine::{Grammar, JsonReader, Origin, State, StateClass};

/// For each region, the number of tokens and the number of those that were drafted and kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RegionCounts(pub(super) [(u64, u64); StateClass::ALL.len()]);

impl RegionCounts {
    pub(super) fn add(&mut self, other: RegionCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
    }
}

/// Reads the tokens of a document one by one.
pub(super) struct Regions {
    grammar: Option<(Grammar, Option<State>)>,
    reader: JsonReader,
    counts: RegionCounts,
}

impl Regions {
    pub(super) fn new(grammar: Option<Grammar>) -> Self {
        Regions {
            grammar: grammar.map(|grammar| {
                let start = grammar.start();
                (grammar, Some(start))
            }),
            reader: JsonReader::default(),
            counts: RegionCounts::default(),
        }
    }

    pub(super) fn counts(&self) -> RegionCounts {
        self.counts
    }

    /// Takes the next token.
    pub(super) fn take(&mut self, token: u32, bytes: &[u8], origin: Origin) {
        let allowed = || {
            let (grammar, state) = self.grammar.as_ref()?;
            Some(grammar.mask((*state)?).count())
        };
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        // A token of white space alone counts as structure between keys and values.
        let class = self.reader.class(first.copied().or(Some(b' ')), allowed);
        let counts = &mut self.counts.0[class as usize];
        counts.0 += 1;
        counts.1 += u64::from(matches!(origin, Origin::Forced | Origin::Drafted));
        bytes.iter().for_each(|&byte| self.reader.read(byte));
        if let Some((grammar, state)) = &mut self.grammar {
            *state = state.and_then(|state| grammar.step(state, token));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_apart_by_where_they_begin() {
        let mut regions = Regions::new(None);
        for part in [
            "{\"", "na\\\"me", "\":", " \"A", "da\"", ",", "\"age", "\": ", "3", "6}",
        ] {
            regions.take(0, part.as_bytes(), Origin::Drafted);
        }
        // Structure: {" ": , "age and ": and  "A ; then two of a number.
        let counts: Vec<u64> = regions.counts().0.iter().map(|counts| counts.0).collect();
        assert_eq!(counts, [4, 3, 0, 2, 1]);
    }
}
