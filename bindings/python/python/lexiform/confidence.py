"""The model's confidence in each value that it wrote: each string, number, ``true``, ``false`` and ``null`` of a JSON text.

The probability of a value is the product over the tokens that hold a byte of it, and for everything but a string also over the
one with the byte after it, which decides that the value ends. Tokens often hold more than the value (``","`` ends one and begins
the next); they count whole. It is the definition of the service.

>>> from lexiform.confidence import Token, values
>>> tokens = [Token(b'{"age":', -0.1), Token(b'3', -0.5), Token(b'4', -0.25), Token(b'}', -0.25)]
>>> [value] = values('{"age":34}', tokens)
>>> value.pointer, value.text, value.logprob, len(value.tokens)
('/age', '34', -1.0, 3)

The tokens of an answer come from :func:`of_openai`, :func:`of_vllm` or :func:`of_sglang`. :func:`values` reads one JSON text,
:func:`message_values` the content and the calls of a message, and :func:`with_confidence` a model of Pydantic.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from lexiform._lexiform import Vocabulary
from lexiform.answers import AnswerReader

if TYPE_CHECKING:
    from pydantic import BaseModel

    _Model = TypeVar("_Model", bound=BaseModel)

__all__ = ["Token", "Value", "message_values", "of_openai", "of_sglang", "of_vllm", "values", "with_confidence"]


# The type, where a field has its name.
_Bytes: TypeAlias = bytes


class Token(NamedTuple):
    """A token of an answer: its bytes, its log-probability, and the likeliest tokens in its place, if they are known."""

    bytes: _Bytes
    logprob: float
    top: tuple[tuple[_Bytes, float], ...] = ()


@dataclass(frozen=True)
class Value:
    """A value with the tokens that hold it. ``call`` is the number of the call whose arguments have it."""

    pointer: str
    text: str
    tokens: tuple[Token, ...]
    call: int | None = None

    @property
    def logprob(self) -> float:
        """The sum of the log-probabilities of the tokens."""
        return math.fsum(token.logprob for token in self.tokens)

    @property
    def probability(self) -> float:
        """The product of the probabilities of the tokens."""
        return math.exp(self.logprob)

    @property
    def alternatives(self) -> list[list[tuple[str, float]]]:
        """For each token, the other tokens that were likely in its place, as text, and their probabilities."""
        return [
            [(_shown(text), math.exp(logprob)) for text, logprob in token.top if text != token.bytes]
            for token in self.tokens
        ]


def values(text: str, tokens: Sequence[Token]) -> list[Value]:
    """Returns the values of a JSON text and the confidence in each; none if the text is not JSON.

    The text is what the tokens write, or its last occurrence there: thoughts may come before it, and a mark that ends the answer
    after it. Raises :class:`ValueError` if the tokens do not write it.
    """
    written = _Written(tokens)
    begin = written.bytes.rfind(text.encode())
    if begin < 0:
        raise ValueError(f"the tokens do not write the text {_short(text)}")
    return written.values(text, begin, None)


def message_values(message: Any, tokens: Sequence[Token]) -> list[Value]:
    """Returns the values of the content of a message and of the arguments of its calls.

    ``message`` is one of a chat completion, as an object or a mapping: ``reasoning`` or ``reasoning_content``, ``content``,
    ``tool_calls``. Its parts are looked for in this order in what the tokens write. Arguments that the model did not write as
    JSON have no values. Raises :class:`ValueError` for content that is JSON and that the tokens do not write.
    """
    written = _Written(tokens)
    thought = _of(message, "reasoning") or _of(message, "reasoning_content") or ""
    content = _of(message, "content") or ""
    begin = written.bytes.find(thought.encode())
    is_placed = begin >= 0
    behind_thought = behind = begin + len(thought.encode()) if is_placed else 0
    found = []
    if content:
        # A thought in several parts is joined by the service, and content comes after it.
        find = written.bytes.find if is_placed else written.bytes.rfind
        begin = find(content.encode(), behind)
        if begin >= 0:
            found += written.values(content, begin, None)
            behind = begin + len(content.encode())
        elif _is_json(content):
            raise ValueError(f"the tokens do not write the content {_short(content)}")
    for call, asked in enumerate(_of(message, "tool_calls") or ()):
        arguments = _of(_of(asked, "function"), "arguments") or ""
        places = [written.bytes.find(arguments.encode(), start) for start in (behind, behind_thought) if arguments]
        begin = next((place for place in places if place >= 0), -1)
        if begin >= 0:
            found += written.values(arguments, begin, call)
            behind = begin + len(arguments.encode())
    return found


def with_confidence(
    model: type[_Model], answer: str, logprobs: Any, vocabulary: Vocabulary | None = None
) -> tuple[_Model, dict[tuple[str | int, ...], Value]]:
    """Validates an answer, and returns the model with the confidence in each value by its path.

    A path has the names of fields, the keys of mappings and the indices of lists, as one would follow it from the model.
    ``logprobs`` is a sequence of :class:`Token`, or what :func:`of_openai` takes. A value that the model passes over has the path of
    its keys.
    """
    is_read = isinstance(logprobs, Sequence) and all(isinstance(token, Token) for token in logprobs)
    tokens = logprobs if is_read else of_openai(logprobs, vocabulary)
    validated, document = model.model_validate_json(answer), json.loads(answer)
    return validated, {_path(validated, document, value.pointer): value for value in values(answer, tokens)}


def of_openai(logprobs: Any, vocabulary: Vocabulary | None = None) -> list[Token]:
    """Reads the ``logprobs`` of a choice of a chat completion, as an object or a mapping, or its list ``content``.

    A token without ``bytes`` is its text. With ``vocabulary``, a token that is written as ``token_id:N`` is that of the
    vocabulary, which is exact also where characters are cut: vLLM writes these if a request has ``return_tokens_as_token_ids``.
    """
    content = logprobs if isinstance(logprobs, Sequence) else _of(logprobs, "content")
    return [
        Token(
            _bytes(entry, vocabulary),
            float(_of(entry, "logprob")),
            tuple((_bytes(other, vocabulary), float(_of(other, "logprob"))) for other in _of(entry, "top_logprobs") or ()),
        )
        for entry in content or ()
    ]


def of_vllm(output: Any, vocabulary: Vocabulary) -> list[Token]:
    """Reads an output of ``LLM.generate`` of vLLM: its ``token_ids`` and ``logprobs``."""
    if output.logprobs is None:
        raise ValueError("the output has no log-probabilities: ask for them with SamplingParams(logprobs=…)")
    pairs = zip(output.token_ids, output.logprobs, strict=True)
    return [
        Token(
            vocabulary.bytes(token),
            float(place[token].logprob),
            tuple((vocabulary.bytes(other), float(found.logprob)) for other, found in place.items()),
        )
        for token, place in pairs
    ]


def of_sglang(meta_info: Mapping[str, Any], vocabulary: Vocabulary) -> list[Token]:
    """Reads the ``meta_info`` of an answer of SGLang: ``output_token_logprobs``, and ``output_top_logprobs`` if it is there."""
    written = meta_info["output_token_logprobs"]
    top = meta_info.get("output_top_logprobs") or [None] * len(written)
    return [
        Token(
            vocabulary.bytes(entry[1]),
            float(entry[0]),
            tuple((vocabulary.bytes(other[1]), float(other[0])) for other in others or ()),
        )
        for entry, others in zip(written, top, strict=True)
    ]


class _Written:
    """What tokens write."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._ends = list(accumulate(len(token.bytes) for token in tokens))
        self.bytes = b"".join(token.bytes for token in tokens)

    def values(self, text: str, begin: int, call: int | None) -> list[Value]:
        """The values of a text whose first byte has this place."""
        if not _is_json(text):
            return []
        reader = AnswerReader(thought="none", json_content=True, calls=False)
        events = [event for event in [*reader.push(text), *reader.finish()] if event.kind == "value"]
        # The place of each character in bytes.
        places = list(accumulate((len(character.encode()) for character in text), initial=begin))
        found = []
        for event in events:
            first, last = event.span
            decided = last if event.text.endswith(('"', "]", "}")) else min(last + 1, len(text))
            held = self._holding(places[first], places[last], places[decided])
            found.append(Value(event.pointer or "", event.text, held, call))
        return found

    def _holding(self, begin: int, end: int, decided: int) -> tuple[Token, ...]:
        """The tokens with the bytes of a value, and with the first of the character that decides that it ends."""
        behind = min(end + 1, decided)
        first, last = bisect_right(self._ends, begin), bisect_left(self._ends, behind)
        return tuple(self._tokens[first : last + 1])


