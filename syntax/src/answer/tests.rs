//! Tests of the reader: every cut of a text has the same parts, and no text is lost.

use std::sync::Arc;

use lexiform_automata::limits::Limits;

use super::*;
use crate::schema;
use crate::tags::{ArgumentReader, ThoughtMarks, model_formats};

/// The tools `f`, whose argument `a` is any text, and `s`, whose input is a text.
fn tools() -> Vec<Tool> {
    let tool = |name: &str, is_raw| Tool {
        name: name.to_owned(),
        is_raw,
    };
    vec![tool("f", false), tool("s", true)]
}

fn arguments(frames: &[Frame]) -> Vec<Option<ArgumentReader>> {
    let schema = "{\"properties\": {\"a\": {\"type\": \"string\"}}}";
    let (options, limits) = (schema::Options::for_generation(), Limits::default());
    let reader = ArgumentReader::new(frames[0].style, schema, &options, &limits);
    vec![Some(reader.expect("a schema")), None]
}

fn constrained(frames: &'static [Frame]) -> AnswerFormat {
    AnswerFormat {
        thought: Thought::Possible,
        marks: ThoughtMarks::default(),
        sections: &[],
        frames,
        mode: CallMode::Auto,
        tools: tools(),
        arguments: arguments(frames).into(),
        is_constrained: true,
        is_json: false,
    }
}

fn unconstrained(name: &str) -> AnswerFormat {
    let reading = Reading {
        thought: Thought::Possible,
        is_json: false,
    };
    let format = AnswerFormat::of_model(name, &[], reading).expect("a format");
    AnswerFormat {
        tools: tools(),
        arguments: arguments(format.frames).into(),
        ..format
    }
}

/// Reads a text in pieces, joins neighbouring parts of one kind, and checks their places.
fn parts(format: &AnswerFormat, pieces: &[&str]) -> Vec<Part> {
    let text = pieces.concat();
    let mut reader = AnswerReader::new(Arc::new(format.clone()));
    let mut found: Vec<Spanned> = pieces.iter().flat_map(|piece| reader.push(piece)).collect();
    found.extend(reader.finish());
    let mut joined: Vec<Part> = Vec::new();
    let mut end = 0;
    for Spanned {
        part,
        span,
        is_verbatim,
    } in found
    {
        assert!(
            span.start <= span.end && (end <= span.start || !is_verbatim),
            "{text:?}"
        );
        end = span.end;
        if let (Part::Content(one) | Part::Reasoning(one) | Part::Input(one), true) = (&part, is_verbatim) {
            assert_eq!(text[span], **one, "{text:?}");
        }
        match (joined.last_mut(), part) {
            (Some(Part::Content(before)), Part::Content(more))
            | (Some(Part::Reasoning(before)), Part::Reasoning(more))
            | (Some(Part::Input(before)), Part::Input(more)) => before.push_str(&more),
            (_, part) => joined.push(part),
        }
    }
    joined
}

/// Returns the parts of a text, which must be the same however it is cut in two, and letter by letter.
fn of_all_cuts(format: &AnswerFormat, text: &str) -> Vec<Part> {
    let whole = parts(format, &[text]);
    let cuts = text.char_indices().map(|(at, _)| at);
    for cut in cuts {
        let pieces = [&text[..cut], &text[cut..]];
        assert_eq!(
            parts(format, &pieces),
            whole,
            "{cut} of {text:?} in {:?}",
            format.frames[0].name
        );
    }
    let letters: Vec<&str> = text
        .char_indices()
        .map(|(at, c)| &text[at..at + c.len_utf8()])
        .collect();
    assert_eq!(parts(format, &letters), whole, "the letters of {text:?}");
    whole
}

fn content(text: &str) -> Part {
    Part::Content(text.to_owned())
}

/// The parts of a call of a tool.
fn call(tool: usize, input: &str) -> [Part; 3] {
    [Part::Opened(tool), Part::Input(input.to_owned()), Part::Closed]
}

