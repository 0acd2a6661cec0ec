//! Draw once at each prefix.

use crate::law::{Allowed, Chooser, Drawn, LawError, Row, Sampler, Step, Weight};

/// What follows the tokens of a verified chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// More tokens.
    Open,
    /// Nothing; the sequence is complete and accepted.
    Ended,
    /// The attempt failed: the answer is dropped, these tokens included.
    Restart,
    /// There will be no sample.
    Stuck(LawError),
}

/// The outcome of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified<W = f64> {
    /// The tokens to append, in order: the accepted ones and the one drawn after them, if there was one.
    pub drawn: Vec<Drawn<W>>,
    /// How many of them were drafted.
    pub accepted: usize,
    /// What follows.
    pub next: Next,
}

/// Draws along a drafted chain; with an empty draft this is plain decoding. `rows(i)` is the row and the mask after `i`
/// drafted tokens; it is called for `0, 1, …` as far as tokens are accepted.
pub fn chain<'m, W, R, E>(
    draft: &[u32],
    mut rows: impl FnMut(usize) -> Result<(R, Allowed<'m>), E>,
    sampler: &mut impl Sampler<W>,
    chooser: &mut (impl Chooser<W> + ?Sized),
) -> Result<Verified<W>, E>
where
    W: Weight,
    R: Row<W>,
{
    let mut drawn: Vec<Drawn<W>> = Vec::with_capacity(draft.len() + 1);
    for index in 0..=draft.len() {
        let (row, allowed) = rows(index)?;
        let (token, next) = match sampler.next(&row, allowed, chooser) {
            Step::Token(token) => (token, Next::Open),
            Step::End(token) => (token, Next::Ended),
            Step::Restart => {
                return Ok(Verified {
                    drawn,
                    accepted: index,
                    next: Next::Restart,
                });
            }
            Step::Stuck(why) => {
                return Ok(Verified {
                    drawn,
                    accepted: index,
                    next: Next::Stuck(why),
                });
            }
        };
        let as_drafted = draft.get(index) == Some(&token.token);
        drawn.push(token);
        if !as_drafted || next == Next::Ended {
            return Ok(Verified {
                drawn,
                accepted: index + usize::from(as_drafted),
                next,
            });
        }
    }
    Ok(Verified {
        drawn,
        accepted: draft.len(),
        next: Next::Open,
    })
}
