"""The parsers of thoughts and of calls in SGLang's own parsers: every cut of an answer has one result."""

import json
from types import SimpleNamespace

import pytest
from conftest import DEMO
from parser_cases import CASES, TOOLS, Client, cuts

pytest.importorskip("sglang")
pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import lexiform.sglang  # noqa: E402
from lexiform import tags  # noqa: E402
from lexiform.engines import EngineError  # noqa: E402
from sglang.srt.plugins import load_plugins  # noqa: E402

load_plugins()

from sglang.srt.entrypoints.openai.protocol import Tool, ToolChoice  # noqa: E402
from sglang.srt.entrypoints.openai.serving_chat import OpenAIServingChat  # noqa: E402
from sglang.srt.function_call.base_format_detector import BaseFormatDetector  # noqa: E402
from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: E402
from sglang.srt.parser.reasoning_parser import ReasoningParser  # noqa: E402

OFFERED = [Tool.model_validate(tool) for tool in TOOLS]


def calls_of(format, tools=OFFERED, tokenizer=None):
    return FunctionCallParser(tools, "lexiform" if format is None else f"lexiform_{format}", tokenizer=tokenizer)


def thoughts_of(format, **given):
    return ReasoningParser(f"lexiform_{format}", **given)


def streamed(format, pieces, **given):
    """What a client puts together of a stream, as SGLang's service hands it on."""
    client, thoughts, calls = Client(), thoughts_of(format, **given), calls_of(format)

    def take(reasoning, text, is_last=False):
        client.reasoning += reasoning or ""
        found = [calls.parse_stream_chunk(text or "")]
        found += [calls.parse_stream_end()] if is_last else []
        for normal, items in found:
            client.content += normal
            for item in items:
                client.call(item.tool_index, item.name, item.parameters)

    for piece in pieces:
        take(*thoughts.parse_stream_chunk(piece))
    take(*thoughts.parse_stream_end(), is_last=True)
    return client


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.issue)
def test_no_call_is_lost_doubled_or_split(case):
    for pieces in cuts(case.text):
        streamed(case.format, pieces).check(case)
        streamed(case.format, pieces, stream_reasoning=False).check(case)
    reasoning, text = thoughts_of(case.format).parse_non_stream(case.text)
    parser = calls_of(case.format)
    content, calls = parser.parse_non_stream(text)
    assert ([(call.name, call.parameters) for call in calls], content, reasoning) == (case.calls, case.content, case.reasoning)
    assert parser.has_tool_call(text) or not case.calls
    names = [tool["function"]["name"] for tool in TOOLS]
    assert [call.tool_index for call in calls] == [names.index(name) if name in names else -1 for name, _ in case.calls]


def test_thoughts_that_a_prompt_has_opened_or_that_go_on():
    for text in ("Hm.</think>\n\nYes.", "<think>Hm.</think>\n\nYes."):
        for pieces in cuts(text):
            client = streamed("qwen_3", pieces, force_reasoning=True)
            assert (client.reasoning, client.content) == ("Hm.", "Yes.")
        assert thoughts_of("qwen_3", force_reasoning=True).parse_non_stream(text) == ("Hm.", "Yes.")
    from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest

    def going_on(content, **more):
        said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]
        return ChatCompletionRequest(messages=said, model="m", continue_final_message=True, **more)

    assert thoughts_of("qwen_3", request=going_on("<think>a")).parse_non_stream("b</think>c") == ("b", "c")
    assert thoughts_of("qwen_3", request=going_on("<think>a</think>")).parse_non_stream("<think>") == ("", "<think>")
    request = going_on("x", chat_template_kwargs={"force_nonempty_content": True})
    for pieces in cuts("<think>Hm."):
        client = streamed("qwen_3", pieces, request=request, stream_reasoning=False)
        assert (client.reasoning, client.content) == ("", "Hm.")
    assert thoughts_of("qwen_3", request=request).parse_non_stream("<think>Hm.") == ("", "Hm.")


