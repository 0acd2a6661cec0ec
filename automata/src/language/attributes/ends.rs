//! The bytes with which the words of a language begin and end.

use crate::language::byte_set::ByteSet;
use crate::language::counter::Counter;
use crate::language::graph::DEAD;
use crate::language::terminal::Terminal;

impl Terminal {
    /// Returns `true` if infinitely many words continue from everywhere but their ends, and none from the
    /// ends, as in a string of any characters between quotes. O(edges), once: if only finitely many continue
    /// from some state, there is one from which every byte leads to an end.
    pub(crate) fn is_endless_inside(&self) -> bool {
        *self.endless_inside.get_or_init(|| {
            let stays_inside = |&packed: &u32| packed != DEAD && !self.accepting[(packed >> 1) as usize];
            let mut rows = self.next.chunks_exact(self.stride).zip(&self.accepting);
            self.prefix_code
                && self.counter.as_ref().is_none_or(Counter::is_unbounded)
                && rows.all(|(row, &accepting)| accepting || row.iter().any(stays_inside))
        })
    }

    /// Returns the bytes with which all words begin and end, if each is unique.
    pub(crate) fn edges(&self) -> Option<(u8, u8)> {
        *self.edges.get_or_init(|| {
            let only = |mut bytes: ByteSet| bytes.pop().filter(|_| bytes.is_empty());
            let first = only(self.bytes_of(0)[0]).filter(|_| !self.accepting[0])?;
            let ends = self.last_classes();
            let mut last = ByteSet::default();
            for byte in (0..=255).filter(|&byte: &u8| ends[self.classes[byte as usize] as usize] != 0) {
                last.insert_range(byte, byte);
            }
            Some((first, only(last)?))
        })
    }

    /// Returns, for each class of bytes, a non-zero value if some word ends with it.
    fn last_classes(&self) -> Vec<u32> {
        let mut ends = vec![0; self.stride];
        let mut accepting = (0..).zip(&self.accepting).filter(|&(_, &accepting)| accepting);
        let (first, second) = (accepting.next(), accepting.next());
        for row in self.next.chunks_exact(self.stride) {
            let row = ends.iter_mut().zip(row);
            match (first, second) {
                // Usually all words end in one state, so whole rows are compared with it at once.
                (Some((end, _)), None) => {
                    row.for_each(|(ends, &packed)| *ends |= u32::from(packed >> 1 == end))
                }
                _ => row.for_each(|(ends, &packed)| {
                    *ends |= u32::from(packed != DEAD && self.accepting[(packed >> 1) as usize]);
                }),
            }
        }
        ends
    }
}
