//! The search that a request may choose instead of a law: the field `search` (a word, or an object with
//! parameters), or vLLM's fields for a beam search.

use lexiform_engine::Search as Engine;
use serde_json::{Map, Value};

use crate::wire::fields::{Fields, Problems};

/// The maximum and default number of prefixes that are followed at a time.
const WIDTH: (i64, usize) = (32, 4);
/// The default number of groups of a diverse beam search; the maximum is that of the prefixes.
const GROUPS: usize = 2;
/// The maximum and default penalty of a token, in nats, for each time that an earlier group took it.
const DIVERSITY: (f64, f64) = (100.0, 0.5);
/// The maximum and default of `max_rows` and of `max_frontier` (open prefixes) of an exact search. Each row
/// or prefix takes about a kilobyte of the service's memory.
const ROWS: (i64, usize) = (10_000, 1_000);
/// The maximum and default cost of each token of the shortest completion, in nats.
const DISTANCE_WEIGHT: (f64, f64) = (100.0, 0.5);
/// The maximum number of tokens to look ahead.
const LOOK_AHEAD: i64 = Engine::MOST_LOOK_AHEAD as i64;
/// The maximum and default number of trials.
const TRIALS: (i64, usize) = (Engine::MOST_TRIALS as i64, 5);
/// The defaults of `low_entropy` and `high_entropy`, in nats: up to the first there is one trial, from the
/// second on there are all.
const ENTROPIES: (f64, f64) = (0.5, 1.5);
/// The maximum of the entropy parameters, in nats: the entropy of more tokens than any vocabulary has.
const MOST_ENTROPY: f64 = 20.0;
/// The maximum and default number of tokens of a trial.
const TRIAL_TOKENS: (i64, usize) = (256, 16);
/// The maximum number of phrases, and the maximum length of one in bytes.
const PHRASES: (usize, usize) = (Engine::MOST_PHRASES, 64);

/// The names of the searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchName {
    Beam,
    BestFirstBeam,
    DiverseBeam,
    KBest,
    DynamicBeam,
    AStarEsque,
    Cntp,
}

const KINDS: [(&str, SearchName); 7] = [
    ("beam", SearchName::Beam),
    ("best_first_beam", SearchName::BestFirstBeam),
    ("diverse_beam", SearchName::DiverseBeam),
    ("k_best", SearchName::KBest),
    ("dynamic_beam", SearchName::DynamicBeam),
    ("a_star_esque", SearchName::AStarEsque),
    ("cntp", SearchName::Cntp),
];

/// The searches that follow a number of prefixes.
const BEAMS: &[SearchName] = &[
    SearchName::Beam,
    SearchName::BestFirstBeam,
    SearchName::DiverseBeam,
    SearchName::DynamicBeam,
    SearchName::AStarEsque,
];

/// The parameters, with the searches that have them.
const PARAMETERS: [(&str, &[SearchName]); 15] = [
    ("width", BEAMS),
    ("length_penalty", BEAMS),
    ("patience", &[SearchName::Beam]),
    ("groups", &[SearchName::DiverseBeam]),
    ("diversity", &[SearchName::DiverseBeam]),
    ("max_rows", &[SearchName::KBest]),
    ("max_frontier", &[SearchName::KBest]),
    ("must_contain", &[SearchName::DynamicBeam, SearchName::AStarEsque]),
    ("must_not_contain", &[SearchName::AStarEsque]),
    ("distance_weight", &[SearchName::AStarEsque]),
    ("look_ahead", &[SearchName::AStarEsque]),
    ("trials", &[SearchName::Cntp]),
    ("low_entropy", &[SearchName::Cntp]),
    ("high_entropy", &[SearchName::Cntp]),
    ("trial_tokens", &[SearchName::Cntp]),
];

/// vLLM's field that requests a beam search.
const FLAG: &str = "use_beam_search";

/// A search that a request chose.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The engine's search. Its phrases are not filled in yet, since they are not tokens.
    pub search: Engine,
    /// The clauses of phrases: an answer must contain a phrase of each.
    pub must_contain: Vec<Vec<String>>,
    /// The phrases that an answer must not contain.
    pub must_not_contain: Vec<String>,
    /// `true` if the search was requested by `use_beam_search`.
    by_flag: bool,
}

