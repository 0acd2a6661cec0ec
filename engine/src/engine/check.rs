//! The checks of requests and configurations before anything is queued or started.

use crate::Grammar;
use crate::config::{EngineConfig, Lookahead};
use crate::error::{EngineError, Refusal};
use crate::grammar::outlook::MOST_DRAFTED;
use crate::request::law;
use crate::request::{Feature, Method, OnBudget, PenaltyScope, Request, Search, Task, Weigh, conflicts};
use crate::speculation::window::{MOST_COLUMNS, MOST_LENGTH};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::Law;

/// Refuses settings that cannot be honoured together, by the first rule of the table that they break.
pub(super) fn check_combination(request: &Request) -> Result<(), Refusal> {
    let features = [
        (law::has_best_of(request), Feature::BestOf),
        (!request.constraints.monitors.is_empty(), Feature::Monitors),
        (request.constraints.tilt.is_some(), Feature::Tilt),
        (request.sampling.mirostat.is_some(), Feature::Mirostat),
        (request.limits.on_budget != OnBudget::Complete, Feature::Cut),
        (!request.prompt.healed.is_empty(), Feature::Healed),
    ];
    let features: Vec<Feature> = features
        .into_iter()
        .filter_map(|(is_there, feature)| is_there.then_some(feature))
        .collect();
    let (method, name) = match &request.task {
        Task::Draw(_) => {
            let law = law::drawn(request).unwrap_or_default();
            (law.into(), format!("law: {}", law.name()))
        }
        task => (Method::from(task), "a search".to_owned()),
    };
    match conflicts(method, &name, &features).into_iter().next() {
        Some(conflict) => Err(Refusal::Conflict(conflict)),
        None => Ok(()),
    }
}

/// Checks that the number of answers is valid, and that the request may have that many texts in progress.
pub(super) fn check_answers(request: &Request, limit: usize) -> Result<(), Refusal> {
    let answers = request.task.answers();
    let is_right = (1..=limit).contains(&answers);
    unless(
        is_right,
        "answers",
        &answers,
        "from 1 to the engine's max_branches",
    )?;
    let Task::Draw(draw) = &request.task else {
        return Ok(());
    };
    let most = draw.best_of.unwrap_or(answers);
    let is_right = (answers..=limit).contains(&most);
    unless(
        is_right,
        "best_of",
        &most,
        "from the number of answers to the engine's max_branches",
    )
}

/// Checks that the parameters of a search are valid, and that it may have that many texts in progress.
pub(super) fn check_search(request: &Request, limit: usize, vocabulary: &Vocabulary) -> Result<(), Refusal> {
    let Task::Search { search, answers } = &request.task else {
        return Ok(());
    };
    if let Some(width) = search.width() {
        let expected = "at least the number of answers, and few enough for the engine's max_branches";
        let is_right = width >= *answers && search.branches(*answers) <= limit;
        unless(is_right, "search.width", &width, expected)?;
    }
    if let Some(penalty) = search.length_penalty() {
        let is_right = (0.0..=10.0).contains(&penalty);
        unless(is_right, "search.length_penalty", &penalty, "from 0 to 10")?;
    }
    check_parameters(search, vocabulary)?;
    match *search {
        Search::Cntp { trials, .. } => {
            let is_right = (1..=Search::MOST_TRIALS).contains(&trials) && search.branches(*answers) <= limit;
            let expected =
                "from 1 to 16, and times the number of answers no more than the engine's max_branches";
            unless(is_right, "search.trials", &trials, expected)
        }
        _ => Ok(()),
    }
}

/// Checks the parameters that are specific to one search.
fn check_parameters(search: &Search, vocabulary: &Vocabulary) -> Result<(), Refusal> {
    match *search {
        Search::Beam { patience, .. } => {
            let patience = patience.unwrap_or(1.0);
            let is_right = patience > 0.0 && patience.is_finite();
            unless(is_right, "search.patience", &patience, "above 0")
        }
        Search::BestFirstBeam { .. } => Ok(()),
        Search::DiverseBeam {
            width,
            groups,
            diversity,
            ..
        } => {
            let is_right = groups > 0 && width.is_multiple_of(groups);
            unless(
                is_right,
                "search.groups",
                &groups,
                "at least 1, and a divisor of the width",
            )?;
            let is_right = (0.0..=100.0).contains(&diversity);
            unless(is_right, "search.diversity", &diversity, "from 0 to 100")
        }
        Search::KBest {
            max_rows,
            max_frontier,
        } => {
            unless(max_rows > 0, "search.max_rows", &max_rows, "at least 1")?;
            unless(
                max_frontier > 0,
                "search.max_frontier",
                &max_frontier,
                "at least 1",
            )
        }
        Search::DynamicBeam { ref must_contain, .. } => {
            check_phrases("search.must_contain", must_contain.iter(), (1, vocabulary))
        }
        Search::AStarEsque { .. } => check_a_star(search, vocabulary),
        Search::Cntp {
            low_entropy: low,
            high_entropy: high,
            trial_tokens,
            ..
        } => {
            unless(
                low >= 0.0 && low.is_finite(),
                "search.low_entropy",
                &low,
                "at least 0",
            )?;
            let is_right = high >= low && high.is_finite();
            unless(is_right, "search.high_entropy", &high, "at least low_entropy")?;
            unless(
                trial_tokens > 0,
                "search.trial_tokens",
                &trial_tokens,
                "at least 1",
            )
        }
    }
}

