"""Masks as tensors of torch: bit ``t % 32`` of word ``t // 32`` says whether token ``t`` may come next."""

from __future__ import annotations

from typing import Literal

import torch

import lexiform.torch

bitmask_dtype = torch.int32


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """Returns the shape of the masks of a batch."""
    return batch_size, -(-vocab_size // 32)


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> torch.Tensor:
    """Makes masks for a batch that allow every token."""
    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=bitmask_dtype)


def reset_token_bitmask(bitmask: torch.Tensor) -> None:
    """Makes the masks allow every token."""
    bitmask.fill_(-1)


def apply_token_bitmask_inplace(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    *,
    vocab_size: int | None = None,
    indices: list[int] | None = None,
    backend: Literal["auto", "cpu", "cuda", "triton", "torch_compile", "torch_native"] = "auto",
) -> None:
    """Sets the logits of tokens that may not come next to minus infinity; with ``vocab_size``, of that many tokens alone.

    Torch does so on every device, whatever the ``backend``.
    """
    if bitmask.device != logits.device:
        raise ValueError(f"the logits are on {logits.device} and the bitmask is on {bitmask.device}")
    if backend not in ("auto", "cpu", "cuda", "triton", "torch_compile", "torch_native"):
        raise ValueError(f"there is no backend {backend!r}")
    lexiform.torch.apply_token_bitmask_inplace(logits[..., :vocab_size], bitmask, indices=indices)