#[test]
fn no_way_of_cutting_an_answer_changes_its_parts() {
    let text = "<think>hm <b</think>\n\nLook: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"]\"}}\n\
                </tool_call>\n<tool_call>\n{\"name\": \"s\"}\nSELECT </tool_call>;";
    let before = [Part::Reasoning("hm <b".to_owned()), content("Look: ")];
    let calls = [call(0, "{\"a\": \"}\\\"]\"}"), call(1, "SELECT </tool_call>;")];
    let expected: Vec<Part> = before.into_iter().chain(calls.into_iter().flatten()).collect();
    let format = constrained(FRAMES);
    assert_eq!(of_all_cuts(&format, text), expected);
    for first in 0..=text.len() {
        for second in first..=text.len() {
            let pieces = [&text[..first], &text[first..second], &text[second..]];
            assert_eq!(parts(&format, &pieces), expected);
        }
    }
}

/// Two calls in each frame, with the text that may precede them.
#[test]
fn no_way_of_cutting_a_frame_changes_its_calls() {
    let one = "{\"name\": \"f\", \"arguments\": {\"a\": \"]<}\"} }";
    let texts = [
        format!("{one}\n{one}"),
        format!("[ {one}, {one}]"),
        format!("```json\n{one}\n{one}\n```"),
        format!("```\n[{one},\n{one} ]\n```"),
        format!("[TOOL_CALLS] [{one}, {one}]"),
        format!("<|python_tag|>{one}; {one}"),
        "<function=f>{\"a\": \"]<}\"}</function>\n<function=f>{\"a\": \"]<}\"} </function>".to_owned(),
    ];
    let calls = || call(0, "{\"a\": \"]<}\"}");
    let before = [content("{\"name\": \"g\"} [1] ")];
    let expected: Vec<Part> = before.into_iter().chain(calls()).chain(calls()).collect();
    for text in texts {
        let text = format!("{{\"name\": \"g\"}} [1] {text}");
        assert_eq!(of_all_cuts(&constrained(FRAMES), &text), expected, "{text}");
        assert_eq!(of_all_cuts(&unconstrained("any"), &text), expected, "{text}");
    }
}

/// Two calls in formats whose arguments are no JSON, or whose frames begin alike.
#[test]
fn no_way_of_cutting_a_format_changes_its_calls() {
    let deep =
        "<tool_call>\n<function=f>\n<parameter=a>\n]<}</function>\n</parameter>\n</function>\n</tool_call>";
    let glm = "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>]<}</function></arg_value>\n</tool_call>";
    let cohere = "<cofl:tool_call id=\"7\" name=\"f\"><cofl:value name=\"a\" type=\"raw\">]<}</function></cofl:value>\
                  </cofl:tool_call>";
    let m3 = "]<]minimax[>[<invoke name=\"f\">\n]<]minimax[>[<a>]<}</function>]<]minimax[>[</a>]<]minimax[>[</invoke>\n";
    let harmony = " to=functions.f<|channel|>commentary json<|message|>{\"a\":\"]<}</function>\"}<|call|>";
    let texts = [
        ("qwen_3_coder", format!("{deep}\n{deep}")),
        ("glm_4_7", format!("{glm}\n{glm}")),
        (
            "cohere",
            format!("<cofl:tool_calls>{cohere}{cohere}</cofl:tool_calls>"),
        ),
        (
            "minimax_m3",
            format!("]<]minimax[>[<tool_call>\n{m3}{m3}]<]minimax[>[</tool_call>"),
        ),
        ("harmony", format!("{harmony}<|start|>assistant{harmony}")),
    ];
    let calls = || call(0, "{\"a\":\"]<}</function>\"}");
    let expected: Vec<Part> = [content("<tool> ] <")]
        .into_iter()
        .chain(calls())
        .chain(calls())
        .collect();
    for (format, text) in texts {
        let text = format!("<tool> ] <{text}");
        assert_eq!(
            of_all_cuts(&constrained(frames(format).expect("a format")), &text),
            expected,
            "{text}"
        );
        assert_eq!(of_all_cuts(&unconstrained(format), &text), expected, "{text}");
    }
}

