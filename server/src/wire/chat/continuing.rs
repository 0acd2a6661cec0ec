//! `continue_final_message`: the last message of a chat is the beginning of the answer.

use crate::wire::fields::{Fields, Problems};
use crate::wire::generation::Generation;
use crate::wire::tools::{Calls, Mode};

/// The last message of a chat.
pub(super) struct Last<'a> {
    /// Its path.
    pub(super) path: String,
    /// The role of its speaker.
    pub(super) role: &'a str,
    /// Its text.
    pub(super) content: Option<&'a str>,
    /// `true` if it calls tools.
    pub(super) calls: bool,
}

/// Takes the two fields that say how the prompt of a chat ends, as transformers has them, and returns `true`
/// if the last message is continued.
pub(super) fn read(fields: &mut Fields, last: Option<Last<'_>>, problems: &mut Problems) -> bool {
    let continues = fields.boolean("continue_final_message", problems) == Some(true);
    let asks = fields.boolean("add_generation_prompt", problems);
    match (continues, asks) {
        (false, Some(false)) => problems.unsupported(
            "add_generation_prompt",
            "only possible with continue_final_message: true; otherwise, the model would not be asked for an answer",
        ),
        (true, Some(true)) => problems.invalid(
            "add_generation_prompt",
            "must be false with continue_final_message: true, which leaves the last message open",
        ),
        _ => {}
    }
    if let Some(last) = last.filter(|_| continues) {
        let path = last.path;
        if last.role != "assistant" {
            problems.invalid(
                format!("{path}.role"),
                "continue_final_message continues a message of the assistant",
            );
        }
        if last.calls {
            problems.unsupported(
                format!("{path}.tool_calls"),
                "continue_final_message continues the content of a message, and no calls",
            );
        }
        if last.content.is_none_or(str::is_empty) {
            problems.invalid(
                format!("{path}.content"),
                "continue_final_message requires a text to continue",
            );
        }
    }
    continues
}

/// Refuses what reads an answer from its first byte, or would have no place in a text that has begun.
pub(super) fn check(
    generation: &Generation,
    calls: Option<&Calls>,
    has_contrast: bool,
    problems: &mut Problems,
) {
    let json_patch = generation.stream.is_some_and(|options| options.json_patch);
    let others = [
        ("certificate", generation.certificate),
        ("field_confidence", generation.confidence),
        ("enum_scores", generation.enum_scores),
        ("monitors", !generation.monitors.is_empty()),
        ("tilt", generation.tilt.is_some()),
        ("stream_options.json_patch", json_patch),
        ("contrast", has_contrast),
    ];
    for (param, _) in others.into_iter().filter(|(_, is_there)| *is_there) {
        problems.invalid(param, "cannot be combined with continue_final_message");
    }
    if calls.is_some_and(|calls| calls.mode != Mode::Auto) {
        problems.invalid(
            "tool_choice",
            "must be auto or none with continue_final_message: the text that is continued is no call",
        );
    }
}
