//! The samplers: published ones and ours, each with the rows that it needs.

use super::rows::{Row, Rows, Task};
use lexiform::Grammar;
use lexiform_law::draft::{
    BestFirst, Combined, Constraint, Context, Draft, Drafter, Forced, Layer, NodeId, Observation, Predictor,
    Recycling, Shape, StateKeyed, Text, Tokenise, Union,
};
use lexiform_law::{
    Allowed, Attempt, Chain, Chooser, Cuts, Distribution, Part, Particles, Place, Resampling, Row as _,
    Seeded, Step, Trie,
};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

/// The maximum number of attempts of one sample.
const ATTEMPTS: u32 = 2_000;
/// The maximum number of prefixes and edges of a trie.
const TRIE: usize = 1 << 20;
/// The maximum number of drafted tokens of a pass.
const DRAFT: usize = 32;
/// The maximum size of each store of a drafter in bytes.
const STORE: usize = 1 << 22;

/// The ways to sample a text.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Method {
    /// Rejection sampling: draws the model's own texts until one is valid.
    Rejection,
    /// Adaptive rejection sampling: texts that were found invalid are not proposed again.
    Adaptive,
    /// Draws masked tokens.
    Local,
    /// Makes attempts over a trie.
    Cars(Drafts),
    /// Sequential Monte Carlo with this many particles, of which one is drawn.
    Smc(usize),
    /// A Markov chain of this many steps that begins at the prompt for each sample.
    Mcmc(u32),
}

/// The drafts below the prefix of each pass.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Drafts {
    /// No drafts.
    None,
    /// A tree of drafts, which saves passes if the text reaches them.
    Fed,
    /// A tree of drafts, all of whose rows also update the trie.
    Taught,
}

/// All methods with their names.
pub(crate) const METHODS: [(&str, Method); 8] = [
    ("local (for comparison: another law)", Method::Local),
    ("RS", Method::Rejection),
    ("ARS", Method::Adaptive),
    ("CARS", Method::Cars(Drafts::None)),
    ("CARS with drafts", Method::Cars(Drafts::Fed)),
    ("harvested CARS", Method::Cars(Drafts::Taught)),
    ("SMC(16)", Method::Smc(16)),
    ("MCMC(10)", Method::Mcmc(10)),
];

/// A text with its end, if one was found.
pub(crate) struct Sample {
    pub(crate) text: Option<Vec<u32>>,
    pub(crate) attempts: u32,
}

type Answer<T> = Result<T, Box<dyn Error>>;

/// A request for samples, which share what they learn.
pub(crate) struct Request<'t> {
    task: &'t Task,
    method: Method,
    seed: u64,
    number: u32,
    trie: Trie<f64>,
    invalid: Invalid,
    drafter: Harvester,
}

impl<'t> Request<'t> {
    pub(crate) fn new(task: &'t Task, method: Method, seed: u64) -> Self {
        Request {
            task,
            method,
            seed,
            number: 0,
            trie: Trie::new(task.ends(), u32::try_from(task.longest).unwrap_or(u32::MAX), TRIE),
            invalid: Invalid::default(),
            drafter: Harvester::new(),
        }
    }

    /// Draws the next sample.
    pub(crate) fn sample(&mut self, rows: &mut Rows<'_, '_>) -> Answer<Sample> {
        self.number += 1;
        let mut chooser = Seeded::new(self.seed, self.number);
        let one = |text| Sample { text, attempts: 1 };
        match self.method {
            Method::Local => Ok(one(masked(self.task, rows, 0, &mut chooser)?.map(|text| text.0))),
            Method::Smc(count) => Ok(one(particles(self.task, rows, count, &mut chooser)?)),
            Method::Mcmc(steps) => Ok(one(chain(self.task, rows, steps, &mut chooser)?)),
            Method::Rejection | Method::Adaptive | Method::Cars(_) => self.attempts(rows, &mut chooser),
        }
    }

