"""The two classes that vLLM asks of a backend, and the check of requests before they are queued."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from lexiform.engines import Row, Sequence, Sources, fill_sequences, fitting_ends
from lexiform.torch import allocate_token_bitmask

NAME = "lexiform"

#: The kinds of requests by vLLM's names.
KINDS = {
    StructuredOutputOptions.JSON: "json",
    StructuredOutputOptions.JSON_OBJECT: "json_object",
    StructuredOutputOptions.REGEX: "regex",
    StructuredOutputOptions.CHOICE: "choice",
    StructuredOutputOptions.GRAMMAR: "grammar",
    StructuredOutputOptions.STRUCTURAL_TAG: "structural_tag",
}


class Grammar(StructuredOutputGrammar):  # type: ignore[misc, unused-ignore]
    """One request. A rejected token changes nothing, and rows that wait to be written are written before it is reported."""

    def __init__(self, sequence: Sequence, backend: Backend) -> None:
        self.sequence = sequence
        self._backend = backend
        self._shortest = sequence.shortest
        #: The tokens that end a thought, and how many tokens it may still take; ``None`` where that is not limited.
        self._thought: tuple[frozenset[int], int] | None = None

    def limit_thought(self, ends: frozenset[int], left: int | None) -> None:
        """Has a thought end while the tokens left suffice for the shortest answer. No ends or no number limit nothing."""
        self._thought = None
        if ends and left is not None and self._shortest is not None:
            self._thought = ends, left - self._shortest - 1

    def due_ends(self) -> frozenset[int]:
        """Returns the tokens of which one must come in the next row of a thought; none where the thought may go on."""
        if self._thought is None:
            return frozenset()
        ends, left = self._thought
        self._thought = ends, left - 1
        return ends if left <= 0 else frozenset()

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Takes tokens; false ends the request with an error."""
        accepted = self.sequence.accept(tokens)
        if not accepted:
            self._backend.write()
        return accepted

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Returns the drafts that could be accepted one after the other."""
        return self.sequence.validate(tokens)

    def rollback(self, num_tokens: int) -> None:
        """Takes back drafts."""
        self.sequence.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Writes one row."""
        self.sequence.fill(bitmask, batch_index)

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted."""
        return self.sequence.terminated

    def reset(self) -> None:
        """Goes back to the beginning."""
        self.sequence.reset()


# Without the decorator of its own, the class has the constructor of its parent, which knows no `__post_init__` of a child.
@dataclass
class Backend(StructuredOutputBackend):  # type: ignore[misc, unused-ignore]
    """The constraints of one engine."""

    def __post_init__(self) -> None:
        self._sources = sources(self.tokenizer, self.vocab_size)
        self._waiting: list[Row] | None = None
        self._mask: Any = None

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> Grammar:
        """Compiles a constraint, which nobody may have looked at before: vLLM has a front end without Python."""
        kind = KINDS.get(request_type)
        if kind is None:
            raise ValueError(f"lexiform knows no constraint of the kind {request_type}")
        grammar = self._sources.grammar(kind, grammar_spec)
        ends = fitting_ends(stop_token_ids, self.vocab_size) or self._sources.eos
        return Grammar(Sequence(grammar, ends=ends), self)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Makes rows that allow everything, exactly as wide as the model's vocabulary."""
        return allocate_token_bitmask(max_num_seqs, self.vocab_size)

    def destroy(self) -> None:
        """Forgets what was compiled."""
        self._sources.clear()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Has the rows that are filled meanwhile written in one call at the end."""
        self._waiting = []
        try:
            yield
            self.write()
        finally:
            self._waiting = None

    def fill(self, rows: list[Row], mask: torch.Tensor) -> None:
        """Writes rows, or remembers them until all are known. They are values: it does not matter when they are written."""
        if self._waiting is None:
            fill_sequences(rows, mask.numpy())
        else:
            self._mask = mask
            self._waiting.extend(rows)

    def write(self) -> None:
        """Writes the rows that wait."""
        if self._waiting:
            rows, self._waiting = self._waiting, []
            fill_sequences(rows, self._mask.numpy())


_known: dict[tuple[int, int], tuple[Any, Sources]] = {}
_lock = threading.Lock()
#: Tokenizers whose sources are kept. A process has one, or two where a draft model brings its own.
_TOKENIZERS = 4


def sources(tokenizer: Any, rows: int) -> Sources:
    """Returns the sources of a tokenizer, shared by the check of requests and the engine where these are one process."""
    key = (id(tokenizer), rows)
    with _lock:
        if key not in _known:
            while len(_known) >= _TOKENIZERS:
                _known.pop(next(iter(_known)))
            _known[key] = (tokenizer, Sources(tokenizer, rows))
        return _known[key][1]
