"""`lexiform.answers`: the parts of an answer are the same however it is cut, in all formats, with and without a constraint."""

import doctest
import json
import random

import lexiform
import numpy as np
import pytest
from conftest import ROOT
from lexiform import answers, confidence, tags
from lexiform.answers import AnswerReader

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "hot": {"type": "boolean"}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
NOW = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}}
TOOLS = [WEATHER, NOW]
END = 256
TEXTS = ("reasoning", "content", "arguments")


def read(pieces, format, tools=TOOLS, **options):
    """The events of an answer, with neighbouring texts of one kind joined."""
    reader = AnswerReader(format, tools, **options)
    found = [event for piece in pieces for event in reader.push(piece)]
    return joined(found + reader.finish())


def joined(events):
    parts = []
    for event in events:
        part = [event.kind, event.call, event.text, event.pointer, event.is_object, event.span]
        last = parts[-1] if parts else None
        if last and event.kind in TEXTS and last[:2] == part[:2]:
            last[2] += part[2]
            last[5] = (last[5][0], part[5][1])
        else:
            parts.append(part)
    # The values of JSON come between the pieces of its text, so they are compared beside them.
    texts = [part for part in parts if part[0] in TEXTS]
    whole = {}
    for kind, call, text, *_ in texts:
        whole[kind, call] = whole.get((kind, call), "") + text
    return whole, [part for part in parts if part[0] not in TEXTS]


def calls(whole, others):
    return [(name, whole.get(("arguments", call), "")) for kind, call, name, *_ in others if kind == "call"]


def all_cuts(text, format, **options):
    """The events of a text, which are the same for every cut in two, and letter by letter."""
    expected = read([text], format, **options)
    for cut in range(len(text) + 1):
        assert read([text[:cut], text[cut:]], format, **options) == expected, (cut, text)
    assert read(list(text), format, **options) == expected, text
    return expected


@pytest.mark.parametrize("module", [answers, confidence, tags], ids=lambda module: module.__name__)
def test_the_examples_of_modules_are_right(module):
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


@pytest.fixture(scope="module")
def bytewise():
    vocabulary = lexiform.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=[END])
    return lexiform.Compiler(vocabulary, primed=False)


def written(grammar, seed):
    """A text of a grammar: likely letters are those of marks and of JSON."""
    draw = random.Random(seed)
    sampler = lexiform.Sampler(grammar, max_tokens=260, seed=seed)
    likely = "\"{}<>/ \n:,ab3" + "é".encode().decode("latin-1")
    while True:
        logits = np.array([draw.gauss(4.0 if chr(token) in likely else 0.0, 1.0) for token in range(END + 1)], np.float32)
        logits[END] = 8.0
        if sampler.next(logits).kind == "end":
            return bytes(token for token in sampler.tokens if token != END).decode()


@pytest.mark.parametrize("format", tags.formats())
def test_calls_of_a_constraint_are_read_in_every_cut(format, bytewise):
    kinds = {"city": str, "days": int, "hot": bool}
    for reasoning in (False, True):
        grammar = bytewise.structural_tag(tags.for_model(format, TOOLS, tool_choice="required", reasoning=reasoning))
        for seed in range(2):
            text = written(grammar, seed)
            found = calls(*all_cuts(text, format))
            assert found, text
            for name, arguments in found:
                values = json.loads(arguments)
                assert name in ("now", "weather"), text
                assert {key: type(value) for key, value in values.items()} == {key: kinds[key] for key in values}, text
                assert name == "now" or {"city", "days"} <= set(values), text


@pytest.mark.parametrize("format", [*tags.formats(), "any"])
def test_no_text_is_lost_and_no_cut_matters(format, bytewise):
    draw = random.Random(7)
    pieces = ["<think>", "</think>", "\n", "<tool_call>", "</tool_call>", '{"name": "weather"', ', "arguments": {"city": "é}"}', "}"]
    pieces += ["<function=now>", "</function>", "<|", "|>", "[", "]", " ", "ab", "<", "🙂", '"', "\\", "<parameter=city>"]
    for _ in range(20):
        all_cuts("".join(draw.choice(pieces) for _ in range(draw.randrange(9))), format)
    plain = "A text. With <b>marks</b>, {braces} and 🙂."
    assert all_cuts(plain, format) == ({("content", None): plain}, [])


