//! The compatibility table: the settings of requests that not every task can have.
//!
//! A [`Method`] is a row: the aspect of a task that the table depends on. A [`Feature`] is a column: a
//! setting that some methods cannot honour, or that excludes another setting. Each rule names the field to
//! blame and the reason. The engine refuses a request by its first conflict, a service reports all of them at
//! once under the names of its own fields, and the pages about laws and the OpenAPI document print the
//! results of [`support`]; tests compare them with it.
//!
//! Settings that a task cannot express are not in the table: the types rule them out ([`Task`]).

use super::search::Search;
use super::task::Task;
use crate::error::Conflict;
use lexiform_law::{Law, TokenProposal};

/// A way to obtain an answer, as far as other settings of a request depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// [`Law::Local`].
    Local,
    /// [`Law::Lossy`].
    Lossy,
    /// [`Law::Global`].
    Global,
    /// [`Law::Asap`].
    Asap,
    /// [`Law::Aprad`].
    Aprad,
    /// [`Law::Smc`] and [`Law::Sir`], with any proposal except the twisted one.
    Weighted,
    /// [`Law::Smc`] and [`Law::Sir`] with [`TokenProposal::Twisted`].
    Twisted,
    /// [`Law::Mcmc`].
    Mcmc,
    /// A search that ranks texts.
    Search,
    /// [`Search::Cntp`], which draws.
    Cntp,
    /// Weighs given texts.
    Weigh,
}

impl Method {
    /// All methods, in the order of the table.
    pub const ALL: [Method; 11] = [
        Method::Local,
        Method::Lossy,
        Method::Global,
        Method::Asap,
        Method::Aprad,
        Method::Weighted,
        Method::Twisted,
        Method::Mcmc,
        Method::Search,
        Method::Cntp,
        Method::Weigh,
    ];

    /// Returns the setting by which a request chooses the method, for documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Local => "`law: local`",
            Method::Lossy => "`lossy`",
            Method::Global => "`law: global`",
            Method::Asap => "`law: asap`",
            Method::Aprad => "`law: aprad`",
            Method::Weighted => "`law: smc`, `law: sir`",
            Method::Twisted => "the same with `proposal: twisted`",
            Method::Mcmc => "`law: mcmc`",
            Method::Search => "`search`, `use_beam_search`",
            Method::Cntp => "`search: cntp`",
            Method::Weigh => "`/v1/decisions`",
        }
    }
}

impl From<Law> for Method {
    fn from(law: Law) -> Self {
        match law {
            Law::Lossy(_) => Method::Lossy,
            Law::Global { .. } => Method::Global,
            Law::Asap { .. } => Method::Asap,
            Law::Aprad { .. } => Method::Aprad,
            Law::Smc { proposal, .. } | Law::Sir { proposal, .. } => match proposal {
                TokenProposal::Twisted => Method::Twisted,
                TokenProposal::Masked | TokenProposal::Asked => Method::Weighted,
            },
            Law::Mcmc { .. } => Method::Mcmc,
            // The law that all others are compared with.
            _ => Method::Local,
        }
    }
}

impl From<&Search> for Method {
    fn from(search: &Search) -> Self {
        match search.draws() {
            true => Method::Cntp,
            false => Method::Search,
        }
    }
}

impl From<&Task> for Method {
    fn from(task: &Task) -> Self {
        match task {
            Task::Draw(draw) => draw.law.into(),
            Task::Search { search, .. } => search.into(),
            Task::Weigh(_) => Method::Weigh,
        }
    }
}

/// A setting of a request that some methods cannot honour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// The best of several candidates is requested.
    BestOf,
    /// Monitors are queried about tokens.
    Monitors,
    /// An energy of the caller tilts the law.
    Tilt,
    /// Mirostat steers the surprise of the text.
    Mirostat,
    /// An answer may be cut, or fail, if its tokens do not suffice.
    Cut,
    /// The prompt was healed.
    Healed,
    /// The weights of answers are requested, which services report on request.
    Weights,
    /// Nothing may be drafted.
    Undrafted,
}

impl Feature {
    /// All features, in the order of the table.
    pub const ALL: [Feature; 8] = [
        Feature::BestOf,
        Feature::Monitors,
        Feature::Tilt,
        Feature::Mirostat,
        Feature::Cut,
        Feature::Healed,
        Feature::Weights,
        Feature::Undrafted,
    ];

    /// Returns the field that requests the feature, as services name it.
    pub fn field(self) -> &'static str {
        match self {
            Feature::BestOf => "best_of",
            Feature::Monitors => "monitors",
            Feature::Tilt => "tilt",
            Feature::Mirostat => "mirostat_mode",
            Feature::Cut => "on_budget",
            Feature::Healed => "token_healing",
            Feature::Weights => "weights",
            Feature::Undrafted => "draft",
        }
    }
}