fn check_a_star(search: &Search, vocabulary: &Vocabulary) -> Result<(), Refusal> {
    let Search::AStarEsque {
        distance_weight: weight,
        look_ahead,
        must_contain,
        must_not_contain,
        ..
    } = search
    else {
        return Ok(());
    };
    let (wanted, unwanted) = (must_contain.iter().flatten(), must_not_contain.iter());
    let all = wanted.clone().count() + unwanted.clone().count();
    let is_right = all <= Search::MOST_PHRASES && !must_contain.iter().any(Vec::is_empty);
    let expected = "clauses of at least one phrase, and at most 16 phrases with those of must_not_contain";
    unless(is_right, "search.must_contain", &all, expected)?;
    check_phrases("search.must_contain", wanted, (0, vocabulary))?;
    check_phrases("search.must_not_contain", unwanted, (0, vocabulary))?;
    let is_right = (0.0..=100.0).contains(weight);
    unless(is_right, "search.distance_weight", weight, "from 0 to 100")?;
    let is_right = *look_ahead <= Search::MOST_LOOK_AHEAD;
    unless(is_right, "search.look_ahead", look_ahead, "from 0 to 16")
}

fn check_phrases<'a>(
    name: &'static str,
    phrases: impl Iterator<Item = &'a Vec<u32>>,
    (least, vocabulary): (usize, &Vocabulary),
) -> Result<(), Refusal> {
    let is_text = |token| matches!(vocabulary.kind(token), TokenKind::Text | TokenKind::Mark);
    let writes = |&token: &u32| {
        (token as usize) < vocabulary.len() && is_text(token) && !vocabulary.bytes(token).is_empty()
    };
    let is_phrase = |phrase: &Vec<u32>| {
        (1..=Search::MOST_PHRASE_TOKENS).contains(&phrase.len()) && phrase.iter().all(writes)
    };
    let (mut count, mut are_phrases) = (0, true);
    for phrase in phrases {
        count += 1;
        are_phrases &= is_phrase(phrase);
    }
    let is_right = (least..=Search::MOST_PHRASES).contains(&count) && are_phrases;
    let expected = "up to 16 phrases, each of 1 to 64 tokens that write something";
    unless(is_right, name, &count, expected)
}

/// Refuses the value of a named field unless `is_right`.
fn unless(
    is_right: bool,
    name: &'static str,
    value: &dyn ToString,
    expected: &'static str,
) -> Result<(), Refusal> {
    match is_right {
        true => Ok(()),
        false => Err(Refusal::Invalid {
            name,
            value: value.to_string(),
            expected,
        }),
    }
}

/// Checks that the parameters of a law are valid, and that it may have that many texts in progress.
pub(super) fn check_law(request: &Request, limit: usize) -> Result<(), Refusal> {
    let Task::Draw(draw) = &request.task else {
        return Ok(());
    };
    let texts = draw.answers..=limit;
    match draw.law {
        Law::Global {
            max_attempts: attempts,
            ..
        } => unless(attempts > 0, "max_attempts", &attempts, "at least 1"),
        Law::Aprad { exponent, max_errors } => {
            unless(max_errors > 0, "max_attempts", &max_errors, "at least 1")?;
            let is_right = exponent <= Law::MOST_EXPONENT;
            unless(is_right, "aprad_exponent", &exponent, "from 0 to 16")
        }
        Law::Smc {
            particles, threshold, ..
        } => {
            let is_right = threshold > 0.0 && threshold <= 1.0;
            unless(is_right, "ess_threshold", &threshold, "above 0 and at most 1")?;
            unless(texts.contains(&particles), "particles", &particles, PARTICLES)
        }
        Law::Sir { candidates, .. } => {
            unless(texts.contains(&candidates), "particles", &candidates, PARTICLES)
        }
        Law::Mcmc { steps, .. } => {
            unless(steps > 0, "steps", &steps, "at least 1")?;
            let expected = "below the engine's max_branches: the prompt takes a branch of its own";
            unless(draw.answers < limit, "answers", &draw.answers, expected)
        }
        _ => Ok(()),
    }
}

