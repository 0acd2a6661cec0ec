"""Parsers of thoughts and of calls for SGLang: ``--reasoning-parser lexiform --tool-call-parser lexiform``.

SGLang hands an answer first to the detector of thoughts, and what that returns as normal text to the detector of calls. Both are
a :class:`lexiform.parsers.Reading`, so that the parts of an answer do not depend on how it was cut, and nothing is lost or
doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sglang.srt.function_call.base_format_detector import BaseFormatDetector, StructuralTag
from sglang.srt.function_call.core_types import StreamingParseResult, StructureInfo, ToolCallItem
from sglang.srt.parser.reasoning_parser import BaseReasoningFormatDetector
from sglang.srt.parser.reasoning_parser import StreamingParseResult as ReasoningResult

from lexiform import tags
from lexiform.parsers import (
    ANY,
    ANY_CALLS,
    PREFIX,
    Delta,
    Reading,
    Thought,
    ThoughtMarks,
    format_of,
    functions,
    tag_of_calls,
)


class LexiformDetector(BaseFormatDetector):  # type: ignore[misc, unused-ignore]
    """Reads the calls of an answer. A call of a tool that the request does not have is passed on, too.

    The lists from which SGLang tells whether arguments are missing at the end stay empty: all were handed on.
    """

    #: The format; ``None`` for that of the tokenizer's chat template.
    answer_format: str | None = None

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._format = format_of(tokenizer, self.answer_format)
        self._reading: Reading | None = None

    def has_tool_call(self, text: str) -> bool:
        """Whether a text has a call, or may have one of a tool that must be known to tell."""
        reading = Reading(self._format)
        reading.push(text)
        reading.finish()
        return bool(reading.calls) or ("{" in text and '"name"' in text)

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Returns the calls of a whole text, with the places of their tools, and the rest of it."""
        declared = functions(tools)
        reading = Reading(self._format, declared)
        deltas = (reading.push(text), reading.finish())
        places = {tool["name"]: place for place, tool in enumerate(declared)}
        calls = [
            ToolCallItem(tool_index=places.get(name, -1), name=name, parameters=arguments)
            for name, arguments in reading.calls
        ]
        return StreamingParseResult(normal_text="".join(map(_normal, deltas)), calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Returns what a piece of text adds, with the numbers of its calls."""
        if self._reading is None:
            self._reading = Reading(self._format, functions(tools))
        return _told(self._reading.push(new_text))

    def finish(self, tools: Sequence[Any]) -> StreamingParseResult:
        """Returns what was held back."""
        return StreamingParseResult() if self._reading is None else _told(self._reading.finish())

    def structure_info(self) -> Callable[[str], StructureInfo]:
        """Returns a function that maps the name of a tool to the texts around its arguments, which are JSON.

        Raises :class:`NotImplementedError` where the format writes arguments in another way: :meth:`get_structural_tag` has them.
        """

        def around(name: str) -> StructureInfo:
            tag = tags.for_model(ANY_CALLS if self._format == ANY else self._format, [{"function": {"name": name}}])
            found = _texts_around(tag["format"], "", "")
            if found is None:
                raise NotImplementedError(f"the calls of {self._format} are not JSON between two texts")
            begin, end, trigger = found
            return StructureInfo(begin=begin, end=end, trigger=trigger)

        return around

    def get_structural_tag(
        self,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> Any:
        """Returns the structural tag of calls in this format; a thought before them is that of the model's format."""
        if not tools:
            return None
        tag = tag_of_calls(
            self._format,
            functions(tools),
            tool_choice=tool_choice,
            parallel=parallel_tool_calls,
            is_loose=True,
            reasoning=thinking_mode,
        )
        return StructuralTag.model_validate(tag)


class LexiformReasoningDetector(BaseReasoningFormatDetector):  # type: ignore[misc, unused-ignore]
    """Separates thoughts from the rest of an answer, which keeps its calls as they are written."""

    #: The format; ``None`` for that of the tokenizer's chat template.
    answer_format: str | None = None

    def __init__(
        self,
        stream_reasoning: bool = True,
        force_reasoning: bool = False,
        continue_final_message: bool = False,
        previous_content: str = "",
        force_nonempty_content: bool = False,
        tokenizer: Any = None,
    ) -> None:
        format = format_of(tokenizer, self.answer_format)
        marks = ThoughtMarks(format, tokenizer)
        super().__init__(
            marks.open,
            next(iter(marks.closes), ""),
            force_reasoning=force_reasoning,
            stream_reasoning=stream_reasoning,
            continue_final_message=continue_final_message,
            previous_content=previous_content or "",
            force_nonempty_content=force_nonempty_content,
        )
        is_closed = any(close in self.previous_content for close in marks.closes)
        thought: Thought = "none" if is_closed else "begun" if self._in_reasoning else "possible"
        self._format, self._thought = format, thought
        self._reading = self._begin()
        self._waiting = self._accumulated_reasoning = ""
        self._has_content = False

    def detect_and_parse(self, text: str) -> ReasoningResult:
        """Returns the thoughts of a whole answer, and the rest of it."""
        reading = self._begin()
        whole, rest = reading.push(text), reading.finish()
        reasoning, content = whole.reasoning + rest.reasoning, whole.content + rest.content
        if self._force_nonempty_content and not content:
            reasoning, content = "", reasoning
        return ReasoningResult(normal_text=content, reasoning_text=reasoning)

    def parse_streaming_increment(self, new_text: str) -> ReasoningResult:
        """Returns what a piece of text adds. Without `stream_reasoning` a thought waits until it has ended."""
        return self._told(self._reading.push(new_text), is_last=False)

    def finish(self) -> ReasoningResult:
        """Returns what was held back; with `force_nonempty_content`, an answer without content is its thought."""
        return self._told(self._reading.finish(), is_last=True)

    def _begin(self) -> Reading:
        return Reading(self._format, thought=self._thought, calls=False)

    def _told(self, delta: Delta, *, is_last: bool) -> ReasoningResult:
        self._has_content = self._has_content or bool(delta.content)
        self._accumulated_reasoning += delta.reasoning
        if is_last and self._force_nonempty_content and not self._has_content:
            text, self._accumulated_reasoning = self._accumulated_reasoning, ""
            return ReasoningResult(normal_text=text)
        self._waiting += delta.reasoning
        if not (self.stream_reasoning or self._has_content or is_last):
            return ReasoningResult()
        reasoning, self._waiting = self._waiting, ""
        return ReasoningResult(normal_text=delta.content, reasoning_text=reasoning)


def detector(format: str | None) -> type[LexiformDetector]:
    """Returns the detector of calls in a format, or the one that recognises the format."""
    return LexiformDetector if format is None else type("LexiformDetector", (LexiformDetector,), {"answer_format": format})


def reasoning_detector(format: str | None) -> type[LexiformReasoningDetector]:
    """Returns the detector of thoughts in a format, or the one that recognises the format."""
    base = LexiformReasoningDetector
    return base if format is None else type(base.__name__, (base,), {"answer_format": format})


def keep_marks(result: Any, self: Any, request: Any) -> Any:
    """Keeps the marks of thoughts in the text where a parser of ours reads it: some tokenizers count them as special."""
    if (self.reasoning_parser or "").startswith(PREFIX):
        request.skip_special_tokens = False
    return result


def _told(delta: Delta) -> StreamingParseResult:
    calls = [ToolCallItem(tool_index=call.index, name=call.name, parameters=call.arguments) for call in delta.calls]
    return StreamingParseResult(normal_text=_normal(delta), calls=calls)


def _normal(delta: Delta) -> str:
    """The normal text: thoughts that the detector of thoughts has left in the text stay in it."""
    return delta.reasoning + delta.content


def _texts_around(form: Any, begin: str, end: str) -> tuple[str, str, str] | None:
    """The texts around the arguments of the first call in a structural tag, and what triggers it."""
    if form["type"] == "json_schema":
        return (begin, end, begin) if form.get("style", "json") == "json" else None
    if form["type"] == "tag":
        ends = form["end"] if isinstance(form["end"], list) else [form["end"]]
        return _texts_around(form["content"], begin + form["begin"], ends[0] + end)
    if form["type"] in ("triggered_tags", "tags_with_separator"):
        found = _texts_around(form["tags"][0], begin, end)
        trigger = form.get("triggers", [None])[0]
        return found if found is None or trigger is None else (found[0], found[1], trigger)
    return None
