//! Checks whether the name of an unknown field resembles one that constrains or limits an answer.
//!
//! A client that sends `response_fromat` or `temprature` intends an effect. Answering as if the field were
//! absent would return free text where a constraint was requested, so such a field is refused with the name
//! that was probably meant. A name that resembles no such field is no reason to refuse: clients add fields
//! every month.

use lexiform_syntax::suggest;
use lexiform_syntax::suggest::{is_near, plain};
use serde_json::Value;

/// The fields that constrain or limit an answer, on any route. A name resembles one of them if it begins or
/// ends with it, abbreviates it, or is a typing error away from it.
const BINDING: &[&str] = &[
    "response_format",
    "structured_outputs",
    "structural_tag",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "guided_whitespace_pattern",
    "json_schema",
    "schema",
    "regex",
    "ebnf",
    "grammar",
    "grammar_id",
    "monitors",
    "tilt",
    "whitespace",
    "key_order",
    "additional_properties",
    "numbers",
    "strict",
    "parameters",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tool_calls",
    "min_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "epsilon_cutoff",
    "eta_cutoff",
    "bregman_lambda",
    "contrast",
    "mirostat_mode",
    "mirostat_tau",
    "mirostat_eta",
    "n",
    "best_of",
    "choose",
    "seed",
    "stop",
    "stop_token_ids",
    "logit_bias",
    "allowed_token_ids",
    "bad_words",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "penalty_scope",
    "length_penalty",
    "ignore_eos",
    "on_budget",
    "on_exhaustion",
    "max_attempts",
    "particles",
    "beam_width",
    "use_beam_search",
    "law",
    "search",
    "patience",
    "ess_threshold",
    "resampling",
    "proposal",
    "aprad_exponent",
    "mcmc_steps",
    "mcmc_cuts",
    "timeout_ms",
    "batch_invariant",
    "max_reasoning_tokens",
];

/// The fields that change an answer without limiting it, or whose names are ordinary words: a name resembles
/// one of them only if it is a typing error away from it.
const STEERING: &[&str] = &[
    "logprobs",
    "top_logprobs",
    "logprobs_mode",
    "reasoning_effort",
    "include_reasoning",
    "chat_template_kwargs",
    "schema_in_prompt",
    "token_healing",
    "echo",
    "lossy",
    "truncation",
    "certificate",
    "share_attempts",
    "return_particles",
    "field_confidence",
    "enum_scores",
    "instructions",
    "cache_salt",
    "prompt_cache_key",
];

/// The names on other servers of fields that limit an answer here, or of objects that contain such fields.
const FOREIGN: &[(&str, &str)] = &[
    ("max_new_tokens", "max_tokens"),
    ("max_length", "max_tokens"),
    ("max_gen_len", "max_tokens"),
    ("num_predict", "max_tokens"),
    ("n_predict", "max_tokens"),
    ("thinking_budget", "max_reasoning_tokens"),
    ("thinking_token_budget", "max_reasoning_tokens"),
    ("max_thinking_tokens", "max_reasoning_tokens"),
    ("num_return_sequences", "n"),
    ("num_completions", "n"),
    ("candidate_count", "n"),
    ("do_sample", "temperature"),
    ("num_beams", "search"),
    ("num_beam_groups", "search"),
    ("diversity_penalty", "search"),
    ("force_words_ids", "search"),
    ("mirostat", "mirostat_mode"),
    ("nsigma", "top_n_sigma"),
    ("extra_body", "its fields, at the top level of the body"),
    ("sampling_params", "its fields, at the top level of the body"),
    ("generation_config", "its fields, at the top level of the body"),
    ("options", "its fields, at the top level of the body"),
];

/// Returns the field that constrains or limits whose name this resembles.
pub(super) fn resembled(name: &str) -> Option<&'static str> {
    let word = plain(name);
    if let Some((_, meant)) = FOREIGN.iter().find(|(foreign, _)| plain(foreign) == word) {
        return Some(meant);
    }
    let all = || BINDING.iter().chain(STEERING);
    let same = all().find(|known| plain(known) == word);
    let mistyped = || {
        let is_mistyped = |known: &str| is_near(&word, known) || is_swapped(&word, known);
        all().find(|known| is_mistyped(&plain(known)))
    };
    let affixed = || {
        // The longest, so that `my_max_completion_tokens` is not reported as `max_tokens`.
        let resembling = BINDING.iter().filter(|known| is_affixed(&word, &plain(known)));
        resembling.max_by_key(|known| known.len())
    };
    same.or_else(mistyped).or_else(affixed).copied()
}

/// Returns a field that constrains or limits inside an unknown object, which must not be ignored.
pub(super) fn held(value: &Value) -> Option<&str> {
    let mut names = value.as_object()?.keys();
    let binds = |name: &&String| name.len() > 1 && BINDING.contains(&name.as_str());
    names.find(binds).map(String::as_str)
}

/// Returns the name that this is most likely a misspelling of.
pub(super) fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    suggest::nearest(name, known.iter().copied())
}

/// Returns `true` if a word of three letters is another one with two neighbours swapped. Other words so short
/// have too many neighbours.
fn is_swapped(name: &str, known: &str) -> bool {
    let letters = |word: &str| {
        let mut letters = word.as_bytes().to_vec();
        letters.sort_unstable();
        letters
    };
    known.len() == 3 && letters(name) == letters(known) && suggest::distance(name, known) == 1
}

fn is_affixed(name: &str, known: &str) -> bool {
    let (short, long) = if name.len() < known.len() {
        (name, known)
    } else {
        (known, name)
    };
    let abbreviates = short.len() >= 4 && long.starts_with(short);
    abbreviates || (known.len() >= 4 && name.ends_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_probably_meant_is_named() {
        for (sent, meant) in [
            ("response_fromat", "response_format"),
            ("responseFormat", "response_format"),
            ("Response-Format", "response_format"),
            ("temprature", "temperature"),
            ("temp", "temperature"),
            ("max_token", "max_tokens"),
            ("maxTokens", "max_tokens"),
            ("max_new_tokens", "max_tokens"),
            ("guided_regx", "guided_regex"),
            ("tool", "tools"),
            ("tool_choise", "tool_choice"),
            ("stop_sequences", "stop"),
            ("random_seed", "seed"),
            ("topP", "top_p"),
            ("logits_bias", "logit_bias"),
            ("N", "n"),
            ("lwa", "law"),
            ("Law", "law"),
            ("extra_body", "its fields, at the top level of the body"),
        ] {
            assert_eq!(resembled(sent), Some(meant), "{sent}");
        }
    }

    #[test]
    fn what_means_something_else_resembles_nothing() {
        for sent in [
            "brand_new_field",
            "cache_control",
            "provider",
            "route",
            "raw",
            "wal",
            "transforms",
            "plugins",
            "user_id",
            "session",
            "models",
            "reasoning",
            "include_obfuscation",
            "x",
            "nn",
            "",
            "名前",
        ] {
            assert_eq!(resembled(sent), None, "{sent}");
        }
    }

    #[test]
    fn an_object_is_looked_into() {
        assert_eq!(held(&json!({"a": 1, "temperature": 0})), Some("temperature"));
        assert_eq!(held(&json!({"a": 1})), None);
        assert_eq!(held(&json!([{"temperature": 0}])), None);
    }
}