impl Search {
    /// Reads the search and its fields.
    pub(in crate::wire) fn read(fields: &mut Fields, problems: &mut Problems) -> Option<Self> {
        let flat = flat(fields, problems);
        let given = fields.take("search");
        if let (Some(_), Some(_)) = (&given, &flat) {
            problems.invalid(FLAG, "search says which search there is; leave one of them out");
        }
        let given = given.and_then(|value| of_field(value, problems));
        given.or(flat)
    }

    /// Returns the field that requested the search.
    pub fn param(&self) -> &'static str {
        if self.by_flag { FLAG } else { "search" }
    }

    /// Returns the name that a parameter has in the request.
    fn param_of(&self, name: &str) -> String {
        match (self.by_flag, name) {
            (true, "width") => "beam_width".to_owned(),
            (true, name) => name.to_owned(),
            (false, name) => format!("search.{name}"),
        }
    }

    /// Returns the name of the kind of search.
    pub fn word(&self) -> &'static str {
        word(self.kind())
    }

    /// Returns the name of the search for messages.
    pub fn name(&self) -> String {
        match self.by_flag {
            true => format!("{FLAG}: true"),
            false => format!("search: {}", word(self.kind())),
        }
    }

    /// Returns `true` if the answers of the search are drawn.
    pub fn draws(&self) -> bool {
        self.search.draws()
    }

    fn kind(&self) -> SearchName {
        match self.search {
            Engine::Beam { .. } => SearchName::Beam,
            Engine::BestFirstBeam { .. } => SearchName::BestFirstBeam,
            Engine::DiverseBeam { .. } => SearchName::DiverseBeam,
            Engine::KBest { .. } => SearchName::KBest,
            Engine::DynamicBeam { .. } => SearchName::DynamicBeam,
            Engine::AStarEsque { .. } => SearchName::AStarEsque,
            Engine::Cntp { .. } => SearchName::Cntp,
        }
    }

    /// Reports the parameters that contradict each other, the number of answers or the temperature.
    pub(in crate::wire) fn contradictions(
        &self,
        (answers, temperature): (usize, Option<f32>),
        problems: &mut Problems,
    ) {
        let width = match self.search {
            Engine::Beam { width, .. }
            | Engine::BestFirstBeam { width, .. }
            | Engine::DiverseBeam { width, .. }
            | Engine::DynamicBeam { width, .. }
            | Engine::AStarEsque { width, .. } => Some(width),
            Engine::KBest { .. } | Engine::Cntp { .. } => None,
        };
        if width.is_some_and(|width| width < answers) {
            problems.invalid(self.param_of("width"), "must be at least n");
        }
        if let Engine::DiverseBeam { width, groups, .. } = self.search
            && !width.is_multiple_of(groups)
        {
            problems.invalid(
                self.param_of("groups"),
                format!("must divide the width, which is {width}"),
            );
        }
        if let Engine::Cntp {
            low_entropy,
            high_entropy,
            ..
        } = self.search
            && high_entropy < low_entropy
        {
            let message = format!("must be at least low_entropy, which is {low_entropy}");
            problems.invalid(self.param_of("high_entropy"), message);
        }
        match (self.draws(), temperature) {
            (true, Some(0.0)) => {
                let message = format!("{} draws its trials, so it must be above 0", self.name());
                problems.invalid("temperature", message);
            }
            (false, Some(temperature)) if temperature > 0.0 && temperature != 1.0 => {
                let what = match self.kind() {
                    SearchName::Beam => "a beam search",
                    _ => "a search",
                };
                let message = format!(
                    "{what} leaves nothing to chance: the possible values are 0 and 1, which mean the same"
                );
                problems.invalid("temperature", message);
            }
            _ => (),
        }
    }
}

/// Returns the names of all searches.
pub fn searches() -> [&'static str; 7] {
    KINDS.map(|(word, _)| word)
}

fn word(kind: SearchName) -> &'static str {
    let found = KINDS.iter().find(|(_, other)| *other == kind);
    found.map_or("beam", |(word, _)| word)
}

