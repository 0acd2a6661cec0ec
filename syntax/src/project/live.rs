//! Which forms have a value at all.

use lexiform_automata::limits::Cancel;

use super::form::{Form, FormId, Forms, Presence, Reading};

/// Returns, for each form, whether it has a value: a least fixed point.
pub(super) fn live(forms: &Forms, reading: Reading, cancel: &Cancel) -> Vec<bool> {
    let mut live = vec![false; forms.list.len()];
    loop {
        let mut has_changed = false;
        for at in (0..forms.list.len()).rev() {
            if !live[at] && is_live(forms, &forms.list[at], &live, reading) {
                live[at] = true;
                has_changed = true;
            }
        }
        if !has_changed || cancel.is_asked() {
            return live;
        }
    }
}

fn is_live(forms: &Forms, form: &Form, live: &[bool], reading: Reading) -> bool {
    let lives = |id: FormId| live[id.index()];
    match form {
        Form::Never => false,
        Form::Any | Form::Number(_) | Form::String(_) => true,
        Form::Constants(values) => !values.is_empty(),
        Form::JsonText(inner) => reading == Reading::Target || lives(*inner),
        Form::Union(parts) => parts.iter().any(|&part| lives(part)),
        Form::Definition(definition) => lives(forms.definitions[definition.index()].form),
        Form::Array(items) => {
            let reached = usize::try_from(items.min).unwrap_or(usize::MAX);
            let needs_rest = items.min > items.prefix.len() as u64;
            items.max.is_none_or(|max| items.min <= max)
                && items.prefix.iter().take(reached).all(|&place| lives(place))
                && (!needs_rest || items.rest.is_some_and(lives))
        }
        Form::Object(keys) => {
            let required = keys
                .fields
                .iter()
                .filter(|field| field.presence == Presence::Required);
            required.into_iter().all(|field| lives(field.form))
        }
    }
}
