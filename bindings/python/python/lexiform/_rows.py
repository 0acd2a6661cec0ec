"""Where the rows of a batch stand in their grammars, found by the tokens of the rows.

The texts after a prompt form a tree, with a state of the grammar at each node. Rows may come in any order, come back, and be
looked at several tokens at a time.

```text
  prompt ─ 17 ─ 4 ─ 9          a row is a path: the state after it is at its last node, and a row that is one token
                 └─ 8          longer than a known one adds a node
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lexiform._lexiform import Grammar, State, fill_batch


class _Node:
    """A text after the prompt: the state of its grammar, and the texts that are one token longer.

    The state is ``None`` where the text has left the grammar, such as a draft that is not allowed, and after its end.
    """

    __slots__ = ("children", "state")

    def __init__(self, state: State | None) -> None:
        self.state = state
        self.children: dict[int, _Node] = {}


class Rows:
    """The rows of one call of ``generate`` after the other, each with one of several grammars."""

    def __init__(
        self,
        grammars: Grammar | Sequence[Grammar | None],
        max_new_tokens: int | None = None,
        ends: Iterable[int] | None = None,
    ) -> None:
        given = [grammars] if isinstance(grammars, Grammar) else list(grammars)
        constrained = [grammar for grammar in given if grammar is not None]
        if not constrained:
            raise ValueError("there is no grammar")
        if len({grammar.words for grammar in constrained}) > 1:
            raise ValueError("the grammars have vocabularies of different sizes")
        self.grammars = given
        self.max_new_tokens = max_new_tokens
        self.ends = None if ends is None else frozenset(ends)
        self._words = constrained[0].words
        self._prompt = 0
        self._roots: dict[tuple[int, bytes], _Node] = {}

    def reset(self) -> None:
        """Forgets the last call, so that the next rows begin answers, whatever they are."""
        self._prompt = 0
        self._roots = {}

    def masks(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Returns the masks of the rows, and to which of the rows they apply."""
        masks = np.full((len(rows), self._words), -1, np.int32)
        budget = None
        places = self.places(rows)
        if self.max_new_tokens is not None:
            budget = max(0, self.max_new_tokens - (rows.shape[1] - self._prompt))
        batch = [
            (place[0], place[1], number, budget, self.ends) for number, place in enumerate(places) if place is not None
        ]
        fill_batch(batch, masks)
        return masks, np.array([place is not None for place in places], np.bool_)

    def places(self, rows: NDArray[np.int64]) -> list[tuple[Grammar, State] | None]:
        """Returns where each row stands; ``None`` where it has ended, has left its grammar, or has none."""
        numbers = self.numbers(len(rows))
        nodes = self._nodes(rows, numbers)
        found: list[tuple[Grammar, State] | None] = []
        for number, node in zip(numbers, nodes, strict=True):
            grammar = self.grammars[number]
            is_open = grammar is not None and node.state is not None and not grammar.is_finished(node.state)
            found.append((grammar, node.state) if is_open and grammar is not None and node.state is not None else None)
        return found

    def numbers(self, rows: int) -> list[int]:
        """Returns which of the grammars is that of each row."""
        if rows % len(self.grammars) != 0:
            raise ValueError(f"there are {len(self.grammars)} grammars for a batch of {rows} rows")
        answers_each = rows // len(self.grammars)
        return [row // answers_each for row in range(rows)]

    def _nodes(self, rows: NDArray[np.int64], numbers: list[int]) -> list[_Node]:
        """Returns the text of each row; where one does not go on with a row of before, all of them are prompts."""
        length = rows.shape[1]
        if length >= self._prompt and self._roots:
            known = [self._known(number, row) for number, row in zip(numbers, rows, strict=True)]
            found = [node for node in known if node is not None]
            if len(found) == len(rows):
                return found
        self._prompt = length
        self._roots = {}
        return [self._root(number, row) for number, row in zip(numbers, rows, strict=True)]

    def _root(self, number: int, prompt: NDArray[np.int64]) -> _Node:
        grammar = self.grammars[number]
        root = _Node(None if grammar is None else grammar.start())
        return self._roots.setdefault((number, prompt.tobytes()), root)

    def _known(self, number: int, row: NDArray[np.int64]) -> _Node | None:
        """Returns the text of a row that goes on with one that was seen by at most one token."""
        node = self._roots.get((number, row[: self._prompt].tobytes()))
        answer: list[int] = row[self._prompt :].tolist()
        for at, token in enumerate(answer):
            if node is None:
                return None
            child = node.children.get(token)
            if child is None and at == len(answer) - 1:
                child = self._next(number, node, token)
            node = child
        return node

    def _next(self, number: int, node: _Node, token: int) -> _Node:
        grammar = self.grammars[number]
        state = None
        if grammar is not None and node.state is not None and not grammar.is_finished(node.state):
            state = grammar.step(node.state, token, ends=self.ends)
        child = node.children[token] = _Node(state)
        return child
