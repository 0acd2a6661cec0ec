"""What is changed in vLLM: the names that the configuration takes, the check of requests, and the manager of grammars."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterable
from typing import Any

import pydantic
from vllm.config import structured_outputs as config
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.request import get_structured_output_key

from lexiform.engines import Row, only
from lexiform.vllm.backend import KINDS, NAME, Backend, Grammar, sources

#: Fields of a request that would change a constraint, and that vLLM does not hand to its backends.
_IGNORED = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")
#: Fields that are constraints.
_FIELDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")


def install() -> None:
    """Changes vLLM in this process; a second call does nothing."""
    widen_names()
    _replace(SamplingParams, "_validate_structured_outputs", _validate)
    _replace(StructuredOutputManager, "grammar_init", _grammar_init)
    _replace(StructuredOutputManager, "grammar_bitmask", _grammar_bitmask)
    _replace(StructuredOutputManager, "_fill_bitmasks", _fill_bitmasks)


def widen_names() -> None:
    """Adds the name of the backend to those that the configuration takes; it goes on refusing all others."""
    names = typing.get_args(config.StructuredOutputsBackend)
    if NAME in names:
        return
    widened: Any = typing.Literal[(*names, NAME)]
    chosen: Any = config.StructuredOutputsConfig
    config.StructuredOutputsBackend = widened
    chosen.__annotations__["backend"] = widened
    chosen.__dataclass_fields__["backend"].type = widened
    chosen.__pydantic_fields__["backend"].annotation = widened
    pydantic.dataclasses.rebuild_dataclass(chosen, force=True)


def _replace(owner: type, name: str, around: Callable[..., Any]) -> None:
    """Puts a function around a method; its first argument is the method that was there."""
    original = getattr(owner, name)
    if getattr(original, "is_of_lexiform", False):
        return

    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    replaced.is_of_lexiform = True  # type: ignore[attr-defined]
    setattr(owner, name, replaced)


def _validate(
    original: Callable[..., None],
    self: SamplingParams,
    model_config: Any,
    structured_outputs_config: Any,
    tokenizer: Any,
) -> None:
    """Checks a request in the process that got it, so that it is refused there with the place of the problem."""
    params = self.structured_outputs
    if structured_outputs_config is None or params is None or structured_outputs_config.backend != NAME:
        original(self, model_config, structured_outputs_config, tokenizer)
        return
    if model_config.is_diffusion:
        raise VLLMValidationError("structured outputs are not there for diffusion language models")
    if tokenizer is None:
        raise VLLMValidationError("structured outputs need a tokenizer, and `skip_tokenizer_init` leaves it out")
    if params._backend not in (None, NAME):
        raise VLLMValidationError(f"the backend is {NAME!r}, and a request cannot choose {params._backend!r}")
    for name in _IGNORED:
        if getattr(params, name, None):
            raise VLLMValidationError(
                f"structured_outputs.{name} is not supported for a request; LEXIFORM_ENGINE_OPTIONS has options for all"
            )
    try:
        kind, text = get_structured_output_key(params)
        sources(tokenizer, model_config.get_vocab_size()).grammar(KINDS[kind], text)
    except VLLMValidationError:
        raise
    except (ValueError, TypeError) as error:
        given = next((name for name in _FIELDS if getattr(params, name, None) is not None), None)
        raise VLLMValidationError(f"structured_outputs{'' if given is None else '.' + given}: {error}") from error
    params._backend = NAME
    # vLLM does this last too: what is sent to another process must be whole.
    params.__post_init__()


def _grammar_init(original: Callable[..., None], self: StructuredOutputManager, request: Any) -> None:
    """Makes the backend when the first request comes, which vLLM would do by a list of names."""
    if self.vllm_config.structured_outputs_config.backend != NAME or request.structured_output_request is None:
        original(self, request)
        return
    # A request that comes past the front end in Python names no backend.
    request.sampling_params.structured_outputs._backend = NAME
    if self.backend is None:
        self.backend = Backend(
            self.vllm_config,
            tokenizer=self.tokenizer,
            vocab_size=self.vllm_config.model_config.get_vocab_size(),
        )
        # Since 0.33.0 the manager compares it with that of each request.
        self.backend_name = NAME
    original(self, request)


def _grammar_bitmask(
    original: Callable[..., Any],
    self: StructuredOutputManager,
    requests: dict[str, Any],
    structured_output_request_ids: list[str],
    scheduled_spec_decode_tokens: dict[str, list[int]],
) -> Any:
    """Tells each request how many tokens are left for it, and writes the rows of all requests and drafts in one call."""
    backend = self.backend
    if not isinstance(backend, Backend):
        return original(self, requests, structured_output_request_ids, scheduled_spec_decode_tokens)
    longest = self.vllm_config.model_config.max_model_len
    for name in structured_output_request_ids:
        request = requests[name]
        grammar = request.structured_output_request.grammar
        if isinstance(grammar, Grammar):
            left = min(request.max_tokens - request.num_output_tokens, longest - request.num_tokens)
            grammar.sequence.limit = grammar.sequence.taken + left
            grammar.limit_thought(_ends_of_thought(self, request), left)
    with backend.together():
        return original(self, requests, structured_output_request_ids, scheduled_spec_decode_tokens)


def _ends_of_thought(manager: StructuredOutputManager, request: Any) -> frozenset[int]:
    """Returns the tokens that end the thought of a request; none where it has ended, or where no single token does."""
    if manager.enable_in_reasoning or request.structured_output_request.reasoning_ended:
        return frozenset()
    reasoner = manager._get_reasoner(request)
    end = getattr(reasoner, "end_token_id", None)
    if isinstance(end, int):
        return frozenset([end])
    ends = getattr(reasoner, "reasoning_end_token_ids", None) or frozenset()
    return frozenset(ends) - frozenset(getattr(reasoner, "implicit_reasoning_end_token_ids", None) or ())


def _fill_bitmasks(original: Callable[..., None], self: StructuredOutputManager, batch: Iterable[Any]) -> None:
    """Fills the rows that are ours in one call. Up to 0.32.0 an item is (grammar, row, apply), later it has more to say of
    rows that are not masked."""
    ours: list[Row] = []
    others, due = [], []
    for item in batch:
        grammar, number, is_masked = item[:3]
        if is_masked and isinstance(grammar, Grammar) and not grammar.is_terminated():
            ours.append(grammar.sequence.row(number))
        elif not is_masked and isinstance(grammar, Grammar) and (ends := grammar.due_ends()):
            due.append((number, ends))
        else:
            others.append(item)
    if others:
        original(self, others)
    for number, ends in due:
        only(self._grammar_bitmask, number, ends)
    if ours:
        self.backend.fill(ours, self._grammar_bitmask)
