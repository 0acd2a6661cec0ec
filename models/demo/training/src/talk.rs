//! Writes conversations: tools and whether to call them, results, system messages, keys and schemas that a
//! prompt names.
//!
//! ```text
//!  verbs × nouns × parameters ──offers──► tools + wishes + calls ──calls, results, turns──┐
//!  text (scenes and questions) ──────────► keys, prompted, turns, output ─────────────────┼──► Sample
//!  greetings, personas ──────────────────► chatter ───────────────────────────────────────┘
//! ```

mod calls;
mod chatter;
mod keys;
mod nouns;
mod offers;
mod prompted;
mod results;
mod slots;
pub(crate) mod systems;
mod turns;

use crate::sample::{Kind, Sample};
use crate::text::values::Values;

/// A sample of a kind that is not a plain extraction.
pub(crate) fn sample(values: &mut Values, kind: Kind) -> Sample {
    match kind {
        Kind::Extraction => crate::text::extraction(values),
        Kind::Output => calls::output(values),
        Kind::Auto => calls::auto(values),
        Kind::Result => results::result(values),
        Kind::Keys => keys::keys(values),
        Kind::Prompted => prompted::prompted(values),
        Kind::Turns => turns::turns(values),
        Kind::Talk => chatter::talk(values),
    }
}