    fn attempts(&mut self, rows: &mut Rows<'_, '_>, chooser: &mut Seeded) -> Answer<Sample> {
        for attempt in 0..ATTEMPTS {
            let text = match self.method {
                Method::Cars(drafts) => self.attempt(rows, drafts, attempt, chooser)?,
                _ => self.rejecting(rows, attempt, chooser)?,
            };
            if text.is_some() {
                let attempts = attempt + 1;
                return Ok(Sample { text, attempts });
            }
        }
        let (text, attempts) = (None, ATTEMPTS);
        Ok(Sample { text, attempts })
    }

    /// Draws a text from the raw rows; if the method learns, known invalid texts are excluded.
    fn rejecting(
        &mut self,
        rows: &mut Rows<'_, '_>,
        attempt: u32,
        chooser: &mut Seeded,
    ) -> Answer<Option<Vec<u32>>> {
        let mut text = Vec::new();
        loop {
            let Some(mask) = self.task.mask(&text) else {
                return Ok(None);
            };
            let row = rows.row(&text)?;
            let place = Place::new(attempt, text.len() as u32);
            let Some(token) = self.invalid.draw(&text, &row, place, chooser) else {
                return Ok(None);
            };
            text.push(token);
            if !mask.contains(token) {
                if self.method == Method::Adaptive {
                    self.invalid.note(&text, rows)?;
                }
                return Ok(None);
            }
            if self.task.ends().contains(&token) {
                return Ok(Some(text));
            }
        }
    }

    fn attempt(
        &mut self,
        rows: &mut Rows<'_, '_>,
        drafts: Drafts,
        number: u32,
        chooser: &mut Seeded,
    ) -> Answer<Option<Vec<u32>>> {
        let mut attempt = Attempt::begin(&mut self.trie, number);
        let mut text = Vec::new();
        loop {
            if drafts != Drafts::None && !rows.is_known(&text) {
                let taught = (drafts == Drafts::Taught).then_some((&mut attempt, &mut self.trie));
                self.drafter.draft(self.task, rows, &text, taught)?;
            }
            let Some(mask) = self.task.mask(&text) else {
                return Ok(None);
            };
            let row = rows.row(&text)?;
            match attempt.next(&mut self.trie, &*row, Allowed::Words(mask.words()), chooser) {
                Step::Token(drawn) => text.push(drawn.token),
                Step::End(drawn) => {
                    text.push(drawn.token);
                    return Ok(Some(text));
                }
                Step::Restart | Step::Stuck(_) => return Ok(None),
            }
        }
    }
}

/// The share of the probability below each prefix that is known to be invalid.
#[derive(Default)]
struct Invalid(HashMap<Vec<u32>, HashMap<u32, f64>>);

impl Invalid {
    /// Draws a token of the row in proportion to the probability after it that is not known to be invalid.
    fn draw(
        &self,
        prefix: &[u32],
        row: &Distribution<'_>,
        place: Place,
        chooser: &mut Seeded,
    ) -> Option<u32> {
        let part = row.part(Allowed::All);
        let Some(known) = self.0.get(prefix) else {
            return part.draw(place, chooser);
        };
        let mut weights = part.shares();
        for (&token, invalid) in known {
            weights[token as usize] *= 1.0 - invalid;
        }
        let is_left = weights.iter().any(|&weight| weight > 0.0);
        is_left.then(|| chooser.choose(place, &weights) as u32)
    }

    /// Records that a text was found invalid by its last token.
    fn note(&mut self, text: &[u32], rows: &mut Rows<'_, '_>) -> Answer<()> {
        let mut share = 1.0;
        for end in (1..=text.len()).rev() {
            let (prefix, token) = (&text[..end - 1], text[end - 1]);
            self.0.entry(prefix.to_vec()).or_default().insert(token, share);
            let row = rows.row(prefix)?;
            let known = &self.0[prefix];
            let invalid = known.iter().map(|(&token, share)| row.probability(token) * share);
            share = invalid.sum::<f64>().min(1.0);
        }
        Ok(())
    }
}