/// Reads vLLM's fields for a beam search.
fn flat(fields: &mut Fields, problems: &mut Problems) -> Option<Search> {
    let given = ["beam_width", "length_penalty", "patience"].map(|name| (name, fields.has(name)));
    let width = fields.integer("beam_width", 1, WIDTH.0, problems);
    let length_penalty = fields.number("length_penalty", 0.0, 10.0, problems);
    let patience = fields.number("patience", 0.01, 1_000.0, problems);
    if fields.boolean(FLAG, problems) == Some(true) {
        return Some(Search {
            search: Engine::Beam {
                width: width.map_or(WIDTH.1, |width| width as usize),
                length_penalty: length_penalty.map_or(1.0, f64::from),
                patience: patience.map(f64::from),
            },
            must_contain: Vec::new(),
            must_not_contain: Vec::new(),
            by_flag: true,
        });
    }
    for (field, is_given) in given {
        // Some clients that know no beam search here send the default, which changes nothing.
        let is_neutral = field == "length_penalty" && length_penalty == Some(1.0);
        if is_given && !is_neutral {
            problems.invalid(field, format!("requires {FLAG}: true"));
        }
    }
    None
}

/// Reads the field `search`: a name, or an object with the name and parameters.
fn of_field(value: Value, problems: &mut Problems) -> Option<Search> {
    let value = match value {
        Value::String(word) => Value::Object(Map::from_iter([("kind".to_owned(), Value::String(word))])),
        other => other,
    };
    let mut fields = Fields::of(value, "search", problems)?;
    let is_named = fields.has("kind");
    let kind = fields.word("kind", &KINDS, problems);
    if !is_named {
        let words = KINDS.map(|(word, _)| format!("'{word}'"));
        problems.invalid("search.kind", format!("expected {}", words.join(" or ")));
    }
    let given = PARAMETERS.map(|(name, ..)| fields.has(name));
    let read = Parameters::read(&mut fields, problems);
    fields.finish_strict(problems);
    let kind = kind?;
    for ((name, kinds), is_given) in PARAMETERS.into_iter().zip(given) {
        if is_given && !kinds.contains(&kind) {
            let words: Vec<&str> = kinds.iter().map(|&kind| word(kind)).collect();
            problems.invalid(
                format!("search.{name}"),
                format!("requires kind: {}", words.join(" or ")),
            );
        }
    }
    if kind == SearchName::DynamicBeam && read.must_contain.is_empty() && !given[7] {
        problems.invalid(
            "search.must_contain",
            "expected the phrases that an answer must contain",
        );
    }
    if kind == SearchName::DynamicBeam && read.must_contain.iter().any(|clause| clause.len() > 1) {
        let message = "alternatives require kind: a_star_esque; each phrase must be contained here";
        problems.invalid("search.must_contain", message);
    }
    let phrases = read.must_contain.iter().flatten().count() + read.must_not_contain.len();
    if phrases > PHRASES.0 {
        let message = format!(
            "at most {} phrases in all, with those of must_not_contain",
            PHRASES.0
        );
        problems.invalid("search.must_contain", message);
    }
    Some(read.search(kind))
}

/// All parameters, including those that do not belong to the chosen search.
struct Parameters {
    width: usize,
    length_penalty: f64,
    patience: Option<f64>,
    groups: usize,
    diversity: f64,
    max_rows: usize,
    max_frontier: usize,
    must_contain: Vec<Vec<String>>,
    must_not_contain: Vec<String>,
    distance_weight: f64,
    look_ahead: usize,
    trials: usize,
    entropies: (f64, f64),
    trial_tokens: usize,
}

