"""`lexiform.confidence`: the confidence in each value is what a search through all tokens finds."""

import json
import math
import random
import re
from types import SimpleNamespace
from typing import Annotated

import lexiform
import pytest
from lexiform.confidence import Token, message_values, of_openai, of_sglang, of_vllm, values, with_confidence

pydantic = pytest.importorskip("pydantic")


def random_json(draw, depth=0):
    kind = draw.randrange(7 if depth < 3 else 5)
    if kind == 0:
        return draw.choice([True, False, None])
    if kind == 1:
        return draw.choice([0, -7, 42, 1.5, -2e30, 10**20])
    if kind in (2, 3, 4):
        return "".join(draw.choice('ab é🙂"\\/~,:{}[]') for _ in range(draw.randrange(5)))
    if kind == 5:
        return [random_json(draw, depth + 1) for _ in range(draw.randrange(4))]
    return {draw.choice(["a", "b/c", "d~e", "é", ""]): random_json(draw, depth + 1) for _ in range(draw.randrange(4))}


def cut(draw, text):
    """Tokens that write a text, cut anywhere between bytes."""
    data, tokens = text.encode(), []
    while data:
        length = draw.randrange(1, 6)
        tokens.append(Token(data[:length], -draw.random()))
        data = data[length:]
    return tokens


LEXEMES = re.compile(r'"(?:[^"\\]|\\.)*"|[-\d][\d.eE+-]*|true|false|null|[{}\[\],:]')


def searched(text, tokens):
    """The pointer, the text and the log-probability of each value, by looking at each token for each value."""
    lexemes = [(match.group(), match.start(), match.end()) for match in LEXEMES.finditer(text)]
    found, path = [], []
    for number, (lexeme, begin, end) in enumerate(lexemes):
        if lexeme in "{[":
            path.append("" if lexeme == "{" else 0)
        elif lexeme in "}]":
            path.pop()
        elif lexeme == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else path[-1]
        elif number + 1 < len(lexemes) and lexemes[number + 1][0] == ":":
            path[-1] = json.loads(lexeme).replace("~", "~0").replace("/", "~1")
        elif lexeme != ":":
            first, last = len(text[:begin].encode()), len(text[:end].encode())
            last = last if lexeme.startswith('"') else min(last + 1, len(text.encode()))
            total, at = 0.0, 0
            for token in tokens:
                if at < last and at + len(token.bytes) > first:
                    total += token.logprob
                at += len(token.bytes)
            found.append(("".join(f"/{key}" for key in path), lexeme, total))
    return found


@pytest.mark.parametrize("seed", range(150))
def test_values_are_those_of_a_search(seed):
    draw = random.Random(seed)
    indent = draw.choice([None, 1])
    text = json.dumps(random_json(draw), ensure_ascii=draw.random() < 0.5, indent=indent)
    tokens = cut(draw, text)
    found = values(text, tokens)
    expected = searched(text, tokens)
    assert [(value.pointer, value.text) for value in found] == [one[:2] for one in expected], text
    for value, (_, _, total) in zip(found, expected, strict=True):
        assert math.isclose(value.logprob, total, rel_tol=1e-12, abs_tol=1e-12), (text, value)
        assert math.isclose(value.probability, math.exp(total), rel_tol=1e-12)
    around = [Token("<think>é".encode(), -9.0), *cut(draw, text + " no</think>"), *tokens, Token(b"<end>", -9.0)]
    assert values(text, around) == found


def test_a_number_needs_the_token_after_it_and_tokens_count_whole():
    tokens = [Token(b'{"n":"A', -1.0), Token(b'da","a":3', -2.0), Token(b"4", -4.0), Token(b"}", -8.0)]
    name, age = values('{"n":"Ada","a":34}', tokens)
    assert (name.pointer, name.logprob, len(name.tokens)) == ("/n", -3.0, 2)
    assert (age.pointer, age.logprob, len(age.tokens)) == ("/a", -14.0, 3)


def test_what_is_not_json_or_not_written_is_told():
    assert values("hello 1", [Token(b"hello 1", -1.0)]) == []
    assert values("NaN", [Token(b"NaN", -1.0)]) == []
    assert values("[" * 100_000, [Token(b"[" * 100_000, -1.0)]) == []
    assert values("", []) == []
    with pytest.raises(ValueError, match=r"the tokens do not write the text '\[1\]'"):
        values("[1]", [Token(b"[2]", -1.0)])


def test_alternatives_are_those_of_each_token():
    top = ((b"yes", math.log(0.5)), (b"no", math.log(0.25)), (b"\xff", math.log(0.125)))
    (value,) = values('"yes"', [Token(b'"', 0.0), Token(b"yes", math.log(0.5), top), Token(b'"', 0.0)])
    (quote, word, end) = value.alternatives
    assert quote == end == [] and [text for text, _ in word] == ["no", "�"]
    assert [probability for _, probability in word] == pytest.approx([0.25, 0.125])


