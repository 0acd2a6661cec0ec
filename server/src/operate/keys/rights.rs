//! What requests with a key may ask for: models, kinds of constraints, laws and searches.

use crate::operate::metrics::GrammarKind;
use crate::wire::error::ApiError;
use crate::wire::law::{self, search};

/// What requests with a key may ask for. Where there is no list, everything is allowed;
/// loading and unloading models is not unless it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    models: Option<Vec<String>>,
    constraints: Option<Vec<String>>,
    laws: Option<Vec<String>>,
    searches: Option<Vec<String>>,
    /// `true` if it may load and unload models.
    operator: bool,
}

impl Rights {
    /// Creates rights from these lists.
    ///
    /// # Errors
    /// Fails with a message if a list has a word that means nothing.
    pub(super) fn new(
        models: Option<Vec<String>>,
        constraints: Option<Vec<String>>,
        laws: Option<Vec<String>>,
        searches: Option<Vec<String>>,
    ) -> Result<Self, String> {
        let kinds = GrammarKind::ALL.map(GrammarKind::name);
        known("constraints", constraints.as_deref(), &kinds)?;
        known("laws", laws.as_deref(), &law::laws())?;
        known("searches", searches.as_deref(), &search::searches())?;
        Ok(Self {
            models,
            constraints,
            laws,
            searches,
            operator: false,
        })
    }

    /// Sets whether models may be loaded and unloaded; without this, they may not.
    #[must_use]
    pub(super) fn of_operator(self, operator: bool) -> Self {
        Self { operator, ..self }
    }

    /// Checks whether models may be loaded and unloaded.
    ///
    /// # Errors
    /// Fails if they may not.
    pub fn operating(&self) -> Result<(), ApiError> {
        match self.operator {
            true => Ok(()),
            false => Err(ApiError::not_operator(
                "This API key may not load and unload models; a key with 'operator = true' may.",
            )),
        }
    }

    /// Checks whether this model may be used.
    ///
    /// # Errors
    /// Fails if it may not.
    pub fn model(&self, name: &str) -> Result<(), ApiError> {
        allowed(self.models.as_deref(), ("model", "model"), name)
    }

    /// Checks whether a constraint of this kind, which the request gives in this field, may be used.
    ///
    /// # Errors
    /// Fails if it may not.
    pub fn constraint(&self, field: &str, kind: GrammarKind) -> Result<(), ApiError> {
        allowed(self.constraints.as_deref(), (field, "constraint"), kind.name())
    }

    /// Checks whether this law may be used.
    ///
    /// # Errors
    /// Fails if it may not.
    pub fn law(&self, name: &str) -> Result<(), ApiError> {
        let field = if name == "lossy" { "lossy" } else { "law" };
        allowed(self.laws.as_deref(), (field, "law"), name)
    }

    /// Checks whether this search may be used.
    ///
    /// # Errors
    /// Fails if it may not.
    pub fn search(&self, field: &str, name: &str) -> Result<(), ApiError> {
        allowed(self.searches.as_deref(), (field, "search"), name)
    }
}

fn known(field: &str, names: Option<&[String]>, known: &[&str]) -> Result<(), String> {
    let unknown = names
        .unwrap_or_default()
        .iter()
        .find(|name| !known.contains(&name.as_str()));
    match unknown {
        None => Ok(()),
        Some(name) => Err(format!(
            "{field}: there is no '{name}'; there are {}",
            known.join(", ")
        )),
    }
}

fn allowed(list: Option<&[String]>, (field, what): (&str, &str), name: &str) -> Result<(), ApiError> {
    match list {
        Some(list) if !list.iter().any(|allowed| allowed == name) => {
            Err(ApiError::not_permitted(field, what, name, list))
        }
        _ => Ok(()),
    }
}