/// A text with `p` and `m` of each of its tokens.
type Weighted = (Vec<u32>, Vec<(f64, f64)>);

/// Draws masked tokens to the end.
fn masked(
    task: &Task,
    rows: &mut Rows<'_, '_>,
    number: u32,
    chooser: &mut impl Chooser<f64>,
) -> Answer<Option<Weighted>> {
    let (mut text, mut weights) = (Vec::new(), Vec::new());
    while text.last().is_none_or(|token| !task.ends().contains(token)) {
        let place = Place::new(number, text.len() as u32);
        let row = rows.row(&text)?;
        let Some((token, mass)) = draw(task, &row, &text, place, chooser) else {
            return Ok(None);
        };
        weights.push((row.probability(token), mass));
        text.push(token);
    }
    Ok(Some((text, weights)))
}

/// Draws a token from the masked row, and returns it with the mass of the mask.
fn draw(
    task: &Task,
    row: &Row,
    prefix: &[u32],
    place: Place,
    chooser: &mut impl Chooser<f64>,
) -> Option<(u32, f64)> {
    let mask = task.mask(prefix)?;
    let part = row.part(Allowed::Words(mask.words()));
    Some((part.draw(place, chooser)?, part.mass()))
}

fn chain(task: &Task, rows: &mut Rows<'_, '_>, steps: u32, chooser: &mut Seeded) -> Answer<Option<Vec<u32>>> {
    let mut chain = Chain::new(Cuts::Restart);
    let mut best = None;
    for number in 0..=steps {
        match masked(task, rows, number, chooser)? {
            None => chain.reject(),
            Some((text, weights)) => {
                if chain.propose(text.clone(), weights, chooser) {
                    best = Some(text);
                }
            }
        }
    }
    Ok(best)
}

fn particles(
    task: &Task,
    rows: &mut Rows<'_, '_>,
    count: usize,
    chooser: &mut Seeded,
) -> Answer<Option<Vec<u32>>> {
    let mut population: Particles<f64> = Particles::new(count);
    let mut texts: Vec<Vec<u32>> = vec![Vec::new(); count];
    let is_open = |text: &Vec<u32>| text.last().is_none_or(|token| !task.ends().contains(token));
    for step in 0..task.longest as u32 {
        let open: Vec<usize> = (0..count)
            .filter(|&at| is_open(&texts[at]) && *population.weight(at) > 0.0)
            .collect();
        if open.is_empty() {
            break;
        }
        rows.pass(open.iter().map(|&at| texts[at].as_slice()));
        for at in open {
            let place = Place::new(at as u32, step);
            let row = rows.row(&texts[at])?;
            match draw(task, &row, &texts[at], place, chooser) {
                None => population.weigh(at, 0.0),
                Some((token, mass)) => {
                    population.weigh(at, mass);
                    texts[at].push(token);
                }
            }
        }
        if population.is_degenerate(&0.5) {
            let of = population.resample(Resampling::Systematic, step, chooser);
            texts = of.into_iter().map(|of| texts[of].clone()).collect();
        }
    }
    Ok(population.pick(0, chooser).map(|at| texts[at].clone()))
}

/// Drafts from the rows that were computed, and updates the trie with the rows of drafts.
struct Harvester {
    store: Combined,
}

/// A shared tokenizer.
struct Cutter(Arc<dyn Tokenise + Sync>);

impl Tokenise for Cutter {
    fn tokens(&self, bytes: &[u8]) -> Option<Vec<u32>> {
        self.0.tokens(bytes)
    }
}

impl Harvester {
    fn new() -> Self {
        let layers = vec![
            Layer::new(StateKeyed::new(STORE)),
            Layer::new(Recycling::new(STORE)),
        ];
        let union = Union::All;
        Harvester {
            store: Combined::new(layers, union),
        }
    }

