//! What requests and configurations are checked for before anything is queued or started.

use crate::Grammar;
use crate::config::{EngineConfig, Lookahead};
use crate::error::{EngineError, Refusal};
use crate::grammar::outlook::MOST_DRAFTED;
use crate::request::law;
use crate::request::{LawChoice, Proposing, Request, Search};
use crate::speculation::window::{MOST_COLUMNS, MOST_LENGTH};
use lexiform::vocab::{TokenKind, Vocabulary};

/// Whether a request may have so many texts under way.
pub(super) fn check_samples(request: &Request, limit: usize) -> Result<(), Refusal> {
    let most = request.best_of.unwrap_or(request.samples);
    let invalid = |name, value: usize, expected| Refusal::Invalid {
        name,
        value: value.to_string(),
        expected,
    };
    if request.samples == 0 || request.samples > limit {
        return Err(invalid(
            "samples",
            request.samples,
            "from 1 to the engine's max_branches",
        ));
    }
    if most < request.samples || most > limit {
        return Err(invalid(
            "best_of",
            most,
            "from samples to the engine's max_branches",
        ));
    }
    let chooses = !matches!(
        request.law,
        LawChoice::Local | LawChoice::Global { .. } | LawChoice::Asap | LawChoice::Aprad { .. }
    );
    if chooses && request.best_of.is_some() {
        return Err(invalid(
            "best_of",
            most,
            "absent: the law chooses among texts itself",
        ));
    }
    if request.search.is_some() && request.best_of.is_some() {
        return Err(invalid(
            "best_of",
            most,
            "absent: the search chooses among texts itself",
        ));
    }
    Ok(())
}

/// The most phrases of a search, and the most tokens of one.
const PHRASES: usize = 16;
const PHRASE_TOKENS: usize = 64;
/// The most tokens that a search looks ahead.
const LOOK_AHEAD: usize = 16;
/// The most trials of a token.
const TRIALS: usize = 32;

/// Whether the numbers of a search are numbers that it can have, and its texts no more than may be under way.
pub(super) fn check_search(request: &Request, limit: usize, vocabulary: &Vocabulary) -> Result<(), Refusal> {
    let Some(search) = &request.search else {
        return Ok(());
    };
    if request.law != LawChoice::Local {
        return unless(
            false,
            "search",
            &"present",
            "absent under any law but the local one",
        );
    }
    if !request.monitors.is_empty() {
        let expected = "absent with a search, which looks at the masks of all constraints";
        return unless(false, "monitors", &"there", expected);
    }
    if request.options.is_some() {
        return unless(false, "search", &"present", "absent where options are weighed");
    }
    if let Some(width) = search.width() {
        let expected = "at least the number of answers, and few enough for the engine's max_branches";
        let is_right = width >= request.samples && search.branches(request.samples) <= limit;
        unless(is_right, "search.width", &width, expected)?;
    }
    if let Some(penalty) = search.length_penalty() {
        let is_right = (0.0..=10.0).contains(&penalty);
        unless(is_right, "search.length_penalty", &penalty, "from 0 to 10")?;
    }
    check_parameters(search, vocabulary)?;
    match *search {
        Search::Cntp { trials, .. } => {
            let is_right = (1..=TRIALS).contains(&trials) && search.branches(request.samples) <= limit;
            let expected =
                "from 1 to 32, and times the number of answers no more than the engine's max_branches";
            unless(is_right, "search.trials", &trials, expected)
        }
        _ => Ok(()),
    }
}

/// Whether the numbers that one search alone has are numbers that it can have.
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
        Search::DynamicBeam { ref must_contain, .. } => check_phrases(must_contain, vocabulary),
        Search::AStarEsque {
            distance_weight: weight,
            look_ahead,
            ..
        } => {
            let is_right = (0.0..=100.0).contains(&weight);
            unless(is_right, "search.distance_weight", &weight, "from 0 to 100")?;
            unless(
                look_ahead <= LOOK_AHEAD,
                "search.look_ahead",
                &look_ahead,
                "from 0 to 16",
            )
        }
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

