//! Calls of tools in the formats that models were trained on: each is written unchanged, and read as JSON.

use lexiform::tags::model_formats;
use serde_json::{Value, json};

use super::service::{Service, roomy};
use super::tools::{ask, calls, pair, prompt, tools};
use crate::tokenizer::TEMPLATE;

/// For each format, a call of `mk` and a call of `say` as a model of the family writes them, with what stands
/// before, between and after them: `before`, the call of `mk`, `between`, the call of `say`, `after`.
const WRITTEN: [(&str, [&str; 5]); 18] = [
    (
        "llama",
        [
            "",
            "{\"name\": \"mk\", \"parameters\": {\"age\":36}}",
            "\n",
            "{\"name\": \"say\", \"parameters\": {\"text\":\"}\"}}",
            "",
        ],
    ),
    (
        "qwen_3",
        [
            "",
            "<tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>",
            "\n",
            "<tool_call>\n{\"name\": \"say\", \"arguments\": {\"text\":\"}\"}}\n</tool_call>",
            "",
        ],
    ),
    ("qwen_3_coder", QWEN_XML),
    ("qwen_3_5", QWEN_XML),
    (
        "exaone",
        [
            "",
            "<tool_call>{\"name\": \"mk\", \"arguments\": {\"age\":36}}</tool_call>",
            "\n",
            "<tool_call>{\"name\": \"say\", \"arguments\": {\"text\":\"}\"}}</tool_call>",
            "",
        ],
    ),
    (
        "glm_4_7",
        [
            "",
            "<tool_call>mk<arg_key>age</arg_key><arg_value>36</arg_value></tool_call>",
            "",
            "<tool_call>say<arg_key>text</arg_key><arg_value>}</arg_value></tool_call>",
            "",
        ],
    ),
    (
        "mimo",
        [
            "",
            "<tool_call><function=mk><parameter=age>36</parameter></function></tool_call>",
            "\n",
            "<tool_call><function=say><parameter=text>}</parameter></function></tool_call>",
            "",
        ],
    ),
    (
        "kimi",
        [
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>functions.mk:0<|tool_call_argument_begin|>{\"age\":36}<|tool_call_end|>",
            "",
            "<|tool_call_begin|>functions.say:1<|tool_call_argument_begin|>{\"text\":\"}\"}<|tool_call_end|>",
            "<|tool_calls_section_end|>",
        ],
    ),
    (
        "cohere",
        [
            "<cofl:tool_calls>",
            "<cofl:tool_call id=\"0\" name=\"mk\"><cofl:value name=\"age\" type=\"json\">36</cofl:value></cofl:tool_call>",
            "",
            "<cofl:tool_call id=\"1\" name=\"say\"><cofl:value name=\"text\" type=\"raw\">}</cofl:value></cofl:tool_call>",
            "</cofl:tool_calls>",
        ],
    ),
    (
        "deepseek_r1",
        [
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>mk\n```json\n{\"age\":36}\n```<｜tool▁call▁end｜>",
            "\n",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>say\n```json\n{\"text\":\"}\"}\n```<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
        ],
    ),
    (
        "deepseek_v3_1",
        [
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>mk<｜tool▁sep｜>{\"age\":36}<｜tool▁call▁end｜>",
            "",
            "<｜tool▁call▁begin｜>say<｜tool▁sep｜>{\"text\":\"}\"}<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
        ],
    ),
    ("deepseek_v3_2", DSML),
    ("deepseek_v4", DSML),
    ("deepseek_v4_1", DSML),
    (
        "minimax",
        [
            "\n<minimax:tool_call>\n",
            "<invoke name=\"mk\">\n<parameter name=\"age\">36</parameter>\n</invoke>\n",
            "",
            "<invoke name=\"say\">\n<parameter name=\"text\">}</parameter>\n</invoke>\n",
            "</minimax:tool_call>",
        ],
    ),
    (
        "minimax_m3",
        [
            "]<]minimax[>[<tool_call>\n",
            "]<]minimax[>[<invoke name=\"mk\">]<]minimax[>[<age>36]<]minimax[>[</age>]<]minimax[>[</invoke>\n",
            "",
            "]<]minimax[>[<invoke name=\"say\">]<]minimax[>[<text>}]<]minimax[>[</text>]<]minimax[>[</invoke>\n",
            "]<]minimax[>[</tool_call>",
        ],
    ),
    (
        "kimi_k3",
        [
            "<|close|>response<|sep|><|open|>tools<|sep|>",
            "<|open|>call tool=\"mk\" index=\"1\"<|sep|><|open|>argument key=\"age\" type=\"number\"<|sep|>36\
             <|close|>argument<|sep|><|close|>call<|sep|>",
            "",
            "<|open|>call tool=\"say\" index=\"2\"<|sep|><|open|>argument key=\"text\" type=\"string\"<|sep|>}\
             <|close|>argument<|sep|><|close|>call<|sep|>",
            "<|close|>tools<|sep|><|close|>message<|sep|>",
        ],
    ),
    (
        "harmony",
        [
            "",
            "<|channel|>commentary to=functions.mk<|constrain|>json<|message|>{\"age\":36}<|call|>",
            "<|start|>assistant",
            "<|channel|>commentary to=functions.say<|constrain|>json<|message|>{\"text\":\"}\"}<|call|>",
            "",
        ],
    ),
];

const QWEN_XML: [&str; 5] = [
    "",
    "<tool_call>\n<function=mk>\n<parameter=age>\n36\n</parameter>\n</function>\n</tool_call>",
    "\n",
    "<tool_call>\n<function=say>\n<parameter=text>\n}\n</parameter>\n</function>\n</tool_call>",
    "",
];

/// The calls of DeepSeek V3.2; those of later models differ in a word or a space.
const DSML: [&str; 5] = [
    "\n\n<｜DSML｜function_calls>\n",
    "<｜DSML｜invoke name=\"mk\">\n<｜DSML｜parameter name=\"age\" string=\"false\">36</｜DSML｜parameter>\n</｜DSML｜invoke>\n",
    "",
    "<｜DSML｜invoke name=\"say\">\n<｜DSML｜parameter name=\"text\" string=\"true\">}</｜DSML｜parameter>\n</｜DSML｜invoke>\n",
    "</｜DSML｜function_calls>",
];

/// The special tokens of these models, as far as calls have them.
const MARKS: [&str; 26] = [
    "!<tool_call>",
    "!</tool_call>",
    "!<arg_key>",
    "!</arg_key>",
    "!<arg_value>",
    "!</arg_value>",
    "!<|tool_calls_section_begin|>",
    "!<|tool_calls_section_end|>",
    "!<|tool_call_begin|>",
    "!<|tool_call_argument_begin|>",
    "!<|tool_call_end|>",
    "!<｜tool▁calls▁begin｜>",
    "!<｜tool▁calls▁end｜>",
    "!<｜tool▁call▁begin｜>",
    "!<｜tool▁call▁end｜>",
    "!<｜tool▁sep｜>",
    "!｜DSML｜",
    "!<minimax:tool_call>",
    "!]<]minimax[>[",
    "!<|open|>",
    "!<|close|>",
    "!<|sep|>",
    "!<|channel|>",
    "!<|constrain|>",
    "!<|message|>",
    "!<|call|>",
];

/// The parts of the calls of a format.
fn written(format: &str) -> [String; 5] {
    let (_, parts) = WRITTEN.iter().find(|(name, _)| *name == format).expect(format);
    parts.map(|part| match format {
        "deepseek_v4" => part.replace("function_calls", "tool_calls"),
        "deepseek_v4_1" => part
            .replace("function_calls", " calls")
            .replace("｜invoke", "｜ invoke")
            .replace("｜parameter", "｜ parameter"),
        _ => part.to_owned(),
    })
}

/// The format of a service, as clients learn it.
fn told(service: &Service) -> String {
    let models = service.get("/v1/models").json();
    models["data"][0]["tool_format"]
        .as_str()
        .expect("a format")
        .to_owned()
}

#[test]
fn every_format_of_the_table_is_written_here() {
    let names: Vec<&str> = model_formats().collect();
    assert_eq!(names.len(), WRITTEN.len());
    for name in names {
        assert!(WRITTEN.iter().any(|(written, _)| *written == name), "{name}");
    }
}

/// Guards against a format that is not what the model was trained on, and against arguments that reach the
/// client in the form of the model.
#[test]
fn calls_in_the_format_of_a_model_are_calls() {
    let made = || pair("mk", "{\"age\":36}");
    let said = || pair("say", "{\"text\":\"}\"}");
    for format in model_formats() {
        let [before, mk, between, say, after] = written(format);
        let both = [&*before, &mk, &between, &say, &after].concat();
        let one = [&*before, &mk, &after].concat();
        let named = json!({"type": "function", "function": {"name": "mk"}});
        for more in [&[][..], &MARKS] {
            let service = Service::held_to(format, more);
            assert_eq!(told(&service), format);
            for choice in ["required", "auto"] {
                let more = json!({"tools": tools(), "tool_choice": choice});
                let called = ask(&service, &both, more.clone());
                assert_eq!(
                    calls(&called["message"]),
                    [made(), said()],
                    "{format}, {choice}: {called}"
                );
                assert_eq!(called["finish_reason"], "tool_calls", "{format}");
                let mut alone = more;
                alone["parallel_tool_calls"] = json!(false);
                let called = ask(&service, &one, alone);
                assert_eq!(
                    calls(&called["message"]),
                    [made()],
                    "{format}, {choice}: {called}"
                );
            }
            let asked = json!({"tools": tools(), "tool_choice": named});
            // The template has a place for schemas, so a named tool is a schema without a frame.
            let called = ask(&service, "{\"age\":36}", asked);
            assert_eq!(calls(&called["message"]), [made()], "{format}: {called}");
        }
    }
}

/// A model that writes something else is held to the format: no format leaves it without a valid call.
#[test]
fn whatever_a_model_writes_a_required_call_is_valid() {
    for format in model_formats() {
        let service = Service::held_to(format, &MARKS);
        let more = json!({"tools": tools(), "tool_choice": "required", "max_tokens": 400, "parallel_tool_calls": false});
        let called = ask(&service, "I would rather not.", more);
        let found = calls(&called["message"]);
        assert_eq!(found.len(), 1, "{format}: {called}");
        assert!(called["message"]["content"].is_null(), "{format}: {called}");
        let arguments: Value = serde_json::from_str(&found[0].1).expect(format);
        match found[0].0.as_str() {
            "mk" => assert!(arguments["age"].is_number(), "{format}: {arguments}"),
            _ => assert!(arguments["text"].is_string(), "{format}: {arguments}"),
        }
    }
}

#[test]
fn beside_a_format_text_stays_text() {
    for format in model_formats() {
        let service = Service::held_to(format, &[]);
        for text in ["just text, 1 < 2", "{\"name\": \"Ada\"} [1] ```\nx\n```"] {
            let said = ask(&service, text, json!({"tools": tools()}));
            assert_eq!(said["message"]["content"], text, "{format}");
            assert_eq!(said["finish_reason"], "stop", "{format}");
        }
    }
    // An answer without calls that ends in a text of its own.
    let service = Service::held_to("kimi_k3", &MARKS);
    let said = ask(
        &service,
        "text<|close|>response<|sep|><|close|>message<|sep|>",
        json!({"tools": tools()}),
    );
    assert_eq!(said["message"]["content"], "text");
    assert!(calls(&said["message"]).is_empty());
}

/// Nested values, text with the marks of others in it, and white space that is no part of a value.
#[test]
fn arguments_of_every_kind_are_json_to_the_client() {
    let parameters = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}},
        "mode": {"enum": ["a", "w"]}}});
    let tools = json!([
        {"type": "function", "function": {"name": "edit", "parameters": parameters}},
        {"type": "function", "function": {"name": "edit_more", "parameters": parameters}},
    ]);
    let value = "{\"path\":\"a </function> \\\"b\\\"\\n<tool_call>\",\"lines\":[1,2],\"mode\":\"w\"}";
    let table = [
        (
            "qwen_3_coder",
            "<tool_call>\n<function=edit_more>\n<parameter=path>\na </function> \"b\"\n<tool_call>\n</parameter>\n\
             <parameter=lines>\n[1,2]\n</parameter>\n<parameter=mode>\nw\n</parameter>\n</function>\n</tool_call>",
        ),
        (
            "glm_4_7",
            "<tool_call>edit_more\n<arg_key>path</arg_key>\n<arg_value>a </function> \"b\"\n<tool_call></arg_value>\n\
             <arg_key>lines</arg_key>\n<arg_value>[1,2]</arg_value>\n<arg_key>mode</arg_key>\n<arg_value>w</arg_value>\n\
             </tool_call>",
        ),
    ];
    for (format, text) in table {
        let service = Service::held_to(format, &[]);
        for choice in ["required", "auto"] {
            let called = ask(&service, text, json!({"tools": tools, "tool_choice": choice}));
            assert_eq!(
                calls(&called["message"]),
                [pair("edit_more", value)],
                "{format}: {called}"
            );
        }
    }
}

