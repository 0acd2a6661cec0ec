//! How the output of a request is generated: by a law or by a search, which exclude each other.

use lexiform_engine::{Law, Method};

use super::lossy;
use crate::wire::fields::{Fields, Problems};
use crate::wire::law::LawFields;
use crate::wire::law::search::Search;

/// The way in which the output is generated.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// The output is drawn from a law.
    Draw(Law),
    /// The output is searched for.
    Search(Search),
}

impl Default for Task {
    fn default() -> Self {
        Task::Draw(Law::Local)
    }
}

impl Task {
    /// Returns the law if the output is drawn from one.
    pub fn law(&self) -> Option<Law> {
        match self {
            Task::Draw(law) => Some(*law),
            Task::Search(_) => None,
        }
    }

    /// Returns the search if the output is searched for.
    pub fn search(&self) -> Option<&Search> {
        match self {
            Task::Draw(_) => None,
            Task::Search(search) => Some(search),
        }
    }

    /// Returns `true` if texts are ranked and nothing is drawn.
    pub fn ranks(&self) -> bool {
        self.search().is_some_and(|search| !search.draws())
    }

    /// Returns the row of the engine's table, and the text of the request that chooses it.
    pub(super) fn method(&self) -> (Method, String) {
        match self {
            Task::Draw(law) => ((*law).into(), format!("law: {}", law.name())),
            Task::Search(search) => ((&search.search).into(), search.name()),
        }
    }
}

/// Reads the law or the search. The fields of both, and `lossy`, exclude each other.
pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> (Task, bool) {
    let LawFields {
        law,
        return_particles,
    } = LawFields::read(fields, problems);
    let search = Search::read(fields, problems);
    let lossy = lossy::read(fields, problems);
    if let Some(search) = &search
        && law != Law::Local
    {
        let what = match search.param() {
            "use_beam_search" => "a beam search",
            _ => "a search",
        };
        problems.invalid(search.param(), format!("{what} has no law; leave law out"));
    }
    if lossy.is_some() && law != Law::Local {
        let message = format!("requires law: local, and law: {} was asked for", law.name());
        problems.invalid("lossy", message);
    }
    let task = match (search, lossy) {
        (Some(search), lossy) => {
            if lossy.is_some() {
                problems.invalid("lossy", format!("cannot be combined with {}", search.name()));
            }
            Task::Search(search)
        }
        (None, Some(accepts)) => Task::Draw(Law::Lossy(accepts)),
        (None, None) => Task::Draw(law),
    };
    (task, return_particles)
}
