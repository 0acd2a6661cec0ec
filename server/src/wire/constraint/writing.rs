//! What models write under a schema where it leaves a choice: `additional_properties` and `numbers`.
//!
//! The two fields hold for every schema of a request: that of the answer, those in a structural tag, the
//! parameters of tools, and monitors.

use lexiform::schema::{AdditionalProperties, Numbers};

use super::{Constraint, Source};
use crate::wire::fields::{Fields, Problems};

/// The choices of a request, where it makes some.
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

    /// Puts the choices on the constraints of a request. A choice that no schema is there for is a problem.
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

    /// Puts the choices on a constraint, and on those inside of it; false where none of them is a schema.
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
            Source::Regex(_) | Source::Ebnf(_) | Source::Choice(_) | Source::Extract(..) => false,
        }
    }
}
