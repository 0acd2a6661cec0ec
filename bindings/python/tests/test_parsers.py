"""`lexiform.parsers`: calls that parsers of engines have lost or doubled, in every cut; thoughts by their prompts; constraints."""

import doctest
import json
import logging

import lexiform
import lexiform.parsers
import pytest
from lexiform import tags
from lexiform.parsers import (
    Delta,
    Reading,
    ThoughtMarks,
    constraint,
    format_of,
    functions,
    generation_prompt,
    parser_names,
)
from parser_cases import CASES, TOOLS, Client, cuts

FUNCTIONS = functions(TOOLS)


def test_the_example_of_the_module_is_right():
    result = doctest.testmod(lexiform.parsers)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.issue)
def test_no_call_is_lost_doubled_or_split(case):
    for pieces in cuts(case.text):
        client, reading = Client(), Reading(case.format, FUNCTIONS, thought="possible")
        for delta in [*map(reading.push, pieces), reading.finish()]:
            client.reasoning += delta.reasoning
            client.content += delta.content
            for call in delta.calls:
                client.call(call.index, call.name, call.arguments)
        client.check(case)
        assert reading.calls == case.calls and not reading.finish()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.issue)
def test_a_parser_of_thoughts_before_one_of_calls_reads_the_same(case):
    for pieces in cuts(case.text):
        client = Client()
        thoughts, calls = Reading(case.format, thought="possible", calls=False), Reading(case.format, FUNCTIONS)
        for delta in [*map(thoughts.push, pieces), thoughts.finish()]:
            client.reasoning += delta.reasoning
            for call in calls.push(delta.content).calls:
                client.call(call.index, call.name, call.arguments)
        calls.finish()
        assert (list(client.calls.values()), client.reasoning) == (case.calls, case.reasoning)


def test_arguments_are_handed_on_while_they_are_written():
    reading = Reading("qwen_3", FUNCTIONS)
    text = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    deltas = [reading.push(letter) for letter in text]
    first = next(at for at, delta in enumerate(deltas) if delta.calls)
    assert text[: first + 1].endswith('{"name": "weather", "arguments": {')
    assert [delta.calls[0].arguments for delta in deltas if delta.calls] == list('{"city": "Rome"}')


def test_a_prompt_may_have_opened_the_thought():
    for text in ("Hm.</think>\n\nYes.", "<think>Hm.</think>\n\nYes.", "\n<think>Hm.</think>\n\nYes."):
        for pieces in cuts(text):
            reading = Reading("qwen_3", thought="begun")
            whole = [*map(reading.push, pieces), reading.finish()]
            assert "".join(delta.content for delta in whole) == "Yes."
            assert "".join(delta.reasoning for delta in whole) == "Hm."
    reading = Reading("qwen_3", thought="begun")
    assert not reading.push("<thi") and reading.finish() == Delta(reasoning="<thi")
    assert Reading("qwen_3", thought="begun").finish() == Delta()


def test_a_schema_that_does_not_compile_is_left_out(caplog):
    bad = {"name": "bad", "parameters": {"type": "objekt"}}
    text = "<tool_call>\n<function={}>\n<parameter=city>\n7\n</parameter>\n</function>\n</tool_call>"
    reading = Reading("qwen_3_coder", [bad, FUNCTIONS[0]])
    with caplog.at_level(logging.WARNING, logger="lexiform"):
        reading.push(text.format("bad") + text.format("weather"))
    assert reading.calls == [("bad", '{"city":"7"}'), ("weather", '{"city":"7"}')]
    assert "the arguments of 'bad' are read without their schema" in caplog.text
    with pytest.raises(lexiform.CompileError, match="unknown model format"):
        Reading("qwen3").push("x")


class Tokenizer:
    """A tokenizer of letters and of four marks, with a chat template."""

    MARKS = ("<think>", "</think>", "<user>", "<model>")
    chat_template = "{{- '<tool_call>\\n{\"name\": \"' }}"

    def __init__(self, opens=""):
        self.opens = opens

    def encode(self, text):
        tokens = []
        while text:
            mark = next((mark for mark in self.MARKS if text.startswith(mark)), text[0])
            tokens.append(self.MARKS.index(mark) if mark in self.MARKS else 10 + ord(mark))
            text = text[len(mark) :]
        return tokens

    def decode(self, tokens, skip_special_tokens=False):
        return "".join(self.MARKS[token] if token < 10 else chr(token - 10) for token in tokens)

    def apply_chat_template(self, messages, *, tokenize, add_generation_prompt, enable_thinking=True):
        text = "".join(f"<user>{message['content']}" for message in messages)
        opens = self.opens if enable_thinking else "<think>\n\n</think>\n\n"
        return text + "\n<model>" + opens if add_generation_prompt else text