#[test]
fn the_format_is_recognised_in_the_template() {
    let template = |sign: &str| format!("{{# {sign} #}}{TEMPLATE}");
    let table = [
        ("<tool_call>\\n<function=", "qwen_3_coder"),
        ("<tool_call> <arg_key>", "glm_4_7"),
        ("<｜DSML｜function_calls>", "deepseek_v3_2"),
        ("nothing", "any"),
    ];
    for (sign, format) in table {
        let service = Service::of_model(roomy(), 1 << 20, &template(sign), &[]);
        assert_eq!(told(&service), format);
    }
    let service = Service::of_model(roomy(), 1 << 20, &template("<tool_call>\\n<function="), &[]);
    let [.., say, _] = written("qwen_3_coder");
    let called = ask(&service, &say, json!({"tools": tools()}));
    assert_eq!(calls(&called["message"]), [pair("say", "{\"text\":\"}\"}")]);
    // The template has no place for tools, so the model is told how to write a call.
    let told = prompt(&service, json!({"tools": tools()}));
    let form = "A call is written as\n<tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>";
    assert!(told.contains(form), "{told}");
}

/// The formats of models have no place for raw input, so a custom tool is called as before.
#[test]
fn a_custom_tool_is_called_whatever_the_format() {
    let service = Service::held_to("glm_4_7", &[]);
    let custom = json!([{"type": "custom", "custom": {"name": "sql"}}]);
    let called = ask(
        &service,
        "<tool_call>\n{\"name\": \"sql\"}\nSELECT 1;",
        json!({"tools": custom}),
    );
    assert_eq!(calls(&called["message"]), [pair("sql", "SELECT 1;")]);
}

