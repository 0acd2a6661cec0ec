//! The table of the formats of models: the frames of a call, of all calls of an answer, and of a thought.

use crate::schema::ArgumentStyle;

/// The format of a family of models.
pub(super) struct Format {
    pub(super) name: &'static str,
    pub(super) call: Call,
    pub(super) calls: Calls,
    /// The texts that free text does not contain.
    pub(super) without: &'static [&'static str],
    pub(super) thought: Option<Thought>,
    /// The texts before an answer without a thought.
    pub(super) without_thought: &'static [&'static str],
}

/// The frame of a call. `{}` is the name of the tool.
pub(super) struct Call {
    pub(super) begin: &'static str,
    /// The text after a number, for formats that number calls.
    pub(super) after_number: Option<&'static str>,
    pub(super) style: ArgumentStyle,
    /// The texts that no string of the arguments contains.
    pub(super) excludes: &'static [&'static str],
    pub(super) end: &'static str,
}

/// How the calls of an answer are put together.
pub(super) enum Calls {
    /// One after another, each wherever this text occurs.
    Each(&'static str),
    /// All in one section.
    Section(Section),
}

/// The frame of all calls of an answer.
pub(super) struct Section {
    pub(super) begin: &'static str,
    pub(super) after_begin: &'static str,
    pub(super) end: &'static str,
    pub(super) separator: &'static str,
    pub(super) required: Required,
}

/// The shape of an answer in which a call is required.
pub(super) enum Required {
    /// The section, after this text.
    After(&'static str),
    /// The section as a tag.
    Tag,
    /// Free text before the section, which is a tag.
    FreeText,
}

/// The frame of a thought.
pub(super) struct Thought {
    pub(super) begin: &'static str,
    pub(super) without: &'static [&'static str],
    pub(super) end: &'static str,
    pub(super) after: &'static str,
}

const THINK: &[&str] = &["<think>", "</think>"];

/// A thought up to `</think>`.
const fn thought(without: &'static [&'static str], after: &'static str) -> Option<Thought> {
    Some(Thought {
        begin: "",
        without,
        end: "</think>",
        after,
    })
}

pub(super) const fn call(begin: &'static str, style: ArgumentStyle, end: &'static str) -> Call {
    Call {
        begin,
        after_number: None,
        style,
        excludes: &[],
        end,
    }
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
    call: Call,
    calls: Calls,
    without: &'static [&'static str],
    thought: Option<Thought>,
) -> Format {
    Format {
        name,
        call,
        calls,
        without,
        thought,
        without_thought: &[],
    }
}

/// The format of DeepSeek with markup, from V3.2 on.
const fn dsml(
    name: &'static str,
    (begin, end): (&'static str, &'static str),
    (call_begin, call_end): (&'static str, &'static str),
    style: ArgumentStyle,
) -> Format {
    format(
        name,
        call(call_begin, style, call_end),
        section(begin, "\n", end, Required::After("\n\n")),
        THINK,
        thought(THINK, ""),
    )
}

/// All formats but [`kimi_k3`] and [`harmony`].
pub(super) const FORMATS: &[Format] = &[
    format(
        "llama",
        call("{\"name\": \"{}\", \"parameters\": ", ArgumentStyle::Json, "}"),
        Calls::Each("{\"name\": "),
        THINK,
        None,
    ),
    format(
        "qwen_3",
        call(
            "<tool_call>\n{\"name\": \"{}\", \"arguments\": ",
            ArgumentStyle::Json,
            "}\n</tool_call>",
        ),
        Calls::Each("<tool_call>"),
        THINK,
        thought(THINK, "\n\n"),
    ),
    qwen_xml("qwen_3_coder"),
    qwen_xml("qwen_3_5"),
    format(
        "exaone",
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
        call(
            "<tool_call><function={}>",
            ArgumentStyle::QwenXml,
            "</function></tool_call>",
        ),
        Calls::Each("<tool_call>"),
        &["<think>", "</think>", "</tool_call>", "<function="],
        Some(Thought {
            begin: "<think>",
            without: &["<tool_call>", "<think>", "</think>", "</tool_call>", "<function="],
            end: "</think>",
            after: "",
        }),
    ),
    format(
        "kimi",
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
        thought(&[], ""),
    ),
    format(
        "cohere",
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
            begin: "",
            without: &[],
            end: "<|END_THINKING|>",
            after: "",
        }),
    ),
    format(
        "deepseek_r1",
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
        ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
        ("<｜DSML｜invoke name=\"{}\">\n", "</｜DSML｜invoke>\n"),
        ArgumentStyle::DeepseekXml,
    ),
    dsml(
        "deepseek_v4",
        ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
        ("<｜DSML｜invoke name=\"{}\">\n", "</｜DSML｜invoke>\n"),
        ArgumentStyle::DeepseekXml,
    ),
    dsml(
        "deepseek_v4_1",
        ("<｜DSML｜ calls>", "</｜DSML｜ calls>"),
        ("<｜DSML｜ invoke name=\"{}\">\n", "</｜DSML｜ invoke>\n"),
        ArgumentStyle::DeepseekV41Xml,
    ),
    Format {
        without_thought: &["\n</think>\n\n", "\n\n"],
        ..format(
            "minimax",
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

const fn qwen_xml(name: &'static str) -> Format {
    format(
        name,
        call(
            "<tool_call>\n<function={}>\n",
            ArgumentStyle::QwenXml,
            "\n</function>\n</tool_call>",
        ),
        Calls::Each("<tool_call>\n<function="),
        THINK,
        thought(THINK, "\n\n"),
    )
}
