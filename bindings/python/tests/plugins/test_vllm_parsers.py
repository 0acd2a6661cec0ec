"""The parsers of thoughts and of calls in vLLM's own parser of answers: every cut of an answer has one result."""

import json
from types import SimpleNamespace

import pytest
from conftest import DEMO
from parser_cases import CASES, TOOLS, Client, cuts
from workload import THINK, THINK_END, thinking_model

pytest.importorskip("vllm")
pytest.importorskip("transformers")
import lexiform.vllm  # noqa: E402
from lexiform import tags  # noqa: E402
from lexiform.engines import EngineError  # noqa: E402

lexiform.vllm.register_parsers()

from transformers import AutoTokenizer  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest  # noqa: E402
from vllm.parser.parser_manager import ParserManager  # noqa: E402
from vllm.reasoning.abs_reasoning_parsers import ReasoningParserManager  # noqa: E402
from vllm.tool_parsers import abstract_tool_parser  # noqa: E402
from vllm.tool_parsers.abstract_tool_parser import ToolParserManager  # noqa: E402

TOKENIZER = AutoTokenizer.from_pretrained(DEMO)


def request(tools=TOOLS, **asked):
    choice = {"tools": tools, "tool_choice": "auto"} if tools else {}
    return ChatCompletionRequest(messages=[{"role": "user", "content": "Hi"}], model="m", **choice | asked)


def parser(format, asked, *, calls=True, thoughts=True, tokenizer=TOKENIZER, **given):
    name = "lexiform" if format is None else f"lexiform_{format}"
    made = ParserManager.get_parser(
        tool_parser_name=name if calls else None,
        reasoning_parser_name=name if thoughts else None,
        enable_auto_tools=True,
        model_name="m",
        tokenizer=tokenizer,
    )
    return made(tokenizer, asked.tools, **given)


def streamed(made, pieces, asked, prompt=(6, 7, 8)):
    """What a client puts together of a stream, whose pieces also have tokens."""
    client = Client()
    for number, piece in enumerate(pieces):
        tokens = TOKENIZER.encode(piece, add_special_tokens=False)
        is_last = number + 1 == len(pieces)
        delta = made.parse_delta(piece, tokens, asked, list(prompt) if number == 0 else None, finished=is_last)
        if delta is not None:
            client.reasoning += delta.reasoning or ""
            client.content += delta.content or ""
            for call in delta.tool_calls:
                client.call(call.index, call.function.name, call.function.arguments or "", call.id)
    return client


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.issue)
def test_no_call_is_lost_doubled_or_split(case):
    asked = request()
    for pieces in cuts(case.text):
        client = streamed(parser(case.format, asked), pieces, asked)
        client.check(case)
        assert len(set(client.ids.values())) == len(case.calls) and all(client.ids.values())
    reasoning, content, calls = parser(case.format, asked).parse(case.text, asked, enable_auto_tools=True)
    found = [(call.name, call.arguments) for call in calls or ()]
    # vLLM passes on no content that is white space alone.
    expected = case.content if case.content.strip() or not case.calls else ""
    assert (found, content or "", reasoning or "") == (case.calls, expected, case.reasoning)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.issue)
def test_a_parser_of_calls_works_alone(case):
    asked = request()
    whole = case.text if case.format != "harmony" else None
    for pieces in cuts(case.text):
        client = streamed(parser(case.format, asked, thoughts=False), pieces, asked)
        assert list(client.calls.values()) == case.calls and client.reasoning == ""
        if not case.reasoning:
            assert client.content == case.content
        elif whole is not None:
            # Without a parser of thoughts, a thought is content as it is written.
            assert case.reasoning in client.content and client.content.startswith("<think>")
    _, content, calls = parser(case.format, asked, thoughts=False).parse(case.text, asked, enable_auto_tools=True)
    assert [(call.name, call.arguments) for call in calls or ()] == case.calls
    assert (content or "").strip() == client.content.strip()


def test_a_parser_of_thoughts_works_alone():
    text = "<think>Hm.</think>\n\nYes <tool_call>."
    asked = request(tools=None)
    for pieces in cuts(text):
        client = streamed(parser("qwen_3", asked, calls=False), pieces, asked)
        assert (client.reasoning, client.content) == ("Hm.", "Yes <tool_call>.")
    assert parser("qwen_3", asked, calls=False).parse(text, asked)[:2] == ("Hm.", "Yes <tool_call>.")


def test_calls_are_content_where_none_may_be_made():
    asked, text = request(tool_choice="none"), '<tool_call>{"name": "led_on", "arguments": {}}</tool_call>'
    for pieces in cuts(text):
        client = streamed(parser("qwen_3", asked), pieces, asked)
        assert (client.calls, client.content) == ({}, text)
    assert parser("qwen_3", asked).parse(text, asked, enable_auto_tools=True)[1:] == (text, [])


