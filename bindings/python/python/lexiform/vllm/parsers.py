"""Parsers of thoughts and of calls for vLLM: ``--reasoning-parser lexiform --enable-auto-tool-choice --tool-call-parser lexiform``.

vLLM hands an answer first to the parser of thoughts, and what comes after the thought to that of calls. Both are a
:class:`lexiform.parsers.Reading`, so that the parts of an answer do not depend on how it was cut, and nothing is lost or doubled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.parser.utils import count_history_tool_calls
from vllm.reasoning.abs_reasoning_parsers import ReasoningParser
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser

from lexiform.parsers import (
    CallDelta,
    Delta,
    Reading,
    Thought,
    ThoughtMarks,
    constraint,
    format_of,
    functions,
    generation_prompt,
    parser_names,
)

#: The format whose calls have numbers that count all calls of a conversation.
_NUMBERED = "kimi"


class LexiformReasoningParser(ReasoningParser):  # type: ignore[misc, unused-ignore]
    """Separates the thought of an answer from what follows it, which keeps its calls as they are written."""

    #: The format; ``None`` for that of the tokenizer's chat template.
    answer_format: str | None = None
    #: vLLM calls `finish_streaming`, which returns what was held back.
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._format = format_of(tokenizer, self.answer_format)
        self._marks = ThoughtMarks(self._format, tokenizer)
        self._template_kwargs = kwargs.get("chat_template_kwargs")
        self._of_prompt: Thought | None = None
        self._reading: Reading | None = None
        self._has_content = False

    @property
    def reasoning_start_str(self) -> str | None:
        """The mark that opens a thought."""
        return self._marks.open or None

    @property
    def reasoning_end_str(self) -> str | None:
        """The mark that closes a thought."""
        return next(iter(self._marks.closes), None)

    def adjust_request(self, request: Any) -> Any:
        """Keeps the marks in the text: some tokenizers count them as special."""
        request.skip_special_tokens = False
        return request

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Takes the prompt, which may have opened the thought. vLLM calls it since 0.33.0."""
        self._of_prompt = self._marks.state_of_tokens(prompt_token_ids)

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Takes the prompt of a stream."""
        self.set_prompt_token_ids(prompt_token_ids)

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether a prompt has closed the thought of its answer."""
        return self._marks.state_of_tokens(input_ids) == "none"

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether one of the new tokens closes the thought."""
        return self._marks.closed_by(input_ids, len(list(delta_ids)))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Whether content has begun."""
        return self._has_content

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Returns the tokens after the thought."""
        behind = self._marks.behind(input_ids)
        return [] if behind is None else list(input_ids[behind:])

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Returns how many tokens of an answer belong to its thought."""
        return self._marks.thinking_tokens(token_ids, self._thought())

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Returns the thoughts of a whole answer, and the rest of it."""
        reading = self._read()
        whole, rest = reading.push(model_output), reading.finish()
        return whole.reasoning + rest.reasoning or None, whole.content + rest.content or None

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """Returns what a piece of the answer adds to its thought, or begins after it."""
        if self._reading is None:
            self._reading = self._read()
        return self._told(self._reading.push(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """Returns what was held back."""
        return None if self._reading is None else self._told(self._reading.finish())

    def _told(self, delta: Delta) -> DeltaMessage | None:
        self._has_content = self._has_content or bool(delta.content)
        return _message(delta)

    def _read(self) -> Reading:
        return Reading(self._format, thought=self._thought(), calls=False)

    def _thought(self) -> Thought:
        """How the answer begins: after its prompt, or else after the prompt of another conversation."""
        if self._of_prompt is None:
            self._of_prompt = self._marks.state(generation_prompt(self.model_tokenizer, self._template_kwargs))
        return self._of_prompt


class LexiformToolParser(ToolParser):  # type: ignore[misc, unused-ignore]
    """Reads the calls of an answer. The lists that vLLM's own parsers keep of their calls stay empty: nothing else reads them.

    A tool that must be called, and the arguments of one that is ``strict``, are held to the format of the model by a structural
    tag, so that the calls are read like those of a model that is free.
    """

    #: The format; ``None`` for that of the tokenizer's chat template.
    answer_format: str | None = None
    #: vLLM calls `finish_streaming`, which returns what was held back.
    engine_based_streaming = True
    #: Calls are in the format of the model whether they are required or not.
    supports_required_and_named = False
    #: vLLM sets it where no parser of thoughts is chosen; thoughts are content then.
    skip_reasoning_parsing = False

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        self._format = format_of(tokenizer, self.answer_format)
        self._reading: Reading | None = None
        self._history = 0

    def adjust_request(self, request: Any) -> Any:
        """Adds the constraint of the calls that the request demands, and keeps the marks of calls in the text."""
        request = super().adjust_request(request)
        if not request.tools or request.tool_choice == "none":
            return request
        request.skip_special_tokens = False
        is_auto = request.tool_choice in (None, "auto")
        if is_auto and request.extract_structured_outputs() is not None:
            return request
        tag = constraint(
            self._format,
            functions(request.tools),
            tool_choice=request.tool_choice,
            parallel=request.parallel_tool_calls is not False,
        )
        if tag is not None:
            request.structured_outputs = StructuredOutputsParams(structural_tag=json.dumps(tag))
            # The other fields that would constrain the answer.
            for name in {"response_format", "text"} & set(type(request).model_fields):
                setattr(request, name, None)
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Returns the calls of a whole answer, and the rest of it."""
        reading = self._read(request)
        content = "".join(self._content(delta) for delta in (reading.push(model_output), reading.finish()))
        return ExtractedToolCallInformation(
            tools_called=bool(reading.calls),
            tool_calls=[
                ToolCall(id=self._id(number, name), function=FunctionCall(name=name, arguments=arguments))
                for number, (name, arguments) in enumerate(reading.calls)
            ],
            content=content or None,
        )

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """Returns what a piece of the answer adds to its content and calls."""
        if self._reading is None:
            self._reading = self._read(request)
        return self._told(self._reading.push(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """Returns what was held back."""
        return None if self._reading is None else self._told(self._reading.finish())

    def get_remaining_unstreamed_args(self) -> str:
        """Returns nothing: arguments are handed on as soon as they are read."""
        return ""

    def _read(self, request: Any) -> Reading:
        self._history = 0
        if self._format == _NUMBERED and request is not None:
            self._history = count_history_tool_calls(request)
        tools = functions(getattr(request, "tools", None) or self.tools)
        return Reading(self._format, tools, calls=getattr(request, "tool_choice", None) != "none")

    def _content(self, delta: Delta) -> str:
        """The content of a whole answer, whose thoughts were taken out before, or are content."""
        return delta.reasoning + delta.content

    def _told(self, delta: Delta) -> DeltaMessage | None:
        if self.skip_reasoning_parsing:
            delta.content, delta.reasoning = self._content(delta), ""
        return _message(delta, self._id)

    def _id(self, number: int, name: str) -> str:
        """The id of a call."""
        if self._format == _NUMBERED:
            return str(make_tool_call_id("kimi_k2", name, self._history + number))
        return str(make_tool_call_id())


def _message(delta: Delta, id_of: Any = None) -> DeltaMessage | None:
    if not delta:
        return None
    calls = [_call(call, id_of) for call in delta.calls]
    return DeltaMessage(reasoning=delta.reasoning or None, content=delta.content or None, tool_calls=calls)


def _call(call: CallDelta, id_of: Any) -> DeltaToolCall:
    if call.name is None:
        return DeltaToolCall(index=call.index, function=DeltaFunctionCall(arguments=call.arguments))
    function = DeltaFunctionCall(name=call.name, arguments=call.arguments)
    return DeltaToolCall(id=id_of(call.index, call.name), type="function", index=call.index, function=function)


def class_name(name: str, kind: str) -> str:
    """The name of the class of a parser: vLLM imports parsers by module and name."""
    return "".join(part.capitalize() for part in name.split("_")) + kind


def _of_formats() -> dict[str, type]:
    bases = {"ToolParser": LexiformToolParser, "ReasoningParser": LexiformReasoningParser}
    return {
        class_name(name, kind): type(class_name(name, kind), (base,), {"answer_format": chosen, "__module__": __name__})
        for kind, base in bases.items()
        for name, chosen in parser_names().items()
        if chosen is not None
    }


globals().update(_of_formats())
