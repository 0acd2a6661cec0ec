//! The frames of calls of the formats of models, for programs that read answers themselves.
//!
//! ```text
//!   before  open  head NAME middle ARGUMENTS tail  ( separator  head NAME middle ARGUMENTS tail )*  close
//! ```

use super::model_formats::{
    Call, Calls, FORMATS, Format, HARMONY, HARMONY_CALLS, HARMONY_NEXT, KIMI_K3, KIMI_K3_CALL, KIMI_K3_CALLS,
    KIMI_K3_ENDS, Required,
};
use super::models::unknown;
use crate::schema::ArgumentStyle;
use lexiform_automata::error::CompileError;

/// A piece of the text around a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPiece {
    /// This text, in which the names of special tokens denote those tokens.
    Text(&'static str),
    /// A number in decimal digits.
    Number,
}

/// The text around the calls of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFrame {
    /// The text at which calls begin after free text: the beginning of `open`, or else of `head`.
    pub trigger: &'static str,
    /// The text before `open` in an answer that has nothing but calls.
    pub before: &'static str,
    /// The texts before the first call.
    pub open: Vec<&'static str>,
    /// The pieces between the beginning of a call and the name of the tool.
    pub head: Vec<CallPiece>,
    /// The pieces between the name of the tool and the arguments; there may be none.
    pub middle: Vec<CallPiece>,
    /// How the arguments are written.
    pub style: ArgumentStyle,
    /// The texts that no string of the arguments contains.
    pub excludes: &'static [&'static str],
    /// The text after the arguments.
    pub tail: &'static str,
    /// The text between two calls; `None` where models differ in the white space that they write.
    pub separator: Option<&'static str>,
    /// The texts after the last call.
    pub close: Vec<&'static str>,
    /// The texts that end an answer without calls, if it ends in a text of its own.
    pub ending: Vec<&'static str>,
}

/// Returns the frames of the calls of a format. Most formats have one.
///
/// # Errors
/// Returns an error if there is no such format.
pub fn call_frames(name: &str) -> Result<Vec<CallFrame>, CompileError> {
    if name == KIMI_K3.0 {
        return Ok(vec![kimi_k3()]);
    }
    if name == HARMONY.0 {
        return Ok(HARMONY_CALLS.iter().map(harmony).collect());
    }
    let format = FORMATS.iter().find(|format| format.name == name);
    Ok(vec![format.ok_or_else(|| unknown(name))?.frame()])
}

/// Returns the format of the models with this chat template, if the template shows one.
///
/// The texts that tell formats apart are looked for in the source of the template, where line breaks and
/// quotes may be escaped. Of several formats it is the one with the most texts.
pub fn recognised(template: &str) -> Option<&'static str> {
    let source = template.replace("\\n", "\n").replace("\\\"", "\"");
    let rows = FORMATS.iter().map(|format| (format.name, format.signs));
    let shown = rows
        .chain([KIMI_K3, HARMONY])
        .filter(|(_, signs)| signs.iter().all(|sign| source.contains(sign)));
    // The first of several with equally many.
    let (name, _) = shown.rev().max_by_key(|(_, signs)| signs.len())?;
    Some(name)
}

impl Format {
    fn frame(&self) -> CallFrame {
        let call = self.call.frame();
        match &self.calls {
            Calls::Each(trigger) => CallFrame { trigger, ..call },
            Calls::Section(section) => CallFrame {
                trigger: section.begin,
                before: match section.required {
                    Required::After(before) => before,
                    Required::Tag | Required::FreeText => "",
                },
                open: vec![section.begin, section.after_begin],
                separator: Some(section.separator),
                close: vec![section.end],
                ..call
            },
        }
    }
}