impl Parameters {
    fn read(fields: &mut Fields, problems: &mut Problems) -> Self {
        let mut count = |name, least, (most, usual): (i64, usize)| {
            let found = fields.integer(name, least, most, problems);
            found.map_or(usual, |found| found as usize)
        };
        let width = count("width", 1, WIDTH);
        let groups = count("groups", 1, (WIDTH.0, GROUPS));
        let (max_rows, max_frontier) = (count("max_rows", 1, ROWS), count("max_frontier", 1, ROWS));
        let look_ahead = count("look_ahead", 0, (LOOK_AHEAD, 0));
        let (trials, trial_tokens) = (count("trials", 1, TRIALS), count("trial_tokens", 1, TRIAL_TOKENS));
        let mut number = |name, most, usual: f64| {
            let found = fields.number(name, 0.0, most, problems);
            found.map_or(usual, f64::from)
        };
        let low = number("low_entropy", MOST_ENTROPY, ENTROPIES.0);
        Parameters {
            width,
            length_penalty: number("length_penalty", 10.0, 1.0),
            groups,
            diversity: number("diversity", DIVERSITY.0, DIVERSITY.1),
            max_rows,
            max_frontier,
            distance_weight: number("distance_weight", DISTANCE_WEIGHT.0, DISTANCE_WEIGHT.1),
            look_ahead,
            trials,
            entropies: (low, number("high_entropy", MOST_ENTROPY, ENTROPIES.1.max(low))),
            trial_tokens,
            patience: fields.number("patience", 0.01, 1_000.0, problems).map(f64::from),
            must_contain: clauses(fields, problems),
            must_not_contain: phrases(fields, "must_not_contain", problems),
        }
    }

    fn search(self, kind: SearchName) -> Search {
        let Parameters {
            width,
            length_penalty,
            patience,
            groups,
            diversity,
            max_rows,
            max_frontier,
            distance_weight,
            look_ahead,
            trials,
            entropies: (low_entropy, high_entropy),
            trial_tokens,
            must_contain,
            must_not_contain,
        } = self;
        let search = match kind {
            SearchName::Beam => Engine::Beam {
                width,
                length_penalty,
                patience,
            },
            SearchName::BestFirstBeam => Engine::BestFirstBeam {
                width,
                length_penalty,
            },
            SearchName::DiverseBeam => Engine::DiverseBeam {
                width,
                groups,
                diversity,
                length_penalty,
            },
            SearchName::KBest => Engine::KBest {
                max_rows,
                max_frontier,
            },
            SearchName::DynamicBeam => Engine::DynamicBeam {
                width,
                length_penalty,
                must_contain: Vec::new(),
            },
            SearchName::AStarEsque => Engine::AStarEsque {
                width,
                length_penalty,
                distance_weight,
                look_ahead,
                must_contain: Vec::new(),
                must_not_contain: Vec::new(),
            },
            SearchName::Cntp => Engine::Cntp {
                trials,
                low_entropy,
                high_entropy,
                trial_tokens,
            },
        };
        Search {
            search,
            must_contain,
            must_not_contain,
            by_flag: false,
        }
    }
}

/// Takes the phrases that an answer must contain: each a string, or a list of alternatives.
fn clauses(fields: &mut Fields, problems: &mut Problems) -> Vec<Vec<String>> {
    let Some(items) = fields.array("must_contain", problems) else {
        return Vec::new();
    };
    let clause = |item: &Value| match item {
        Value::Array(items) if !items.is_empty() => items.iter().map(phrase).collect(),
        item => Some(vec![phrase(item)?]),
    };
    let read: Option<Vec<Vec<String>>> = items.iter().map(clause).collect();
    let (most, bytes) = PHRASES;
    match read.filter(|read| (1..=most).contains(&read.len())) {
        Some(read) => read,
        None => {
            let message = format!("expected 1 to {most} strings of 1 to {bytes} bytes, or lists of them");
            problems.invalid(fields.path("must_contain"), message);
            Vec::new()
        }
    }
}

/// Takes a list of phrases, which may be absent.
fn phrases(fields: &mut Fields, name: &'static str, problems: &mut Problems) -> Vec<String> {
    let Some(items) = fields.array(name, problems) else {
        return Vec::new();
    };
    let (most, bytes) = PHRASES;
    let read: Option<Vec<String>> = items.iter().map(phrase).collect();
    match read.filter(|read| (1..=most).contains(&read.len())) {
        Some(read) => read,
        None => {
            let message = format!("expected 1 to {most} strings of 1 to {bytes} bytes");
            problems.invalid(fields.path(name), message);
            Vec::new()
        }
    }
}

fn phrase(item: &Value) -> Option<String> {
    let text = item.as_str().filter(|text| (1..=PHRASES.1).contains(&text.len()));
    text.map(str::to_owned)
}