/// The methods or the feature that a feature cannot be combined with.
enum Beside {
    Methods(&'static [Method]),
    Feature(Feature),
}

/// A combination that is not supported, with the reason.
struct Rule {
    feature: Feature,
    beside: Beside,
    /// The field to blame.
    field: &'static str,
    /// The reason, in which `{method}` is replaced by the setting that chooses the method.
    reason: &'static str,
}

/// The laws over whole texts.
const WHOLE: &[Method] = &[
    Method::Global,
    Method::Asap,
    Method::Aprad,
    Method::Weighted,
    Method::Twisted,
    Method::Mcmc,
];

/// The laws over whole texts, and searches.
const WHOLE_OR_SEARCHED: &[Method] = &[
    Method::Global,
    Method::Asap,
    Method::Aprad,
    Method::Weighted,
    Method::Twisted,
    Method::Mcmc,
    Method::Search,
    Method::Cntp,
];

/// All combinations that are not supported.
const TABLE: &[Rule] = &[
    Rule {
        feature: Feature::Cut,
        beside: Beside::Methods(WHOLE_OR_SEARCHED),
        field: "on_budget",
        reason: "{method} is about whole texts that fit into max_tokens; the only possible value is complete",
    },
    Rule {
        feature: Feature::BestOf,
        beside: Beside::Methods(&[
            Method::Weighted,
            Method::Twisted,
            Method::Mcmc,
            Method::Search,
            Method::Cntp,
        ]),
        field: "best_of",
        reason: "{method} chooses among texts itself",
    },
    Rule {
        feature: Feature::Mirostat,
        beside: Beside::Methods(WHOLE),
        field: "mirostat_mode",
        reason: "requires law: local",
    },
    Rule {
        feature: Feature::Mirostat,
        beside: Beside::Methods(&[Method::Search]),
        field: "mirostat_mode",
        reason: "a search draws nothing whose surprise could be steered",
    },
    Rule {
        feature: Feature::Mirostat,
        beside: Beside::Methods(&[Method::Weigh]),
        field: "mirostat_mode",
        reason: "where options are weighed nothing is drawn whose surprise could be steered",
    },
    Rule {
        feature: Feature::Monitors,
        beside: Beside::Methods(&[Method::Lossy]),
        field: "lossy",
        reason: "cannot be combined with monitors",
    },
    Rule {
        feature: Feature::BestOf,
        beside: Beside::Methods(&[Method::Lossy]),
        field: "lossy",
        reason: "cannot be combined with best_of, which compares samples of one law",
    },
    Rule {
        feature: Feature::Weights,
        beside: Beside::Methods(&[Method::Lossy]),
        field: "lossy",
        reason: "cannot be combined with weights: a text without a law has none",
    },
    Rule {
        feature: Feature::Undrafted,
        beside: Beside::Methods(&[Method::Lossy]),
        field: "lossy",
        reason: "requires drafts, which draft: false switches off",
    },
    Rule {
        feature: Feature::Monitors,
        beside: Beside::Methods(&[
            Method::Global,
            Method::Asap,
            Method::Aprad,
            Method::Twisted,
            Method::Mcmc,
        ]),
        field: "monitors",
        reason: "{method} needs the tokens that all constraints together allow; the possible laws are local, \
                 and smc and sir without proposal: twisted",
    },
    Rule {
        feature: Feature::Monitors,
        beside: Beside::Methods(&[Method::Search, Method::Cntp]),
        field: "monitors",
        reason: "cannot be combined with {method}",
    },
    Rule {
        feature: Feature::Monitors,
        beside: Beside::Methods(&[Method::Weigh]),
        field: "monitors",
        reason: "cannot be combined with options, of which nothing is drawn",
    },
    Rule {
        feature: Feature::Tilt,
        beside: Beside::Methods(&[
            Method::Local,
            Method::Lossy,
            Method::Global,
            Method::Asap,
            Method::Aprad,
            Method::Twisted,
            Method::Mcmc,
            Method::Search,
            Method::Cntp,
            Method::Weigh,
        ]),
        field: "tilt",
        reason: "{method} has no particles that a score could weigh; the possible laws are smc and sir without \
                 proposal: twisted",
    },
    Rule {
        feature: Feature::Mirostat,
        beside: Beside::Feature(Feature::Monitors),
        field: "mirostat_mode",
        reason: "cannot be combined with monitors",
    },
    Rule {
        feature: Feature::Healed,
        beside: Beside::Feature(Feature::Monitors),
        field: "monitors",
        reason: "cannot be combined with a healed prompt: a monitor reads the answer from its first byte",
    },
    Rule {
        feature: Feature::Healed,
        beside: Beside::Methods(&[Method::Weigh]),
        field: "options",
        reason: "cannot be combined with a healed prompt: options are weighed after a whole one",
    },
];

/// Returns all conflicts of a method, called `name` in messages, with these features, and of these features
/// with each other.
pub fn conflicts(method: Method, name: &str, features: &[Feature]) -> Vec<Conflict> {
    let is_broken = |rule: &&Rule| {
        features.contains(&rule.feature)
            && match &rule.beside {
                Beside::Methods(methods) => methods.contains(&method),
                Beside::Feature(other) => features.contains(other),
            }
    };
    let conflict = |rule: &Rule| Conflict {
        field: rule.field,
        reason: rule.reason.replace("{method}", name),
    };
    TABLE.iter().filter(is_broken).map(conflict).collect()
}

/// Returns `true` if a method can have a feature.
pub fn support(method: Method, feature: Feature) -> bool {
    conflicts(method, "", &[feature]).is_empty()
}
