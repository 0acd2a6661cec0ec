//! The monitors of a request that are constraints, in the form of the engine: each is the grammar of a whole
//! answer whose content obeys the monitor.

use std::sync::Arc;

use lexiform_engine::Watched;

use crate::grammars::interest::Interest;
use crate::grammars::language::Language;
use crate::model::served::ServedModel;
use crate::request::prompt;
use crate::wire::constraint::monitors::MonitorSource;
use crate::wire::error::ApiError;
use crate::wire::generation::Generation;

/// Returns the monitors beside a language. If an answer has no content (because it is a call of a tool),
/// there is nothing to monitor.
///
/// # Errors
/// Fails if a monitor does not compile, or is not registered here.
pub fn of(
    served: &ServedModel,
    generation: &Generation,
    language: &Language,
    interest: &Interest,
) -> Result<Vec<Watched>, ApiError> {
    if language.content.is_none() {
        return Ok(Vec::new());
    }
    let mut all = Vec::with_capacity(generation.monitors.len());
    for monitor in &generation.monitors {
        let constraint = match &monitor.source {
            MonitorSource::Constraint(constraint) => constraint.clone(),
            // Asked as the answer is read.
            MonitorSource::Callback(_) => continue,
            MonitorSource::Registered(id) => {
                let known = prompt::registered(served, id, interest);
                known.map_err(|error| error.about(&monitor.param))?
            }
        };
        let language = Language {
            content: Some(constraint),
            ..language.clone()
        };
        if let Some(compiled) = prompt::compiled(served, &language, interest)? {
            all.push(Watched::new(monitor.param.as_str(), Arc::new(compiled.grammar)));
        }
    }
    Ok(all)
}
