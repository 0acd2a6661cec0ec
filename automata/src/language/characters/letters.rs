//! Classes of letters. Automata distinguish letters by class alone.

use rustc_hash::FxHashMap;

use super::failure::Failure;

/// The kind of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// Unicode characters, by their code points.
    Chars,
    /// Bytes.
    Bytes,
}

impl Alphabet {
    /// Returns the largest letter.
    pub(super) fn last(self) -> u32 {
        match self {
            Alphabet::Chars => 0x10_ffff,
            Alphabet::Bytes => 0xff,
        }
    }
}

/// A set of letters, as ranges in order, both ends included.
pub(super) type Set = Vec<(u32, u32)>;

/// A partition of all letters into at most 256 classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letters {
    alphabet: Alphabet,
    /// Runs of letters of one class: the first letter of each, in order from 0 on, and the class.
    runs: Vec<(u32, u16)>,
    count: usize,
}

/// The maximum number of classes; with more, tables would be larger than over bytes.
const MOST_CLASSES: usize = 256;

impl Letters {
    /// Returns the coarsest classes of which all sets are unions, and the classes of each set. O(ranges ·
    /// sets).
    pub(super) fn telling_apart(
        sets: &[Set],
        alphabet: Alphabet,
    ) -> Result<(Letters, Vec<Vec<u16>>), Failure> {
        // The letters at which membership in sets changes.
        let mut changes: Vec<(u32, u32)> = Vec::new();
        for (set, ranges) in sets.iter().enumerate() {
            for &(first, last) in ranges {
                changes.push((first, set as u32));
                if last < alphabet.last() {
                    changes.push((last + 1, set as u32));
                }
            }
        }
        changes.sort_unstable();
        let mut inside = vec![0u64; sets.len().div_ceil(64)];
        let mut classes = Classes::new(alphabet);
        let mut at = 0;
        while at < changes.len() {
            let position = changes[at].0;
            classes.up_to(position, &inside)?;
            while let Some(&(_, set)) = changes.get(at).filter(|change| change.0 == position) {
                inside[set as usize / 64] ^= 1 << (set % 64);
                at += 1;
            }
        }
        classes.up_to(alphabet.last() + 1, &inside)?;
        let of_set = |set: usize| {
            let has = |signature: &[u64]| signature[set / 64] >> (set % 64) & 1 == 1;
            let signatures = classes.signatures.iter().zip(0u16..);
            signatures
                .filter(|(it, _)| has(it))
                .map(|(_, class)| class)
                .collect()
        };
        let of_sets = (0..sets.len()).map(of_set).collect();
        Ok((classes.letters(), of_sets))
    }

    /// Returns a class for each of these letters, in order; all others, if there are any, form the last
    /// class.
    pub(crate) fn single(letters: &[u32], alphabet: Alphabet) -> Result<Letters, Failure> {
        let other = letters.len() as u16;
        let mut runs: Vec<(u32, u16)> = Vec::new();
        let mut free = 0;
        for (&letter, class) in letters.iter().zip(0..) {
            if letter > free {
                runs.push((free, other));
            }
            runs.push((letter, class));
            free = letter + 1;
        }
        if free <= alphabet.last() {
            runs.push((free, other));
        }
        // Words may contain all bytes, so there may be no others.
        let has_others = runs.iter().any(|run| run.1 == other);
        let count = letters.len() + usize::from(has_others);
        if count > MOST_CLASSES {
            return Err(Failure::NotText);
        }
        Ok(Letters {
            alphabet,
            runs,
            count,
        })
    }

    /// Returns the coarsest common refinement of several partitions, and for each partition its class for
    /// each class of the refinement. O(runs · partitions).
    pub fn joint(divisions: &[&Letters], alphabet: Alphabet) -> Result<(Letters, Vec<Vec<u16>>), Failure> {
        let mut starts: Vec<u32> = divisions
            .iter()
            .flat_map(|letters| letters.runs.iter().map(|run| run.0))
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let mut at = vec![0usize; divisions.len()];
        let mut joint = Classes::new(alphabet);
        let mut classes = vec![0u64; divisions.len()];
        for (index, &start) in starts.iter().enumerate() {
            for ((letters, at), class) in divisions.iter().zip(&mut at).zip(&mut classes) {
                while letters.runs.get(*at + 1).is_some_and(|run| run.0 <= start) {
                    *at += 1;
                }
                *class = u64::from(letters.runs[*at].1);
            }
            let end = starts.get(index + 1).copied().unwrap_or(alphabet.last() + 1);
            joint.up_to(end, &classes)?;
        }
        if starts.is_empty() {
            joint.up_to(alphabet.last() + 1, &classes)?;
        }
        let of = |division: usize| {
            let signatures = joint.signatures.iter();
            signatures.map(|classes| classes[division] as u16).collect()
        };
        let maps = (0..divisions.len()).map(of).collect();
        Ok((joint.letters(), maps))
    }

    pub(crate) fn alphabet(&self) -> Alphabet {
        self.alphabet
    }

    /// Returns the number of classes.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the runs of letters of one class, in order, as first letter, last letter and class.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u32, u32, u16)> {
        let ends = self.runs.iter().skip(1).map(|run| run.0 - 1);
        let ends = ends.chain(std::iter::once(self.alphabet.last()));
        self.runs
            .iter()
            .zip(ends)
            .map(|(&(first, class), last)| (first, last, class))
    }

    pub(super) fn bytes(&self) -> usize {
        self.runs.len() * 8
    }
}

/// Classes under construction, from the first letter on: letters with equal signatures are in one class.
struct Classes {
    alphabet: Alphabet,
    runs: Vec<(u32, u16)>,
    /// The letter at which the next run begins.
    from: u32,
    signatures: Vec<Box<[u64]>>,
    known: FxHashMap<Box<[u64]>, u16>,
}

impl Classes {
    fn new(alphabet: Alphabet) -> Classes {
        Classes {
            alphabet,
            runs: Vec::new(),
            from: 0,
            signatures: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    /// Gives the letters from the current one up to, but not including, `end` this signature.
    fn up_to(&mut self, end: u32, signature: &[u64]) -> Result<(), Failure> {
        if end == self.from {
            return Ok(());
        }
        let class = match self.known.get(signature) {
            Some(&class) => class,
            None if self.signatures.len() == MOST_CLASSES => return Err(Failure::NotText),
            None => {
                let class = self.signatures.len() as u16;
                self.signatures.push(signature.into());
                self.known.insert(signature.into(), class);
                class
            }
        };
        if self.runs.last().is_none_or(|run| run.1 != class) {
            self.runs.push((self.from, class));
        }
        self.from = end;
        Ok(())
    }

    fn letters(self) -> Letters {
        Letters {
            alphabet: self.alphabet,
            runs: self.runs,
            count: self.signatures.len(),
        }
    }
}
