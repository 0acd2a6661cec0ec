"""Where the rows of a batch stand in their grammars, found by the tokens of the rows.

The texts after a prompt form a tree, with a state of the grammar at each node. Rows may come in any order, come back, and be
looked at several tokens at a time.

```text
  prompt ─ 17 ─ 4 ─ 9          a row is a path: the state after it is at its last node, and a row that is one token
                 └─ 8          longer than a known one adds a node
```

No row with a grammar is ever free: after the end of its text, and after a token that the grammar does not allow, only the tokens
that end an answer may come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lexiform._lexiform import Grammar, State, fill_batch


# Models pad the rows of their output: Qwen 2.5 has 151,936 or 152,064 for 151,669 tokens, Phi 2 has 51,200 for 50,295. None known
# pads by more than this part of the vocabulary, and vocabularies of other models rarely are so close in size.
_PADDING_PART = 50
# A small vocabulary may be padded to a multiple of this.
_PADDING_MULTIPLE = 64


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
        if len({len(grammar.vocabulary) for grammar in constrained}) > 1:
            raise ValueError("the grammars have vocabularies of different sizes")
        self.grammars = given
        self.max_new_tokens = max_new_tokens
        self.ends = None if ends is None else frozenset(ends)
        self._tokens = len(constrained[0].vocabulary)
        self._only_ends = _bits(constrained[0].vocabulary.eos if self.ends is None else self.ends, self._tokens)
        self._prompt = 0
        self._roots: dict[tuple[int, bytes], _Node] = {}

    def reset(self) -> None:
        """Forgets the last call, so that the next rows begin answers, whatever they are."""
        self._prompt = 0
        self._roots = {}

    def check_width(self, width: int) -> None:
        """Refuses scores of a model whose tokens cannot be those of the grammars.

        They must not be narrower than the vocabulary, and wider only by what models add as padding: a fiftieth of the vocabulary,
        or up to 64 tokens.
        """
        most = self._tokens + max(self._tokens // _PADDING_PART, _PADDING_MULTIPLE)
        if not self._tokens <= width <= most:
            raise ValueError(
                f"the grammar is for {self._tokens:,} tokens, the model has {width:,}; make the Vocabulary from the model's"
                f" tokenizer, with rows={width}"
            )

    def masks(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Returns the masks of the rows, and which of the rows have a grammar; the masks of the others allow every token."""
        masks = np.full((len(rows), len(self._only_ends)), -1, np.int32)
        budget = None
        places = self.places(rows)
        constrained = [self.grammars[number] is not None for number in self.numbers(len(rows))]
        if self.max_new_tokens is not None:
            budget = max(0, self.max_new_tokens - (rows.shape[1] - self._prompt))
        batch = []
        for number, place in enumerate(places):
            if place is not None:
                batch.append((place[0], place[1], number, budget, self.ends))
            elif constrained[number]:
                masks[number] = self._only_ends
        fill_batch(batch, masks)
        return masks, np.array(constrained, np.bool_)

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
            if not 0 <= token < self._tokens:
                raise ValueError(
                    f"token {token} was chosen, and the grammar is for {self._tokens:,} tokens: another processor allowed it"
                )
            state = grammar.step(node.state, token, ends=self.ends)
        child = node.children[token] = _Node(state)
        return child


def _bits(tokens: Iterable[int], count: int) -> NDArray[np.int32]:
    """Returns the mask of these of so many tokens."""
    bits = np.zeros((count + 31) // 32 * 32, np.uint8)
    bits[[token for token in tokens if 0 <= token < count]] = 1
    if not bits.any():
        raise ValueError(f"none of the grammar's {count:,} tokens ends an answer; name one in `ends`")
    return np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)
