"""What the parsers of answers for inference engines have in common.

A :class:`Reading` is one answer as engines pass it on: thoughts, content, and calls in pieces. :class:`ThoughtMarks` says where a
prompt leaves the thought of its answer, and :func:`constraint` is the structural tag of the calls that a request demands.

>>> from lexiform.parsers import Reading
>>> reading = Reading("qwen_3")
>>> reading.push('One moment. <tool_call>{"name": "now", "arguments": {"zone": "U')
Delta(reasoning='', content='One moment. ', calls=[CallDelta(index=0, name='now', arguments='{"zone": "U')])
>>> reading.push('TC"}}</tool_call>').calls
[CallDelta(index=0, name=None, arguments='TC"}')]

Nothing here needs an engine: :mod:`lexiform.vllm.parsers` and :mod:`lexiform.sglang.parsers` are thin layers over this module.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal

from lexiform import tags
from lexiform._lexiform import Event, thought_marks
from lexiform.answers import AnswerReader
from lexiform.errors import CompileError

__all__ = [
    "ANY",
    "CallDelta",
    "Delta",
    "PREFIX",
    "Reading",
    "Thought",
    "ThoughtMarks",
    "constraint",
    "format_of",
    "functions",
    "generation_prompt",
    "parser_names",
    "tag_of_calls",
]

#: The format of a model whose chat template shows none.
ANY = "any"
#: The format of calls that a constraint demands of such a model.
ANY_CALLS = "qwen_3"
#: The name of the parser that recognises the format; those of formats begin with it.
PREFIX = "lexiform"

Thought = Literal["none", "possible", "begun"]

logger = logging.getLogger("lexiform")


@dataclass(frozen=True)
class CallDelta:
    """A piece of a call: ``name`` where the call begins, and more of the arguments."""

    index: int
    name: str | None
    arguments: str


@dataclass
class Delta:
    """What a piece of text adds to an answer."""

    reasoning: str = ""
    content: str = ""
    calls: list[CallDelta] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.reasoning or self.content or self.calls)


class Reading:
    """Reads one answer in the pieces in which an engine hands it over.

    ``format``, ``tools`` and ``thought`` are those of :class:`lexiform.answers.AnswerReader`. With ``"begun"`` the answer may
    repeat the mark that opens the thought, as some models do after a prompt that has it. A tool whose schema cannot be compiled
    is read as if it had none, with a warning.
    """

    def __init__(
        self,
        format: str = ANY,
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        thought: Thought = "none",
        calls: bool = True,
    ) -> None:
        self._given = (format, tools if calls else (), calls)
        self._open = _marks(format)[0] if thought == "begun" else ""
        self._thought = thought
        self._held = ""
        self._reader: AnswerReader | None = None
        self._calls: list[tuple[str, list[str]]] = []

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The calls so far: their names and arguments."""
        return [(name, "".join(arguments)) for name, arguments in self._calls]

    def push(self, text: str) -> Delta:
        """Reads more text."""
        reader = self._reader
        if reader is None:
            self._held += text
            begun = self._held.lstrip()
            if self._open.startswith(begun) and begun != self._open:
                return Delta()
            text, self._held = self._held, ""
            reader = self._begin(begun)
        return self._delta(reader.push(text))

    def finish(self) -> Delta:
        """Ends the answer; a second call returns nothing."""
        events = []
        if self._reader is None:
            self._reader = self._begin(self._held)
            events = self._reader.push(self._held)
        return self._delta(events + self._reader.finish())

    def _begin(self, begun: str) -> AnswerReader:
        """Makes the reader, once the text tells whether it repeats the mark that the prompt has opened."""
        thought: Thought = self._thought
        if self._open and begun.startswith(self._open):
            thought = "possible"
        format, tools, calls = self._given
        try:
            self._reader = AnswerReader(format, tools, thought=thought, calls=calls)
        except CompileError:
            self._reader = AnswerReader(format, _readable(format, tools), thought=thought, calls=calls)
        return self._reader

    def _delta(self, events: Iterable[Event]) -> Delta:
        delta = Delta()
        for event in events:
            if event.kind == "reasoning":
                delta.reasoning += event.text
            elif event.kind == "content":
                delta.content += event.text
            elif event.kind == "call":
                self._calls.append((event.text, []))
                delta.calls.append(CallDelta(len(self._calls) - 1, event.text, ""))
            elif event.kind == "arguments":
                self._arguments(event.text, delta)
        return delta

    def _arguments(self, text: str, delta: Delta) -> None:
        self._calls[-1][1].append(text)
        index = len(self._calls) - 1
        if delta.calls and delta.calls[-1].index == index:
            last = delta.calls[-1]
            delta.calls[-1] = replace(last, arguments=last.arguments + text)
        else:
            delta.calls.append(CallDelta(index, None, text))


