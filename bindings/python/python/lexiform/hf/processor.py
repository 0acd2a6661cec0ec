"""The processor of logits that keeps answers within grammars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
import transformers

from lexiform._lexiform import Grammar
from lexiform._rows import Rows
from lexiform.torch import unpacked


class LogitsProcessor(transformers.LogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Keeps answers within a grammar, or within one grammar for each prompt of a batch; ``None`` is no constraint.

    The answer begins where the tokens of the first call end. A call whose rows go on with those of the last ``generate`` is
    taken as part of it: to generate again from a prompt that is an earlier prompt with a part of its answer, call
    :meth:`reset` before.

    ``max_new_tokens`` has answers complete within that many tokens, their end included. ``ends`` are the tokens that end an
    answer, by default those of the vocabulary.

    After the end of an answer only ``ends`` may come, and also after a token that the grammar does not allow, such as one that another
    processor put in. Scores of a model with another vocabulary are an error: they must not be narrower than the grammar's vocabulary,
    and wider only by what models add as padding, a fiftieth of it or 64 tokens.
    """

    def __init__(
        self,
        grammars: Grammar | Sequence[Grammar | None],
        *,
        max_new_tokens: int | None = None,
        ends: Iterable[int] | None = None,
    ) -> None:
        self._rows = Rows(grammars, max_new_tokens, ends)

    def reset(self) -> None:
        """Forgets the last ``generate``, so that the next call begins answers, whatever its rows are."""
        self._rows.reset()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Returns the scores with minus infinity for every token that may not come next.

        Raises ``ValueError`` if the scores are those of another vocabulary.
        """
        self._rows.check_width(scores.shape[-1])
        masks, constrained = self._rows.masks(input_ids.cpu().numpy())
        applies = torch.from_numpy(constrained).unsqueeze(1).to(scores.device)
        allowed = unpacked(torch.from_numpy(masks).to(scores.device), scores.shape[-1]) | ~applies
        return scores.masked_fill(~allowed, float("-inf"))

    def of_row(self, number: int, rows: int) -> LogitsProcessor | None:
        """Makes a processor for one row of a batch alone; ``None`` where the row has no constraint."""
        grammar = self._rows.grammars[self._rows.numbers(rows)[number]]
        if grammar is None:
            return None
        return LogitsProcessor(grammar, max_new_tokens=self._rows.max_new_tokens, ends=self._rows.ends)

    def only_token(self, ids: torch.Tensor) -> int | None:
        """Returns the token that comes next in the one row of ``ids``, if only one may come."""
        masks, constrained = self._rows.masks(ids.cpu().numpy())
        bits = int.from_bytes(masks.astype("<i4", copy=False).tobytes(), "little")
        is_only_one = bool(constrained[0]) and bits != 0 and bits & (bits - 1) == 0
        return bits.bit_length() - 1 if is_only_one else None

    def forced(self, ids: torch.Tensor) -> bytes:
        """Returns the bytes that must come next in the one row of ``ids``."""
        [place] = self._rows.places(ids.cpu().numpy())
        return b"" if place is None else place[0].forced(place[1])

    def valid(self, ids: torch.Tensor, draft: list[int]) -> int:
        """Returns how many tokens of a draft may come next in the one row of ``ids``."""
        [place] = self._rows.places(ids.cpu().numpy())
        return 0 if place is None else len(place[0].walk(place[1], draft, ends=self._rows.ends))