type Row<'t> = (&'t str, &'t str, &'t [&'t [Part]]);

/// Checks the parts of texts in formats, without a constraint.
fn check_unconstrained(table: &[Row<'_>]) {
    for (name, text, expected) in table {
        let found = of_all_cuts(&unconstrained(name), text);
        assert_eq!(found, expected.concat(), "{name}: {text}");
    }
}

/// What models write where nothing holds them to the frame.
#[test]
fn calls_are_read_as_models_write_them_without_a_constraint() {
    check_unconstrained(&[
        (
            "qwen_3",
            "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>",
            &[&call(0, "{\"a\":1}")],
        ),
        (
            "qwen_3",
            "<tool_call>\n{\"arguments\": {\"a\":1}, \"name\": \"f\"}\n</tool_call>",
            &[&call(0, "{\"a\":1}")],
        ),
        (
            "qwen_3",
            "<tool_call>\n{\"name\": \"f\", \"parameters\": {}}\n</tool_call>",
            &[&call(0, "{}")],
        ),
        (
            "qwen_3",
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":\"</tool_call>\"}}\n",
            &[&call(0, "{\"a\":\"</tool_call>\"}")],
        ),
        (
            "qwen_3",
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {}\n</tool_call>",
            &[&call(0, "{}")],
        ),
        (
            "qwen_3",
            "A <tool_call> in text.<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>\n B",
            &[
                &[content("A <tool_call> in text.")],
                &call(2, "{}"),
                &[content("\n B")],
            ],
        ),
        (
            "qwen_3",
            "\n<think>\nx\n</think>\n\n{}",
            &[&[Part::Reasoning("\nx\n".to_owned()), content("{}")]],
        ),
        (
            "qwen_3",
            "<tool_call>\n{\"name\": \"f\", \"argu",
            &[&[content("<tool_call>\n{\"name\": \"f\", \"argu")]],
        ),
        (
            "qwen_3_coder",
            "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call> ok",
            &[&call(0, "{\"a\":\"1\"}"), &[content(" ok")]],
        ),
        (
            "qwen_3_coder",
            "<tool_call>\n<function=g>\n<parameter=a>\n1\n</parameter>\n<parameter=b>x</parameter></function></tool_call>",
            &[&call(2, "{\"a\":1,\"b\":\"x\"}")],
        ),
        (
            "llama",
            "{\"name\":\"f\",\"parameters\":{\"a\":1}}",
            &[&call(0, "{\"a\":1}")],
        ),
        (
            "llama",
            "{\"name\":\"g\",\"parameters\":{\"a\":1}}",
            &[&[content("{\"name\":\"g\",\"parameters\":{\"a\":1}}")]],
        ),
    ]);
}

/// Formats whose messages have frames of their own.
#[test]
fn parts_of_framed_messages_are_told_apart() {
    check_unconstrained(&[
        (
            "kimi",
            "x<|tool_calls_section_begin|> <|tool_call_begin|> functions.f:0 <|tool_call_argument_begin|> {\"a\":1} \
             <|tool_call_end|><|tool_call_begin|>functions.f:1<|tool_call_argument_begin|>{}<|tool_call_end|>\
             <|tool_calls_section_end|>",
            &[&[content("x")], &call(0, "{\"a\":1}"), &call(0, "{}")],
        ),
        (
            "harmony",
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f \
             <|constrain|>json<|message|>{\"a\":1}<|call|>",
            &[&[Part::Reasoning("hm".to_owned())], &call(0, "{\"a\":1}")],
        ),
        (
            "harmony",
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi.<|return|>",
            &[&[Part::Reasoning("hm".to_owned()), content("Hi.")]],
        ),
        (
            "kimi_k3",
            "<|open|>think<|sep|>hm<|close|>think<|sep|><|open|>response<|sep|>Hi<|close|>response<|sep|><|open|>tools\
             <|sep|><|open|>call tool=\"f\" index=\"0\"<|sep|><|open|>argument key=\"a\" type=\"string\"<|sep|>1<|close|>\
             argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
            &[
                &[Part::Reasoning("hm".to_owned()), content("Hi")],
                &call(0, "{\"a\":\"1\"}"),
            ],
        ),
    ]);
}

/// Under a grammar, the frames of messages are around content and calls, and belong to neither.
#[test]
fn messages_under_a_grammar_are_read_without_their_frames() {
    let of = |name: &str| {
        let marks = crate::tags::thought_marks(name)
            .expect("a format")
            .expect("marks");
        AnswerFormat {
            marks,
            sections: sections(&marks),
            ..constrained(frames(name).expect("a format"))
        }
    };
    let thought = || Part::Reasoning("hm".to_owned());
    let begin = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant";
    let text = format!("{begin}<|channel|>final<|message|>Hi.");
    assert_eq!(of_all_cuts(&of("harmony"), &text), [thought(), content("Hi.")]);
    let text = format!("{begin}<|channel|>commentary to=functions.f<|constrain|>json<|message|>{{}}<|call|>");
    let expected = [&[thought()][..], &call(0, "{}")].concat();
    assert_eq!(of_all_cuts(&of("harmony"), &text), expected);
    let begin = "<|open|>think<|sep|>hm<|close|>think<|sep|><|open|>response<|sep|>Hi";
    let text = format!("{begin}<|close|>response<|sep|><|close|>message<|sep|>");
    assert_eq!(of_all_cuts(&of("kimi_k3"), &text), [thought(), content("Hi")]);
    let text = format!(
        "{begin}<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"f\" index=\"0\"<|sep|>\
         <|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>"
    );
    let expected = [&[thought(), content("Hi")][..], &call(0, "{}")].concat();
    assert_eq!(of_all_cuts(&of("kimi_k3"), &text), expected);
}

#[test]
fn a_text_that_only_looks_like_a_mark_is_content() {
    let found = parts(&constrained(FRAMES), &["<thin", "g> a <tool"]);
    assert_eq!(found, [content("<thing> a <tool")]);
}

/// Free text that ends may have been cut, and an answer that ends behind its calls is whole.
#[test]
fn an_answer_under_a_grammar_has_no_content_behind_its_calls() {
    let one = "{\"name\": \"f\", \"arguments\": {}}";
    for text in [
        format!("[TOOL_CALLS][{one}]"),
        format!("x {one}"),
        format!("```\n{one}\n```"),
    ] {
        let mut reader = AnswerReader::new(Arc::new(constrained(FRAMES)));
        reader.push("x ");
        assert_eq!(reader.place(), AnswerPlace::Content);
        reader.push(&text);
        assert_eq!(reader.place(), AnswerPlace::Call, "{text}");
    }
}

#[test]
fn a_bare_call_is_all_input() {
    let mut bare = constrained(FRAMES);
    bare.mode = CallMode::Bare;
    bare.tools.truncate(1);
    assert_eq!(parts(&bare, &["{\"a\":1}"]), call(0, "{\"a\":1}"));
}

/// Whatever a model writes is read alike however it is cut, and reading it ends.
#[test]
fn no_way_of_cutting_random_texts_changes_their_parts() {
    let mut state = 7_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for name in model_formats().chain(["any"]) {
        let format = unconstrained(name);
        let exact = constrained(frames(name).unwrap_or(FRAMES));
        let mut fragments: Vec<String> = [
            "",
            " ",
            "\n",
            "a",
            "{",
            "}",
            "\"",
            ",",
            ":",
            "é",
            "<",
            "f",
            "1",
            "name",
            "arguments",
        ]
        .map(str::to_owned)
        .to_vec();
        fragments.extend(
            format
                .marks
                .ends
                .iter()
                .chain([&format.marks.open])
                .map(|mark| (*mark).to_owned()),
        );
        let sections = format.sections.iter();
        fragments.extend(sections.flat_map(|section| {
            section
                .close
                .iter()
                .copied()
                .chain([section.open])
                .map(str::to_owned)
        }));
        for frame in format.frames {
            let rows = [
                frame.open,
                frame.head,
                frame.middle,
                frame.tail,
                frame.between,
                frame.close,
            ];
            fragments.extend(rows.map(|pieces| pieces.iter().map(Piece::shown).collect::<String>()));
            fragments.extend(rows.concat().iter().map(|piece| piece.shown().to_owned()));
            let shown = frame.shown();
            fragments.extend([
                shown.clone(),
                shown.replace("NAME", "f"),
                shown.replace("NAME", "f").replace("ARGUMENTS", "{}"),
            ]);
        }
        for _ in 0..150 {
            let text: String = (0..random(9))
                .map(|_| fragments[random(fragments.len())].as_str())
                .collect();
            of_all_cuts(&format, &text);
            of_all_cuts(&exact, &text);
        }
    }
}
