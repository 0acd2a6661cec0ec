//! Draws at which a sequence drafts nothing, because earlier drafts did not pay.
//!
//! Finding drafts takes time whether they are fed or not. So after drafts that were not fed, a sequence
//! pauses for a draw, then for three, and so on up to a bound. Forced text and looked-up drafts (copies,
//! drafts of stores) rest separately: where forced text pays, the others may not.

use crate::speculation::draft::{Draft, Source};

/// The maximum number of draws without forced text. Forced text is nearly certain, so it is not fed only
/// where no draft pays.
const MOST_FORCED: u8 = 3;
/// The maximum number of draws without lookups.
const MOST_LOOKED_UP: u8 = 15;
/// The number of consecutive draws without a draft in their pass, after which none is expected for the next
/// one.
const QUIET: u8 = 4;

/// The rest of one kind of drafts.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// The number of draws that the last rest took, or 0 after drafts that were fed.
    turned_down: u8,
    left: u8,
}

impl Rest {
    fn hear(&mut self, were_fed: bool, most: u8) {
        self.turned_down = match were_fed {
            true => 0,
            false => (2 * self.turned_down + 1).min(most),
        };
        self.left = self.turned_down;
    }
}

/// The rests of both kinds of drafts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rests {
    forced: Rest,
    looked_up: Rest,
    /// The number of draws since drafts were fed.
    quiet: u8,
}

impl Rests {
    /// Returns `true` if forced text is drafted.
    pub(crate) fn drafts_forced(&self) -> bool {
        self.forced.left == 0
    }

    /// Returns `true` if lookup and stores are queried.
    pub(crate) fn looks_up(&self) -> bool {
        self.looked_up.left == 0
    }

    /// Returns `true` if drafts were fed so long ago that there will hardly be any in the next pass.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet >= QUIET
    }

    /// Records that drafts are fed.
    pub(crate) fn end_quiet(&mut self) {
        self.quiet = 0;
    }

    /// Records that the sequence has read the drawn token, and drafted with the sources that did not rest.
    pub(crate) fn go_on(&mut self) {
        self.quiet = self.quiet.saturating_add(1);
        for rest in [&mut self.forced, &mut self.looked_up] {
            rest.left = rest.left.saturating_sub(1);
        }
    }

    /// Records which of its drafts are fed. A kind without drafts is not affected.
    pub(crate) fn hear(&mut self, drafts: &[Draft], are_fed: &[bool]) {
        let (mut forced, mut looked_up) = (None, None);
        for (draft, &is_fed) in drafts.iter().zip(are_fed) {
            let were_fed = match draft.source {
                Source::Forced => &mut forced,
                Source::Copied | Source::Predicted | Source::Learned(..) | Source::Drawn(..) => {
                    &mut looked_up
                }
                Source::Model | Source::Branch(_) | Source::Given | Source::Guessed => continue,
            };
            *were_fed = Some(were_fed.unwrap_or(false) || is_fed);
        }
        if let Some(were_fed) = forced {
            self.forced.hear(were_fed, MOST_FORCED);
        }
        if let Some(were_fed) = looked_up {
            self.looked_up.hear(were_fed, MOST_LOOKED_UP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform_law::draft::Proposal;

    fn draft(source: Source) -> Draft {
        Draft {
            token: 0,
            parent: None,
            source,
            state: None,
            proposal: Proposal::Point,
            is_last: false,
        }
    }

    /// Returns at how many of the next draws each kind is drafted, if only forced text is fed.
    fn drafted(rests: &mut Rests, draws: usize) -> (usize, usize) {
        let (mut forced, mut looked_up) = (0, 0);
        for _ in 0..draws {
            let mut drafts = Vec::new();
            drafts.extend(rests.drafts_forced().then(|| draft(Source::Forced)));
            drafts.extend(rests.looks_up().then(|| draft(Source::Copied)));
            rests.go_on();
            forced += usize::from(drafts.iter().any(|draft| draft.source == Source::Forced));
            looked_up += usize::from(drafts.iter().any(|draft| draft.source == Source::Copied));
            let are_fed: Vec<bool> = drafts
                .iter()
                .map(|draft| draft.source == Source::Forced)
                .collect();
            rests.hear(&drafts, &are_fed);
        }
        (forced, looked_up)
    }

    /// Guards against forced text that rests because others do not pay, and against useless lookups at every
    /// draw.
    #[test]
    fn lookups_rest_by_themselves_and_for_longer_each_time() {
        let mut rests = Rests::default();
        let (forced, looked_up) = drafted(&mut rests, 100);
        assert_eq!(forced, 100);
        // At draws 0, 1 + 1, 2 + 1 + 3, and so on: after the fourth time, at every sixteenth draw.
        assert!((8..=10).contains(&looked_up), "{looked_up}");
    }

    #[test]
    fn a_copy_that_is_fed_ends_the_long_rests() {
        let mut rests = Rests::default();
        drafted(&mut rests, 60);
        rests.hear(&[draft(Source::Copied)], &[true]);
        assert!(rests.looks_up());
        rests.hear(&[draft(Source::Copied)], &[false]);
        rests.go_on();
        assert!(rests.looks_up());
    }
}