def test_a_message_has_the_values_of_its_content_and_calls():
    written = '<think>[1]</think>[1]<tool_call>{"name": "f", "arguments": {"a": [1]}}</tool_call><tool_call>'
    tokens = [Token(character.encode(), -1.0) for character in written]
    call = {"type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}}
    message = {"reasoning": "[1]", "content": "[1]", "tool_calls": [call]}
    found = message_values(message, tokens)
    assert [(value.pointer, value.call) for value in found] == [("/0", None), ("/a/0", 0)]
    assert found == message_values(SimpleNamespace(reasoning_content="[1]", content="[1]", tool_calls=[call]), tokens)
    assert found[1:] == message_values({"content": None, "tool_calls": [call]}, tokens)
    made = {"function": {"name": "f", "arguments": '{"a":1}'}}
    assert message_values({"tool_calls": [made]}, tokens) == []
    assert message_values({"content": "text that nobody wrote"}, tokens) == []
    with pytest.raises(ValueError, match=r"the tokens do not write the content '\[2\]'"):
        message_values({"content": "[2]"}, tokens)


def test_tokens_are_read_as_services_write_them():
    entry = {"token": "é", "logprob": -1.0, "bytes": [195, 169], "top_logprobs": [{"token": "e", "logprob": -2.0, "bytes": None}]}
    expected = [Token("é".encode(), -1.0, ((b"e", -2.0),))]
    assert of_openai({"content": [entry]}) == of_openai([entry]) == expected
    top = [SimpleNamespace(**entry["top_logprobs"][0])]
    assert of_openai(SimpleNamespace(content=[SimpleNamespace(**entry | {"top_logprobs": top})])) == expected
    assert of_openai({"content": None}) == of_openai([]) == []
    vocabulary = lexiform.Vocabulary.from_tokens([b"<end>", b"\xc3", b"\xa9"], eos=[0])
    numbered = {"token": "token_id:1", "logprob": -1.0, "bytes": [239, 191, 189]}
    assert of_openai([numbered], vocabulary) == [Token(b"\xc3", -1.0)]

    def place(**logprobs):
        return {int(token[1:]): SimpleNamespace(logprob=logprob) for token, logprob in logprobs.items()}

    output = SimpleNamespace(token_ids=[1, 2], logprobs=[place(_1=-1.0, _2=-3.0), place(_2=-2.0)])
    expected = [Token(b"\xc3", -1.0, ((b"\xc3", -1.0), (b"\xa9", -3.0))), Token(b"\xa9", -2.0, ((b"\xa9", -2.0),))]
    assert of_vllm(output, vocabulary) == expected
    with pytest.raises(ValueError, match="ask for them"):
        of_vllm(SimpleNamespace(token_ids=[1], logprobs=None), vocabulary)
    meta_info = {"output_token_logprobs": [(-1.0, 1, None), (-2.0, 2, "é")]}
    assert of_sglang(meta_info, vocabulary) == [Token(b"\xc3", -1.0), Token(b"\xa9", -2.0)]
    meta_info["output_top_logprobs"] = [[(-1.0, 1, None), (-3.0, 2, None)], [(-2.0, 2, None)]]
    assert of_sglang(meta_info, vocabulary) == expected


class Address(pydantic.BaseModel):
    city: str
    lines: list[str] = []


class Other(pydantic.RootModel[list[Address]]):
    pass


class Person(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    full_name: Annotated[str, pydantic.Field(alias="fullName")]
    age: int
    home: Address
    others: Other = Other([])
    scores: dict[str, float] = {}
    zip_code: Annotated[str, pydantic.Field(validation_alias=pydantic.AliasPath("codes", 0))] = ""
    mail: Annotated[str, pydantic.Field(validation_alias=pydantic.AliasChoices("email", "e-mail"))] = ""


def test_a_model_of_pydantic_has_confidence_by_path():
    answer = json.dumps(
        {
            "fullName": "Ada",
            "age": 34,
            "home": {"city": "Rome", "lines": ["a", "b"]},
            "others": [{"city": "Bern"}],
            "scores": {"x/y": 1.5},
            "codes": ["00100", "more"],
            "e-mail": "ada@example.com",
            "further": [1],
        }
    )
    draw = random.Random(1)
    tokens = cut(draw, answer)
    person, confidence = with_confidence(Person, answer, tokens)
    assert person.age == 34
    assert list(confidence) == [
        ("full_name",),
        ("age",),
        ("home", "city"),
        ("home", "lines", 0),
        ("home", "lines", 1),
        ("others", 0, "city"),
        ("scores", "x/y"),
        ("zip_code",),
        ("codes", 1),
        ("mail",),
        ("further", 0),
    ]
    assert list(confidence.values()) == values(answer, tokens)
    listed = [{"token": token.bytes.decode(), "bytes": list(token.bytes), "logprob": token.logprob} for token in cut(draw, '{"city": "Bern"}')]
    address, confidence = with_confidence(Address, '{"city": "Bern"}', {"content": listed})
    assert address.city == "Bern" and list(confidence) == [("city",)]
    with pytest.raises(pydantic.ValidationError):
        with_confidence(Address, '{"city": 1}', cut(draw, '{"city": 1}'))