@pytest.mark.parametrize(
    ("prompt", "state"),
    [
        ("<user>Hi\n<model>", "possible"),
        ("<user>Hi\n<model><think>\n", "begun"),
        ("<user>Hi\n<model><think>\n\n</think>\n\n", "none"),
        # vllm#39885: thoughts of earlier turns.
        ("<user>Hi\n<model><think>a</think>b<user>And?\n<model>", "possible"),
        ("<user>Hi\n<model><think>a</think>b<user>And?\n<model><think>", "begun"),
        # Marks in a message.
        ("<user>What is </think>?\n<model>", "possible"),
        ("<user>What is <think>?\n<model>", "possible"),
        # The last message is continued.
        ("<user>Hi\n<model><think>a</think>b", "none"),
    ],
)
def test_the_last_turn_says_how_an_answer_begins(prompt, state):
    tokenizer = Tokenizer(opens="<think>\n")
    marks = ThoughtMarks("qwen_3", tokenizer)
    assert marks.state(prompt) == state
    assert marks.state_of_tokens(tokenizer.encode(prompt)) == state


def test_tokens_of_a_thought_are_found():
    tokenizer = Tokenizer()
    marks = ThoughtMarks("qwen_3", tokenizer)
    tokens = tokenizer.encode("<think>ab</think>cd")
    assert marks.behind(tokens) == 4 and marks.behind(tokens[:3]) is None
    assert [marks.closed_by(tokens[:count], 1) for count in range(1, 7)] == [False, False, False, True, False, False]
    assert marks.closed_by(tokens, 3) and not marks.closed_by(tokens, 2)
    assert marks.thinking_tokens(tokens, "possible") == 2
    assert marks.thinking_tokens(tokens[1:], "begun") == 2 and marks.thinking_tokens(tokens[1:], "possible") == 0
    assert marks.thinking_tokens(tokenizer.encode("<think>abc"), "possible") == 3
    assert marks.thinking_tokens(tokenizer.encode("<think></think>a"), "possible") == 0
    assert marks.thinking_tokens([], "begun") == 0
    # A mark of several tokens.
    letters = [10 + ord(letter) for letter in "a</think>b"]
    assert marks.behind(letters) == 9 and marks.thinking_tokens(letters, "begun") == 1
    assert [count for count in range(1, 11) if marks.closed_by(letters[:count], 1)] == [9]


def test_formats_are_recognised_by_templates():
    assert format_of(Tokenizer()) == "qwen_3" and format_of(Tokenizer(), "llama") == "llama"
    assert format_of(object()) == format_of(None) == "any"
    several = type("Several", (), {"chat_template": {"default": "{{ x }}", "tool_use": Tokenizer.chat_template}})()
    assert format_of(several) == "qwen_3"
    assert parser_names()["lexiform"] is None and parser_names()["lexiform_qwen_3"] == "qwen_3"
    assert set(parser_names().values()) == {None, "any", *tags.formats()}
    assert generation_prompt(Tokenizer("<think>\n")) == "\n<model><think>\n"
    assert generation_prompt(Tokenizer(), {"enable_thinking": False}).endswith("</think>\n\n")
    assert generation_prompt(Tokenizer(), {"unknown": 1}) == generation_prompt(object()) == ""


def test_what_a_request_demands_is_a_constraint():
    vocabulary = lexiform.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=[256])
    compiler = lexiform.Compiler(vocabulary, primed=False)

    def allows(tag, text):
        grammar = compiler.structural_tag(tag)
        state = grammar.step_bytes(grammar.start(), text.encode())
        return state is not None and grammar.is_accepting(state)

    assert constraint("qwen_3", FUNCTIONS) is None and constraint("qwen_3", []) is None
    strict = [FUNCTIONS[0] | {"strict": True}, *FUNCTIONS[1:]]
    named = {"type": "function", "function": {"name": "weather"}}
    call = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'
    right, wrong, other = call.format("weather", '{"days": 3}'), call.format("weather", '{"days": "3"}'), call.format("led_on", '{"x": 1}')
    for tools, options, allowed in [
        (FUNCTIONS, {"tool_choice": "required"}, (True, False, False, False)),
        (FUNCTIONS, {"tool_choice": named}, (True, False, False, False)),
        (strict, {}, (True, False, True, True)),
        (FUNCTIONS, {"parallel": False}, (True, True, True, True)),
    ]:
        tag = constraint("qwen_3", tools, **options)
        assert tuple(allows(tag, text) for text in (right, wrong, other, "text")) == allowed, options
        assert constraint("any", tools, **options) == tag
    assert not allows(constraint("qwen_3", FUNCTIONS, parallel=False), right + "\n" + right)
    with pytest.raises(lexiform.CompileError, match="there is no tool"):
        constraint("qwen_3", FUNCTIONS, tool_choice={"function": {"name": "gone"}})
    assert json.dumps(constraint("llama", FUNCTIONS, tool_choice="required"))


def test_functions_are_read_of_objects_and_mappings():
    from types import SimpleNamespace

    flat = {"type": "function", "name": "f", "parameters": None, "strict": True}
    nested = SimpleNamespace(type="function", function=SimpleNamespace(name="g", parameters={}))
    other = SimpleNamespace(type="web_search")
    assert functions([flat, nested, other]) == [
        {"name": "f", "parameters": None, "strict": True},
        {"name": "g", "parameters": {}, "strict": None},
    ]
    assert functions(None) == []
