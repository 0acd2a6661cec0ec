//! The marks of thoughts in the formats of models.
//!
//! ```text
//!   chat template ─► format of calls ─► its row of the table ─┐
//!                └─► marks that it writes ────────────────────┴─► open, ends
//! ```
//!
//! The templates of all formats close a thought before its calls. Models of some families nevertheless begin
//! a call within a thought; for these, the mark of a call is one of the [`ends`](ThoughtMarks::ends).

use super::marks::ThoughtMarks;
use super::model_formats::{FORMATS, HARMONY, HARMONY_THOUGHT, KIMI_K3, KIMI_K3_THOUGHT};
use super::models::unknown;
use super::recognised::recognised;
use lexiform_automata::error::CompileError;

/// Returns the marks of thoughts in a format; `None` if its models do not think.
///
/// # Errors
/// Returns an error if there is no such format.
pub fn thought_marks(name: &str) -> Result<Option<ThoughtMarks>, CompileError> {
    if name == KIMI_K3.0 {
        return Ok(Some(KIMI_K3_THOUGHT));
    }
    if name == HARMONY.0 {
        return Ok(Some(HARMONY_THOUGHT));
    }
    let format = FORMATS.iter().find(|format| format.name == name);
    let thought = &format.ok_or_else(|| unknown(name))?.thought;
    Ok(thought.as_ref().map(|thought| thought.marks))
}

/// Returns the marks of thoughts of the models with this chat template: those of the format that it shows,
/// or else those whose closing mark it contains; `None` if it contains none.
pub fn shown_thought_marks(template: &str) -> Option<ThoughtMarks> {
    let of_format = recognised(template).map(thought_marks);
    if let Some(Ok(Some(marks))) = of_format {
        return Some(marks);
    }
    let rows = FORMATS.iter().filter_map(|format| format.thought.as_ref());
    let mut all = rows.map(|thought| thought.marks.without_calls());
    all.find(|marks| template.contains(marks.close()))
}

#[cfg(test)]
mod tests {
    use super::super::models::model_formats;
    use super::*;

    #[test]
    fn every_thought_has_marks_and_may_end_in_a_call_of_its_format() {
        let mut inside = Vec::new();
        for name in model_formats() {
            let Some(marks) = thought_marks(name).expect("a format") else {
                assert_eq!(name, "llama");
                continue;
            };
            assert!(!marks.open.is_empty() && !marks.close().is_empty(), "{name}");
            inside.extend(marks.ends[1..].iter().map(|call| (name, *call)));
        }
        let qwen = "<tool_call>\n<function=";
        let kimi = "<|tool_calls_section_begin|>";
        assert_eq!(
            inside,
            [("qwen_3_coder", qwen), ("qwen_3_5", qwen), ("kimi", kimi)]
        );
        assert!(thought_marks("qwen3_coder").is_err());
    }

    #[test]
    fn a_template_shows_the_marks_of_its_thoughts() {
        let marks =
            |template: &str| shown_thought_marks(template).map(|marks| (marks.open, marks.ends.len()));
        assert_eq!(marks("{{ '<tool_call>\\n<function=' }}"), Some(("<think>", 2)));
        assert_eq!(
            marks("{{ '<|START_THINKING|><|END_THINKING|>' }}"),
            Some(("<|START_THINKING|>", 1))
        );
        assert_eq!(marks("{{ '<think></think>' }}"), Some(("<think>", 1)));
        assert_eq!(marks("<|open|>think<|sep|>"), Some(("<|open|>think<|sep|>", 1)));
        assert_eq!(marks("{{ message.content }}"), None);
    }
}