fn check_phrases(phrases: &[Vec<u32>], vocabulary: &Vocabulary) -> Result<(), Refusal> {
    let is_text = |token| matches!(vocabulary.kind(token), TokenKind::Text | TokenKind::Mark);
    let writes = |&token: &u32| {
        (token as usize) < vocabulary.len() && is_text(token) && !vocabulary.bytes(token).is_empty()
    };
    let is_phrase =
        |phrase: &Vec<u32>| (1..=PHRASE_TOKENS).contains(&phrase.len()) && phrase.iter().all(writes);
    let is_right = (1..=PHRASES).contains(&phrases.len()) && phrases.iter().all(is_phrase);
    let expected = "from 1 to 16 phrases, each of 1 to 64 tokens that write something";
    unless(is_right, "search.must_contain", &phrases.len(), expected)
}

/// Refuses a value by its name unless it is right.
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

/// Whether the numbers that a law has are numbers that it can have, and its texts no more than may be under
/// way.
pub(super) fn check_law(request: &Request, limit: usize) -> Result<(), Refusal> {
    let invalid = |name, value: &dyn ToString, expected| {
        let value = value.to_string();
        Err(Refusal::Invalid {
            name,
            value,
            expected,
        })
    };
    let texts = request.samples..=limit;
    match request.law {
        LawChoice::Global { max_attempts: 0, .. } | LawChoice::Aprad { max_errors: 0, .. } => {
            invalid("max_attempts", &0, "at least 1")
        }
        LawChoice::Aprad { exponent: 17.., .. } => invalid("aprad_exponent", &"above 16", "from 0 to 16"),
        LawChoice::Smc { threshold, .. } if !(threshold > 0.0 && threshold <= 1.0) => {
            invalid("ess_threshold", &threshold, "above 0 and at most 1")
        }
        LawChoice::Smc { particles, .. }
        | LawChoice::Sir {
            candidates: particles,
            ..
        } if !texts.contains(&particles) => {
            let expected = "at least the number of answers, and at most the engine's max_branches";
            invalid("particles", &particles, expected)
        }
        LawChoice::Mcmc { steps: 0, .. } => invalid("steps", &0, "at least 1"),
        LawChoice::Mcmc { .. } if request.samples >= limit => {
            let expected = "below the engine's max_branches: the prompt takes a branch of its own";
            invalid("samples", &request.samples, expected)
        }
        _ => Ok(()),
    }
}

/// Whether the law of a request can be given up for speed: that of tokens drawn from masked rows, of a text
/// that is told as it is.
pub(super) fn check_lossy(request: &Request) -> Result<(), Refusal> {
    if request.lossy.is_none() {
        return Ok(());
    }
    let others = [
        (
            request.law != LawChoice::Local,
            "absent under any law but the local one",
        ),
        (
            request.search.is_some(),
            "absent with a search, which verifies no drafts",
        ),
        (
            !request.monitors.is_empty(),
            "absent with monitors: what is typical is known where all allowed tokens are",
        ),
        (
            request.options.is_some(),
            "absent where options are weighed, and nothing is drawn",
        ),
        (
            request.best_of.is_some(),
            "absent with best_of, which compares samples of one law",
        ),
    ];
    let meant = others.into_iter().find(|(is_there, _)| *is_there);
    meant.map_or(Ok(()), |(_, expected)| {
        unless(false, "lossy", &"present", expected)
    })
}

/// The most numbers in the rows of a pass that weighs options: 128 MiB of them.
const OPTION_LOGITS: usize = 1 << 25;

/// How many nodes of options a pass weighs at most. Each has a row, and rows are long.
pub(super) fn option_tokens(config: &EngineConfig, vocab_size: usize) -> usize {
    let rows = OPTION_LOGITS / vocab_size.max(1);
    let most = rows.min(config.max_step_tokens).min(MOST_DRAFTED);
    most.saturating_sub(1).max(1)
}

