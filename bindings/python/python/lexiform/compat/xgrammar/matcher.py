"""Matchers: sequences that take tokens and give them back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

import lexiform
from lexiform.compat.xgrammar.compiler import CompiledGrammar


class GrammarMatcher:
    """One sequence: a list of states of its grammar, one for each step."""

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | Sequence[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError("The grammar should be compiled before passing it to GrammarMatcher.")
        if max_rollback_tokens != -1:
            warnings.warn("max_rollback_tokens has no effect: all tokens can be given back", DeprecationWarning, stacklevel=2)
        stops = [override_stop_tokens] if isinstance(override_stop_tokens, int) else override_stop_tokens
        self._compiled = compiled_grammar
        self._grammar = compiled_grammar.compiled
        self._ends = None if stops is None else list(stops)
        self._ends_with_text = terminate_without_stop_token
        self._temperature = default_temperature
        self._states = [self._grammar.start()]

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Takes a token if it may come next."""
        if not 0 <= token_id < self._compiled.tokenizer_info.vocab_size:
            return False
        state = self._grammar.step(self._states[-1], token_id, ends=self._ends)
        if state is None or (self._ends_with_text and self._grammar.is_finished(state)):
            return False
        self._states.append(state)
        return True

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Takes a text as one step, if it may come next."""
        text = input_str.encode() if isinstance(input_str, str) else input_str
        if self._grammar.is_finished(self._states[-1]):
            return False
        state = self._grammar.step_bytes(self._states[-1], text)
        if state is None:
            return False
        self._states.append(state)
        return True

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Writes what may come next into a row, and says whether anything is forbidden."""
        self._must_go_on()
        self._grammar.fill(self._states[-1], bitmask, index, ends=self._ends)
        row = np.asarray(bitmask).reshape(-1, self._grammar.words)[index]
        return not np.array_equal(row, self._all_allowed())

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
        temperatures: Any = None,
    ) -> bool:
        """Writes the masks of a tree of drafts, whose first node is the last token that was taken.

        Rows of drafts that are not allowed, and of those that end the sequence, are cleared. It takes as long as it takes.
        """
        self._must_go_on()
        states = self._grammar.fill_tree(
            self._states[-1], retrieve_next_token, retrieve_next_sibling, draft_tokens, token_bitmask, ends=self._ends
        )
        masks = np.asarray(token_bitmask)
        for parent, child in _edges(retrieve_next_token, retrieve_next_sibling):
            above, state = states[parent], states[child]
            if above is not None and not self._grammar.is_finished(above):
                if state is None or self._grammar.is_finished(state):
                    masks[child] = 0
        if temperatures is not None:
            temperatures[: len(states)] = -1.0 if self._temperature is None else self._temperature
        return True

    def find_jump_forward_string(self) -> str:
        """Returns the text that must come next."""
        self._must_go_on()
        return self._grammar.forced(self._states[-1]).decode(errors="ignore")

    def rollback(self, num_tokens: int = 1) -> None:
        """Gives back the last steps."""
        steps = len(self._states) - 1
        if not 0 <= num_tokens <= steps:
            raise RuntimeError(f"{num_tokens} steps cannot be given back; the matcher has taken {steps}")
        del self._states[len(self._states) - num_tokens :]

    def is_terminated(self) -> bool:
        """Whether a stop token was taken or, without stop tokens, whether the text is complete."""
        if self._ends_with_text:
            return self._grammar.is_accepting(self._states[-1])
        return self._grammar.is_finished(self._states[-1])

    def is_completed(self) -> bool:
        """Whether the text so far is complete."""
        return self._grammar.is_finished(self._states[-1]) or self._grammar.is_accepting(self._states[-1])

    def reset(self) -> None:
        """Gives back all steps."""
        del self._states[1:]

    def fork(self) -> GrammarMatcher:
        """Makes a matcher that goes on from here by itself."""
        copy = GrammarMatcher.__new__(GrammarMatcher)
        copy.__dict__ = {**self.__dict__, "_states": list(self._states)}
        return copy

    def get_captures(self, *, deduplicate: bool = True) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar has no captures, which only Lark grammars have")

    @property
    def max_rollback_tokens(self) -> int:
        """Always -1: all tokens can be given back."""
        return -1

    @property
    def temperature(self) -> float | None:
        """The temperature that was given; grammars have none of their own."""
        return self._temperature

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end the sequence."""
        return self._compiled.tokenizer_info.stop_token_ids if self._ends is None else self._ends

    def row(self, number: int) -> tuple[lexiform.Grammar, lexiform.State, int, None, list[int] | None]:
        """Returns the sequence as a row of ``lexiform.fill_batch``."""
        self._must_go_on()
        return self._grammar, self._states[-1], number, None, self._ends

    def _must_go_on(self) -> None:
        if self._grammar.is_finished(self._states[-1]):
            raise RuntimeError("the matcher has taken a stop token, and nothing comes after it")

    def _all_allowed(self) -> NDArray[np.int32]:
        size = self._compiled.tokenizer_info.vocab_size
        full = np.full(self._grammar.words, -1, np.int32)
        if size % 32:
            full[-1] = (1 << size % 32) - 1
        return full


def _edges(child: Any, sibling: Any) -> list[tuple[int, int]]:
    """Each node of a tree with its parent, which was found to be a tree before."""
    found = []
    for parent, node in enumerate(int(first) for first in child):
        while node >= 0:
            found.append((parent, node))
            node = int(sibling[node])
    return found


class BatchGrammarMatcher:
    """Calls for many matchers at once."""

    def __init__(self, max_threads: int | Literal["auto"] = "auto") -> None:
        if max_threads != "auto":
            lexiform.set_threads(max_threads)

    def batch_fill_next_token_bitmask(
        self,
        matchers: Sequence[GrammarMatcher],
        bitmask: Any,
        indices: Sequence[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        """Writes what may come next in each sequence into rows of one array, on several threads."""
        numbers = range(len(matchers)) if indices is None else indices
        if len(numbers) != len(matchers):
            raise RuntimeError(f"there are {len(matchers)} matchers and {len(numbers)} indices")
        refused = lexiform.fill_batch([matcher.row(number) for matcher, number in zip(matchers, numbers, strict=True)], bitmask)
        if refused:
            raise RuntimeError(f"the masks of the rows {refused} would cost more than the limits of their grammars allow")

    @staticmethod
    def batch_fill_temperature(
        matchers: Sequence[GrammarMatcher], temperatures: Any, indices: Sequence[int] | None = None
    ) -> None:
        """Writes the temperature of each matcher, or -1 where it has none."""
        numbers = range(len(matchers)) if indices is None else indices
        for matcher, number in _pairs(matchers, numbers):
            temperatures[number] = -1.0 if matcher.temperature is None else matcher.temperature

    @staticmethod
    def batch_accept_token(matchers: Sequence[GrammarMatcher], tokens: Sequence[int], debug_print: bool = False) -> list[bool]:
        """Has each matcher take its token, and says which did."""
        return [matcher.accept_token(token) for matcher, token in _pairs(matchers, tokens)]

    @staticmethod
    def batch_accept_string(
        matchers: Sequence[GrammarMatcher], strings: Sequence[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        """Has each matcher take its text, and says which did."""
        return [matcher.accept_string(text) for matcher, text in _pairs(matchers, strings)]

    @staticmethod
    def batch_rollback(matchers: Sequence[GrammarMatcher], num_tokens: int | Sequence[int] = 1) -> None:
        """Gives back steps of each matcher."""
        counts = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        for matcher, count in _pairs(matchers, counts):
            matcher.rollback(count)


def _pairs(matchers: Sequence[GrammarMatcher], values: Sequence[Any]) -> list[tuple[GrammarMatcher, Any]]:
    if len(matchers) != len(values):
        raise RuntimeError(f"there are {len(matchers)} matchers and {len(values)} values for them")
    return list(zip(matchers, values, strict=True))
