//! The table of the formats of models: the frames of a call, of all calls of an answer, and of a thought.

use super::marks::{THINK_MARKS, ThoughtMarks};
use crate::schema::ArgumentStyle;

/// The format of a family of models.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    /// The texts that the chat templates of these models contain, and together no others.
    pub(crate) signs: &'static [&'static str],
    pub(crate) call: Call,
    pub(crate) calls: Calls,
    /// The texts that free text does not contain.
    pub(crate) without: &'static [&'static str],
    pub(crate) thought: Option<Thought>,
    /// The texts before an answer without a thought.
    pub(crate) without_thought: &'static [&'static str],
}

/// The frame of a call. `{}` is the name of the tool.
pub(crate) struct Call {
    pub(crate) begin: &'static str,
    /// The text after a number, for formats that number calls.
    pub(crate) after_number: Option<&'static str>,
    pub(crate) style: ArgumentStyle,
    /// The texts that no string of the arguments contains.
    pub(crate) excludes: &'static [&'static str],
    pub(crate) end: &'static str,
}

/// How the calls of an answer are put together.
pub(crate) enum Calls {
    /// One after another, each wherever this text occurs.
    Each(&'static str),
    /// All in one section.
    Section(Section),
}

/// The frame of all calls of an answer.
pub(crate) struct Section {
    pub(crate) begin: &'static str,
    pub(crate) after_begin: &'static str,
    pub(crate) end: &'static str,
    pub(crate) separator: &'static str,
    pub(crate) required: Required,
}

/// The shape of an answer in which a call is required.
pub(crate) enum Required {
    /// The section, after this text.
    After(&'static str),
    /// The section as a tag.
    Tag,
    /// Free text before the section, which is a tag.
    FreeText,
}

/// The frame of a thought.
pub(crate) struct Thought {
    pub(crate) marks: ThoughtMarks,
    /// The text of an answer that begins it: the mark, unless templates write it.
    pub(crate) begin: &'static str,
    pub(crate) without: &'static [&'static str],
    pub(crate) end: &'static str,
    pub(crate) after: &'static str,
}

const THINK: &[&str] = &["<think>", "</think>"];

const fn marks(open: &'static str, ends: &'static [&'static str]) -> ThoughtMarks {
    ThoughtMarks { open, ends }
}

/// A thought up to `</think>`.
const fn thought(without: &'static [&'static str], after: &'static str) -> Option<Thought> {
    Some(Thought {
        marks: THINK_MARKS,
        begin: "",
        without,
        end: "</think>",
        after,
    })
}

const fn call(begin: &'static str, style: ArgumentStyle, end: &'static str) -> Call {
    Call {
        begin,
        after_number: None,
        style,
        excludes: &[],
        end,
    }
}

/// The name and the signs of Kimi K3, whose answers have a shape of their own.
pub(crate) const KIMI_K3: (&str, &[&str]) = ("kimi_k3", &["<|open|>", "<|sep|>"]);
/// The call of Kimi K3.
pub(crate) const KIMI_K3_CALL: Call = Call {
    begin: "<|open|>call tool=\"{}\" index=\"",
    after_number: Some("\"<|sep|>"),
    style: ArgumentStyle::KimiK3Xml,
    excludes: &["<|open|>", "<|close|>", "<|sep|>"],
    end: "<|close|>call<|sep|>",
};
/// The text before and after all calls of Kimi K3.
pub(crate) const KIMI_K3_CALLS: (&str, &str) = ("<|open|>tools<|sep|>", "<|close|>tools<|sep|>");
/// The ends of the response and of the whole message of Kimi K3.
pub(crate) const KIMI_K3_ENDS: (&str, &str) = ("<|close|>response<|sep|>", "<|close|>message<|sep|>");

/// The name and the signs of gpt-oss, whose answers have a shape of their own.
pub(crate) const HARMONY: (&str, &[&str]) = ("harmony", &["<|channel|>", "to=functions."]);
/// The calls of gpt-oss: three ways to write one.
pub(crate) const HARMONY_CALLS: [Call; 3] = [
    harmony_call("<|channel|>commentary to=functions.{}<|constrain|>json<|message|>"),
    harmony_call(" to=functions.{}<|channel|>commentary <|constrain|>json<|message|>"),
    harmony_call(" to=functions.{}<|channel|>commentary json<|message|>"),
];
/// The marks of the thoughts of Kimi K3, the second with the frame of the response.
pub(crate) const KIMI_K3_THOUGHT: ThoughtMarks = marks(
    "<|open|>think<|sep|>",
    &["<|close|>think<|sep|><|open|>response<|sep|>"],
);

/// The marks of the thoughts of gpt-oss, which are messages of their own; the second with what begins
/// another.
pub(crate) const HARMONY_THOUGHT: ThoughtMarks =
    marks("<|channel|>analysis<|message|>", &["<|end|><|start|>assistant"]);
/// The text between two messages of gpt-oss.
pub(crate) const HARMONY_NEXT: &str = "<|start|>assistant";

const fn harmony_call(begin: &'static str) -> Call {
    call(begin, ArgumentStyle::Json, "<|call|>")
}

/// A section in which calls follow each other.
const fn section(
    begin: &'static str,
    after_begin: &'static str,
    end: &'static str,
    required: Required,
) -> Calls {
    Calls::Section(Section {
        begin,
        after_begin,
        end,
        separator: "",
        required,
    })
}

const fn format(
    name: &'static str,
    signs: &'static [&'static str],
    call: Call,
    calls: Calls,
    without: &'static [&'static str],
    thought: Option<Thought>,
) -> Format {
    Format {
        name,
        signs,
        call,
        calls,
        without,
        thought,
        without_thought: &[],
    }
}