@pytest.mark.parametrize(("name", "eos"), [("qwen3", 151645), ("llama3_1", 128009), ("gpt2", 50256)])
def test_a_session_is_followed_token_by_token(name, eos):
    file = ROOT / ".data" / "tokenizers" / name / "tokenizer.json"
    if not file.exists():
        pytest.skip(f"no {file}")
    vocabulary = lexiform.Vocabulary.from_json(file.read_text(encoding="utf-8"), eos=[eos])
    tag = tags.for_model("qwen_3", TOOLS, tool_choice="required")
    grammar = lexiform.Compiler(vocabulary, primed=False).structural_tag(tag)
    text = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich 🙂", "days": 3}}\n</tool_call>'
    tokens = greedy(vocabulary, text.encode(), eos)
    assert any(len(vocabulary.bytes(token)) > 1 for token in tokens)
    expected = read([text], "qwen_3")
    for step in (1, 2, len(tokens)):
        session, reader, found = lexiform.Session(grammar), AnswerReader("qwen_3", TOOLS), []
        for begin in range(0, len(tokens), step):
            assert session.accept(tokens[begin : begin + step])
            found += reader.follow(session)
        assert session.terminated
        assert joined(found) == expected
        assert reader.follow(session) == [] and reader.finish() == []


def greedy(vocabulary, text, eos):
    """Tokens that write a text: the longest at each place, so that some cut characters."""
    kinds = ("text", "mark")
    known = {vocabulary.bytes(token): token for token in reversed(range(len(vocabulary))) if vocabulary.kind(token) in kinds}
    tokens = []
    while text:
        length = next(length for length in range(min(len(text), 12), 0, -1) if text[:length] in known)
        tokens.append(known[text[:length]])
        text = text[length:]
    return [*tokens, eos]


def test_what_was_read_cannot_be_rolled_back(bytewise):
    grammar = bytewise.structural_tag(tags.for_model("qwen_3", TOOLS))
    session, reader = lexiform.Session(grammar), AnswerReader("qwen_3", TOOLS)
    assert session.accept(list(b"Good day"))
    assert [event.text for event in reader.follow(session)] == ["Good day"]
    session.rollback(3)
    with pytest.raises(ValueError, match="the reader has read 8 tokens, and the session was rolled back to 5"):
        reader.follow(session)
    assert session.accept(list(b"day"))
    assert reader.follow(session) == []


def test_thoughts_begin_as_the_prompt_says():
    text = "Hm.</think>\n\nYes."
    assert all_cuts(text, "qwen_3", thought="begun")[0] == {("reasoning", None): "Hm.", ("content", None): "Yes."}
    assert all_cuts(text, "qwen_3", thought="possible")[0] == {("content", None): text}
    text = "<think>Hm.</think>\n\nYes."
    assert all_cuts(text, "qwen_3", thought="possible")[0] == {("reasoning", None): "Hm.", ("content", None): "Yes."}
    assert all_cuts(text, "qwen_3", thought="none")[0] == {("content", None): text}


def test_values_have_pointers_and_places():
    text = '🙂 <tool_call>\n{"name": "weather", "arguments": {"city": "é", "days": [1, {"a/b": null}]}}\n</tool_call>'
    _, others = all_cuts(text, "qwen_3")
    values = [(pointer, written, text[slice(*span)]) for kind, _, written, pointer, _, span in others if kind == "value"]
    assert values == [("/city", '"é"', '"é"'), ("/days/0", "1", "1"), ("/days/1/a~1b", "null", "null")]
    _, others = all_cuts(' {"a": -1.5e3, "b": []} ', "any", tools=[], json_content=True)
    assert [part[3:5] for part in others if part[0] == "opened"] == [["", True], ["/b", False]]
    assert [part[2:4] for part in others if part[0] == "value"] == [["-1.5e3", "/a"]]


def test_calls_are_content_where_none_may_be_made():
    text = '<think>x</think>\n<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    whole, others = all_cuts(text, "qwen_3", calls=False)
    assert whole == {("reasoning", None): "x", ("content", None): text[len("<think>x</think>\n") :]} and others == []


def test_misuse_is_refused():
    with pytest.raises(lexiform.CompileError, match="did you mean `qwen_3`"):
        AnswerReader("qwen3")
    with pytest.raises(ValueError, match='thought=\'maybe\' is not "none", "possible" or "begun"|thought="maybe"'):
        AnswerReader("qwen_3", thought="maybe")
    with pytest.raises(KeyError, match="name"):
        AnswerReader("qwen_3", [{"function": {}}])
    with pytest.raises(lexiform.CompileError):
        AnswerReader("qwen_3_coder", [{"name": "f", "parameters": {"type": "objekt"}}])
    reader = AnswerReader()
    assert reader.finish() == [] and reader.finish() == []
    with pytest.raises(ValueError, match="the answer has ended"):
        reader.push("x")


def test_events_are_values():
    (first,), (second,) = (AnswerReader().push("a") for _ in range(2))
    assert first == second and repr(first) == '<Event content "a">'
    assert first != AnswerReader().push("b")[0]


def test_templates_are_recognised():
    assert tags.recognised("{{- '<tool_call>\\n{\"name\": \"' }}") == "qwen_3"
    assert tags.recognised("{{ messages }}") is None