def _readable(format: str, tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tools, without the schemas that cannot be compiled."""
    readable: list[Mapping[str, Any]] = []
    for tool in tools:
        try:
            AnswerReader(format, [tool])
            readable.append(tool)
        except CompileError as error:
            if format != ANY and format not in tags.formats():
                raise
            logger.warning("the arguments of %r are read without their schema: %s", tool["name"], error)
            readable.append({"name": tool["name"]})
    return readable


def _marks(format: str) -> tuple[str, list[str]]:
    """The mark that opens a thought, and those that close it."""
    return thought_marks(format)


class ThoughtMarks:
    """The marks around thoughts in one format, found in texts and in tokens of a tokenizer.

    Marks are looked for in what tokens write, so that it does not matter how many tokens a mark takes.
    """

    def __init__(self, format: str, tokenizer: Any) -> None:
        self.open, self.closes = _marks(format)
        self._tokenizer = tokenizer
        self._header: str | None = None

    def state(self, prompt: str) -> Thought:
        """Returns how an answer to this prompt begins.

        Only the last turn counts: earlier thoughts, and marks that somebody has written into a message, say nothing of it.
        """
        header = self._turn()
        turn = prompt.rpartition(header)[2] if header else prompt
        opened = turn.rfind(self.open)
        closed = max((turn.rfind(close) for close in self.closes), default=-1)
        if max(opened, closed) < 0:
            return "possible"
        return "begun" if opened > closed else "none"

    def state_of_tokens(self, prompt: Sequence[int]) -> Thought:
        """Returns how an answer to the tokens of a prompt begins."""
        return self.state(self._decode(prompt))

    def closed_by(self, tokens: Sequence[int], new: int) -> bool:
        """Whether one of the last ``new`` tokens completes a mark that closes a thought."""
        longest = max(map(len, self.closes), default=0)
        window = list(tokens[max(0, len(tokens) - new - longest) :])
        text, before = self._decode(window), self._decode(window[: len(window) - new])
        return any(text.count(close) > before.count(close) for close in self.closes)

    def behind(self, tokens: Sequence[int]) -> int | None:
        """Returns the index of the token after the first mark that closes a thought; ``None`` if there is none."""
        place = self._place(tokens)
        return None if place is None else place[1]

    def thinking_tokens(self, tokens: Sequence[int], thought: Thought) -> int:
        """Returns how many tokens of an answer belong to its thought, without those of the marks."""
        pieces, ends = self._pieces(tokens)
        text = "".join(pieces)
        begin = len(text) - len(text.lstrip())
        if text.startswith(self.open, begin):
            begin += len(self.open)
        elif thought == "begun":
            begin = 0
        else:
            return 0
        found = [at for at in (text.find(close, begin) for close in self.closes) if at >= 0]
        end = min(found, default=len(text))
        first, last = bisect_left(ends, begin + 1), bisect_left(ends, end)
        return max(0, last + 1 - first) if end > begin else 0

    def _place(self, tokens: Sequence[int]) -> tuple[int, int] | None:
        pieces, ends = self._pieces(tokens)
        text = "".join(pieces)
        found = [(text.find(close), len(close)) for close in self.closes if close in text]
        if not found:
            return None
        begin, length = min(found)
        return bisect_left(ends, begin + 1), bisect_left(ends, begin + length) + 1

    def _pieces(self, tokens: Sequence[int]) -> tuple[list[str], list[int]]:
        """The text of each token, and the index behind it in the whole text."""
        pieces = [self._decode([token]) for token in tokens]
        return pieces, list(accumulate(map(len, pieces)))

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=False)) if tokens else ""

    def _turn(self) -> str:
        """What begins the turn of the model, as far as it is the same with and without a thought."""
        if self._header is None:
            text = generation_prompt(self._tokenizer)
            marks = [text.find(mark) for mark in (self.open, *self.closes) if mark and mark in text]
            self._header = text[: min(marks, default=len(text))].strip()
        return self._header


def generation_prompt(tokenizer: Any, chat_template_kwargs: Mapping[str, Any] | None = None) -> str:
    """Returns the text that a chat template puts before an answer; an empty one if it cannot be rendered."""
    conversation = [{"role": "user", "content": "x"}]
    given = dict(chat_template_kwargs or {})
    try:
        before, whole = (
            str(tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=is_last, **given))
            for is_last in (False, True)
        )
    except Exception as error:  # Templates are programs of others: they raise what they like.
        logger.debug("the chat template cannot be rendered: %s", error)
        return ""
    return whole[len(before) :] if whole.startswith(before) else ""


def format_of(tokenizer: Any, chosen: str | None = None) -> str:
    """Returns the chosen format, or the one that the chat template of a tokenizer shows, or ``"any"``."""
    if chosen is not None:
        return chosen
    template = getattr(tokenizer, "chat_template", None)
    templates = [template] if isinstance(template, str) else []
    if isinstance(template, Mapping):
        templates = [text for _, text in sorted(template.items(), key=lambda item: item[0] != "tool_use")]
    found = (tags.recognised(text) for text in templates if isinstance(text, str))
    return next((name for name in found if name is not None), ANY)


def parser_names() -> dict[str, str | None]:
    """The names of parsers and their formats; the first recognises its format."""
    return {PREFIX: None, f"{PREFIX}_{ANY}": ANY} | {f"{PREFIX}_{name}": name for name in tags.formats()}


def functions(tools: Iterable[Any] | None) -> list[dict[str, Any]]:
    """Returns the functions among tools, which are objects of an engine or of the chat API."""
    found = []
    for tool in tools or ():
        if _of(tool, "type") in (None, "function"):
            function = _of(tool, "function") or tool
            described = {name: _of(function, name) for name in ("name", "parameters", "strict")}
            if described["name"]:
                found.append(described)
    return found


def _of(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def constraint(
    format: str,
    tools: Sequence[Mapping[str, Any]],
    *,
    tool_choice: Any = "auto",
    parallel: bool = True,
) -> dict[str, Any] | None:
    """Returns the structural tag of the calls that a request demands, or ``None`` where the model is free.

    A tool that must be called, one whose ``strict`` is set, and the limit to one call are demands. Where the model decides
    whether it calls, only the arguments of strict tools are held to their schemas.
    """
    is_auto = tool_choice in (None, "auto")
    if not tools or (is_auto and parallel and not any(tool.get("strict") for tool in tools)):
        return None
    return tag_of_calls(format, tools, tool_choice=tool_choice, parallel=parallel, is_loose=is_auto)


def tag_of_calls(
    format: str,
    tools: Sequence[Mapping[str, Any]],
    *,
    tool_choice: Any,
    parallel: bool,
    is_loose: bool,
    reasoning: bool = False,
) -> dict[str, Any]:
    """Returns the structural tag of calls. With ``is_loose``, the arguments of a tool that is not strict are any object."""
    chosen = tool_choice or "auto"
    return tags.for_model(
        ANY_CALLS if format == ANY else format,
        [{"function": _loosened(tool) if is_loose and not tool.get("strict") else tool} for tool in tools],
        tool_choice=chosen if isinstance(chosen, str) else _named(chosen),
        reasoning=reasoning,
        parallel_tool_calls=parallel,
    )


def _loosened(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "parameters": {"type": "object"}}


def _named(tool_choice: Any) -> dict[str, Any]:
    function = _of(tool_choice, "function") or tool_choice
    return {"type": "function", "function": {"name": _of(function, "name")}}
