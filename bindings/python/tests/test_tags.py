"""`lexiform.tags`: the tags that are made for models compile, and are those of xgrammar."""

import json
from pathlib import Path

import lexiform
import pytest
from lexiform import tags

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
DATA = Path(__file__).parents[3] / ".data/tool_formats/xgrammar_formats.jsonl"


def grammar_of(tag):
    tokens = [bytes([byte]) for byte in range(256)] + [b"<end>"]
    vocabulary = lexiform.Vocabulary.from_tokens(tokens, eos=[256])
    return lexiform.Compiler(vocabulary).structural_tag(tag)


def matches(grammar, text):
    state = grammar.step_bytes(grammar.start(), text.encode())
    return state is not None and grammar.is_accepting(state)


@pytest.mark.skipif(not DATA.exists(), reason="no .data/tool_formats")
def test_tags_are_those_of_xgrammar():
    for line in DATA.read_text().splitlines():
        case = json.loads(line)
        tag = tags.for_model(
            case["format"],
            case["tools"],
            tool_choice=case["tool_choice"],
            reasoning=case["reasoning"] == "enabled",
            parallel_tool_calls=case["parallel_tool_calls"],
        )
        if case["format"] != "harmony" or case["tool_choice"] == "auto":
            assert tag == case["structural_tag"]


def test_every_format_has_a_tag():
    bare = {"type": "function", "function": {"name": "now"}}
    for name in tags.formats():
        for choice in ("auto", "required", {"type": "function", "function": {"name": "weather"}}):
            for reasoning in (False, True):
                tag = tags.for_model(name, [bare, WEATHER], tool_choice=choice, reasoning=reasoning)
                grammar_of(tag)


def test_calls_match_and_others_do_not():
    tag = tags.for_model("qwen_3_5", [WEATHER], tool_choice={"type": "function", "function": {"name": "weather"}})
    grammar = grammar_of(tag)
    call = "<tool_call>\n<function=weather>\n{}\n</function>\n</tool_call>"
    city, days = "<parameter=city>Paris</parameter>", "<parameter=days>3</parameter>"
    assert matches(grammar, call.format(city + days))
    assert matches(grammar, call.format(f"{city}\n{days}"))
    for wrong in (city, days + city, city + "<parameter=days>three</parameter>", ""):
        assert not matches(grammar, call.format(wrong))


def test_what_is_wrong_is_named():
    with pytest.raises(lexiform.CompileError, match="did you mean `qwen_3`"):
        tags.for_model("qwen3", [WEATHER])
    with pytest.raises(lexiform.CompileError, match="there is no tool"):
        tags.for_model("llama", [])
    with pytest.raises(ValueError, match="tool_choice='any'"):
        tags.for_model("llama", [WEATHER], tool_choice="any")