/// Whether options can be weighed as the request wants them: nothing is drawn, so all that is about several
/// texts, or about what was drawn, means nothing there.
pub(super) fn check_options(
    request: &Request,
    (vocabulary, vocab_size): (&Vocabulary, usize),
) -> Result<(), Refusal> {
    let Some(options) = &request.options else {
        return match request.likeliest_options {
            Some(count) => Err(Refusal::Invalid {
                name: "likeliest_options",
                value: count.to_string(),
                expected: "absent without options",
            }),
            None => Ok(()),
        };
    };
    let invalid = |name, value: String, expected| {
        Err(Refusal::Invalid {
            name,
            value,
            expected,
        })
    };
    if request.law != LawChoice::Local {
        let value = format!("{:?}", request.law);
        return invalid("law", value, "the local one where options are weighed");
    }
    if request.samples != 1 || request.best_of.is_some() {
        let value = request.best_of.unwrap_or(request.samples).to_string();
        return invalid("samples", value, "1 where options are weighed, without best_of");
    }
    if request.sampling.mirostat.is_some() {
        return invalid("mirostat_mode", "on".to_owned(), "off where options are weighed");
    }
    if request.likeliest_options == Some(0) {
        return invalid("likeliest_options", "0".to_owned(), "at least 1");
    }
    if request.likeliest_options.is_some() && options.ends().iter().any(|ends| ends.len() > 1) {
        let expected = "absent where options have several token sequences";
        return invalid("likeliest_options", "set".to_owned(), expected);
    }
    let least = options.longest() + usize::from(request.weigh_end);
    if request.max_tokens < least {
        let value = request.max_tokens.to_string();
        return invalid(
            "max_tokens",
            value,
            "as many as the longest option has, with its end",
        );
    }
    let ends = |token: &u32| vocabulary.is_eos(*token) || request.stop_tokens.contains(token);
    let unknown = |token: &u32| *token as usize >= vocab_size;
    if let Some(token) = options.each_token().find(|token| ends(token) || unknown(token)) {
        let expected = "of tokens that the model has and that do not end the text";
        return invalid("options", format!("one with token {token}"), expected);
    }
    Ok(())
}

/// Whether the law of a request can be drawn from by asking, if it has monitors.
pub(super) fn check_monitors(request: &Request) -> Result<(), Refusal> {
    let invalid = |name, value: &str, expected| {
        let value = value.to_owned();
        Err(Refusal::Invalid {
            name,
            value,
            expected,
        })
    };
    let is_asked = match request.law {
        LawChoice::Local => true,
        LawChoice::Smc { proposal, .. } | LawChoice::Sir { proposal, .. } => proposal != Proposing::Twisted,
        _ => false,
    };
    if request.monitors.is_empty() {
        return Ok(());
    }
    if !is_asked {
        let expected = "absent: the law needs the masks of all constraints";
        return invalid("monitors", "there", expected);
    }
    if request.sampling.mirostat.is_some() {
        let expected = "off with monitors: the surprise of a token depends on all that are allowed";
        return invalid("mirostat_mode", "on", expected);
    }
    Ok(())
}

/// Whether the text of a request depends on nothing but itself, if that was asked for; `variance` is why rows
/// of the model may not.
pub(super) fn check_company(request: &Request, variance: Option<&'static str>) -> Result<(), Refusal> {
    let depends = || variance.or_else(|| law::depends_on_others(request));
    match request.batch_invariant.then(depends).flatten() {
        Some(because) => Err(Refusal::DependsOnOthers { because }),
        None => Ok(()),
    }
}

/// Whether what was removed from a prompt can come back. What the grammar says about it is looked at apart.
pub(super) fn check_healed(request: &Request) -> Result<(), Refusal> {
    let expected = |is_there: bool, name, expected| unless(!is_there, name, &"there", expected);
    if request.healed.is_empty() {
        return Ok(());
    }
    expected(
        !request.monitors.is_empty(),
        "monitors",
        "absent where healed has bytes: a monitor reads the answer from its first byte",
    )?;
    expected(
        request.options.is_some(),
        "options",
        "absent where healed has bytes: options are weighed behind a whole prompt",
    )?;
    expected(
        request.grammar.is_none(),
        "healed",
        "empty without a grammar that begins with its bytes",
    )
}

/// Whether the texts of a grammar begin with what was removed from the prompt.
pub(super) fn check_prefix(healed: &[u8], grammar: &Grammar) -> Result<(), Refusal> {
    let begins = healed.is_empty() || grammar.forced(grammar.start()).starts_with(healed);
    let expected = "what every text of the grammar begins with";
    unless(begins, "healed", &healed.escape_ascii(), expected)
}

/// Whether an answer can be completed within its tokens. From then on the masks see to it that it is.
pub(super) fn check_budget(request: &Request, grammar: &Grammar) -> Result<(), Refusal> {
    let max_tokens = request.max_tokens;
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

/// Whether all sizes are sizes.
pub(super) fn check_config(config: &EngineConfig) -> Result<(), EngineError> {
    let sizes = [
        ("block_size", config.block_size),
        ("blocks", config.blocks),
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
