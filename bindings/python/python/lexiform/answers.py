"""Answers of models: thoughts, content, calls of tools and the values of their arguments, read while they are written.

>>> from lexiform.answers import AnswerReader
>>> tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
>>> reader = AnswerReader("qwen_3", [tool])
>>> events = reader.push('Let me see. <tool_call>{"name":"weather","arguments":{"city":"Rome"}}</tool_call>')
>>> [event.kind for event in events]
['content', 'call', 'arguments', 'opened', 'key', 'value', 'call_end']
>>> events[5].pointer, events[5].text
('/city', '"Rome"')

The text may be constrained or not: without a constraint, what does not fit the format of the model is content, and no text is
lost. The events do not depend on how the text was cut. :meth:`AnswerReader.follow` reads what a session has accepted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lexiform._lexiform import Event, RawReader, Session

__all__ = ["AnswerReader", "Event"]


class AnswerReader:
    """Reads the events of one answer.

    ``format`` is one of :func:`lexiform.tags.formats`, or ``"any"`` for a model whose format is not known. ``tools`` have the
    form of the chat API; a call of another tool is read, too. ``thought`` says whether the answer may begin with a thought
    (``"possible"``), has none, or goes on with one that the prompt has opened (``"begun"``). With ``json_content`` the content
    is JSON, and its values have events. Without ``calls`` no call is read: calls are content, as they are written.

    Raises :class:`lexiform.CompileError` for a format that does not exist, and for a tool whose schema does not compile where
    the format needs it to tell strings from other values.
    """

    def __init__(
        self,
        format: str = "any",
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        thought: Literal["none", "possible", "begun"] = "possible",
        json_content: bool = False,
        calls: bool = True,
    ) -> None:
        functions = [tool.get("function", tool) for tool in tools]
        pairs = [(str(it["name"]), json.dumps(it.get("parameters") or {})) for it in functions]
        self._raw = RawReader(format, pairs, thought, json_content, calls)

    def push(self, text: str) -> list[Event]:
        """Reads more text and returns its events. Text that may begin a mark waits for what comes next."""
        return self._raw.push(text)

    def finish(self) -> list[Event]:
        """Ends the answer and returns the events of what was held back; a second call returns none."""
        return self._raw.finish()

    def follow(self, session: Session) -> list[Event]:
        """Reads the tokens that a session has accepted since the last call, and its end.

        Raises :class:`ValueError` if the session was rolled back behind what was read: read what cannot be taken back.
        """
        return session.read_events(self._raw)