impl Call {
    /// Returns the frame of a call that follows others directly.
    fn frame(&self) -> CallFrame {
        let mut pieces = vec![CallPiece::Text(self.begin)];
        if let Some(after) = self.after_number {
            pieces.extend([CallPiece::Number, CallPiece::Text(after)]);
        }
        let (mut head, mut middle, mut is_named) = (Vec::new(), Vec::new(), false);
        for piece in pieces {
            match piece {
                CallPiece::Text(text) if text.contains("{}") => {
                    let (before, after) = text.split_once("{}").unwrap_or((text, ""));
                    head.extend((!before.is_empty()).then_some(CallPiece::Text(before)));
                    middle.extend((!after.is_empty()).then_some(CallPiece::Text(after)));
                    is_named = true;
                }
                piece if is_named => middle.push(piece),
                piece => head.push(piece),
            }
        }
        CallFrame {
            trigger: "",
            before: "",
            open: Vec::new(),
            head,
            middle,
            style: self.style,
            excludes: self.excludes,
            tail: self.end,
            separator: None,
            close: Vec::new(),
            ending: Vec::new(),
        }
    }
}

fn kimi_k3() -> CallFrame {
    let ((begin, end), (response, message)) = (KIMI_K3_CALLS, KIMI_K3_ENDS);
    CallFrame {
        trigger: response,
        open: vec![response, begin],
        separator: Some(""),
        close: vec![end, message],
        ending: vec![response, message],
        ..KIMI_K3_CALL.frame()
    }
}

fn harmony(call: &Call) -> CallFrame {
    let frame = call.frame();
    CallFrame {
        trigger: match frame.head[..] {
            [CallPiece::Text(text), ..] => text,
            _ => "",
        },
        separator: Some(HARMONY_NEXT),
        ..frame
    }
}

#[cfg(test)]
mod tests {
    use super::super::models::model_formats;
    use super::*;

    #[test]
    fn every_format_has_frames_that_begin_with_their_trigger() {
        for name in model_formats() {
            for frame in call_frames(name).expect("a format") {
                let first = match (&frame.open[..], &frame.head[..]) {
                    ([first, ..], _) | ([], [CallPiece::Text(first), ..]) => *first,
                    _ => panic!("{name}: {frame:?}"),
                };
                assert!(!frame.trigger.is_empty(), "{name}");
                assert!(first.starts_with(frame.trigger), "{name}: {frame:?}");
                assert!(!frame.tail.is_empty(), "{name}");
            }
        }
        assert!(call_frames("qwen3_coder").is_err());
    }

    /// Lines of the templates that models of each family are published with.
    #[test]
    fn a_template_shows_its_format() {
        let table = [
            (
                "{{- '<tool_call>\\n{\"name\": \"' }}{{ call.name }}",
                Some("qwen_3"),
            ),
            (
                "{{- '\\n<tool_call>\\n<function=' + call.name + '>\\n' }}",
                Some("qwen_3_coder"),
            ),
            (
                "{{- '<think>' }}{{- '<tool_call>\\n<function=' + call.name }}",
                Some("qwen_3_5"),
            ),
            (
                "{{ '<tool_call>' + tc.name }}<arg_key>{{ k }}</arg_key>",
                Some("glm_4_7"),
            ),
            ("{{ '<tool_call>{\"name\": ' }}", Some("exaone")),
            (
                "<|tool_calls_section_begin|><|tool_call_begin|>{{ id }}",
                Some("kimi"),
            ),
            (
                "{{'<｜tool▁call▁begin｜>' + tool['type']}}{{'```json'}}",
                Some("deepseek_r1"),
            ),
            (
                "{{'<｜tool▁call▁begin｜>' + name + '<｜tool▁sep｜>'}}",
                Some("deepseek_v3_1"),
            ),
            (
                "{%- set dsml = \"｜DSML｜\" -%}<{{ dsml }}function_calls>",
                Some("deepseek_v3_2"),
            ),
            ("<{{ '｜DSML｜' }}tool_calls>", Some("deepseek_v4")),
            ("{{ '<｜DSML｜ calls>' }}", Some("deepseek_v4_1")),
            ("{%- set begin = '<minimax:tool_call>' -%}", Some("minimax")),
            ("{%- set ns = ']<]minimax[>[' -%}", Some("minimax_m3")),
            ("<|channel|>commentary to=functions.{{ name }}", Some("harmony")),
            ("<|eot_id|>{{- '\"parameters\": ' }}", Some("llama")),
            ("{{ messages }}[TOOL_CALLS] {{ tools }}", None),
            ("", None),
        ];
        for (template, expected) in table {
            assert_eq!(recognised(template), expected, "{template}");
        }
    }
}
