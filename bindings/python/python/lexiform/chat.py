"""Prompts of chats, in which nothing that people write becomes a control token.

:func:`encode` takes what ``apply_chat_template(tokenize=True)`` of `transformers` takes and returns the same tokens for harmless
messages. A message that spells a token such as ``<|im_end|>``, alone or together with what stands beside it, stays text::

    from lexiform import chat

    ids = chat.encode(tokenizer, messages, tools=tools)

:func:`render` returns the text instead, and who wrote which part of it. A :class:`Chat` keeps the tokenizer and the template, for
programs that encode many conversations.
"""

import json
import time
from calendar import timegm
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from lexiform._lexiform import ChatTokenizer

__all__ = ["Chat", "Prompt", "Span", "encode", "render"]

Message = Mapping[str, Any]
Tool = Mapping[str, Any]

_SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


class Span(NamedTuple):
    """A part of a prompt with one writer; places are counted in characters."""

    start: int
    end: int
    #: The JSON pointer of what the conversation wrote, such as ``/messages/0/content``; None for what the template wrote.
    pointer: str | None


class Prompt(NamedTuple):
    """A rendered conversation."""

    text: str
    spans: list[Span]


class Chat:
    """A tokenizer with its chat template.

    `tokenizer` is one of `transformers` or `tokenizers`, or the path of a folder with ``tokenizer.json`` (and
    ``tokenizer_config.json`` or ``chat_template.jinja``), or of a ``tokenizer.json``. `template` is the text of a template, by
    default the tokenizer's own.
    """

    def __init__(self, tokenizer: Any, *, template: str | None = None) -> None:
        files = _folder(tokenizer) if isinstance(tokenizer, (str, Path)) else _parts(tokenizer)
        text, own, constants = files
        source = template if template is not None else own
        if source is None:
            raise ValueError("the tokenizer has no chat template; pass `template`")
        self._inner = ChatTokenizer(source, text, list(constants.items()))

    def encode(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Returns the tokens of a conversation. `variables` are more variables for the template."""
        given = _conversation(messages, tools, variables)
        return self._inner.encode(given, _ending(add_generation_prompt, continue_final_message), _now())

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """Returns the text of a conversation, and who wrote which part of it."""
        given = _conversation(messages, tools, variables)
        ending = _ending(add_generation_prompt, continue_final_message)
        text, spans = self._inner.render(given, ending, _now())
        return Prompt(text, [Span(*span) for span in spans])


def encode(
    tokenizer: Any,
    messages: Sequence[Message],
    *,
    tools: Sequence[Tool] | None = None,
    template: str | None = None,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    variables: Mapping[str, Any] | None = None,
) -> list[int]:
    """Returns the tokens of a conversation; see :class:`Chat`, which is made once for each path and each tokenizer of `transformers`."""
    return _chat(tokenizer, template).encode(
        messages,
        tools=tools,
        add_generation_prompt=add_generation_prompt,
        continue_final_message=continue_final_message,
        variables=variables,
    )


def render(
    tokenizer: Any,
    messages: Sequence[Message],
    *,
    tools: Sequence[Tool] | None = None,
    template: str | None = None,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    variables: Mapping[str, Any] | None = None,
) -> Prompt:
    """Returns the text of a conversation, and who wrote which part of it; see :class:`Chat`."""
    return _chat(tokenizer, template).render(
        messages,
        tools=tools,
        add_generation_prompt=add_generation_prompt,
        continue_final_message=continue_final_message,
        variables=variables,
    )


_known: "WeakKeyDictionary[Any, dict[tuple[Any, ...], Chat]]" = WeakKeyDictionary()


def _chat(tokenizer: Any, template: str | None) -> Chat:
    if isinstance(tokenizer, (str, Path)):
        return _of_path(str(tokenizer), template)
    # A tokenizer that gets tokens or another template later is another one.
    key = (template, str(getattr(tokenizer, "chat_template", None)), _size(tokenizer))
    try:
        chats = _known.setdefault(tokenizer, {})
    except TypeError:
        return Chat(tokenizer, template=template)
    if key not in chats:
        chats[key] = Chat(tokenizer, template=template)
    return chats[key]


@lru_cache(maxsize=8)
def _of_path(path: str, template: str | None) -> Chat:
    return Chat(path, template=template)


def _size(tokenizer: Any) -> int:
    try:
        return len(tokenizer)
    except TypeError:
        size: int = tokenizer.get_vocab_size() if hasattr(tokenizer, "get_vocab_size") else 0
        return size


def _now() -> int:
    # The local time, as `strftime_now` of `transformers` tells it.
    return timegm(time.localtime())


def _ending(add_generation_prompt: bool, continue_final_message: bool) -> str:
    if continue_final_message:
        return "open"
    return "answer" if add_generation_prompt else "nothing"


def _conversation(
    messages: Sequence[Message], tools: Sequence[Tool] | None, variables: Mapping[str, Any] | None
) -> str:
    for name in variables or ():
        if name in ("messages", "tools", "add_generation_prompt"):
            raise ValueError(f"{name!r} is an argument of its own, and no variable")
    given = {"messages": list(messages), "tools": list(tools or ()), "variables": dict(variables or {})}
    return json.dumps(given, allow_nan=False)


def _parts(tokenizer: Any) -> tuple[str, str | None, dict[str, str]]:
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise TypeError(
            f"{type(tokenizer).__name__} has no fast tokenizer: a tokenizer of `tokenizers`, or one of `transformers` that is "
            "made from one, is needed"
        )
    special = getattr(tokenizer, "special_tokens_map", None) or {}
    named = {name: getattr(token, "content", token) for name, token in special.items()}
    constants = {name: text for name, text in named.items() if isinstance(text, str)}
    return backend.to_str(), _default(getattr(tokenizer, "chat_template", None)), constants


def _folder(given: str | Path) -> tuple[str, str | None, dict[str, str]]:
    path = Path(given)
    folder = path.parent if path.is_file() else path
    file = path if path.is_file() else path / "tokenizer.json"
    config: dict[str, Any] = {}
    if (folder / "tokenizer_config.json").is_file():
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    template = _default(config.get("chat_template"))
    if (folder / "chat_template.jinja").is_file():
        template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    constants = {}
    for name in _SPECIAL:
        token = config.get(name)
        text = token.get("content") if isinstance(token, dict) else token
        if isinstance(text, str):
            constants[name] = text
    return file.read_text(encoding="utf-8"), template, constants


def _default(template: Any) -> str | None:
    """Returns the template, or the one named `default` of several."""
    if isinstance(template, list):
        template = {entry["name"]: entry["template"] for entry in template}
    if isinstance(template, dict):
        template = template.get("default")
    return template if isinstance(template, str) else None
