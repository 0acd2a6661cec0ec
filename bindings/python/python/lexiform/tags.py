"""Structural tags of answers in the formats in which models write thoughts and calls of tools.

>>> from lexiform import tags
>>> tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
>>> tag = tags.for_model("qwen_3_coder", [tool], tool_choice="required")
>>> tag["format"]["triggers"]
['<tool_call>\\n<function=']

:meth:`lexiform.Compiler.structural_tag` compiles such a tag, and services and engines accept it as a ``response_format``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lexiform._lexiform import model_formats, model_tag, recognised_format

__all__ = ["for_model", "formats", "recognised"]

#: The parameters of a tool that declares none.
NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}


def formats() -> list[str]:
    """The names of all formats."""
    return model_formats()


def recognised(template: str) -> str | None:
    """Returns the format of the models with this chat template; ``None`` if the template shows none."""
    return recognised_format(template)


def for_model(
    name: str,
    tools: Sequence[Mapping[str, Any]],
    *,
    tool_choice: str | Mapping[str, Any] = "auto",
    reasoning: bool = False,
    parallel_tool_calls: bool = True,
) -> dict[str, Any]:
    """Returns the structural tag of an answer in the format ``name``.

    ``tools`` and ``tool_choice`` (``"auto"``, ``"required"``, or an object that names a function) have the form of the chat
    API. With ``reasoning`` the answer begins with a thought.
    """
    named = None
    if isinstance(tool_choice, Mapping):
        named = str(tool_choice["function"]["name"])
    elif tool_choice not in ("auto", "required"):
        raise ValueError(f'tool_choice={tool_choice!r} is not "auto", "required" or an object that names a function')
    functions = [tool["function"] for tool in tools]
    pairs = [(str(it["name"]), json.dumps(it.get("parameters") or NO_PARAMETERS)) for it in functions]
    tag: dict[str, Any] = json.loads(
        model_tag(name, pairs, tool_choice == "required", named, reasoning, parallel_tool_calls)
    )
    return tag
