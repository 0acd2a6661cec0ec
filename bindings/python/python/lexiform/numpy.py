"""Masks in arrays of numpy: bit ``t % 32`` of word ``t // 32`` says whether token ``t`` may come next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexiform._lexiform import Session

__all__ = ["allocate_token_bitmask", "apply_token_bitmask_inplace", "fill_next_token_bitmask", "unpacked"]


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> NDArray[np.int32]:
    """Makes masks for a batch that allow every token."""
    return np.full((batch_size, -(-vocab_size // 32)), -1, dtype=np.int32)


def fill_next_token_bitmask(session: Session, bitmask: NDArray[np.int32], index: int = 0) -> None:
    """Writes what may come next in a session into one row."""
    session.fill(bitmask, index)


def unpacked(bitmask: NDArray[np.int32], vocab_size: int) -> NDArray[np.bool_]:
    """Returns the masks as one bool for each token; tokens beyond the masks are not allowed."""
    words = np.ascontiguousarray(bitmask).astype("<i4", copy=False)
    bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")[..., :vocab_size]
    missing = vocab_size - bits.shape[-1]
    if missing > 0:
        bits = np.concatenate([bits, np.zeros((*bits.shape[:-1], missing), np.uint8)], axis=-1)
    return bits.astype(np.bool_)


def apply_token_bitmask_inplace(
    logits: NDArray[Any],
    bitmask: NDArray[np.int32],
    *,
    indices: Sequence[int] | None = None,
) -> None:
    """Sets the logits of tokens that may not come next to minus infinity.

    ``logits`` has one row for each row of the masks, or for one row one dimension. With ``indices``, the masks are those of
    these rows alone, and the other rows stay as they are.
    """
    if logits.dtype.kind != "f":
        raise TypeError(f"logits are floating-point numbers, not {logits.dtype}")
    rows: NDArray[Any] = logits[None] if logits.ndim == 1 else logits
    allowed = unpacked(bitmask[None] if bitmask.ndim == 1 else bitmask, rows.shape[-1])
    if indices is None:
        rows[~allowed] = -np.inf
        return
    for row in indices:
        rows[row][~allowed[row]] = -np.inf