/// The mark of DeepSeek, which templates put together with the words after it.
const DSML: &str = "｜DSML｜";

/// The format of DeepSeek with markup, from V3.2 on.
const fn dsml(
    name: &'static str,
    sign: &'static [&'static str],
    (begin, end): (&'static str, &'static str),
    (call_begin, call_end): (&'static str, &'static str),
    style: ArgumentStyle,
) -> Format {
    format(
        name,
        sign,
        call(call_begin, style, call_end),
        section(begin, "\n", end, Required::After("\n\n")),
        THINK,
        thought(THINK, ""),
    )
}

/// All formats but [`KIMI_K3`] and [`HARMONY`].
pub(crate) const FORMATS: &[Format] = &[
    format(
        "llama",
        &["<|eot_id|>", "\"parameters\": "],
        call("{\"name\": \"{}\", \"parameters\": ", ArgumentStyle::Json, "}"),
        Calls::Each("{\"name\": "),
        THINK,
        None,
    ),
    format(
        "qwen_3",
        &["<tool_call>\n{\"name\": "],
        call(
            "<tool_call>\n{\"name\": \"{}\", \"arguments\": ",
            ArgumentStyle::Json,
            "}\n</tool_call>",
        ),
        Calls::Each("<tool_call>"),
        THINK,
        thought(THINK, "\n\n"),
    ),
    qwen_xml("qwen_3_coder", &[QWEN_XML]),
    qwen_xml("qwen_3_5", &[QWEN_XML, "<think>"]),
    format(
        "exaone",
        &["<tool_call>{\"name\": "],
        call(
            "<tool_call>{\"name\": \"{}\", \"arguments\": ",
            ArgumentStyle::Json,
            "}</tool_call>",
        ),
        Calls::Each("<tool_call>"),
        THINK,
        thought(&[], "\n\n"),
    ),
    format(
        "glm_4_7",
        &["<tool_call>", "<arg_key>"],
        call("<tool_call>{}", ArgumentStyle::GlmXml, "</tool_call>"),
        Calls::Each("<tool_call>"),
        &[
            "<think>",
            "</think>",
            "</tool_call>",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
        ],
        thought(
            &[
                "<think>",
                "</think>",
                "<tool_call>",
                "</tool_call>",
                "<arg_key>",
                "</arg_key>",
                "<arg_value>",
                "</arg_value>",
            ],
            "",
        ),
    ),
    format(
        "mimo",
        &["<tool_call><function="],
        call(
            "<tool_call><function={}>",
            ArgumentStyle::QwenXml,
            "</function></tool_call>",
        ),
        Calls::Each("<tool_call>"),
        &["<think>", "</think>", "</tool_call>", "<function="],
        Some(Thought {
            marks: THINK_MARKS,
            begin: "<think>",
            without: &["<tool_call>", "<think>", "</think>", "</tool_call>", "<function="],
            end: "</think>",
            after: "",
        }),
    ),
    format(
        "kimi",
        &["<|tool_calls_section_begin|>"],
        Call {
            after_number: Some("<|tool_call_argument_begin|>"),
            ..call(
                "<|tool_call_begin|>functions.{}:",
                ArgumentStyle::Json,
                "<|tool_call_end|>",
            )
        },
        section(
            "<|tool_calls_section_begin|>",
            "",
            "<|tool_calls_section_end|>",
            Required::After(""),
        ),
        &["<think>", "</think>", "<|tool_call_begin|>"],
        Some(Thought {
            marks: marks("<think>", &["</think>", "<|tool_calls_section_begin|>"]),
            begin: "",
            without: &[],
            end: "</think>",
            after: "",
        }),
    ),
    format(
        "cohere",
        &["<cofl:tool_calls>"],
        Call {
            after_number: Some("\" name=\"{}\">"),
            ..call(
                "<cofl:tool_call id=\"",
                ArgumentStyle::CohereXml,
                "</cofl:tool_call>",
            )
        },
        section("<cofl:tool_calls>", "", "</cofl:tool_calls>", Required::After("")),
        &["<|START_THINKING|>", "<|END_THINKING|>"],
        Some(Thought {
            marks: marks("<|START_THINKING|>", &["<|END_THINKING|>"]),
            begin: "",
            without: &[],
            end: "<|END_THINKING|>",
            after: "",
        }),
    ),
    format(
        "deepseek_r1",
        &["<｜tool▁call▁begin｜>", "```json"],
        call(
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{}\n```json\n",
            ArgumentStyle::Json,
            "\n```<｜tool▁call▁end｜>",
        ),
        Calls::Section(Section {
            begin: "<｜tool▁calls▁begin｜>",
            after_begin: "",
            end: "<｜tool▁calls▁end｜>",
            separator: "\n",
            required: Required::Tag,
        }),
        THINK,
        thought(THINK, ""),
    ),
    format(
        "deepseek_v3_1",
        &["<｜tool▁call▁begin｜>"],
        call(
            "<｜tool▁call▁begin｜>{}<｜tool▁sep｜>",
            ArgumentStyle::Json,
            "<｜tool▁call▁end｜>",
        ),
        section(
            "<｜tool▁calls▁begin｜>",
            "",
            "<｜tool▁calls▁end｜>",
            Required::Tag,
        ),
        THINK,
        thought(THINK, ""),
    ),
    dsml(
        "deepseek_v3_2",
        &[DSML, "function_calls>"],
        ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
        ("<｜DSML｜invoke name=\"{}\">\n", "</｜DSML｜invoke>\n"),
        ArgumentStyle::DeepseekXml,
    ),
    dsml(
        "deepseek_v4",
        &[DSML, "tool_calls>"],
        ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
        ("<｜DSML｜invoke name=\"{}\">\n", "</｜DSML｜invoke>\n"),
        ArgumentStyle::DeepseekXml,
    ),
    dsml(
        "deepseek_v4_1",
        &[DSML, " calls>"],
        ("<｜DSML｜ calls>", "</｜DSML｜ calls>"),
        ("<｜DSML｜ invoke name=\"{}\">\n", "</｜DSML｜ invoke>\n"),
        ArgumentStyle::DeepseekV41Xml,
    ),
    Format {
        without_thought: &["\n</think>\n\n", "\n\n"],
        ..format(
            "minimax",
            &["<minimax:tool_call>"],
            call("<invoke name=\"{}\">\n", ArgumentStyle::MinimaxXml, "</invoke>\n"),
            section(
                "<minimax:tool_call>",
                "\n",
                "</minimax:tool_call>",
                Required::After("\n"),
            ),
            THINK,
            thought(&[], "\n\n"),
        )
    },
    format(
        "minimax_m3",
        &["]<]minimax[>["],
        call(
            "]<]minimax[>[<invoke name=\"{}\">",
            ArgumentStyle::MinimaxM3Xml,
            "]<]minimax[>[</invoke>\n",
        ),
        section(
            "]<]minimax[>[<tool_call>",
            "\n",
            "]<]minimax[>[</tool_call>",
            Required::FreeText,
        ),
        &[
            "<mm:think>",
            "</mm:think>",
            "]<]minimax[>[</tool_call>",
            "]<]minimax[>[<invoke",
            "]<]minimax[>[</invoke>",
        ],
        Some(Thought {
            marks: marks("<mm:think>", &["</mm:think>"]),
            begin: "",
            without: &[
                "]<]minimax[>[<tool_call>",
                "<mm:think>",
                "</mm:think>",
                "]<]minimax[>[</tool_call>",
                "]<]minimax[>[<invoke",
                "]<]minimax[>[</invoke>",
            ],
            end: "</mm:think>",
            after: "",
        }),
    ),
];

/// The text that begins a call in the format of Qwen3-Coder.
const QWEN_XML: &str = "<tool_call>\n<function=";

const fn qwen_xml(name: &'static str, signs: &'static [&'static str]) -> Format {
    format(
        name,
        signs,
        call(
            "<tool_call>\n<function={}>\n",
            ArgumentStyle::QwenXml,
            "\n</function>\n</tool_call>",
        ),
        Calls::Each(QWEN_XML),
        THINK,
        Some(Thought {
            marks: marks("<think>", &["</think>", QWEN_XML]),
            begin: "",
            without: THINK,
            end: "</think>",
            after: "\n\n",
        }),
    )
}
