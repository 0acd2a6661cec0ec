"""Masks of a batch: made, filled in one call, moved to the card, and applied."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any

import torch
from sglang.srt.utils.common import is_pin_memory_available

from lexiform.engines import Sequence, fill_sequences
from lexiform.torch import apply_token_bitmask_inplace

#: Devices for which SGLang brings a kernel.
_KERNELS = ("cuda", "xpu", "musa")


def allocate(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
    """Makes rows that allow everything. They are written on the CPU, wherever they are applied."""
    words = -(-vocab_size // 32)
    return torch.full((batch_size, words), -1, dtype=torch.int32, pin_memory=is_pin_memory_available())


def reset(vocab_mask: torch.Tensor) -> None:
    """Makes all rows allow everything again."""
    vocab_mask.fill_(-1)


def move(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
    """Copies the rows to where the logits are."""
    return vocab_mask.to(device, non_blocking=True)


def apply(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Sets the logits of tokens that may not come to minus infinity."""
    if logits.device.type in _KERNELS and torch.version.hip is None:
        from sglang.kernels.ops.grammar.bitmask_ops import apply_token_bitmask_inplace_triton

        apply_token_bitmask_inplace_triton(logits, vocab_mask)
    else:
        apply_token_bitmask_inplace(logits, vocab_mask)


def masked_by(grammar: Any) -> Sequence | None:
    """Returns the sequence whose mask alone says what may come next for a request; ``None`` where something else has a say."""
    found = getattr(grammar, "masking_sequence", None)
    return found() if callable(found) else getattr(grammar, "sequence", None)


def fill_batched(entries: Items[Any], vocab_mask: torch.Tensor) -> None:
    """Fills the rows of many requests in one call. Each entry has a row and a grammar; rows of others stay as they are."""
    rows = []
    for entry in entries:
        sequence = masked_by(entry.grammar)
        if sequence is None:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
        else:
            rows.append(sequence.row(entry.row))
    fill_sequences(rows, vocab_mask.numpy())


def filter_tokens(vocab_mask: torch.Tensor, token_ids: Items[int], row: int, is_allowed: bool, is_reset: bool) -> None:
    """Allows or forbids tokens in one row, and all others the other way round where it is reset."""
    words = vocab_mask[row]
    if is_reset:
        words.fill_(0 if is_allowed else -1)
    for token in token_ids:
        bit = 1 << token % 32 if token % 32 < 31 else -(1 << 31)
        words[token // 32] = int(words[token // 32]) | bit if is_allowed else int(words[token // 32]) & ~bit