/// The valid numbers of particles, for error messages.
const PARTICLES: &str = "at least the number of answers, and at most the engine's max_branches";

/// The maximum number of logits in the rows of a pass that weighs options: 128 MiB of them.
const OPTION_LOGITS: usize = 1 << 25;

/// Returns the maximum number of option nodes that a pass weighs. Each has a row, and rows are long.
pub(super) fn option_tokens(config: &EngineConfig, vocab_size: usize) -> usize {
    let rows = OPTION_LOGITS / vocab_size.max(1);
    let most = rows.min(config.max_step_tokens).min(MOST_DRAFTED);
    most.saturating_sub(1).max(1)
}

/// Checks that options can be weighed: they consist of the model's tokens, and the token limit suffices for
/// them.
pub(super) fn check_options(
    request: &Request,
    (vocabulary, vocab_size): (&Vocabulary, usize),
) -> Result<(), Refusal> {
    let Task::Weigh(Weigh { options, likeliest }) = &request.task else {
        return Ok(());
    };
    if let Some(count) = likeliest {
        unless(*count > 0, "likeliest", count, "at least 1")?;
        let is_single = options.ends().iter().all(|ends| ends.len() <= 1);
        let expected = "absent where options have several token sequences";
        unless(is_single, "likeliest", count, expected)?;
    }
    let least = options.longest() + usize::from(request.reporting.weigh_end);
    let max_tokens = request.limits.max_tokens;
    let expected = "as many as the longest option has, with its end";
    unless(max_tokens >= least, "max_tokens", &max_tokens, expected)?;
    let stops = &request.constraints.stop_tokens;
    let ends = |token: &u32| vocabulary.is_eos(*token) || stops.contains(token);
    let unknown = |token: &u32| *token as usize >= vocab_size;
    match options.each_token().find(|token| ends(token) || unknown(token)) {
        Some(token) => Err(Refusal::Invalid {
            name: "options",
            value: format!("one with token {token}"),
            expected: "of tokens that the model has and that do not end the text",
        }),
        None => Ok(()),
    }
}

/// Checks that the text of a request does not depend on other requests, if that was requested; `variance` is
/// the reason why rows of the model may depend on them.
pub(super) fn check_company(request: &Request, variance: Option<&'static str>) -> Result<(), Refusal> {
    let depends = || variance.or_else(|| law::depends_on_others(request));
    match request.batch_invariant.then(depends).flatten() {
        Some(because) => Err(Refusal::DependsOnOthers { because }),
        None => Ok(()),
    }
}

/// Checks that an answer of this length fits after a prompt of known tokens.
pub(super) fn check_prompt(
    tokens: &[u32],
    max_tokens: usize,
    (limit, vocab_size): (usize, usize),
) -> Result<(), Refusal> {
    if tokens.len().saturating_add(max_tokens) > limit {
        return Err(Refusal::TooLong {
            prompt: tokens.len(),
            max_tokens,
            limit,
        });
    }
    match tokens.iter().position(|&token| token as usize >= vocab_size) {
        Some(place) => Err(Refusal::UnknownToken {
            place,
            token: tokens[place],
            len: vocab_size,
        }),
        None => Ok(()),
    }
}

/// Checks what an answer is contrasted with. Both texts must fit into the cache, which has this many slots.
/// `draft_context` is the number of tokens that a draft model reads whose rows can be contrasted with.
pub(super) fn check_contrast(
    request: &Request,
    limits: (usize, usize),
    (slots, draft_context): (usize, Option<usize>),
) -> Result<(), Refusal> {
    let Some(with) = &request.sampling.contrast else {
        return Ok(());
    };
    with.contrast
        .check()
        .map_err(|error| law::refusal(&error, request.sampling.temperature))?;
    let max_tokens = request.limits.max_tokens;
    let Some(tokens) = with.prompt() else {
        return check_draft_model(request, draft_context);
    };
    unless(
        !tokens.is_empty(),
        "contrast",
        &"no prompt",
        "a prompt of at least one token",
    )?;
    check_prompt(tokens, max_tokens, limits)?;
    let (prompt, max_tokens) = (
        request.prompt.tokens.len() + tokens.len(),
        max_tokens.saturating_mul(2),
    );
    match prompt.saturating_add(max_tokens) > slots {
        true => Err(Refusal::TooLong {
            prompt,
            max_tokens,
            limit: slots,
        }),
        false => Ok(()),
    }
}

