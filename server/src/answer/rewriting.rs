//! The shape of a text that the model has written in place of another one, with the changes that it makes.

use lexiform::repair::{Costs, Repair, RepairLimits};

use crate::answer::writer::{Base, End, Piece, Whole, Writer, told};
use crate::wire::grammars::repair::{Rewritten, rewritten};
use crate::wire::response::{Extension, Usage};

/// The maximum number of pairs of places, without the common prefix and suffix, for which two texts are
/// compared: a fraction of a second.
const COMPARED: usize = 1 << 27;

/// Writes rewritten texts.
pub struct RewriteWriter {
    base: Base,
    /// The identity of the grammar.
    id: String,
    /// The text to be replaced.
    given: String,
    costs: Costs,
}

impl RewriteWriter {
    /// Creates the writer of this answer, which replaces a given text.
    pub fn new(base: Base, id: &str, given: String, costs: Costs) -> Self {
        Self {
            base,
            id: id.to_owned(),
            given,
            costs,
        }
    }

    fn changes(&self, text: &str) -> Option<Repair> {
        let limits = RepairLimits {
            text_bytes: usize::MAX,
            nodes: COMPARED,
            ..RepairLimits::default()
        };
        Repair::between(&self.given, text, &self.costs, &limits).ok()
    }
}

/// The route has no streams: the changes are known only when the text is complete.
impl Writer for RewriteWriter {
    fn opening(&mut self, _: usize, _: &mut String) {}

    fn piece(&mut self, _: Piece, _: &mut String) {}

    fn end(&mut self, _: End, _: &mut String) {}

    fn closing(&mut self, _: Usage, _: &mut String) {}

    fn is_slow(&self) -> bool {
        true
    }

    fn whole(&self, samples: Vec<Whole>, usage: Usage) -> String {
        let mut answer = String::new();
        // The request asks for one text.
        for sample in samples {
            let changes = self.changes(&sample.content);
            let text = Rewritten {
                id: &self.id,
                model: &self.base.model,
                text: &sample.content,
                changes: changes.as_ref(),
                finish_reason: sample.ended.finish,
                usage,
            };
            let base = &self.base;
            let extension = Extension::of(base.enforcement.as_ref(), base.weights, &base.ignored);
            answer = rewritten(&text, extension, &told(&sample.ended, sample.findings)).to_string();
        }
        answer
    }
}
