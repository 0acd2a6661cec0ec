//! The format of a model, recognised by its chat template.

use super::model_formats::{FORMATS, HARMONY, KIMI_K3};

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

#[cfg(test)]
mod tests {
    use super::*;

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