#[test]
fn beside_a_constraint_the_format_holds() {
    let person = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
                        "additionalProperties": false});
    for (format, call) in [
        ("qwen_3_coder", written("qwen_3_coder")[1].clone()),
        ("glm_4_7", written("glm_4_7")[1].clone()),
        // A call in plain JSON could be confused with the text, so it is one between marks.
        ("llama", written("qwen_3")[1].clone()),
    ] {
        let service = Service::held_to(format, &MARKS);
        let more = json!({"tools": tools(), "guided_json": person});
        let said = ask(&service, "{\"name\":\"mk\"}", more.clone());
        assert_eq!(said["message"]["content"], "{\"name\":\"mk\"}", "{format}");
        let called = ask(&service, &call, more);
        assert_eq!(
            calls(&called["message"]),
            [pair("mk", "{\"age\":36}")],
            "{format}: {called}"
        );
    }
}

#[test]
fn a_thought_comes_before_a_call_in_the_format() {
    let service = Service::held_to(
        "qwen_3_5",
        &["!<think>", "!</think>", "!<tool_call>", "!</tool_call>"],
    );
    let text = format!("<think>I <function=mk> it.</think>\n\n{}", written("qwen_3_5")[1]);
    for choice in ["required", "auto"] {
        let called = ask(&service, &text, json!({"tools": tools(), "tool_choice": choice}));
        let message = &called["message"];
        assert_eq!(message["reasoning_content"], "I <function=mk> it.", "{called}");
        assert_eq!(calls(message), [pair("mk", "{\"age\":36}")], "{called}");
    }
}

/// A tool that the form of the model cannot write is refused, and the answer says why.
#[test]
fn a_tool_that_cannot_be_written_is_refused_with_the_reason() {
    let open = json!([{"type": "function", "function": {"name": "set", "parameters": {
        "type": "object", "additionalProperties": {"type": "string"}}}}]);
    let service = Service::held_to("minimax_m3", &[]);
    let refused = service.chat("echo x", json!({"tools": open}));
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(
        refused
            .text()
            .contains("not supported in this style of arguments"),
        "{}",
        refused.text()
    );
    let other = Service::held_to("glm_4_7", &[]);
    let text = "<tool_call>set<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>";
    let called = ask(&other, text, json!({"tools": open}));
    assert_eq!(calls(&called["message"]), [pair("set", "{\"k\":\"v\"}")]);
}
