//! The writing options of a request, applied to all of its schemas.

use super::Generation;
use crate::wire::constraint::monitors;
use crate::wire::constraint::writing::Writing;
use crate::wire::fields::{Fields, Problems};
use crate::wire::tools::Calls;

impl Generation {
    /// Reads the options for how models write where schemas leave a choice, and applies them to the schemas
    /// of the answer, of tools and of monitors.
    pub fn settle_writing(
        &mut self,
        fields: &mut Fields,
        calls: Option<&mut Calls>,
        problems: &mut Problems,
    ) {
        let writing = Writing::read(fields, problems);
        let inputs = calls.into_iter().flat_map(Calls::constraints);
        let beside = monitors::constraints(&mut self.monitors);
        writing.settle(self.constraint.iter_mut().chain(inputs).chain(beside), problems);
    }
}
