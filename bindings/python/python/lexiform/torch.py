"""Masks in tensors of torch: bit ``t % 32`` of word ``t // 32`` says whether token ``t`` may come next.

Masks are made on the CPU, and applied wherever the logits are.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lexiform._lexiform import Session

__all__ = ["allocate_token_bitmask", "apply_token_bitmask_inplace", "fill_next_token_bitmask", "unpacked"]


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> torch.Tensor:
    """Makes masks for a batch that allow every token, in pinned memory where there is a card to copy them to."""
    pinned = torch.cuda.is_available()
    return torch.full((batch_size, -(-vocab_size // 32)), -1, dtype=torch.int32, pin_memory=pinned)


def fill_next_token_bitmask(session: Session, bitmask: torch.Tensor, index: int = 0) -> None:
    """Writes what may come next in a session into one row of a tensor on the CPU."""
    session.fill(bitmask.numpy(), index)


def unpacked(bitmask: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Returns the masks as one bool for each token; tokens beyond the masks are not allowed."""
    shifts = torch.arange(32, dtype=torch.int32, device=bitmask.device)
    bits = (bitmask.unsqueeze(-1) >> shifts & 1).flatten(-2).bool()[..., :vocab_size]
    missing = vocab_size - bits.shape[-1]
    return torch.nn.functional.pad(bits, (0, missing)) if missing > 0 else bits


def apply_token_bitmask_inplace(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    *,
    indices: Sequence[int] | None = None,
) -> None:
    """Sets the logits of tokens that may not come next to minus infinity.

    ``logits`` has one row for each row of the masks, or for one row one dimension. With ``indices``, the masks are those of
    these rows alone, and the other rows stay as they are.
    """
    rows = logits.unsqueeze(0) if logits.dim() == 1 else logits
    masks = bitmask.unsqueeze(0) if bitmask.dim() == 1 else bitmask
    if indices is None:
        rows.masked_fill_(~unpacked(masks.to(rows.device, non_blocking=True), rows.shape[-1]), float("-inf"))
        return
    chosen = torch.as_tensor(list(indices), dtype=torch.long)
    allowed = unpacked(masks[chosen.to(masks.device)].to(rows.device), rows.shape[-1])
    at = chosen.to(rows.device)
    rows[at] = rows[at].masked_fill(~allowed, float("-inf"))