    /// Runs a pass over the prefix and a draft below it. All of its rows go into the store, and into the trie
    /// if one is given.
    fn draft(
        &mut self,
        task: &Task,
        rows: &mut Rows<'_, '_>,
        prefix: &[u32],
        taught: Option<(&mut Attempt<f64>, &mut Trie<f64>)>,
    ) -> Answer<()> {
        let Some(state) = task.state(prefix) else {
            return Ok(());
        };
        let room = DRAFT.min(task.longest.saturating_sub(prefix.len() + 1));
        let mut draft: Draft<'_, Grammar> = Draft::new(Some((&task.grammar, state)), task.ends(), room);
        let text = Text {
            prompt: &[],
            answer: prefix,
        };
        Forced::new(Cutter(task.tokeniser.clone()), task.vocabulary.clone()).propose(text, &mut draft);
        let tip = draft.nodes().len().checked_sub(1);
        BestFirst { least: 0.001 }.grow(&self.store, text, tip, &mut draft);
        let path = |node: Option<NodeId>| -> Vec<u32> {
            let path = draft.path(node).into_iter();
            path.map(|node| draft.nodes()[node].token).collect()
        };
        let nodes = std::iter::once(None).chain((0..draft.nodes().len()).map(Some));
        let places: Vec<Option<NodeId>> = nodes
            .filter(|node| node.is_none_or(|node| !task.ends().contains(&draft.nodes()[node].token)))
            .collect();
        let prefixes: HashMap<Option<NodeId>, Vec<u32>> = places
            .iter()
            .map(|&node| (node, [prefix, &path(node)].concat()))
            .collect();
        rows.pass(places.iter().map(|node| prefixes[node].as_slice()));
        for &node in &places {
            self.learn(task, rows, text, &path(node), &prefixes[&node])?;
        }
        let Some((attempt, trie)) = taught else {
            return Ok(());
        };
        let tree: Vec<(Option<usize>, u32)> = draft
            .nodes()
            .iter()
            .map(|node| (node.parent, node.token))
            .collect();
        let mut given = HashMap::new();
        for (&node, prefix) in &prefixes {
            if let Some(mask) = task.mask(prefix) {
                given.insert(node, (rows.row(prefix)?, mask));
            }
        }
        let row_of = |node: Option<usize>| {
            let (row, mask) = given.get(&node)?;
            Some((Shared(row.clone()), Allowed::Words(mask.words())))
        };
        attempt.harvest(trie, &tree, |node| Ok::<_, Box<dyn Error>>(row_of(node)))
    }

    fn learn(
        &mut self,
        task: &Task,
        rows: &mut Rows<'_, '_>,
        text: Text<'_>,
        path: &[u32],
        prefix: &[u32],
    ) -> Answer<()> {
        let row = rows.row(prefix)?;
        let (Some(state), Some(mask)) = (task.state(prefix), task.mask(prefix)) else {
            return Ok(());
        };
        let shared = |tokens: Vec<(u32, f64)>| -> Vec<(u32, f32)> {
            let share = |(token, log): (u32, f64)| (token, log.exp() as f32);
            tokens.into_iter().map(share).collect()
        };
        let likely = shared(row.top(8));
        let allowed = shared(row.part(Allowed::Words(mask.words())).top(8));
        let at = Context {
            text,
            path,
            state: Some(task.grammar.key(state)),
        };
        let seen = Observation {
            likely: &likely,
            allowed: &allowed,
            drawn: None,
        };
        self.store.learn(&at, &seen);
        Ok(())
    }
}

/// A shared row.
struct Shared(Row);

impl lexiform_law::Row<f64> for Shared {
    type Part<'a> = <Distribution<'static> as lexiform_law::Row<f64>>::Part<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn probability(&self, token: u32) -> f64 {
        self.0.probability(token)
    }

    fn log_probability(&self, token: u32) -> f64 {
        self.0.log_probability(token)
    }

    fn part_under<'a>(
        &'a self,
        allowed: Allowed<'a>,
        ceiling: Option<lexiform_law::Ceiling>,
    ) -> Self::Part<'a> {
        self.0.part_under(allowed, ceiling)
    }
}