def test_a_prompt_that_opens_the_thought_and_one_that_closes_it(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(thinking_model(tmp_path))
    asked = request()
    text = "Hm.</think>\n\nYes."
    for pieces in cuts(text):
        client = streamed(parser("qwen_3", asked, tokenizer=tokenizer), pieces, asked, [6, 7, THINK])
        assert (client.reasoning, client.content) == ("Hm.", "Yes.")
        client = streamed(parser("qwen_3", asked, tokenizer=tokenizer), pieces, asked, [6, 7, THINK, 8, THINK_END])
        assert (client.reasoning, client.content) == ("", text)
    template = "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|model|>{{ opens }}{% endif %}"
    tokenizer.chat_template = template
    for opens, expected in [("<think>", ("Hm.", "Yes.")), ("<think></think>", (None, text)), ("", (None, text))]:
        made = parser("qwen_3", asked, tokenizer=tokenizer, chat_template_kwargs={"opens": opens})
        assert made.parse(text, asked, enable_auto_tools=True)[:2] == expected


def test_tokens_say_where_a_thought_ends(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(thinking_model(tmp_path))
    made = ReasoningParserManager.get_reasoning_parser("lexiform")(tokenizer)
    assert (made.reasoning_start_str, made.reasoning_end_str) == ("<think>", "</think>")
    assert not made.is_reasoning_end([6, 7]) and not made.is_reasoning_end([6, THINK])
    assert made.is_reasoning_end([6, THINK, 7, THINK_END])
    assert made.is_reasoning_end_streaming([6, THINK, 7, THINK_END], [THINK_END])
    assert made.is_reasoning_end_streaming([6, THINK, THINK_END, 7], iter([THINK_END, 7]))
    assert not made.is_reasoning_end_streaming([6, THINK, 7, THINK_END, 8], [8])
    assert made.extract_content_ids([THINK, 7, THINK_END, 8, 9]) == [8, 9]
    assert made.count_reasoning_tokens([THINK, 7, 8, THINK_END, 9]) == 2


def test_what_a_request_demands_is_constrained_in_the_format_of_the_model():
    named = {"type": "function", "function": {"name": "weather"}}
    strict = [TOOLS[0] | {"function": TOOLS[0]["function"] | {"strict": True}}, *TOOLS[1:]]
    for asked, choice in [
        (request(tool_choice="required"), "required"),
        (request(tool_choice=named), named),
        (request(tools=strict), "auto"),
        (request(parallel_tool_calls=False), "auto"),
    ]:
        made = parser("qwen_3_coder", asked)
        adjusted = made.adjust_request(asked)
        tag = json.loads(adjusted.structured_outputs.structural_tag)
        assert adjusted.skip_special_tokens is False and adjusted.response_format is None
        if choice != "auto":
            assert tag == tags.for_model("qwen_3_coder", TOOLS, tool_choice=choice)
    for asked in (request(), request(tools=None), request(tool_choice="none")):
        assert parser("qwen_3_coder", asked).adjust_request(asked).structured_outputs is None
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    asked = request(tools=strict, response_format=schema)
    assert parser("qwen_3_coder", asked).adjust_request(asked).response_format is not None


def test_required_calls_are_read_like_others():
    (case,) = (case for case in CASES if case.issue.startswith("sglang#37634"))
    named = {"type": "function", "function": {"name": "weather"}}
    for choice in ("required", named):
        asked = request(tool_choice=choice)
        for pieces in cuts(case.text):
            streamed(parser("qwen_3", asked), pieces, asked).check(case)
        calls = parser("qwen_3", asked).parse(case.text, asked, enable_auto_tools=True)[2]
        assert [(call.name, call.arguments) for call in calls] == case.calls


def test_responses_have_calls_too():
    tools = [{"type": "function", **tool["function"], "strict": False} for tool in TOOLS]
    asked = ResponsesRequest(input="Hi", model="m", tools=tools, tool_choice="auto")
    (case,) = (case for case in CASES if case.issue.startswith("vllm#35615"))
    for pieces in cuts(case.text):
        streamed(parser(case.format, asked), pieces, asked).check(case)
    adjusted = parser(case.format, asked).adjust_request(ResponsesRequest(input="Hi", model="m", tools=tools, tool_choice="required"))
    assert json.loads(adjusted.structured_outputs.structural_tag)["format"]


def test_calls_of_kimi_are_numbered_over_the_conversation():
    past = [{"role": "assistant", "tool_calls": [{"id": "functions.led_on:0", "type": "function", "function": {"name": "led_on", "arguments": "{}"}}]}]
    asked = ChatCompletionRequest(messages=[{"role": "user", "content": "Hi"}, *past], model="m", tools=TOOLS, tool_choice="auto")
    (case,) = (case for case in CASES if case.format == "kimi")
    client = streamed(parser("kimi", asked), list(case.text), asked)
    assert list(client.ids.values()) == ["functions.weather:1", "functions.led_on:2"]


def test_names_are_registered_and_the_format_is_recognised():
    names = ["lexiform", "lexiform_any", *(f"lexiform_{name}" for name in tags.formats())]
    assert set(names) <= set(ToolParserManager.list_registered()) & set(ReasoningParserManager.list_registered())
    for name in names:
        for manager in (ToolParserManager.get_tool_parser, ReasoningParserManager.get_reasoning_parser):
            found = manager(name)
            assert found.__name__.startswith("Lexiform") and found.answer_format == {"lexiform": None}.get(name, name[9:])
    template = SimpleNamespace(chat_template="{{ '<tool_call>\\n<function=' }}", get_vocab=dict)
    assert ToolParserManager.get_tool_parser("lexiform")(template)._format == "qwen_3_coder"


def test_parsers_of_another_vllm_are_refused(monkeypatch, caplog):
    monkeypatch.setattr(abstract_tool_parser.ToolParser, "extract_tool_calls", lambda self, text: None)
    with pytest.raises(EngineError, match=r"ToolParser.extract_tool_calls takes \(self, text\)"):
        lexiform.vllm.register_parsers()
    lexiform.vllm.plugin()
    assert "the parsers `lexiform` are not available" in caplog.text
