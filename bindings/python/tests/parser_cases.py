"""Answers whose calls parsers of engines have lost, doubled, split or leaked, by the public issue that says so.

The texts are our own; the issues say what kind of text it was, and how it was cut. Each case must have one result for all cuts.
"""

import random
from typing import NamedTuple

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "numbers": {"type": "array", "items": {"type": "object"}},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "led_on", "parameters": {"type": "object", "properties": {}}}},
    {
        "type": "function",
        "function": {
            "name": "write",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
        },
    },
]


class Case(NamedTuple):
    """An answer without the thought's beginning that a prompt may have, and its parts."""

    issue: str
    format: str
    text: str
    calls: list[tuple[str, str]]
    content: str = ""
    reasoning: str = ""


def hermes(name, arguments):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def coder(name, **arguments):
    body = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"


def kimi(number, name, arguments):
    return f"<|tool_call_begin|>functions.{name}:{number}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


ROME, BERN = '{"city": "Rome"}', '{"city": "Bern", "days": 3}'
SECTION = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"

CASES = [
    Case("vllm#32152, the last brace after a number", "qwen_3", hermes("weather", '{"days": 42}'), [("weather", '{"days": 42}')]),
    Case("vllm#22885, nested braces at the end", "qwen_3", hermes("weather", '{"a": {"b": [1]}}'), [("weather", '{"a": {"b": [1]}}')]),
    Case("vllm#28806, no arguments", "qwen_3", hermes("led_on", "{}"), [("led_on", "{}")]),
    Case(
        "vllm#21360, an array of objects",
        "qwen_3",
        hermes("weather", '{"numbers": [{"x": 1}, {"y": [{}]}]}'),
        [("weather", '{"numbers": [{"x": 1}, {"y": [{}]}]}')],
    ),
    Case(
        "vllm#10395, braces, quotes and marks in strings",
        "qwen_3",
        hermes("write", r'{"content": "}]</tool_call>\n\"{\u00e9 é🙂\\"}'),
        [("write", r'{"content": "}]</tool_call>\n\"{\u00e9 é🙂\\"}')],
    ),
    Case(
        "sglang#18001, parallel calls of one tool",
        "qwen_3",
        "\n".join([hermes("weather", ROME), hermes("weather", ROME), hermes("weather", BERN)]),
        [("weather", ROME), ("weather", ROME), ("weather", BERN)],
    ),
    Case(
        "sglang#37634, several calls in one piece",
        "qwen_3",
        hermes("weather", ROME) + hermes("led_on", "{}"),
        [("weather", ROME), ("led_on", "{}")],
    ),
    Case(
        "sglang#34677, a tool that nobody offered, among others",
        "qwen_3",
        "\n".join([hermes("weather", ROME), hermes("teleport", "{}"), hermes("led_on", "{}")]),
        [("weather", ROME), ("teleport", "{}"), ("led_on", "{}")],
    ),
    Case(
        "vllm#40861, text before, between and after calls",
        "qwen_3",
        f"One. {hermes('led_on', '{}')}Two.{hermes('led_on', '{}')} Three <b>.",
        [("led_on", "{}"), ("led_on", "{}")],
        "One. Two. Three <b>.",
    ),
    Case(
        "no white space in the frame",
        "qwen_3",
        '<tool_call>{"name":"weather","arguments":{"city":"Rome"}}</tool_call>',
        [("weather", '{"city":"Rome"}')],
    ),
    Case("the name comes last", "qwen_3", '<tool_call>\n{"arguments": {"days": 1}, "name": "weather"}\n</tool_call>', [("weather", '{"days":1}')]),
    Case(
        "max_tokens in the arguments",
        "qwen_3",
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Ro',
        [("weather", '{"city": "Ro')],
    ),
    Case("the mark is only named", "qwen_3", "Write <tool_call> to call a tool, then </tool_call>.", [], "Write <tool_call> to call a tool, then </tool_call>."),
    Case("half a mark at the end", "qwen_3", "a <tool_ca", [], "a <tool_ca"),
    Case(
        "vllm#43933, the thought ends and content begins in one piece",
        "qwen_3",
        f"<think>\nHm {{\n</think>\n\nYes. {hermes('weather', ROME)}",
        [("weather", ROME)],
        "Yes. ",
        "\nHm {\n",
    ),
    Case(
        "vllm#40911, a mark of calls at the end of the thought",
        "qwen_3",
        f"<think>a < b, <tool_call></think>{hermes('led_on', '{}')}",
        [("led_on", "{}")],
        "",
        "a < b, <tool_call>",
    ),
    Case(
        "vllm#35615, all parameters in one piece",
        "qwen_3_coder",
        coder("write", path="/a/b", content="x\ny"),
        [("write", '{"path":"/a/b","content":"x\\ny"}')],
    ),
    Case(
        "vllm#33965, two calls of one tool",
        "qwen_3_coder",
        coder("write", path="a", content="1") + "\n" + coder("write", path="b", content="2"),
        [("write", '{"path":"a","content":"1"}'), ("write", '{"path":"b","content":"2"}')],
    ),
    Case(
        "vllm#40861, marks of the format in a value",
        "qwen_3_coder",
        coder("write", path="a", content="see </function> and </tool_call> {"),
        [("write", '{"path":"a","content":"see </function> and </tool_call> {"}')],
    ),
    Case(
        "vllm#40861, types by the schema",
        "qwen_3_coder",
        coder("weather", city="1", days="3", unit="null"),
        [("weather", '{"city":"1","days":3,"unit":"null"}')],
    ),
    Case("sglang#35564, no parameters", "qwen_3_coder", coder("led_on"), [("led_on", "{}")]),
    Case(
        "the first mark is missing",
        "qwen_3_coder",
        "<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call> ok",
        [("weather", '{"city":"Rome"}')],
        " ok",
    ),
    Case(
        "numbers of calls, and text around the section",
        "kimi",
        "Look. " + SECTION.format(kimi(0, "weather", ROME) + kimi(1, "led_on", "{}")) + " Done.",
        [("weather", ROME), ("led_on", "{}")],
        "Look.  Done.",
    ),
    Case("an object that is no call", "llama", '{"name": "Ada", "parameters": 3}', [], '{"name": "Ada", "parameters": 3}'),
    Case("a call that is an object", "llama", '{"name": "weather", "parameters": {"city": "Rome"}}', [("weather", ROME)]),
    Case(
        "vllm#32587, marks behind the name",
        "harmony",
        '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.weather '
        '<|constrain|>json<|message|>{"city": "Rome"}<|call|>',
        [("weather", ROME)],
        "",
        "Hm.",
    ),
    Case(
        "a format that nobody knows, in the frame of Mistral",
        "any",
        f'Well. [TOOL_CALLS] [{{"name": "weather", "arguments": {ROME}}}, {{"name": "led_on", "arguments": {{}}}}]',
        [("weather", ROME), ("led_on", "{}")],
        "Well. ",
    ),
]


def cuts(text):
    """Ways of cutting a text: in two everywhere, letter by letter, and in pieces of random length."""
    yield [text]
    yield list(text)
    yield from ([text[:at], text[at:]] for at in range(1, len(text)))
    draw = random.Random(3)
    for longest in (2, 5, 30):
        pieces, at = [], 0
        while at < len(text):
            length = draw.randint(1, longest)
            pieces.append(text[at : at + length])
            at += length
        yield pieces


class Client:
    """Puts the parts of an answer together as clients do: a call begins with its name, and arguments are appended."""

    def __init__(self):
        self.reasoning = self.content = ""
        self.calls = {}
        self.ids = {}

    def call(self, index, name, arguments, id=None):
        if name is not None:
            assert index == len(self.calls), "a call begins twice, or out of order"
            self.calls[index], self.ids[index] = (name, ""), id
        name, before = self.calls[index]
        self.calls[index] = (name, before + arguments)

    def check(self, case):
        assert list(self.calls.values()) == case.calls, case.issue
        assert (self.content, self.reasoning) == (case.content, case.reasoning), case.issue