def _is_json(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _bytes(entry: Any, vocabulary: Vocabulary | None) -> bytes:
    token = str(_of(entry, "token"))
    number = token.removeprefix("token_id:")
    if vocabulary is not None and number != token and number.isdecimal():
        return vocabulary.bytes(int(number))
    given = _of(entry, "bytes")
    return token.encode() if given is None else bytes(given)


def _of(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _shown(text: bytes) -> str:
    return text.decode(errors="replace")


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _path(model: Any, document: Any, pointer: str) -> tuple[str | int, ...]:
    """Follows a JSON pointer from a model, beside the document that it was read from."""
    keys = [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]
    path: list[str | int] = []
    at = model
    while keys:
        at, count = _root(at), 1
        step: str | int
        if hasattr(type(at), "model_fields"):
            step, count = _field(type(at), keys)
            at = getattr(at, str(step), None)
        else:
            step = int(keys[0]) if isinstance(document, list) else keys[0]
            at = _item(at, step)
        path.append(step)
        for key in keys[:count]:
            document = document[int(key) if isinstance(document, list) else key]
        keys = keys[count:]
    return tuple(path)


def _root(at: Any) -> Any:
    """What a model that is one value holds."""
    while getattr(type(at), "__pydantic_root_model__", False):
        at = at.root
    return at


def _field(model: Any, keys: Sequence[str]) -> tuple[str, int]:
    """The field that takes the value of the first keys, and the number of these; the key itself if there is none."""
    best = (keys[0], 1)
    found = 0
    config = model.model_config
    is_read_by_name = config.get("populate_by_name") or config.get("validate_by_name") or False
    for name, field in model.model_fields.items():
        for wanted in _aliases(name, field, is_read_by_name):
            if len(wanted) > found and [str(part) for part in wanted] == list(keys[: len(wanted)]):
                best, found = (name, len(wanted)), len(wanted)
    return best


def _aliases(name: str, field: Any, is_read_by_name: bool) -> Iterable[list[str | int]]:
    """The keys under which a field is read: its name, an alias, or paths of keys."""
    alias = field.validation_alias
    for choice in getattr(alias, "choices", [alias]):
        if choice is not None:
            yield [choice] if isinstance(choice, str) else list(choice.path)
    if alias is None or is_read_by_name:
        yield [name]


def _item(at: Any, key: str | int) -> Any:
    try:
        return at[key]
    except (LookupError, TypeError):
        return None