/// Checks that there is a draft model whose rows can be contrasted with, and that it can read the text.
fn check_draft_model(request: &Request, draft_context: Option<usize>) -> Result<(), Refusal> {
    let expected = "a prompt: this engine has no draft model that predicts the model's tokens one by one";
    let limit = draft_context.ok_or(Refusal::Invalid {
        name: "contrast.model",
        value: "draft".to_owned(),
        expected,
    })?;
    let (prompt, max_tokens) = (request.prompt.tokens.len(), request.limits.max_tokens);
    match prompt.saturating_add(max_tokens) > limit {
        true => Err(Refusal::TooLong {
            prompt,
            max_tokens,
            limit,
        }),
        false => Ok(()),
    }
}

/// Checks that the bytes removed from a prompt can be restored. Their agreement with the grammar is checked
/// separately.
pub(super) fn check_healed(request: &Request) -> Result<(), Refusal> {
    let comes_back = request.prompt.healed.is_empty() || request.constraints.grammar.is_some();
    let expected = "empty without a grammar that begins with its bytes";
    unless(comes_back, "healed", &"there", expected)
}

/// Checks that the fewest tokens of an answer can be required: by the masks of a grammar, from tokens that
/// are drawn one by one.
pub(super) fn check_min_tokens(request: &Request) -> Result<(), Refusal> {
    let least = request.limits.min_tokens;
    let is_right = least <= request.limits.max_tokens;
    unless(is_right, "min_tokens", &least, "at most max_tokens")?;
    let is_drawn = law::drawn(request).is_some_and(Law::is_local);
    unless(
        least == 0 || is_drawn,
        "min_tokens",
        &least,
        "0 unless law is local",
    )?;
    let is_masked = request.constraints.grammar.is_some();
    unless(
        least == 0 || is_masked,
        "min_tokens",
        &least,
        "0 without a grammar",
    )
}

/// Checks that there is a grammar if penalties concern the text of JSON.
pub(super) fn check_penalties(request: &Request) -> Result<(), Refusal> {
    let is_known =
        request.sampling.penalty_scope == PenaltyScope::All || request.constraints.grammar.is_some();
    unless(
        is_known,
        "penalty_scope",
        &"text",
        "all, without a grammar of JSON",
    )
}

/// Checks that there is a grammar if the tokens before the answer are limited.
pub(super) fn check_preamble(request: &Request) -> Result<(), Refusal> {
    let is_masked = request.constraints.grammar.is_some();
    let limit = request.limits.preamble.map(|limit| limit.max_tokens);
    unless(
        limit.is_none() || is_masked,
        "preamble",
        &limit.unwrap_or_default(),
        "absent without a grammar",
    )
}

/// Checks that all texts of a grammar begin with the bytes removed from the prompt.
pub(super) fn check_prefix(healed: &[u8], grammar: &Grammar) -> Result<(), Refusal> {
    let begins = healed.is_empty() || grammar.forced(grammar.start()).starts_with(healed);
    let expected = "what every text of the grammar begins with";
    unless(begins, "healed", &healed.escape_ascii(), expected)
}

/// Checks that an answer can be completed within its tokens. Afterwards the masks ensure that it is.
pub(super) fn check_budget(request: &Request, grammar: &Grammar) -> Result<(), Refusal> {
    let max_tokens = request.limits.max_tokens;
    let unasked = usize::from(law::ends_unasked(request));
    if grammar.completes_within(grammar.start(), max_tokens.saturating_add(unasked)) {
        return Ok(());
    }
    let least = grammar.min_completion(grammar.start()).map(|least| {
        if least == usize::MAX {
            least
        } else {
            least - unasked
        }
    });
    Err(Refusal::TooFew { max_tokens, least })
}

/// Checks that all sizes are valid.
pub(super) fn check_config(config: &EngineConfig) -> Result<(), EngineError> {
    let sizes = [
        ("block_size", config.block_size),
        ("blocks", config.blocks),
        ("max_context", config.max_context),
        ("max_running", config.max_running),
        ("max_branches", config.max_branches),
        ("max_waiting", config.max_waiting),
        ("max_step_tokens", config.max_step_tokens),
        ("prompt_piece", config.prompt_piece),
    ];
    if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
        return Err(EngineError::Config(format!(
            "{name} is 0, but must be at least 1"
        )));
    }
    let Some(Lookahead { columns, length }) = config.lookahead else {
        return Ok(());
    };
    let window = [
        ("lookahead.columns", columns, 1..=MOST_COLUMNS),
        ("lookahead.length", length, 2..=MOST_LENGTH),
    ];
    match window.iter().find(|(_, size, allowed)| !allowed.contains(size)) {
        Some((name, size, allowed)) => Err(EngineError::Config(format!(
            "{name} is {size}, but must be from {} to {}",
            allowed.start(),
            allowed.end()
        ))),
        None => Ok(()),
    }
}
