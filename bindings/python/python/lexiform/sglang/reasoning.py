"""Grammars that begin after the thought: SGLang's own classes, with masks of a batch in one call, limits that count the
thought, and an end of the thought that leaves room for the shortest answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend, BaseGrammarObject
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend, ReasonerGrammarObject
from sglang.srt.parser.reasoning_parser import ReasoningParser

from lexiform.engines import Sequence
from lexiform.sglang import masks
from lexiform.sglang.backend import Backend, Kept


class ReasonedGrammar(ReasonerGrammarObject):  # type: ignore[misc, unused-ignore]
    """One request that thinks first."""

    fill_vocab_mask_batched = staticmethod(masks.fill_batched)
    reset_vocab_mask = staticmethod(masks.reset)

    #: The tokens that were taken, those of the thought among them, and the number at which the request ends.
    taken = 0
    limit: int | None = None

    def configure(self, ends: Iterable[int], limit: int | None) -> None:
        """Sets what the request says of its end; not once it has tokens, such as after a retraction."""
        if self.taken == 0 and self.grammar is not None:
            self.limit = limit
            self.grammar.configure(ends, limit)

    def accept_token(self, token: int) -> None:
        """Takes a token of the thought or of the answer."""
        super().accept_token(token)
        self.taken += 1

    def rollback(self, k: int) -> None:
        """Takes back drafts."""
        super().rollback(k)
        self.taken -= k

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Writes one row."""
        self._count()
        super().fill_vocab_mask(vocab_mask, idx)
        token = self._due_end()
        if token is not None:
            masks.filter_tokens(vocab_mask, [token], idx, True, True)

    def masking_sequence(self) -> Sequence | None:
        """Returns the sequence of the answer once the thought has ended."""
        if self.grammar is None or self.reasoning_in_grammar or not self._is_generation():
            return None
        self._count()
        sequence: Sequence = self.grammar.sequence
        return sequence

    def copy(self) -> ReasonedGrammar:
        """Returns a request of its own."""
        return _with_batches(super().copy())

    def _due_end(self) -> int | None:
        """Returns the next token of the mark that ends the thought, where one more token of the thought would leave too few
        for the shortest answer. Where they were too few from the start, so from the first token on."""
        if self.limit is None or self.grammar is None or self.reasoning_in_grammar or not self._is_thinking():
            return None
        missing = self.think_end_ids[self._matched_think_end_tokens :]
        shortest = self.grammar.sequence.shortest
        is_due = shortest is not None and self.limit - self.taken <= len(missing) + shortest
        return missing[0] if is_due else None

    def _count(self) -> None:
        """Leaves to the answer what the thought did not take."""
        if self.limit is not None:
            sequence = self.grammar.sequence
            sequence.limit = self.limit - (self.taken - sequence.taken)


class ReasonedBackend(ReasonerGrammarBackend):  # type: ignore[misc, unused-ignore]
    """The constraints of one scheduler whose model thinks."""

    def _make_grammar_object(self, grammar: BaseGrammarObject | None, reasoning: bool) -> ReasonedGrammar:
        return _with_batches(super()._make_grammar_object(grammar, reasoning))

    def reset(self) -> None:
        """Forgets what was compiled."""
        super().reset()
        self.grammar_backend.reset()


def reasoned(backend: Backend, tokenizer: Any, serving: Any) -> BaseGrammarBackend:
    """Wraps a backend as SGLang does with its own, where the tokenizer has a token for the end of the thought."""
    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    strict = serving.enable_strict_thinking
    wrapped = ReasonedBackend(backend, parser, tokenizer, enable_strict_thinking=strict)
    wrapped.cache = Kept(backend.cache.most)
    return wrapped


def _with_batches(grammar: ReasonerGrammarObject) -> ReasonedGrammar:
    """The object of SGLang as one of ours: SGLang makes them by the name of its class."""
    grammar.__class__ = ReasonedGrammar
    return cast(ReasonedGrammar, grammar)
