//! The fields that narrow what models write under a schema: `additional_properties` and `numbers`.
//!
//! The two fields apply to every schema of a request: of the answer, in a structural tag, of tool parameters,
//! and of monitors.

use lexiform::schema::{AdditionalProperties, Numbers};

use super::{Constraint, Source};
use crate::wire::fields::{Fields, Problems};

/// The values of the fields in a request, if they are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    additional_properties: Option<AdditionalProperties>,
    numbers: Option<Numbers>,
}

impl Writing {
    /// Takes the fields.
    pub fn read(fields: &mut Fields, problems: &mut Problems) -> Self {
        let objects = [
            ("closed", AdditionalProperties::Closed),
            ("open", AdditionalProperties::Specified),
        ];
        let numbers = [("double", Numbers::Double), ("any", Numbers::Any)];
        Self {
            additional_properties: fields.word("additional_properties", &objects, problems),
            numbers: fields.word("numbers", &numbers, problems),
        }
    }

    /// Applies the values to the constraints of a request. Reports a problem if there is no schema.
    pub fn settle<'c>(
        self,
        constraints: impl IntoIterator<Item = &'c mut Constraint>,
        problems: &mut Problems,
    ) {
        let mut is_used = false;
        for constraint in constraints {
            is_used |= self.put_on(constraint);
        }
        let given = [
            ("additional_properties", self.additional_properties.is_some()),
            ("numbers", self.numbers.is_some()),
        ];
        for (name, _) in given.into_iter().filter(|(_, given)| *given && !is_used) {
            problems.invalid(name, "requires a JSON constraint, or a tool that may be called");
        }
    }

    /// Applies the values to a constraint and to those within it; returns `false` if none of them is a
    /// schema.
    fn put_on(self, constraint: &mut Constraint) -> bool {
        match &mut constraint.source {
            Source::Schema(_) => {
                let Self {
                    additional_properties,
                    numbers,
                } = self;
                constraint.additional_properties =
                    additional_properties.unwrap_or(constraint.additional_properties);
                constraint.numbers = numbers.unwrap_or(constraint.numbers);
                true
            }
            Source::Tags(form) => {
                let mut is_used = false;
                let inner = std::mem::replace(&mut **form, super::Form::Text(String::new()));
                **form = inner.map(&mut |mut inner| {
                    is_used |= self.put_on(&mut inner);
                    inner
                });
                is_used
            }
            Source::Regex(_) | Source::Grammar(..) | Source::Choice(_) | Source::Extract(..) => false,
        }
    }
}