def test_a_thought_is_handed_on_while_it_is_written_or_as_a_whole():
    thoughts = thoughts_of("qwen_3")
    assert [thoughts.parse_stream_chunk(piece)[0] for piece in ("<think>a", "b", "c</think>")] == ["a", "b", "c"]
    thoughts = thoughts_of("qwen_3", stream_reasoning=False)
    parts = [thoughts.parse_stream_chunk(piece) for piece in ("<think>a", "b", "c</think>", "d")]
    assert parts == [("", ""), ("", ""), ("", ""), ("abc", "d")]


def test_what_a_request_demands_is_constrained_in_the_format_of_the_model():
    for format in tags.formats():
        parser = calls_of(format)
        assert parser.owns_tool_format()
        for choice in ("required", ToolChoice(function={"name": "weather"})):
            kind, tag = parser.get_structure_constraint(choice)
            assert kind == "structural_tag"
            named = choice if choice == "required" else {"type": "function", "function": {"name": "weather"}}
            loose = [{"function": {"name": tool["function"]["name"], "parameters": {"type": "object"}}} for tool in TOOLS]
            expected = tags.for_model(format, loose, tool_choice=named)
            assert without_nulls(tag.model_dump(by_alias=True)) == without_nulls(expected), format
        assert parser.get_structure_constraint("auto") is None
    strict = [Tool.model_validate(tool | {"function": tool["function"] | {"strict": True}}) for tool in TOOLS]
    _, tag = calls_of("qwen_3", strict).get_structure_constraint("auto")
    assert '"integer"' in json.dumps(tag.model_dump())


def without_nulls(thing):
    """What was written of a tag: a model of it also has the fields that were left out."""
    if isinstance(thing, list):
        return [without_nulls(item) for item in thing]
    if not isinstance(thing, dict):
        return thing
    return {key: without_nulls(value) for key, value in thing.items() if value is not None and value not in (False, [], "json")}


def test_the_older_tags_have_the_texts_around_arguments():
    around = calls_of("qwen_3").detector.structure_info()("weather")
    assert (around.begin, around.end) == ('<tool_call>\n{"name": "weather", "arguments": ', "}\n</tool_call>")
    for format in ("qwen_3", "llama", "any"):
        around = calls_of(format).detector.structure_info()("weather")
        assert around.begin.startswith(around.trigger) and "weather" in around.begin and around.end
    for format in ("qwen_3_coder", "kimi"):
        with pytest.raises(NotImplementedError, match=f"the calls of {format} are not JSON between two texts"):
            calls_of(format).detector.structure_info()("weather")


def test_names_are_registered_and_the_format_is_recognised():
    from sglang.srt.server_args import _reasoning_parser_choices, _tool_call_parser_choices

    names = {"lexiform", "lexiform_any", *(f"lexiform_{name}" for name in tags.formats())}
    assert names <= set(_tool_call_parser_choices()) & set(_reasoning_parser_choices())
    tokenizer = SimpleNamespace(chat_template="{{ '<tool_call>\\n<function=' }}")
    assert calls_of(None, tokenizer=tokenizer).detector._format == "qwen_3_coder"
    detector = ReasoningParser("lexiform", tokenizer=transformers.AutoTokenizer.from_pretrained(DEMO)).detector
    assert (detector.think_start_token, detector.think_end_token) == ("<think>", "</think>")


def test_marks_of_thoughts_stay_in_the_text():
    for name, expected in [("lexiform_cohere", False), ("qwen3", True), (None, True)]:
        request = SimpleNamespace(skip_special_tokens=True, reasoning_effort=None)
        service = SimpleNamespace(reasoning_parser=name, chat_encoding_spec=None)
        OpenAIServingChat._patch_reasoning_skip_special_tokens(service, request)
        assert request.skip_special_tokens is expected


def test_parsers_of_another_sglang_are_refused(monkeypatch, caplog):
    monkeypatch.setattr(FunctionCallParser, "ToolCallParserEnum", {})
    monkeypatch.setattr(BaseFormatDetector, "finish", lambda self: None)
    with pytest.raises(EngineError, match=r"BaseFormatDetector.finish takes \(self\)"):
        lexiform.sglang.register_parsers()
    lexiform.sglang.plugin()
    assert "the parsers `lexiform` are not available" in caplog.text and not FunctionCallParser.ToolCallParserEnum
